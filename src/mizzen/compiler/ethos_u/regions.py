"""Regions of a tensor graph through Vela's core, which takes them as TOSA networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.artifact.steps import read_network
from mizzen.compiler.codegen import RegionCode, RegionRefusal
from mizzen.compiler.ethos_u.generator import generate
from mizzen.compiler.ethos_u.outcome import costs_of
from mizzen.compiler.ethos_u.tosa_refusals import RefusedOperation, find_refused
from mizzen.diagnostics import Origin, ProgressCallback, Reason
from mizzen.graph import Graph, Operation
from mizzen.package import tosa
from mizzen.partition import Extracted, Partition, in_order
from mizzen.partition.placement import Legal
from mizzen.passes import standard
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.config import EthosUConfiguration
from mizzen.targets.ethos_u.legal.tosa import WINDOW_LIMITS, defects, reasons, reasons_as_compiled
from mizzen.targets.ethos_u.vela.defects import avoid_defects
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, Stopped

STANDARD = standard(WINDOW_LIMITS)

DEFECT = Reason(
    "compiler-defect",
    "the compiler would give wrong results for it, because of a defect of its own",
    help="nothing needs doing if the CPU has time for it",
    source="Vela 5.2.0",
)


@dataclass(frozen=True, eq=False)
class TosaCode(RegionCode):
    """A region's code, the TOSA file that it was made of, and that file's operations in order."""

    tosa: bytes = b""
    operations: tuple[Operation, ...] = ()


class TosaRegions:
    """Compiles regions for an Ethos-U."""

    window_limits = WINDOW_LIMITS

    def __init__(self, configuration: EthosUConfiguration) -> None:
        self.configuration = configuration

    def legality(self, graph: Graph) -> Legal:
        """Return what says which rules an operation breaks.

        What depends on the order of axes, or on what passes make of an operation, is left to the
        core, which may refuse an operation that breaks none of these rules.
        """
        arch = self.configuration.accelerator.arch
        return lambda operation: reasons(operation, arch)

    def unprofitable(self, partition: Partition) -> dict[int, Reason]:
        """Keep every region: what is worth its transfers the partition says."""
        return {}

    def compile(
        self, part: Extracted, on_progress: ProgressCallback | None
    ) -> TosaCode | RegionRefusal:
        """Compile a region, whose graph is changed to the form that the core takes."""
        groups = in_order(part.graph)
        wrong = lower_region(part, self.configuration.accelerator.arch)
        if wrong:
            found = [row.group for row in wrong if row.group is not None]
            return RegionRefusal(dict.fromkeys(found or groups, DEFECT), DEFECT)
        data, operations = tosa.write(part.graph), tuple(part.graph.sorted())
        compiled = generate(data, self.configuration, NetworkForm.TOSA, on_progress=on_progress)
        if isinstance(compiled, Stopped):
            return self._refusal(part, groups, compiled)
        network = read_network(compiled.network, part.graph.name)
        return TosaCode(
            part,
            network,
            compiled.network,
            f"Vela {compiled.version}",
            _origins(compiled, operations),
            _cycles(compiled, operations),
            costs_of(compiled, network, self.configuration),
            compiled.log,
            data,
            operations,
        )

    def _refusal(self, part: Extracted, groups: list[int], stopped: Stopped) -> RegionRefusal:
        """Find the groups because of which the core stops; the last where it does not tell.

        groups  those of the region before it was lowered: what replaces an operation may have none
        """
        general = Reason(
            "compiler",
            f"the compiler does not take it for {self.configuration.accelerator.name}: "
            f"{stopped.said}",
            help="change the operator as the support list says, or leave it on the CPU",
            source="Vela",
        )
        refused = find_refused(part.graph, tosa.write, self.configuration, stopped)
        found = {
            row.operation.group: self._said(row)
            for row in refused
            if row.operation.group is not None
        }
        return RegionRefusal(found or {groups[-1]: general}, general)

    def _said(self, refused: RefusedOperation) -> Reason:
        """Return the rule that an operation breaks, or the core's words where it breaks none."""
        accelerator = self.configuration.accelerator
        for breach in reasons_as_compiled(refused.operation, accelerator.arch):
            return breach
        return Reason(
            "compiler",
            f"the compiler does not take its {refused.operation.kind} for {accelerator.name}: "
            f"{refused.said}",
            help="change the operator as the support list says, or leave it on the CPU",
            source="Vela",
        )


def lower_region(part: Extracted, arch: Arch) -> tuple[Operation, ...]:
    """Bring a region into the form that the core takes.

    Returns the operations of which the core would make something wrong even so.
    """
    STANDARD.run(part.graph)
    wrong = avoid_defects(part.graph, arch)
    return wrong or tuple(row for row in part.graph if defects(row, arch))


def _origins(compiled: Compiled, operations: Sequence[Operation]) -> dict[int, Origin]:
    found: dict[int, Origin] = {}
    for command in compiled.commands:
        if command.operator is not None and command.operator < len(operations):
            origin = operations[command.operator].origin
            if origin is not None:
                found[command.offset_bytes] = origin
    return found


def _cycles(compiled: Compiled, operations: Sequence[Operation]) -> dict[int, int]:
    found: dict[int, int] = {}
    for work in compiled.work:
        if work.operator is not None and work.operator < len(operations):
            group = operations[work.operator].group
            if group is not None:
                found[group] = found.get(group, 0) + work.cycles
    return found
