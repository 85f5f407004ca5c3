"""Generate code with Vela's compiled core (`ethosu.regor`), in a worker process.

The core takes a network, a description of the system and options, both as text, and gives a
network in which NPU operators replace what runs on the NPU. Whatever happens to the worker, the
caller gets an answer: a compiled network, or why there is none.

Ref: Vela 5.2.0, vela.py (the two texts), OPTIONS.md (options).
"""

from __future__ import annotations

import json
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from mizzen.diagnostics import Diagnostic, ProgressCallback, fail, install_extra
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Feature, MemoryTiming, Port
from mizzen.workers.child import Child

SCRIPT = Path(__file__).with_name("process.py")
CORE = "ethosu.regor"

LEAVE_IT_OUT = "leave out `--generator`: Mizzen's own code needs no Vela"
"""What to do about whatever Vela does."""

TIME_LIMIT_SECONDS = 120.0
"""The largest public networks for these NPUs compile in a few seconds."""

WAITING_AFTER_SECONDS = 2.0
WAITING_EVERY_SECONDS = 0.5

LOG_BYTES = 8 << 20
"""The part of what the core prints that is kept."""

SOFTMAX_INT16_NEGATIVE_EXPONENT_RANGE = 10.0

FAMILY_NAMES = {Arch.U55: "EthosU55", Arch.U65: "EthosU65", Arch.U85: "EthosU85"}

CORE_OPERATOR_NAMES = {"ARG_MAX": "ARGMAX"}
"""Operator types that the core spells in another way than the TFLite schema."""

CORE_FEATURE_NAMES = {
    Feature.CHAINING: "Grouping",
    Feature.FAST_WEIGHTS: "FWD",
    Feature.CASCADING: "Cascading",
    Feature.BUFFERING: "WeightBuffering",
    Feature.INPUT_REUSE: "ReuseIFM",
}

NARROW_BUS_PREFIX = "Ethos_U55"
"""The core takes a port to be 8 bytes wide, not 16, where the system's name starts like this."""

CANNOT_FALL_BACK = "Non-passthrough operation ("
"""How the core's error starts when an operator that it added itself has no place on the NPU."""


class NetworkForm(Enum):
    """The format of a network that goes to the core; the value is the core's word for it."""

    TFLITE = "TFLITE"
    TOSA = "TOSA"


def generate(
    network: bytes,
    configuration: EthosUConfiguration,
    form: NetworkForm = NetworkForm.TFLITE,
    *,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    on_progress: ProgressCallback | None = None,
) -> Compiled | Stopped:
    """Compile a network; what comes is a TFLite network whatever form it went in.

    Operators are known by their index in the network's file. Never raises for what the compiler
    does: `Stopped` says why there is no compiled network. E300 if the compiler is not installed.
    """
    request = {
        "family": FAMILY_NAMES[configuration.accelerator.arch],
        "form": form.value,
        "system": system_text(configuration),
        "options": options_text(configuration),
    }
    head = json.dumps(request).encode()
    message = struct.pack("<Q", len(head)) + head + network
    with tempfile.TemporaryFile() as log:
        started = [sys.executable, "-I", "-S", str(SCRIPT), core_path()]
        with Child(started, stderr=log) as worker:
            try:
                answer = _exchange(worker, message, time_limit_seconds, on_progress)
            finally:
                worker.kill()
        return _outcome(worker.returncode, answer, _kept(log), time_limit_seconds)


def core_path() -> str:
    """Return the file of Vela's compiled core. E300 if it is not installed."""
    try:
        spec = find_spec(CORE)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise fail(
            "E300",
            "Arm's compiler must be installed: the package ethos-u-vela was not found",
            help=install_extra("vela"),
        )
    return spec.origin


def system_text(configuration: EthosUConfiguration) -> str:
    """Describe the accelerator and its system in the core's words.

    Everything is resolved and spelled out: the core's own reader of `vela.ini` knows neither
    defaults, nor ``key: value``, nor lower case.
    """
    accelerator, mode = configuration.accelerator, configuration.mode
    system = _core_name(configuration)
    lines = [
        "[architecture]",
        f"macs={accelerator.macs_per_core}",
        f"cores={accelerator.cores}",
        "[vela]",
        f"system_config_name={system}",
        f"memory_mode_name={mode.name}",
        f"[System_Config.{system}]",
        f"core_clock={configuration.system.core_clock_hz!r}",
        f"axi0_port={configuration.memory(Port.AXI0).value}",
        f"axi1_port={configuration.memory(Port.AXI1).value}",
    ]
    timings = (configuration.system.axi0, configuration.system.axi1)
    for timing in dict.fromkeys(timings):
        lines += _timing_lines(timing)
    lines += [
        f"[Memory_Mode.{mode.name}]",
        f"const_mem_area={mode.constants.value}",
        f"arena_mem_area={mode.arena.value}",
        f"cache_mem_area={mode.cache.value}",
    ]
    if mode.arena_cache_size_bytes is not None:
        lines.append(f"arena_cache_size={mode.arena_cache_size_bytes}")
    return "\n".join([*lines, ""])


