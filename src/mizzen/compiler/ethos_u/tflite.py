"""Compile a TFLite network for Ethos-U by our own rules, and prove what comes.

The network is lowered to a graph and placed: what rules take is on the NPU, in as few parts as
there can be. Each part is scheduled and proved by itself; then all of them, and what the CPU's
operators hand on, get places in one arena. The compiled file is the user's network with a custom
operator for each part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import read_network
from mizzen.compiler.edges import edges_of_subgraph
from mizzen.compiler.ethos_u.arena import ArenaPlan, CpuWork, NpuWork, Work, plan_arena
from mizzen.compiler.ethos_u.legality import against_kernels, explanations
from mizzen.compiler.ethos_u.operator_file import (
    FAST_SCRATCH,
    SCRATCH,
    Edge,
    constants_of,
    edge_of_tensor,
    payload_of,
    variable_record,
)
from mizzen.compiler.ethos_u.proof import RegionProof
from mizzen.compiler.ethos_u.regions import (
    COMPILER,
    OwnCode,
    OwnRegions,
    origins_of,
    reason_of,
)
from mizzen.compiler.ethos_u.search.costs import costs_of
from mizzen.compiler.ethos_u.search.judging import Judged, judged
from mizzen.compiler.ethos_u.variables import after_assigned
from mizzen.compiler.placement import Placement, place
from mizzen.compiler.proof.difference import RULE
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.report import CONTROL_FLOW, compile_report, ignored, tflite_placement
from mizzen.diagnostics import Device, Diagnostic, Origin, ProgressCallback, Reason, Severity, fail
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.context import note_of
from mizzen.frontends.tflite.lower import Lowered, lower_with_state
from mizzen.frontends.tflite.subgraphs import CALLERS
from mizzen.frontends.tflite.variables import VARIABLE_KINDS
from mizzen.graph import Operation, Value
from mizzen.ops.control_flow import Custom, OfVariable, Variable
from mizzen.package.tflite.long_biases import with_long_biases
from mizzen.package.tflite.replacement import (
    Plan,
    Replaced,
    Replacement,
    execution_order,
    replace_operators,
)
from mizzen.partition import Partition
from mizzen.partition.placement import Legal
from mizzen.report import CompileReport, OperatorPlacement
from mizzen.report.code import CodeChoice, Maker
from mizzen.targets.ethos_u.generator.lower import Refusal
from mizzen.targets.ethos_u.generator.lower.customs import has_rule
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import RegionIndex
from mizzen.targets.families import ETHOS_U

TORN = Reason(
    "variables",
    "the CPU keeps the variable: it is read and written on both sides of an operator on the CPU",
    help="nothing needs doing: the CPU only copies the state",
)
LATE = Reason(
    "variables",
    "it depends on a variable that the same inference has assigned, whose order the CPU keeps",
    help="use the tensor that is assigned instead of reading the variable again",
)
FOLDED = Reason(
    "folded",
    "it computes of constants alone, or nothing at all",
    help="nothing needs doing",
)


def compile_network(
    model: Model,
    configuration: EthosUConfiguration,
    options: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Artifact:
    """Compile a network that was read from a file.

    Raises E132 for tensors that are no arrays of numbers, E583 if the plan of the arena is wrong.
    """
    if (record := with_long_biases(model.record)) is not None:
        changed = read_network(write(record, SCHEMA), model.name)
        model = replace(changed, shared=model.shared)
    lowered, arch = lower_with_state(model), configuration.accelerator.arch
    regions = TfliteRegions(configuration, lowered)
    proof = RegionProof(model, lowered, options)
    placed = place(
        lowered.graph,
        _legality(lowered, regions.legality(lowered.graph), configuration.ignore_ops, arch),
        lambda operation: False,
        regions,
        options,
        on_progress,
        prove=proof.prove,
        work_per_byte=0,
    )
    network = _assembled(model, lowered, placed, configuration)
    compiled = read_network(network.data, model.name)
    contents = contents_of(compiled, network.origins)
    if options.inputs:
        schedules = [program.schedule for program in network.programs]
        wrong = proof.prove_streams(contents, schedules)
        wrong = wrong or proof.prove_file(compiled, contents, dict(network.tensors))
        if wrong:
            raise _wrong_plan(model, wrong)
    report = _report(model, lowered, placed, network, configuration)
    return Artifact(network.data, f"{Path(model.name).stem}_vela.tflite", contents, report)


def _wrong_plan(model: Model, wrong: str) -> Exception:
    return fail(
        "E583",
        f"tensors that hold something must have bytes of their own in the arena, and {wrong}",
        origin=Origin(model.name),
        help="this is a bug of Mizzen's: please report it with the network; --generator vela "
        "compiles it without Mizzen's plan",
    )


class TfliteRegions(OwnRegions):
    """Compiles regions of a network's graph, which share one arena."""

    passes = None

    def __init__(self, configuration: EthosUConfiguration, lowered: Lowered) -> None:
        super().__init__(configuration)
        self._lowered_network = lowered

    def is_unsigned(self, value: Value) -> bool:
        """Whether a value is a tensor of unsigned bytes."""
        return self._lowered_network.is_unsigned(value)

    def outlives(self, value: Value, groups: frozenset[int]) -> bool:
        """Whether an operator outside of a region takes a value, or the network gives it."""
        outside = any(user.group not in groups for user in value.uses)
        return outside or value in self._lowered_network.graph.outputs

    def edge(self, value: Value, name: str) -> Edge:
        """Return the tensor that a value is."""
        lowered = self._lowered_network
        return edge_of_tensor(lowered.model.main.tensors[lowered.tensor_of[value]])

    def explained(self, refusal: Refusal) -> Reason:
        """Return the rule of the machine that an operator breaks, else what our rules say."""
        model, group = self._lowered_network.model, refusal.operation.group
        assert group is not None, "each operation is an operator's"
        arch = self.configuration.accelerator.arch
        broken = explanations(model, model.main.operators[group], arch)
        return next(iter(broken), reason_of(refusal))

    def unprofitable(self, partition: Partition) -> Mapping[int, Reason]:
        """Refuse the operators on variables that would be in several regions, or on the CPU too."""
        places: dict[str, set[int]] = {}
        groups: dict[str, set[int]] = {}
        for operation in self._lowered_network.graph:
            if isinstance(operation, OfVariable) and operation.group is not None:
                places.setdefault(operation.name, set()).add(_region_of(partition, operation.group))
                groups.setdefault(operation.name, set()).add(operation.group)
        torn = {
            group for name, regions in places.items() if len(regions) > 1 for group in groups[name]
        }
        on_npu = {group for group, row in partition.groups.items() if row.device is Device.NPU}
        return dict.fromkeys(sorted(torn & on_npu), TORN)


