"""Regions of a tensor graph through Vela's core, which takes them as TOSA networks."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.artifact.steps import read_network
from mizzen.compiler.codegen import RegionCode, RegionRefusal, Way
from mizzen.compiler.ethos_u.regions import STANDARD
from mizzen.compiler.ethos_u.vela.outcome import costs_of, made_by
from mizzen.compiler.ethos_u.vela.tosa_refusals import RefusedOperation, find_refused
from mizzen.diagnostics import Origin, ProgressCallback, Reason
from mizzen.graph import Graph, Operation
from mizzen.package import tosa
from mizzen.partition import Extracted, Partition, in_order
from mizzen.partition.placement import Legal
from mizzen.targets.ethos_u.legal.tosa import (
    WINDOW_LIMITS,
    defects,
    reasons,
    reasons_as_compiled,
)
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.defects import avoid_defects
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, Stopped, generate

DEFECT = Reason(
    "compiler-defect",
    "the compiler would give wrong results for it, because of a defect of its own",
    help="nothing needs doing if the CPU has time for it",
    source="Vela 5.2.0",
)


class VelaRegions:
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

    @property
    def ways(self) -> tuple[Way, ...]:
        """Vela's core alone."""
        return (Way("vela", "Arm's compiler", self.compile),)

    def compile(
        self, part: Extracted, on_progress: ProgressCallback | None
    ) -> RegionCode | RegionRefusal:
        """Compile a region, whose graph is changed to the form that the core takes."""
        groups = in_order(part.graph)
        beyond = self._beyond(part.graph)
        if beyond:
            return RegionRefusal(beyond, next(iter(beyond.values())))
        STANDARD.run(part.graph)
        wrong = changed(part.graph, self.configuration.accelerator.arch)
        if wrong:
            at = [operation.group for operation in wrong if operation.group is not None]
            return RegionRefusal(dict.fromkeys(at or groups, DEFECT), DEFECT)
        compiled = generate(
            tosa.write(part.graph), self.configuration, NetworkForm.TOSA, on_progress=on_progress
        )
        if isinstance(compiled, Stopped):
            return self._refusal(part, groups, compiled)
        return self._code(part, compiled)

    def _beyond(self, graph: Graph) -> dict[int, Reason]:
        """Return the groups that break rules of the core, and which."""
        arch = self.configuration.accelerator.arch
        broken = ((operation.group, reasons(operation, arch)) for operation in graph)
        return {group: breaches[0] for group, breaches in broken if group is not None and breaches}

    def _code(self, part: Extracted, compiled: Compiled) -> RegionCode:
        network, operations = read_network(compiled.network, part.graph.name), part.graph.sorted()
        return RegionCode(
            part,
            network,
            compiled.network,
            made_by(compiled),
            _origins(compiled, operations),
            _cycles(compiled, operations),
            costs_of(compiled, network, self.configuration),
            compiled.log,
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


def changed(graph: Graph, arch: Arch) -> tuple[Operation, ...]:
    """Bring a region into the form that the core takes.

    Returns the operations of which the core would make something wrong even so.
    """
    wrong = avoid_defects(graph, arch)
    return wrong or tuple(row for row in graph if defects(row, arch))


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
