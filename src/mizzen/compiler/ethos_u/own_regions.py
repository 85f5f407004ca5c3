"""Regions of a tensor graph by our own rules alone: where Vela has no code, or none that is right.

Vela has no part in what comes, so none of its defects either, nor its limits. It is executed beside
the region's graph, and taken only if every output is the graph's, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.generator.equality import numbers
from mizzen.compiler.ethos_u.tosa_by_rules import DECIDING, tosa_by_rules
from mizzen.compiler.ethos_u.tosa_proof import computed, findings_of
from mizzen.compiler.proof.options import Effort, ProofOptions
from mizzen.diagnostics import MizzenError
from mizzen.frontends import tosa as frontend
from mizzen.graph import Graph, Operation
from mizzen.package import tosa
from mizzen.partition import extract
from mizzen.passes import Pipeline
from mizzen.reference import evaluate
from mizzen.report.code import Verdict
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.generate import Compiled


@dataclass(frozen=True, eq=False)
class Form:
    """A region as a TOSA file, and the operations of its graph in the file's order."""

    data: bytes
    operations: tuple[Operation, ...]


def form_of(graph: Graph) -> Form:
    """Return a graph as a file."""
    return Form(tosa.write(graph), tuple(graph.sorted()))


def decides(options: ProofOptions) -> bool:
    """Whether code is executed beside the reference, and must be right then."""
    return options.effort is not Effort.OFF and not options.allow_inexact


def by_rules(
    form: Form,
    name: str,
    configuration: EthosUConfiguration,
    options: ProofOptions,
    verdict: Verdict,
    reason: str,
) -> Compiled | str:
    """Compile a region by our own rules; say why not where they do not take it, or are not right.

    verdict, reason  why it is not Vela's code
    """
    graph = frontend.read(form.data, name)
    compiled = tosa_by_rules(graph, name, configuration, verdict, reason)
    if isinstance(compiled, str) or options.effort is Effort.OFF:
        return compiled
    return compiled if holds(form, name, compiled, options) else "it is not proved to be right"


def holds(form: Form, name: str, compiled: Compiled, options: ProofOptions) -> bool:
    """Whether what was compiled of a region computes what its graph does, bit for bit.

    On many inputs, and on those on which code of ours is held against Vela's.
    """
    graph = frontend.read(form.data, name)
    contents = contents_of(read_network(compiled.network, name))
    found = findings_of(graph, contents, replace(options, effort=DECIDING))
    if found.wrong is not None or not found.proof.inputs:
        return False
    inputs = [
        numbers(row.shape, np.dtype(row.dtype.numpy), at) for at, row in enumerate(graph.inputs)
    ]
    try:
        wanted = evaluate(graph, [row[0] for row in inputs])
    except MizzenError:
        return True  # TOSA leaves open what comes of these
    outputs = computed(graph, contents, inputs, len(inputs[0]) if inputs else 1)
    return all(np.array_equal(row[0], other) for row, other in zip(outputs, wanted, strict=True))


@dataclass(frozen=True, eq=False)
class Taken:
    """Which groups of a graph our own rules take alone.

    passes  what brings a region into the form that rules read
    """

    graph: Graph
    passes: Pipeline
    _known: dict[int, bool] = field(default_factory=dict[int, bool])

    def __contains__(self, group: object) -> bool:
        if not isinstance(group, int):
            return False
        if group not in self._known:
            part = extract(self.graph, [group], self.graph.name).graph
            self.passes.run(part)
            self._known[group] = lower(part).sequence is not None
        return self._known[group]


def kinds_of(operations: Sequence[Operation]) -> str:
    """Return which operations these are, in words."""
    return ", ".join(dict.fromkeys(row.kind for row in operations))
