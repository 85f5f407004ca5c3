"""Compile a network: read it, check it, generate code, say where everything went and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from mizzen.artifact import Artifact
from mizzen.diagnostics import Diagnostic, MizzenError, Origin, Severity, fail
from mizzen.frontends.tflite import Model, Operator, is_npu, macs, read, require_quantized
from mizzen.report import CompileReport, Measure, OperatorPlacement, Reason, Region
from mizzen.targets.ethos_u.compiled import Cause, Compiled, Stopped
from mizzen.targets.ethos_u.config import Configuration
from mizzen.targets.ethos_u.generate import Waiting, generate
from mizzen.targets.ethos_u.system_config import ConfigFiles, resolve

DEFAULT_ACCELERATOR = "ethos-u55-256"
"""Vela's default."""

RETRIED = (Cause.CANNOT_FALL_BACK, Cause.CRASHED)
"""What an operator can cause, and keeping its type on the CPU may cure."""

COMPILER_NAMES = {"ARG_MAX": "ARGMAX"}
"""Operator types that the compiler spells in another way."""


def compile(
    model: str | PathLike[str] | bytes,
    accelerator: str = DEFAULT_ACCELERATOR,
    *,
    config: ConfigFiles = None,
    system_config: str | None = None,
    memory_mode: str | None = None,
    optimise: str = "Performance",
    arena_cache_size: int | None = None,
    ignore_ops: Sequence[str] = (),
    waiting: Waiting | None = None,
) -> Artifact:
    """Compile a quantised `.tflite`, a file or its bytes, for an NPU.

    `config` names `vela.ini` files, `arena_cache_size` is in bytes, `ignore_ops` are operator
    types to keep on the CPU; `waiting` is called with the seconds gone by once it takes long.
    The artifact's `report` says what went where and why. Raises E1xx for a file that is no
    quantised network, E2xx for a configuration that is none, E3xx if the compiler fails.
    """
    configuration = resolve(
        accelerator,
        config=config,
        system_config=system_config,
        memory_mode=memory_mode,
        optimise=optimise,
        arena_cache_size=arena_cache_size,
        ignore_ops=ignore_ops,
    )
    data, name = _file(model)
    network = read(data, name)
    _require_source(network)
    require_quantized(network)
    attempt = _generate(data, network, configuration, waiting)
    compiled = attempt.compiled
    origins = _origins(network, compiled)
    artifact = Artifact(compiled.network, f"{Path(name).stem}_vela.tflite", None, origins)
    artifact.report = _report(network, configuration, attempt, origins)
    return artifact


def _file(model: str | PathLike[str] | bytes) -> tuple[bytes, str]:
    if isinstance(model, bytes):
        return model, "model.tflite"
    path = Path(model)
    try:
        return path.read_bytes(), path.name
    except OSError as error:
        raise fail("E110", f"{path} must be a file that can be read: {error.strerror}") from None


