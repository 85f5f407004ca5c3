"""Check a TOSA network: which operators the NPU takes, and why not the others.

Nothing could run the others, so such a network has no artifact; what the NPU takes is compiled all
the same, for its costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.tosa import index_of, placements_of, read_tosa
from mizzen.compiler.ethos_u.vela.outcome import network_report
from mizzen.compiler.ethos_u.vela.tosa import defect_of, require_no_state
from mizzen.compiler.ethos_u.vela.tosa_refusals import RefusedOperation, find_refused
from mizzen.compiler.refusals import Refused, settle
from mizzen.compiler.report import compile_report
from mizzen.diagnostics import MizzenError, ProgressCallback, Reason
from mizzen.graph import Graph, Operation
from mizzen.ops.control_flow import Constant
from mizzen.package import tosa as package
from mizzen.partition import extract_operations
from mizzen.report import CompileReport
from mizzen.targets.ethos_u.legal.tosa import reasons_as_compiled
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.defects import avoid_defects
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

Refusals = dict[Operation, tuple[Reason, ...]]


def check_tosa(
    data: bytes,
    name: str,
    configuration: EthosUConfiguration,
    on_progress: ProgressCallback | None = None,
) -> CompileReport:
    """Place a file's operators; memory and cycles are of those that the NPU takes.

    An operator has the rules that it breaks as its reasons, or what the compiler says of it.
    Raises what `compile_tosa` does for a file that is not a network, E3xx if the compiler fails for
    no operator's sake.
    """
    graph = require_no_state(read_tosa(data, name, configuration.ignore_ops))
    refused = _broken(graph, configuration)

    def attempt(refused: Refusals) -> _Tried | Refused:
        trial = _Trial(graph, [row for row in _computing(graph) if row not in refused])
        found = trial.attempt(configuration, on_progress)
        return Refused(found) if isinstance(found, dict) else (trial, found)

    tried = settle(attempt, refused)
    assert tried is not None, "there is no limit to tries"
    trial, compiled = tried
    by_index = {index_of(operation): reasons for operation, reasons in refused.items()}
    if compiled is None:
        return compile_report(name, configuration, placements_of(graph, {}, by_index), [])
    placements = placements_of(graph, trial.cycles(compiled), by_index)
    network = read_network(compiled.network, name)
    return network_report(placements, name, configuration, compiled, network)


def _computing(graph: Graph) -> list[Operation]:
    return [row for row in graph.sorted() if not isinstance(row, Constant)]


def _broken(graph: Graph, configuration: EthosUConfiguration) -> Refusals:
    arch = configuration.accelerator.arch
    return {
        operation: breaches
        for operation in _computing(graph)
        if (breaches := reasons_as_compiled(operation, arch))
    }


class _Trial:
    """Operations of a graph that are compiled without the others."""

    def __init__(self, graph: Graph, operations: Sequence[Operation]) -> None:
        self.part = extract_operations(graph, operations).graph
        copies = (row for row in self.part if not isinstance(row, Constant))
        self.originals: Mapping[Operation, Operation] = dict(zip(copies, operations, strict=True))

    def attempt(
        self, configuration: EthosUConfiguration, on_progress: ProgressCallback | None
    ) -> Compiled | Refusals | None:
        """Compile them; None if there are none, their reasons if some are refused."""
        if not self.originals:
            return None
        wrong = avoid_defects(self.part, configuration.accelerator.arch)
        if wrong:
            return {self._original(row): (_defect(row),) for row in wrong}
        data = package.write(self.part)
        answer = generate(data, configuration, NetworkForm.TOSA, on_progress=on_progress)
        if isinstance(answer, Compiled):
            return answer
        rows = find_refused(self.part, package.write, configuration, answer)
        if not rows:
            raise MizzenError(answer.diagnostic)
        return {self._original(row.operation): (_said(row, configuration),) for row in rows}

    def _original(self, operation: Operation) -> Operation:
        """Return the operation that a copy, or what was put behind one, stands for."""
        while operation not in self.originals:
            producer = operation.operand.producer
            assert producer is not None, "what was added has an operand that was computed"
            operation = producer
        return self.originals[operation]

    def cycles(self, compiled: Compiled) -> dict[int | None, int]:
        """Return the estimated cycles by the operators' indices."""
        order, found = self.part.sorted(), dict[int | None, int]()
        for work in compiled.work:
            row = None if work.operator is None else order[work.operator]
            if row is not None and not isinstance(row, Constant):
                index = index_of(self._original(row))
                found[index] = found.get(index, 0) + work.cycles
        return found


def _defect(operation: Operation) -> Reason:
    said = defect_of(operation)
    return Reason("compiler-defect", said.message, help=said.help or "", source=said.rule or "")


def _said(refused: RefusedOperation, configuration: EthosUConfiguration) -> Reason:
    return Reason(
        "compiler",
        f"the compiler does not take {refused.operation.kind} for "
        f"{configuration.accelerator.name}: {refused.said}",
        help="lower it to other operators, choose another accelerator, or split the network there",
        source="Vela",
    )


_Tried = tuple[_Trial, Compiled | None]
