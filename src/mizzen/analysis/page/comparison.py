"""What an NPU computes beside its reference, as a page."""

from __future__ import annotations

from mizzen.report.comparison import Comparison, LayerComparison
from mizzen.report.page import Cell, Figure, Figures, Page, Section, Table
from mizzen.report.words import short_name


def comparison_page(comparison: Comparison) -> Page:
    """Return the page: outputs first, then every layer."""
    accelerator = comparison.configuration.get("accelerator", "")
    figures = Figures(
        (
            Figure(
                "Outputs that differ", f"{comparison.differing:,}", f"of {comparison.elements:,}"
            ),
            Figure(
                "Layers that differ", f"{len(comparison.wrong):,}", f"of {len(comparison.layers):,}"
            ),
            Figure("Inputs", f"{comparison.inputs:,}", f"compared with {comparison.reference}"),
        )
    )
    outputs = Table(
        "Outputs of the network",
        ("output", "found", "differing", "of", "largest difference"),
        tuple(
            (output.name, output.outcome.value, output.differing, output.elements, output.steps)
            for output in comparison.outputs
        ),
    )
    layers = Table(
        "Layers, in the model's order",
        ("#", "type", "on", "found", "differing", "of", "largest difference", "output"),
        tuple(_layer(layer) for layer in comparison.layers),
        wide=frozenset({7}),
    )
    title = f"{comparison.model} on {accelerator}, beside {comparison.reference}"
    summary = "The NPU computes exactly what the model does." if comparison.holds else "It differs."
    return Page(title, summary, (Section("Comparison", (outputs, layers)),), (figures,))


def _layer(layer: LayerComparison) -> tuple[Cell, ...]:
    return (
        layer.index, layer.kind, layer.device.value, layer.outcome.value, layer.differing,
        layer.elements,
        layer.steps, short_name(layer.name),
    )  # fmt: skip