def _region_of(partition: Partition, group: int) -> int:
    """Return the place of the region that a group is in; all of the CPU's are one."""
    for place_, region in enumerate(partition.regions):
        if group in region.groups:
            return place_ if region.device is Device.NPU else -1
    return -1


def _legality(lowered: Lowered, of_rules: Legal, ignore_ops: Sequence[str], arch: Arch) -> Legal:
    """Return what keeps an operation from the NPU, besides what rules do not take."""
    late = after_assigned(lowered.model)

    def legal(operation: Operation) -> Sequence[Reason]:
        operator = lowered.operator_of(operation)
        if operator is not None and operator.kind in ignore_ops:
            return (ignored(operator.kind),)
        if operator is not None and operator.kind in CALLERS:
            return (CONTROL_FLOW,)
        if operator is not None and operator.index in late:
            return (LATE,)
        if not isinstance(operation, Custom) or operator is None:
            return of_rules(operation)
        if has_rule(operation, arch):
            return against_kernels(lowered.model, operator, arch) or of_rules(operation)
        note = note_of(operation)
        unlike = Reason("no-integer-form", note.reason, help=note.help or NOT_ON_NPU)
        return explanations(lowered.model, operator, arch) or (unlike,)

    return legal


NOT_ON_NPU = "leave it to the CPU; `mizzen targets` lists the operators of Ethos-U"


# The file


@dataclass(frozen=True, slots=True, eq=False)
class _Network:
    """The compiled file, and what it is made of.

    tensors   of the file to those of the network
    origins   of the NPU operators' streams, in the order of execution
    programs  of these
    codes     of these, as they were before they had places in the arena
    handles   the operators that name or fill variables which the NPU keeps
    """

    data: bytes
    tensors: Mapping[int, int]
    origins: list[dict[int, Origin]]
    programs: list[Judged]
    codes: list[OwnCode]
    plan: ArenaPlan
    handles: tuple[int, ...]


def _assembled(
    model: Model, lowered: Lowered, placed: Placement, configuration: EthosUConfiguration
) -> _Network:
    codes = _codes(placed)
    handles = _handles(model, lowered, placed) if codes else ()
    parts = [
        _part(lowered, code, handles if place_ == 0 else ()) for place_, code in enumerate(codes)
    ]
    order = execution_order(model.record, parts)
    works = [_work(model, step, codes, parts) for step in order]
    plan = plan_arena(works, _sizes(model), model.main.inputs, model.main.outputs)
    ordered = [step.replacement for step in order if isinstance(step, Replaced)]
    programs = [judged(schedule, configuration) for schedule in plan.schedules]
    by_part = dict(zip(ordered, programs, strict=True))
    states = dict(zip(ordered, plan.states_bytes, strict=True))
    made = [_with_program(part, by_part[place_]) for place_, part in enumerate(parts)]
    where = Plan(plan.offsets_bytes, [states[place_] for place_ in range(len(parts))])
    network = replace_operators(model.record, made, where)
    codes = [codes[place_] for place_ in ordered]
    origins = [
        origins_of(program, code.operations) for program, code in zip(programs, codes, strict=True)
    ]
    return _Network(network.data, network.tensors, origins, programs, codes, plan, handles)


