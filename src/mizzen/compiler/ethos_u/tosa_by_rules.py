"""TOSA networks by our own rules: such as keep variables, and such as Vela's code is wrong for.

Vela refuses variables, or keeps them among the constants. Where code of our own is asked for and
rules take the whole network, it is one NPU operator, which keeps its state in its own memory. Vela
has no part in it; what comes is executed beside the graph's reference, inference after inference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.generator.whole import Edge, NotWhole, Whole, compiled_whole
from mizzen.compiler.proof.options import Effort, ProofOptions
from mizzen.compiler.proof.regions import graph_stimuli
from mizzen.diagnostics import MizzenError, Origin
from mizzen.graph import Graph, Value
from mizzen.ops.control_flow import Constant, Variable
from mizzen.partition.placement import macs_of
from mizzen.reference import evaluate
from mizzen.report.code import Verdict
from mizzen.report.proof import NOT_PROVED, Proof
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.generate import Compiled

Array = npt.NDArray[Any]
DECIDING = Effort.THOROUGH
"""How much is executed where nothing else says that code is right."""


def keeps_variables(graph: Graph) -> bool:
    """Whether a graph has state."""
    return any(isinstance(row, Variable) for row in graph)


def tosa_by_rules(
    graph: Graph, name: str, configuration: EthosUConfiguration, verdict: Verdict, reason: str
) -> Compiled | str:
    """Compile a graph by our own rules; say why not where they do not take it whole."""
    try:
        compiled = compiled_whole(_whole(graph, name), configuration, verdict, reason)
    except MizzenError as error:  # no schedule, or one that cannot be emitted
        return error.diagnostic.message
    if isinstance(compiled, NotWhole):
        index, said = next(iter(compiled.reasons), (None, "no rule takes all of it"))
        return said if index is None else f"{_kinds(graph)[index]} {index}: {said}"
    return compiled


def proved_by_steps(graph: Graph, compiled: Compiled, options: ProofOptions) -> Proof | str:
    """Execute inferences one after the other beside the graph's reference; say what differs.

    The state goes on from one to the next on both sides.
    """
    if options.effort is Effort.OFF:
        return NOT_PROVED
    count = replace(options, effort=DECIDING).inputs
    rows = graph_stimuli(graph, count, options.seed)
    contents = contents_of(read_network(compiled.network, graph.name))
    session = Artifact(compiled.network, graph.name, contents, None).session()
    variables, digest = dict[str, Array](), sha256()
    for place in range(count):
        given = [row[place] for row in rows]
        try:
            wanted = evaluate(graph, given, variables=variables)
            found = session.run(*given)
        except MizzenError as error:
            return error.diagnostic.message
        ours = found if isinstance(found, tuple) else (found,)
        for value, one, other in zip(graph.outputs, ours, wanted, strict=True):
            numbers = np.asarray(one).reshape(other.shape)
            digest.update(np.ascontiguousarray(numbers).data)
            if not np.array_equal(numbers, other):
                wrong = int(np.count_nonzero(numbers != other))
                return f'{wrong} of {other.size} numbers of "{value.name}" differ'
    equal = len(graph.outputs)
    return Proof(count, options.seed, digest.hexdigest(), parts=1, equal=equal)


def origins_by_file(graph: Graph, compiled: Compiled) -> dict[int, Origin]:
    """Return the operator of each command, by byte offset."""
    origins = {row.origin.operator: row.origin for row in graph if row.origin is not None}
    return {
        row.offset_bytes: origins[row.operator]
        for row in compiled.commands
        if row.operator in origins
    }


def cycles_by_file(compiled: Compiled) -> dict[int | None, int]:
    """Return the cycles of the file's operators."""
    return {row.operator: row.cycles for row in compiled.work}


def _whole(graph: Graph, name: str) -> Whole:
    macs: dict[int, int] = {}
    for row in graph.sorted():
        index = None if row.origin is None else row.origin.operator
        if index is not None and not isinstance(row, Constant | Variable):
            macs[index] = macs_of(row)
    inputs, outputs = (
        tuple(_edges(values, side))
        for values, side in ((graph.inputs, "input"), (graph.outputs, "output"))
    )
    return Whole(name, graph, (), inputs, outputs, macs)


def _edges(values: Sequence[Value], side: str) -> Iterator[Edge]:
    for place, value in enumerate(values):
        dtype = np.dtype(value.dtype.numpy)
        yield Edge(value.name or f"{side}_{place}", value.shape or (1,), dtype)


def _kinds(graph: Graph) -> dict[int | None, str]:
    return {row.origin.operator: row.kind for row in graph if row.origin is not None}
