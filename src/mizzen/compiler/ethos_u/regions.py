"""Regions of a tensor graph through Vela's core, which takes them as TOSA networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mizzen.artifact.steps import read_network
from mizzen.compiler.codegen import RegionCode, RegionRefusal
from mizzen.compiler.ethos_u.generator import generate, has_corrected_code, is_asked
from mizzen.compiler.ethos_u.outcome import costs_of, made_by
from mizzen.compiler.ethos_u.own_regions import (
    Form,
    Taken,
    by_rules,
    decides,
    form_of,
    holds,
    kinds_of,
)
from mizzen.compiler.ethos_u.tosa_refusals import RefusedOperation, find_refused
from mizzen.compiler.proof.options import DEFAULT, ProofOptions
from mizzen.diagnostics import Origin, ProgressCallback, Reason
from mizzen.graph import Graph, Operation
from mizzen.package import tosa
from mizzen.partition import Extracted, Partition, in_order
from mizzen.partition.placement import Legal
from mizzen.passes import standard
from mizzen.report.code import Verdict
from mizzen.targets.ethos_u.legal.tosa import (
    WINDOW_LIMITS,
    WRONG,
    defects,
    reasons,
    reasons_as_compiled,
)
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.defects import avoid_defects
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, Stopped

STANDARD = standard(WINDOW_LIMITS)

DEFECT = Reason(
    "compiler-defect",
    "the compiler would give wrong results for it, because of a defect of its own",
    help="nothing needs doing if the CPU has time for it",
    source="Vela 5.2.0",
)


NOT_DECIDED = ""
"""Where nothing is proved, nothing is taken that is not Vela's."""
REGION = "region"


@dataclass(frozen=True, eq=False)
class TosaCode(RegionCode):
    """A region's code, the TOSA file that it was made of, and that file's operations in order."""

    tosa: bytes = b""
    operations: tuple[Operation, ...] = ()


