"""Find cliffs by compiling a layer's neighbours: the layer alone with a few channels more or less.

What is found is what the compiler makes of the layer alone. In its network a layer may share a
block with another, or hide its weights behind it, so the figures rank neighbours and do not add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mizzen.analysis.layers.neighbours import (
    Form,
    channels_of,
    counts_around,
    forms_of,
    neighbour,
)
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.compile import compile_file
from mizzen.compiler.proof.options import OFF
from mizzen.compiler.source import Source
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.subgraphs import names_of
from mizzen.report.cliffs import Cliff, Neighbour
from mizzen.report.layers import Layer

LEAST_SHARE = 0.05
MOST_LAYERS = 5
"""Layers that take less than this share of the time, or come after so many, are passed over."""


def candidates(model: Model, layers: Sequence[Layer]) -> list[Operator]:
    """Return operators of the main subgraph whose cliffs matter, dear ones first."""
    main = ("", names_of(model)[0])
    dear = sorted(
        (layer for layer in layers if layer.subgraph in main), key=lambda layer: -layer.cycles
    )
    operators = [
        model.main.operators[layer.index]
        for layer in dear
        if layer.index is not None and layer.share >= LEAST_SHARE
    ]
    return [operator for operator in operators if forms_of(model, operator)][:MOST_LAYERS]


def alone(target: ResolvedTarget) -> ResolvedTarget:
    """Return how one layer is compiled by itself."""
    return replace(target, configuration=target.backend.for_one_layer(target.configuration))


def cliffs(
    model: Model,
    operators: Sequence[Operator],
    target: ResolvedTarget,
    on_layer: Callable[[int, int], None] = lambda done, of: None,
) -> Iterator[Cliff]:
    """Compile each operator's neighbours for a configuration, without proof.

    on_layer  is told how many are done, and of how many
    """
    wanted = [(each, form) for each in operators for form in forms_of(model, each)]
    for done, (operator, form) in enumerate(wanted):
        on_layer(done, len(wanted))
        channels = channels_of(model, operator, form)
        around = tuple(neighbours(model, operator, form, target, counts_around(channels)))
        if channels in (each.channels for each in around):
            outputs = model.main.present(operator.outputs)
            yield Cliff(operator.index, operator.kind, outputs[0].name, form.axis.value,
                        channels, around)  # fmt: skip


def neighbours(
    model: Model, operator: Operator, form: Form, target: ResolvedTarget, counts: Sequence[int]
) -> Iterator[Neighbour]:
    """Compile an operator alone with other numbers of channels, without proof.

    Those that the compiler does not take, or leaves to the CPU, are left out.
    """
    unproved = replace(target, proof=OFF)
    for count in counts:
        try:
            changed = Source(neighbour(model, operator, form, count), model.name)
            artifact = compile_file(changed, unproved)
        except MizzenError:
            continue  # what the compiler does not take is not a neighbour
        report = artifact.report
        if report is None or report.on_cpu:
            continue
        constants = sum(area.used_bytes for area in report.areas if area.name == "constants")
        yield Neighbour(count, report.cycles, report.sram_bytes, constants)