def options_text(configuration: EthosUConfiguration) -> str:
    """Return the compiler's options in the core's words."""
    lines = [
        "[compiler]",
        "enable_db=true",
        "output_format=TFLite",
        "cop_format=COP1",
        "[scheduler]",
        f"optimize={configuration.optimise.value}",
        f"arena_size_limit={configuration.arena_cache_size_bytes}",
        f"disable_feature={'|'.join(CORE_FEATURE_NAMES[row] for row in configuration.disabled)}",
        f"cpu_tensor_alignment={configuration.tensor_alignment_bytes}",
        f"tensor_allocator={configuration.tensor_allocator.value}",
        "[graph]",
        f"softmax_int16_neg_exp_range={SOFTMAX_INT16_NEGATIVE_EXPONENT_RANGE}",
    ]
    if configuration.ignore_ops:
        names = [CORE_OPERATOR_NAMES.get(kind, kind) for kind in configuration.ignore_ops]
        lines.append(f"ignore_ops={','.join(names)}")
    return "\n".join([*lines, ""])


def _core_name(configuration: EthosUConfiguration) -> str:
    """Name the system so that the core takes the ports to be as wide as they are."""
    name = configuration.system.name
    narrow = configuration.accelerator.arch is Arch.U55
    if narrow == name.startswith(NARROW_BUS_PREFIX):
        return name
    return f"{NARROW_BUS_PREFIX}_{name}" if narrow else f"Wide_{name}"


def _timing_lines(timing: MemoryTiming) -> Iterator[str]:
    name = timing.memory.value
    yield f"{name}_clock_scale={timing.clock_scale!r}"
    yield f"{name}_ports_used={timing.ports}"
    yield f"{name}_burst_length={timing.burst_bytes}"
    yield f"{name}_read_latency={timing.read_latency_cycles}"
    yield f"{name}_write_latency={timing.write_latency_cycles}"
    if timing.max_reads is not None:
        yield f"{name}_max_reads={timing.max_reads}"
    if timing.max_writes is not None:
        yield f"{name}_max_writes={timing.max_writes}"


def _exchange(
    worker: Child,
    message: bytes,
    limit_seconds: float,
    on_progress: ProgressCallback | None,
) -> bytes | None:
    """Return what the worker answers until it ends; None if it takes longer than the limit."""
    start = time.monotonic()
    pending: bytes | None = message
    pause = min(WAITING_AFTER_SECONDS, limit_seconds)
    while True:
        try:
            return worker.communicate(pending, timeout=pause)[0]
        except subprocess.TimeoutExpired:
            taken = time.monotonic() - start
            if taken >= limit_seconds:
                return None
            if on_progress is not None:
                on_progress(taken)
            pending = None
            pause = min(WAITING_EVERY_SECONDS, limit_seconds - taken)


