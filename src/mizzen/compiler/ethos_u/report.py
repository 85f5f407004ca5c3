"""Put together the report of a compilation from the model, the artifact and what Vela said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mizzen.artifact.ethos_u import ALLOCATION, npu_operator
from mizzen.artifact.npu import is_npu, read_network
from mizzen.compiler.ethos_u.cpu_fallback import Generated
from mizzen.compiler.ethos_u.legality import breaches_of, confused_of, defects_of
from mizzen.diagnostics import Diagnostic, Origin, Reason, Severity
from mizzen.frontends.tflite import Model, Operator, macs
from mizzen.report import Area, CompileReport, Device, Measure, OperatorPlacement
from mizzen.targets.ethos_u.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.compiled import Compiled, Estimate

IGNORED = "asked-for"
STOPS_COMPILER = "stops-the-compiler"
COMPILER = "compiler"
"""Rules that are none of the tables': the user's wish, a defect, and the compiler's own words."""

_ON_CHIP = {"shram", "lutram"}
"""Memories inside the NPU, which the compiler lists with the system's."""


def origins_of(model: Model, compiled: Compiled) -> list[dict[int, Origin]]:
    """Return, for each NPU operator in order, byte offset of a command to the model's operator."""
    streams: list[dict[int, Origin]] = []
    operators = model.main.operators
    for command in compiled.commands:
        while len(streams) <= command.stream:
            streams.append({})
        if command.operator is not None and 0 <= command.operator < len(operators):
            origin = model.origin(operators[command.operator])
            streams[command.stream][command.offset_bytes] = origin
    return streams


def report_of(
    model: Model,
    configuration: EthosUConfiguration,
    generated: Generated,
    origins: Sequence[dict[int, Origin]],
) -> CompileReport:
    """Return the report of a network's compilation."""
    compiled = generated.compiled
    artifact = read_network(compiled.network, model.name)
    estimate = compiled.estimate
    placements = tuple(_placements(model, artifact, configuration, generated))
    on_npu = [row.index for row in placements if row.device is Device.NPU]
    warnings = (*_hidden(model, generated), *_wrong(model, on_npu, configuration))
    return CompileReport(
        model=model.name,
        configuration=configuration.as_dict(),
        compiler=f"Vela {compiled.version}",
        placements=placements,
        arena_bytes=arena_bytes(artifact),
        flash_bytes=len(compiled.network),
        areas=tuple(areas(artifact, configuration)),
        memories=measures(estimate),
        cycles=estimate.cycles,
        npu_cycles=estimate.npu_cycles,
        figures=estimate.figures,
        origins=tuple(origins),
        diagnostics=(*configuration.warnings, *warnings),
        log=compiled.log,
    )


def _placements(
    model: Model, artifact: Model, configuration: EthosUConfiguration, generated: Generated
) -> Iterator[OperatorPlacement]:
    cycles: dict[int | None, int] = {}
    for work in generated.compiled.work:
        cycles[work.operator] = cycles.get(work.operator, 0) + work.cycles
    on_cpu = _on_cpu(model, artifact, generated.compiled)
    for operator in model.main.operators:
        outputs = model.main.present(operator.outputs)
        stays = operator.index in on_cpu
        yield OperatorPlacement(
            index=operator.index,
            kind=operator.kind,
            name=outputs[0].name if outputs else "",
            device=Device.CPU if stays else Device.NPU,
            macs=macs(model.main, operator),
            cycles=cycles.get(operator.index, 0),
            reasons=tuple(_reasons(model, operator, configuration, generated)) if stays else (),
        )


def _on_cpu(model: Model, artifact: Model, compiled: Compiled) -> set[int]:
    """Find the operators that the compiler left to the CPU.

    It says so by operator index of the one subgraph; in networks of several it is found by the
    names of what the artifact's CPU operators compute.
    """
    if len(model.subgraphs) == 1:
        return {
            work.operator for work in compiled.work if work.on_cpu and work.operator is not None
        }
    left = {
        tensor.name
        for operator in artifact.main.operators
        if not is_npu(operator)
        for tensor in artifact.main.present(operator.outputs)
    }
    return {
        operator.index
        for operator in model.main.operators
        if any(tensor.name in left for tensor in model.main.present(operator.outputs))
    }


