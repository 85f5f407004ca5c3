"""Prove a compiled TOSA network, and find the operator that the compiler gets wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from mizzen.artifact.execution import Contents, NoState
from mizzen.artifact.interface import Values
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.proof.accesses import require_order
from mizzen.compiler.proof.findings import RegionFindings, Wrong
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.proof.regions import prove_graph
from mizzen.compiler.refusals import RefusalSearch
from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.graph import Graph, Operation
from mizzen.ops.control_flow import Constant
from mizzen.package import tosa as package
from mizzen.partition import extract_operations
from mizzen.report.proof import Proof
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.defects import avoid_defects
from mizzen.targets.ethos_u.vela.generate import NetworkForm, Stopped, generate

Array = npt.NDArray[Any]


def prove_tosa(
    graph: Graph, contents: Contents, configuration: EthosUConfiguration, options: ProofOptions
) -> Proof:
    """Prove what was compiled of a file's graph. E307 at the operator that is wrong."""
    findings = findings_of(graph, contents, options)
    if findings.wrong is None:
        return findings.proof
    if options.allow_inexact:
        return replace(findings.proof, differing=("an output",))
    operations = [row for row in graph.sorted() if not isinstance(row, Constant)]

    def attempt(units: Sequence[Operation]) -> Wrong | None:
        return _alone(graph, units, configuration, options)

    found = RefusalSearch(operations, attempt).first(findings.wrong)
    operation, wrong = (operations[-1], findings.wrong) if found is None else found
    raise MizzenError(_said(operation, wrong))


def _alone(
    graph: Graph,
    operations: Sequence[Operation],
    configuration: EthosUConfiguration,
    options: ProofOptions,
) -> Wrong | None:
    """Compile and prove a beginning of the graph."""
    before, part = (extract_operations(graph, operations).graph for _ in range(2))
    if avoid_defects(part, configuration.accelerator.arch):
        return None
    compiled = generate(package.write(part), configuration, NetworkForm.TOSA)
    if isinstance(compiled, Stopped):
        return None
    contents = contents_of(read_network(compiled.network, graph.name))
    return findings_of(before, contents, options).wrong


def findings_of(graph: Graph, contents: Contents, options: ProofOptions) -> RegionFindings:
    """Execute a compiled network of NPU operators alone beside its graph."""
    return prove_graph(
        graph, lambda inputs, count: computed(graph, contents, inputs, count), options
    )


def computed(graph: Graph, contents: Contents, inputs: Sequence[Array], count: int) -> list[Array]:
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


def _said(operation: Operation, wrong: Wrong) -> Diagnostic:
    what = f"gives wrong numbers: {wrong}"
    if isinstance(wrong, MizzenError):
        what = f"cannot be executed: {wrong.diagnostic.message}"
    return Diagnostic(
        "E307",
        f"the compiler's code must compute what the network does, and that for {operation.kind} "
        f"{what}",
        origin=operation.origin,
        help="write the operator in another form, or compile with --allow-inexact",
    )
