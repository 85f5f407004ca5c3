"""What an NPU computes beside its reference, as a page."""

from __future__ import annotations

from mizzen.report.comparison import Comparison, LayerComparison
from mizzen.report.page import Cell, Figure, Figures, Page, Section, Table
from mizzen.report.words import short_name


def comparison_page(found: Comparison) -> Page:
    """Return the page: outputs first, then every layer."""
    accelerator = found.configuration.get("accelerator", "")
    figures = Figures(
        (
            Figure("Outputs that differ", f"{found.differing:,}", f"of {found.elements:,}"),
            Figure("Layers that differ", f"{len(found.wrong):,}", f"of {len(found.layers):,}"),
            Figure("Inputs", f"{found.inputs:,}", f"compared with {found.reference}"),
        )
    )
    outputs = Table(
        "Outputs of the network",
        ("output", "found", "differing", "of", "largest difference"),
        tuple(
            (row.name, row.outcome.value, row.differing, row.elements, row.steps)
            for row in found.outputs
        ),
    )
    layers = Table(
        "Layers, in the model's order",
        ("#", "type", "on", "found", "differing", "of", "largest difference", "output"),
        tuple(_layer(row) for row in found.layers),
        wide=frozenset({7}),
    )
    title = f"{found.model} on {accelerator}, beside {found.reference}"
    summary = "What the NPU computes is what the model means." if found.holds else "It differs."
    return Page(title, summary, (Section("Comparison", (outputs, layers)),), (figures,))


def _layer(row: LayerComparison) -> tuple[Cell, ...]:
    return (
        row.index, row.kind, row.device.value, row.outcome.value, row.differing, row.elements,
        row.steps, short_name(row.name),
    )  # fmt: skip