def _reasons(
    model: Model, operator: Operator, configuration: EthosUConfiguration, generated: Generated
) -> Iterator[Reason]:
    """Tell why an operator is on the CPU: the rules it breaks, else what the compiler said."""
    if operator.kind in configuration.ignore_ops:
        yield Reason(
            IGNORED,
            f"every {operator.kind} was to stay on the CPU",
            help=f"leave {operator.kind} out of the operators to ignore",
            source="--ignore-ops",
        )
        return
    arch = configuration.accelerator.arch
    breaches = breaches_of(model, operator, arch)
    yield from breaches
    if breaches:
        return
    source = f"Vela {generated.compiled.version}"
    if operator.index in generated.hidden and generated.stopped is not None:
        yield Reason(
            STOPS_COMPILER,
            f"the compiler stops at this {operator.kind}: {generated.stopped.said}",
            help="replace the operator, or leave it on the CPU",
            source=source,
        )
        return
    yield _said(model, operator, generated.compiled, source)


def _said(model: Model, operator: Operator, compiled: Compiled, source: str) -> Reason:
    """Return the compiler's own words about an operator, if it has any."""
    outputs = model.main.present(operator.outputs)
    name = outputs[0].name if outputs else ""
    kind = operator.kind.replace("_", "")
    for refusal in compiled.refusals:
        if refusal.output == name and refusal.kind.replace("_", "") in (kind, "CUSTOM"):
            limit = re.sub(r"\s+", " ", refusal.constraint)
            return Reason(COMPILER, refusal.reason, limit=limit, source=source)
    return Reason(COMPILER, "the compiler leaves it there without a reason", source=source)


def _hidden(model: Model, generated: Generated) -> Iterator[Diagnostic]:
    """Warn of operators that had to be hidden from the compiler."""
    stopped = generated.stopped
    if stopped is None or not generated.hidden:
        return
    operators = [model.main.operators[index] for index in sorted(generated.hidden)]
    kinds = ", ".join(dict.fromkeys(operator.kind for operator in operators))
    kept = "1 operator is" if len(operators) == 1 else f"{len(operators)} operators are"
    yield Diagnostic(
        "W305",
        f"{kept} kept on the CPU ({kinds}), because the compiler stops otherwise: {stopped.said}",
        Severity.WARNING,
        model.origin(operators[0]),
        rule=f"Vela {generated.compiled.version}",
        help="nothing needs doing if the CPU has time for it",
    )


def _wrong(
    model: Model, on_npu: Sequence[int], configuration: EthosUConfiguration
) -> Iterator[Diagnostic]:
    """Warn of operators whose results a defect of the compiler makes wrong."""
    for index in on_npu:
        operator = model.main.operators[index]
        for row in defects_of(model, operator, configuration.accelerator.arch):
            origin = model.origin(operator)
            yield Diagnostic("W306", row.message, Severity.WARNING, origin, row.source, row.help)
    for operator, row in confused_of(model, on_npu, configuration.accelerator.arch):
        origin = model.origin(operator)
        yield Diagnostic("W306", row.message, Severity.WARNING, origin, row.source, row.help)


def measures(estimate: Estimate) -> tuple[Measure, ...]:
    """Return what the compiler estimates for the system's memories."""
    return tuple(
        Measure(row.name, row.peak_bytes, row.access_cycles, row.accesses)
        for row in estimate.memories
        if row.name not in _ON_CHIP
    )


def arena_bytes(artifact: Model) -> int:
    """Return the size of the runtime's tensor arena."""
    return max(_ends(artifact).values(), default=0)


def areas(artifact: Model, configuration: EthosUConfiguration) -> Iterator[Area]:
    """Measure what the artifact holds where: constants of NPU operators, feature maps, cache."""
    mode, main = configuration.mode, artifact.main
    parts = [npu_operator(artifact, row) for row in main.operators if is_npu(row)]
    constants = {part.read_only.tobytes() for part in parts}
    cache = max((part.scratch_fast_bytes or 0 for part in parts), default=0)
    of_cpu = [row for row in main.operators if not is_npu(row)]
    tensors = {index for row in of_cpu for index in (*row.inputs, *row.outputs)}
    ends = _ends(artifact)
    maps = [part.scratch_bytes for part in parts] + [ends[i] for i in tensors if i in ends]
    yield Area("constants", configuration.memory(mode.constants).value, sum(map(len, constants)))
    yield Area("arena", configuration.memory(mode.arena).value, max(maps, default=0))
    if mode.spills:
        yield Area("cache", configuration.memory(mode.cache).value, cache)


def _ends(artifact: Model) -> dict[int, int]:
    """Return the end of each tensor that the compiler placed in the runtime's arena, by index."""
    contents = artifact.metadata.get(ALLOCATION)
    if contents is None:
        return {}
    offsets = contents[: contents.nbytes // 4 * 4].view("<i4").tolist()[3:]
    return {
        tensor.index: offset + (tensor.size_bytes or 0)
        for offset, tensor in zip(offsets, artifact.main.tensors, strict=False)
        if offset >= 0
    }
