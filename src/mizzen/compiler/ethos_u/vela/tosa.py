"""Compile a TOSA network by Vela as it is, and prove what comes.

All of it goes to the NPU: whoever writes TOSA has decided what is for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.execution import Contents, NoState
from mizzen.artifact.interface import Values
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.ethos_u.tosa import index_of, placements_of, read_tosa
from mizzen.compiler.ethos_u.vela.report import network_report
from mizzen.compiler.proof.accesses import require_order
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.proof.regions import prove_graph
from mizzen.diagnostics import MizzenError, Origin, ProgressCallback, fail
from mizzen.flatbuffer.tosa import ENDING
from mizzen.graph import Graph
from mizzen.ops.control_flow import Variable
from mizzen.report.proof import NOT_PROVED, Proof
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.generate import (
    LEAVE_IT_OUT,
    Compiled,
    NetworkForm,
    Stopped,
    generate,
)

Array = npt.NDArray[Any]


def compile_tosa(
    file: bytes,
    name: str,
    configuration: EthosUConfiguration,
    options: ProofOptions,
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a file's network, and prove what comes.

    Raises as `read_tosa`, E301 to E305 if Vela stops, E307 if its code is wrong, E308 for
    variables.
    """
    graph = _without_state(read_tosa(file, name, configuration.ignore_ops))
    compiled = generate(file, configuration, NetworkForm.TOSA, on_progress=on_progress)
    if isinstance(compiled, Stopped):
        said = replace(compiled.diagnostic, origin=Origin(name))
        raise MizzenError(said)
    network, origins = read_network(compiled.network, name), _origins(graph, compiled)
    placements = placements_of(graph, {})
    contents = contents_of(network, [origins])
    proof = _proved(graph, contents, options) if options.inputs else NOT_PROVED
    report = network_report(placements, name, configuration, compiled, network, [origins], proof)
    return Artifact(compiled.network, f"{name.removesuffix(ENDING)}_vela.tflite", contents, report)


def _without_state(graph: Graph) -> Graph:
    """Refuse variables, which Vela takes for no accelerator. E308."""
    for operation in graph:
        if isinstance(operation, Variable):
            raise fail(
                "E308",
                f"Vela must get a network without variables, and this one has {operation.name!r}",
                origin=operation.origin,
                help=LEAVE_IT_OUT,
            )
    return graph


def _proved(graph: Graph, contents: Contents, options: ProofOptions) -> Proof:
    """Execute what was compiled beside the graph. E307 if it differs and may not."""
    findings = prove_graph(
        graph, lambda inputs, count: _computed(graph, contents, inputs, count), options
    )
    if findings.wrong is None:
        return findings.proof
    if options.allow_inexact:
        return replace(findings.proof, differing=("an output",))
    last, wrong = graph.sorted()[-1], findings.wrong
    said = f"gives wrong numbers: {wrong}"
    if isinstance(wrong, MizzenError):
        said = f"cannot be executed: {wrong.diagnostic.message}"
    raise fail(
        "E307",
        f"Vela's code must compute what the network does, and that for {last.kind}, or for an "
        f"operation before it, {said}",
        origin=last.origin,
        help=f"{LEAVE_IT_OUT}, or compile with --allow-inexact",
    )


def _computed(graph: Graph, contents: Contents, inputs: Sequence[Array], count: int) -> list[Array]:
    """Return the outputs of `count` inferences of a graph as the simulator computes them."""
    values: Values = {
        index: array.reshape(count, *contents.infos[index].shape)
        for index, array in zip(contents.inputs, inputs, strict=True)
    }
    for step in contents.steps:
        assert isinstance(step, NpuStep), "all of a TOSA network is on the NPU"
        NoState().provide(step.variables, values, count)
        step.run(values, count)
        require_order(step)
    return [
        values[index].reshape(count, *value.shape).astype(value.dtype.numpy)
        for index, value in zip(contents.outputs, graph.outputs, strict=True)
    ]


def _origins(graph: Graph, compiled: Compiled) -> dict[int, Origin]:
    """Return the operator of each command of the one NPU operator, by byte offset."""
    origins = {index_of(operation): operation.origin for operation in graph}
    return {
        command.offset_bytes: origin
        for command in compiled.commands
        if (origin := origins.get(command.operator)) is not None
    }