def _require_source(model: Model) -> None:
    compiled = next((operator for operator in model.main.operators if is_npu(operator)), None)
    if compiled is not None:
        raise fail(
            "E109",
            f"{model.name} must be a network as it was trained, and is already compiled for an NPU",
            origin=model.origin(compiled),
            help="give the original .tflite; `mizzen run` and `mizzen inspect` take compiled ones",
        )


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A compilation that worked; `stopped` holds the types that had to stay on the CPU for it."""

    compiled: Compiled
    configuration: Configuration
    stopped: dict[str, Stopped]


def _generate(
    data: bytes, model: Model, configuration: Configuration, waiting: Waiting | None
) -> _Attempt:
    """Compile; if an operator stops the compiler, find its type and keep it on the CPU."""
    outcome = generate(data, configuration, waiting=waiting)
    if isinstance(outcome, Compiled):
        return _Attempt(outcome, configuration, {})
    if outcome.cause not in RETRIED:
        raise MizzenError(outcome.diagnostic)
    kinds = _suspects(model, outcome)
    for ignored in (*([kind] for kind in kinds), *(kinds[:n] for n in range(2, len(kinds) + 1))):
        names = [COMPILER_NAMES.get(kind, kind) for kind in ignored]
        reduced = replace(configuration, ignore_ops=(*configuration.ignore_ops, *names))
        retried = generate(data, reduced, waiting=waiting)
        if isinstance(retried, Compiled):
            return _Attempt(retried, reduced, dict.fromkeys(ignored, outcome))
    raise MizzenError(replace(outcome.diagnostic, help=f"tried without {', '.join(kinds)}"))


def _suspects(model: Model, stopped: Stopped) -> list[str]:
    """Types of operators in the order in which to try without them.

    Those that the compiler names come first, then those that compute least.
    """
    work: dict[str, int] = {}
    for operator in model.main.operators:
        if not operator.custom:
            work[operator.kind] = work.get(operator.kind, 0) + macs(model.main, operator)
    said = stopped.message.replace("_", "").upper()
    return sorted(work, key=lambda kind: (kind.replace("_", "") not in said, work[kind]))


def _origins(model: Model, compiled: Compiled) -> list[dict[int, Origin]]:
    streams: list[dict[int, Origin]] = []
    operators = model.main.operators
    for command in compiled.commands:
        while len(streams) <= command.stream:
            streams.append({})
        if command.operator is not None and 0 <= command.operator < len(operators):
            origin = model.origin(operators[command.operator])
            streams[command.stream][command.offset_bytes] = origin
    return streams


def _report(
    model: Model,
    asked: Configuration,
    attempt: _Attempt,
    origins: Sequence[dict[int, Origin]],
) -> CompileReport:
    compiled = attempt.compiled
    result = read(compiled.network, model.name)
    placements = tuple(_placements(model, result, asked, attempt))
    return CompileReport(
        model=model.name,
        configuration=asked.as_dict(),
        compiler=f"Vela {compiled.version}",
        placements=placements,
        arena_bytes=_arena_bytes(result),
        flash_bytes=len(compiled.network),
        memories=tuple(
            Measure(memory, used) for memory, used in compiled.estimate.memory_peak_bytes.items()
        ),
        cycles=compiled.estimate.npu_cycles,
        origins=tuple(origins),
        diagnostics=(*asked.warnings, *_fallbacks(model, attempt)),
        log=compiled.log,
    )


def _placements(
    model: Model, result: Model, asked: Configuration, attempt: _Attempt
) -> Iterable[OperatorPlacement]:
    left = {
        tensor.name
        for operator in result.main.operators
        if not is_npu(operator)
        for tensor in result.main.present(operator.outputs)
    }
    cycles: dict[int | None, int] = {}
    for work in attempt.compiled.work:
        cycles[work.operator] = cycles.get(work.operator, 0) + work.cycles
    for operator in model.main.operators:
        outputs = model.main.present(operator.outputs)
        name = outputs[0].name if outputs else ""
        on_cpu = name in left
        yield OperatorPlacement(
            index=operator.index,
            kind=operator.kind,
            name=name,
            region=Region.CPU if on_cpu else Region.NPU,
            macs=macs(model.main, operator),
            cycles=cycles.get(operator.index, 0),
            reasons=tuple(_reasons(operator, name, asked, attempt)) if on_cpu else (),
        )


def _reasons(
    operator: Operator, name: str, asked: Configuration, attempt: _Attempt
) -> Iterable[Reason]:
    if COMPILER_NAMES.get(operator.kind, operator.kind) in asked.ignore_ops:
        yield Reason("ignored", f"{operator.kind} was to stay on the CPU", source="--ignore-ops")
        return
    if operator.kind in attempt.stopped:
        yield Reason(
            "stops-the-compiler",
            f"the compiler stops at {operator.kind}",
            actual=attempt.stopped[operator.kind].message,
            help="replace the operator, or leave it on the CPU",
            source=f"Vela {attempt.compiled.version}",
        )
        return
    source = f"Vela {attempt.compiled.version}, supported operators"
    refused = [row for row in attempt.compiled.refusals if row.output == name]
    for row in refused:
        yield Reason("compiler", row.reason, limit=row.constraint, source=source)
    if not refused:
        yield Reason("compiler", "the compiler gives no reason", source=source)


def _fallbacks(model: Model, attempt: _Attempt) -> Iterable[Diagnostic]:
    for kind, stopped in attempt.stopped.items():
        operator = next(row for row in model.main.operators if row.kind == kind)
        yield Diagnostic(
            "W305",
            f"the compiler stops at {kind}, so every {kind} is on the CPU; {stopped.message}",
            Severity.WARNING,
            model.origin(operator),
            rule=f"Vela {attempt.compiled.version}",
            help="nothing needs doing if the CPU has time for it",
        )


def _arena_bytes(result: Model) -> int:
    """The end of the last tensor that the compiler placed; 0 if it placed none."""
    from mizzen.frontends.tflite.npu import ALLOCATION

    contents = result.metadata.get(ALLOCATION)
    if contents is None:
        return 0
    offsets = contents[: contents.nbytes // 4 * 4].view("<i4").tolist()[3:]
    ends = [
        offset + (tensor.size_bytes or 0)
        for offset, tensor in zip(offsets, result.main.tensors, strict=False)
        if offset >= 0
    ]
    return max(ends, default=0)