def _codes(placed: Placement) -> list[OwnCode]:
    """Return the code of the regions on the NPU."""
    codes: list[OwnCode] = []
    for region in placed.partition.regions:
        if region.device is Device.NPU:
            code = placed.code[region.groups]
            assert isinstance(code, OwnCode), "it is our own"
            codes.append(code)
    return codes


def _handles(model: Model, lowered: Lowered, placed: Placement) -> tuple[int, ...]:
    """Return the operators that name or fill variables which the NPU keeps."""
    on_cpu = {group for group, row in placed.partition.groups.items() if row.device is Device.CPU}
    used = {
        operation.kind
        for operation in lowered.graph
        if operation.group in on_cpu
        and model.main.operators[operation.group].kind in (*VARIABLE_KINDS, *CALLERS)
    }
    if used:
        return ()
    kinds = ("VAR_HANDLE", "CALL_ONCE")
    keeps = any(isinstance(operation, Variable) for operation in lowered.graph)
    return tuple(each.index for each in model.main.operators if keeps and each.kind in kinds)


def _part(lowered: Lowered, code: OwnCode, extra: Sequence[int]) -> Replacement:
    tensor_of = lowered.tensor_of
    return Replacement(
        operators=(*_operators(code), *extra),
        code=ETHOS_U.code,
        constants=(),
        inputs=tuple(tensor_of[value] for value in code.part.inputs),
        outputs=tuple(tensor_of[value] for value in code.part.outputs),
        states=tuple(map(variable_record, code.states)),
    )


def _operators(code: OwnCode) -> tuple[int, ...]:
    return tuple(sorted({row.group for row in code.operations if row.group is not None}))


def _with_program(part: Replacement, program: Judged) -> Replacement:
    """Return a part with its constants, and the memory that it works in."""
    sizes = program.program.region_bytes
    scratch = (SCRATCH, sizes[RegionIndex.SCRATCH])
    fast_bytes = sizes.get(RegionIndex.SCRATCH_FAST, 0)
    fast = (FAST_SCRATCH, fast_bytes) if fast_bytes else scratch
    constants = payload_of(program.program), constants_of(program.program)
    return replace(part, constants=constants, memories=(scratch, fast))


def _work(
    model: Model, step: int | Replaced, codes: Sequence[OwnCode], parts: Sequence[Replacement]
) -> Work:
    if isinstance(step, Replaced):
        part = parts[step.replacement]
        return NpuWork(codes[step.replacement].program.schedule, part.inputs, part.outputs)
    operator = model.main.operators[step]
    return CpuWork((*operator.inputs, *operator.intermediates), operator.outputs)


def _sizes(model: Model) -> dict[int, int]:
    """Return the bytes of the tensors that lie in the arena: constants and handles do not."""
    return {
        tensor.index: tensor.size_bytes
        for tensor in model.main.tensors
        if tensor.data is None and tensor.size_bytes and not tensor.variable
    }


# The report


def _report(
    model: Model,
    lowered: Lowered,
    placed: Placement,
    network: _Network,
    configuration: EthosUConfiguration,
) -> CompileReport:
    tried = {id(placed.code[groups]): ways for groups, ways in placed.tried.items()}
    choices = [
        CodeChoice(Maker.MIZZEN, program.cost, tried=tried.get(id(code), ()))
        for program, code in zip(network.programs, network.codes, strict=True)
    ]
    arena_bytes = network.plan.size_bytes
    return compile_report(
        model.name,
        configuration,
        _placements(model, placed, network.handles),
        [costs_of(network.programs, choices, configuration, arena_bytes)],
        compiler=COMPILER,
        flash_bytes=len(network.data),
        arena_bytes=arena_bytes,
        origins=network.origins,
        warnings=tuple(_moved(model, placed)),
        proof=placed.proof,
    )


def _placements(
    model: Model, placed: Placement, handles: Sequence[int]
) -> Iterator[OperatorPlacement]:
    edges = edges_of_subgraph(model.main)
    for operator in model.main.operators:
        group = placed.partition.groups.get(operator.index)
        on_npu = operator.index in handles if group is None else group.device is Device.NPU
        device = Device.NPU if on_npu else Device.CPU
        reasons = () if on_npu else (FOLDED,) if group is None else group.reasons
        yield tflite_placement(model, operator, device, reasons, edges)


def _moved(model: Model, placed: Placement) -> Iterator[Diagnostic]:
    """Warn of operators that are on the CPU because no way gave right code for them."""
    for group, row in placed.partition.groups.items():
        for reason in row.reasons:
            if reason.rule == RULE:
                operator = model.main.operators[group]
                yield Diagnostic(
                    "W307",
                    f"{operator.kind} is on the CPU: {reason.message}",
                    Severity.WARNING,
                    model.origin(operator),
                    reason.source,
                    reason.help,
                )