def _kept(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read(LOG_BYTES).decode(errors="replace")


def _outcome(
    status: int, answer: bytes | None, log: str, limit_seconds: float
) -> Compiled | Stopped:
    if answer is None:
        message = f"the compiler must end within {limit_seconds:g} s, and did not"
        said = f"it ran for over {limit_seconds:g} s"
        return Stopped(Cause.TIME_LIMIT, message, said, refusals(log), log)
    taken_apart = _take_apart(answer)
    if taken_apart is None:
        return _crashed(status, log)
    document, network = taken_apart
    if "error" in document:
        return _stopped(document["error"], document["text"].strip(), log)
    return from_answer(document, network, log)


def _take_apart(answer: bytes) -> tuple[dict[str, Any], bytes] | None:
    if len(answer) < 8:
        return None
    (length,) = struct.unpack_from("<Q", answer)
    if len(answer) < 8 + length:
        return None
    return json.loads(answer[8 : 8 + length]), answer[8 + length :]


def _crashed(status: int, log: str) -> Stopped:
    how = f"exit status {status}"
    if status < 0:
        how = signal.Signals(-status).name if -status in set(signal.Signals) else f"{-status}"
        how = f"signal {how}"
    last = next((line for line in reversed(log.splitlines()) if line.strip()), None)
    said = f"; the last it said: {last.strip()}" if last else ""
    message = f"the compiler must give a network, and crashed ({how}){said}"
    return Stopped(Cause.CRASHED, message, f"it crashed ({how}){said}", refusals(log), log)


def _stopped(error: str, text: str, log: str) -> Stopped:
    said = " ".join(text.split())
    if error == "MemoryError":
        message = "the compiler must manage with 8 GiB of memory, and does not"
        said = "it needs over 8 GiB of memory"
        return Stopped(Cause.MEMORY_LIMIT, message, said, refusals(log), log)
    if text.startswith(CANNOT_FALL_BACK):
        message = f"the compiler must place every operator, and cannot: {said}"
        return Stopped(Cause.CANNOT_FALL_BACK, message, said, refusals(log), log)
    message = f"the compiler must take the network, and refuses it: {said}"
    return Stopped(Cause.REFUSED, message, said, refusals(log), log)


ON_CPU = "Passthrough"
"""What Vela's performance table calls an operator that it leaves to the CPU."""


@dataclass(frozen=True, slots=True)
class OperatorRefusal:
    """Why Vela leaves an operator to the CPU, in its own words.

    `kind` is the operator's type, `output` the name of its first output, `reason` what was found,
    `constraint` the rule that it breaks (empty where Vela gives none).
    """

    kind: str
    output: str
    reason: str
    constraint: str


@dataclass(frozen=True, slots=True)
class Work:
    """What the compiled network does for one operator of the model, in estimated cycles.

    `operator` is the index in the model's file; None for what Vela put in itself.
    """

    operator: int | None
    on_cpu: bool
    cycles: int
    macs: int


@dataclass(frozen=True, slots=True)
class StreamCommand:
    """An operation command: the NPU operator it is in (from 0), its byte offset in that stream."""

    stream: int
    offset_bytes: int
    operator: int | None


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """What Vela estimates for one kind of memory.

    accesses  bytes read and bytes written, by what they hold (``Weights``, ``FeatureMap``)
    """

    name: str
    peak_bytes: int
    access_cycles: int
    accesses: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Vela's estimates for the whole network.

    cycles      NPU and memory accesses together
    npu_cycles  the NPU alone
    figures     every number of Vela's performance report, by Vela's name
    """

    cycles: int
    npu_cycles: int
    memories: tuple[MemoryEstimate, ...]
    figures: dict[str, int]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled network: the bytes of a TFLite file, and what was said about it."""

    network: bytes
    version: str
    work: tuple[Work, ...]
    commands: tuple[StreamCommand, ...]
    estimate: Estimate
    refusals: tuple[OperatorRefusal, ...]
    log: str


class Cause(Enum):
    """Why the compiler gave no network; the value is the diagnostic's code."""

    REFUSED = "E301"
    CRASHED = "E302"
    TIME_LIMIT = "E303"
    MEMORY_LIMIT = "E304"
    CANNOT_FALL_BACK = "E305"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The compiler gave no network: why, in words and its own, and what it printed until then."""

    cause: Cause
    message: str
    said: str
    refusals: tuple[OperatorRefusal, ...]
    log: str

    @property
    def diagnostic(self) -> Diagnostic:
        """The error that this is."""
        return Diagnostic(self.cause.value, self.message, help=LEAVE_IT_OUT)


_WARNING = re.compile(
    r"^Warning \(supported operators\) operator: (\w+), ofm: '(.*?)'\nReason: (.*?)"
    r"(?=^Warning \(supported operators\)|^\w+: |^Tensor '|^$|\Z)",
    re.DOTALL | re.MULTILINE,
)


def refusals(log: str) -> tuple[OperatorRefusal, ...]:
    """Find in what Vela printed the reasons for leaving operators to the CPU."""
    found: list[OperatorRefusal] = []
    for kind, output, text in _WARNING.findall(log):
        reason, _, constraint = text.strip().partition("\n")
        found.append(OperatorRefusal(kind, output, reason.strip(), constraint.strip()))
    return tuple(found)


def from_answer(answer: dict[str, Any], network: bytes, log: str) -> Compiled:
    """Take the worker's answer apart; `answer` has the tables of Vela's debug database."""
    tables: dict[str, list[list[str]]] = answer["tables"]
    figures: dict[str, int] = answer["figures"]
    operators = {source: int(key) for source, key, _ in tables["source"]}
    return Compiled(
        network=network,
        version=answer["version"],
        work=_work(tables["perf"], operators),
        commands=_commands(tables, operators),
        estimate=Estimate(
            cycles=figures["totalCycles"],
            npu_cycles=figures["npuCycles"],
            memories=tuple(_memory(name, use) for name, use in sorted(answer["memories"].items())),
            figures=figures,
        ),
        refusals=refusals(log),
        log=log,
    )


def _memory(name: str, use: dict[str, Any]) -> MemoryEstimate:
    accesses = {what: (read, written) for what, (read, written) in use["accesses"].items()}
    return MemoryEstimate(name, use["peak"], use["cycles"], accesses)


def _work(rows: Sequence[Sequence[str]], operators: dict[str, int]) -> tuple[Work, ...]:
    return tuple(
        Work(operators.get(source), kind == ON_CPU, int(cycles), int(macs))
        for source, kind, _, cycles, macs in rows
    )


def _commands(
    tables: dict[str, list[list[str]]], operators: dict[str, int]
) -> tuple[StreamCommand, ...]:
    sources = dict(tables["optimised"])
    streams = sorted({int(stream) for stream, _, _ in tables["queue"]})
    return tuple(
        StreamCommand(
            streams.index(int(stream)), int(offset), operators.get(sources.get(optimised, ""))
        )
        for stream, offset, optimised in tables["queue"]
    )
