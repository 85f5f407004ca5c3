"""Compile a TFLite network: lower it, place it, compile its regions, leave the rest to the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import artifact_of
from mizzen.compiler.codegen import areas_of, performance_of
from mizzen.compiler.ethos_n.configuration import EthosNConfiguration
from mizzen.compiler.ethos_n.regions import COMPILER, FOLD, ContainerCode, EthosNRegions
from mizzen.compiler.ethos_u.report import IGNORED
from mizzen.compiler.placement import Placement, place
from mizzen.diagnostics import Origin, ProgressCallback, Reason
from mizzen.frontends.tflite import Model, Operator, macs
from mizzen.frontends.tflite.context import note_of
from mizzen.frontends.tflite.lower import Lowered, lower
from mizzen.graph import Operation
from mizzen.ops.control_flow import Custom
from mizzen.package.tflite.replacement import Replacement, replace_operators
from mizzen.partition import Device, Placed
from mizzen.partition.placement import Legal
from mizzen.report import CompileReport, OperatorPlacement
from mizzen.targets.families import ETHOS_N

EDGES = ("tflite.QUANTIZE", "tflite.DEQUANTIZE")

NOT_ON_NPU = "leave it to the CPU; `mizzen targets` lists the operations of Ethos-N78"

CHANGES_SIGN = Reason(
    "one-sign",
    "it makes signed numbers of unsigned ones, or the other way round",
    help="quantise the network to int8 throughout, its inputs and outputs too",
    source=COMPILER,
)

UNUSED = Reason(
    "folded",
    "it computes of constants alone, or nothing at all",
    help="nothing needs doing",
    source=COMPILER,
)


def compile_network(
    model: Model, configuration: EthosNConfiguration, on_progress: ProgressCallback | None
) -> Artifact:
    """Compile a network that was read from a file."""
    lowered = lower(model)
    FOLD.run(lowered.graph)
    compiler = EthosNRegions(configuration.target, configuration.inline, lowered.is_unsigned)
    rules = _legality(lowered, compiler.legality(lowered.graph), configuration.ignore_ops)
    placed = place(lowered.graph, rules, _is_edge, compiler, on_progress)
    codes = _codes(placed)
    data = replace_operators(
        model.record,
        [_replacement(lowered, groups, code) for groups, code in codes.items()],
    )
    name = f"{Path(model.name).stem}_ethosn.tflite"
    origins = [dict(code.origins) for code in codes.values()]
    report = _report(model, configuration, placed, list(codes.values()), len(data), origins)
    return artifact_of(data, name, report, origins)


def _is_edge(operation: Operation) -> bool:
    """Whether an operation only makes integers of real numbers, or the other way round."""
    return isinstance(operation, Custom) and operation.operator_name in EDGES


def _legality(lowered: Lowered, of_target: Legal, ignore_ops: Sequence[str]) -> Legal:
    def legal(operation: Operation) -> Sequence[Reason]:
        operator = lowered.operator_of(operation)
        if operator is not None and operator.kind in ignore_ops:
            return (_ignored(operator.kind),)
        if isinstance(operation, Custom):
            note = note_of(operation)
            return (Reason("no-integer-form", note.reason, help=note.help or NOT_ON_NPU),)
        if operator is not None and _changes_sign(lowered, operator):
            return (CHANGES_SIGN,)
        return of_target(operation)

    return legal


def _changes_sign(lowered: Lowered, operator: Operator) -> bool:
    """Whether an operator takes bytes of the one sign and gives those of the other."""
    indices = {*operator.inputs, *operator.outputs} & set(lowered.value_of)
    values = [lowered.value_of[index] for index in indices]
    computed = [value for value in values if value.constant is None]
    return len({lowered.is_unsigned(value) for value in computed}) > 1


def _ignored(kind: str) -> Reason:
    return Reason(
        IGNORED,
        f"every {kind} was to stay on the CPU",
        help=f"leave {kind} out of the operators to ignore",
        source="--ignore-ops",
    )


def _codes(placed: Placement) -> dict[tuple[int, ...], ContainerCode]:
    """Return the code of the regions on the NPU, in the order of execution."""
    found: dict[tuple[int, ...], ContainerCode] = {}
    for region in placed.partition.regions:
        if region.device is Device.NPU:
            code = placed.code[region.groups]
            assert isinstance(code, ContainerCode), "this compiler gives containers"
            found[region.groups] = code
    return found


def _replacement(lowered: Lowered, groups: tuple[int, ...], code: ContainerCode) -> Replacement:
    inputs = [lowered.tensor_of[value] for value in code.part.inputs]
    outputs = [lowered.tensor_of[value] for value in code.part.outputs]
    return Replacement(
        operators=groups,
        code=ETHOS_N.code,
        constants=code.constants,
        inputs=tuple(inputs[index] for index in code.given),
        outputs=tuple(outputs[index] for index in code.computed),
    )


def _report(
    model: Model,
    configuration: EthosNConfiguration,
    placed: Placement,
    codes: Sequence[ContainerCode],
    flash_bytes: int,
    origins: Sequence[dict[int, Origin]],
) -> CompileReport:
    areas = areas_of([code.costs for code in codes])
    cycles: dict[int, int] = {}
    for code in codes:
        cycles.update(code.cycles)
    return CompileReport(
        model=model.name,
        configuration=configuration.as_dict(),
        compiler=COMPILER,
        placements=tuple(
            _placement(model, row, placed.partition.groups.get(row.index), cycles)
            for row in model.main.operators
        ),
        arena_bytes=max((area.used_bytes for area in areas if area.name == "arena"), default=0),
        flash_bytes=flash_bytes,
        areas=areas,
        memories=(),
        cycles=sum(code.costs.cycles for code in codes),
        npu_cycles=sum(code.costs.npu_cycles for code in codes),
        performance=performance_of([code.costs for code in codes]),
        origins=tuple(origins),
    )


def _placement(
    model: Model, operator: Operator, placed: Placed | None, cycles: Mapping[int, int]
) -> OperatorPlacement:
    outputs = model.main.present(operator.outputs)
    on_npu = placed is not None and placed.device is Device.NPU
    reasons = (UNUSED,) if placed is None else placed.reasons
    return OperatorPlacement(
        index=operator.index,
        kind=operator.kind,
        name=outputs[0].name if outputs else "",
        device=Device.NPU if on_npu else Device.CPU,
        macs=macs(model.main, operator),
        cycles=cycles.get(operator.index, 0),
        reasons=() if on_npu else tuple(reasons),
    )