class TosaRegions:
    """Compiles regions for an Ethos-U."""

    window_limits = WINDOW_LIMITS

    def __init__(self, configuration: EthosUConfiguration, proof: ProofOptions = DEFAULT) -> None:
        self.configuration = configuration
        self.proof = proof

    def legality(self, graph: Graph) -> Legal:
        """Return what says which rules an operation breaks.

        What depends on the order of axes, or on what passes make of an operation, is left to the
        core, which may refuse an operation that breaks none of these rules. Where code of our own
        is asked for, its rules hold as well as the core's.
        """
        arch = self.configuration.accelerator.arch
        if not is_asked(self.configuration):
            return lambda operation: reasons(operation, arch)
        taken = Taken(graph, STANDARD)

        def legal(operation: Operation) -> tuple[Reason, ...]:
            found = reasons(operation, arch)
            return () if self._may_break(found) and operation.group in taken else found

        return legal

    def _may_break(self, found: Sequence[Reason]) -> bool:
        """Whether code of our own could do what breaks these rules, if it is proved."""
        is_wrong = any(row.source == WRONG for row in found)
        return bool(found) and (decides(self.proof) or not is_wrong)

    def unprofitable(self, partition: Partition) -> dict[int, Reason]:
        """Keep every region: what is worth its transfers the partition says."""
        return {}

    def compile(
        self, part: Extracted, on_progress: ProgressCallback | None
    ) -> TosaCode | RegionRefusal:
        """Compile a region, whose graph is changed to the form that the core takes."""
        groups = in_order(part.graph)
        beyond = self._beyond(part.graph)
        STANDARD.run(part.graph)
        own = form_of(part.graph)
        if beyond:
            return self._without_vela(part, own, beyond)
        wrong = changed(part.graph, self.configuration.accelerator.arch)
        if wrong:
            return self._corrected(part, own, wrong, groups)
        data, operations = tosa.write(part.graph), tuple(part.graph.sorted())
        form = Form(data, operations)
        compiled = self._generated(form, own, on_progress)
        if isinstance(compiled, Stopped):
            reason = f"Vela does not take the region: {compiled.said}"
            ours = self._ours(own, part, Verdict.TAKEN, reason)
            return self._refusal(part, groups, compiled) if isinstance(ours, str) else ours
        return self._code(part, compiled, form)

    def instead(self, part: Extracted, wrong: str) -> TosaCode | None:
        """Return code by our own rules for a region whose code is wrong; None if it is not right.

        wrong  what is, in words
        """
        if not decides(self.proof):
            return None
        STANDARD.run(part.graph)
        own = form_of(part.graph)
        ours = self._ours(own, part, Verdict.CORRECTED, f"Vela's code is wrong: {wrong}")
        return None if isinstance(ours, str) else ours

    def _beyond(self, graph: Graph) -> dict[int, Reason]:
        """Return the groups that only our own rules take, and which of the core's they break."""
        arch = self.configuration.accelerator.arch
        rows = ((row.group, reasons(row, arch)) for row in graph)
        return {group: found[0] for group, found in rows if group is not None and found}

    def _without_vela(
        self, part: Extracted, own: Form, beyond: dict[int, Reason]
    ) -> TosaCode | RegionRefusal:
        """Compile what breaks rules of the core by our own, or refuse it."""
        first = next(iter(beyond.values()))
        ours = self._ours(own, part, Verdict.TAKEN, f"Vela has no form of it: {first.message}")
        if isinstance(ours, str):
            return RegionRefusal({group: _and(row, ours) for group, row in beyond.items()}, first)
        return ours

    def _corrected(
        self, part: Extracted, own: Form, wrong: Sequence[Operation], groups: Sequence[int]
    ) -> TosaCode | RegionRefusal:
        """Compile what the core gets wrong by our own rules, or refuse it."""
        reason = f"Vela's code gets {kinds_of(wrong)} wrong"
        ours = NOT_DECIDED
        if decides(self.proof):
            ours = self._ours(own, part, Verdict.CORRECTED, reason)
        if isinstance(ours, TosaCode):
            return ours
        found = [row.group for row in wrong if row.group is not None]
        defect = _and(DEFECT, ours)
        return RegionRefusal(dict.fromkeys(found or groups, defect), defect)

    def _ours(self, own: Form, part: Extracted, verdict: Verdict, reason: str) -> TosaCode | str:
        """Compile a region by our own rules; say why not where that is not possible, or right."""
        if not is_asked(self.configuration):
            return ""
        name = part.graph.name
        found = by_rules(own, name, self.configuration, self.proof, verdict, reason)
        return found if isinstance(found, str) else self._code(part, found, own)

    def _generated(
        self, form: Form, own: Form, on_progress: ProgressCallback | None
    ) -> Compiled | Stopped:
        """Compile a region by the core, or by code of our own that is better, or right."""
        decided = decides(self.proof)
        compiled = generate(
            form.data,
            self.configuration,
            NetworkForm.TOSA,
            is_proved=decided,
            on_progress=on_progress,
        )
        if isinstance(compiled, Stopped) or not has_corrected_code(compiled):
            return compiled
        if holds(own, REGION, compiled, self.proof):
            return compiled
        return generate(form.data, self.configuration, NetworkForm.TOSA, on_progress=on_progress)

    def _code(self, part: Extracted, compiled: Compiled, form: Form) -> TosaCode:
        network = read_network(compiled.network, part.graph.name)
        return TosaCode(
            part,
            network,
            compiled.network,
            made_by(compiled),
            _origins(compiled, form.operations),
            _cycles(compiled, form.operations),
            costs_of(compiled, network, self.configuration),
            compiled.log,
            form.data,
            form.operations,
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


def _and(reason: Reason, ours: str) -> Reason:
    """Return a reason that says why code of our own does not help."""
    if not ours:
        return reason
    said = f"Mizzen's own code cannot take its place: {ours}"
    return replace(reason, help=f"{reason.help}; {said}" if reason.help else said)


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
