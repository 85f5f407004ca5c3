"""Generate code with Vela's compiled core (`ethosu.regor`), in a worker process.

The core takes a network, a description of the system and options, both as text, and gives a
network in which NPU operators replace what runs on the NPU. Whatever happens to the worker, the
caller gets an answer: a compiled network, or why there is none.

Ref: Vela 5.2.0, vela.py (the two texts), OPTIONS.md (options).
"""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from mizzen.diagnostics import ProgressCallback, fail
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.config import EthosUConfiguration, MemoryTiming, Port
from mizzen.targets.ethos_u.vela.compiled import Cause, Compiled, Stopped, from_answer, refusals

SCRIPT = Path(__file__).with_name("process.py")
CORE = "ethosu.regor"

TIME_LIMIT_SECONDS = 120.0
"""The largest public networks for these NPUs compile in a few seconds."""

WAITING_AFTER_SECONDS = 2.0
WAITING_EVERY_SECONDS = 0.5

LOG_BYTES = 8 << 20
"""The part of what the core prints that is kept."""

CPU_TENSOR_ALIGNMENT_BYTES = 16
SOFTMAX_INT16_NEGATIVE_EXPONENT_RANGE = 10.0

FAMILY_NAMES = {Arch.U55: "EthosU55", Arch.U65: "EthosU65", Arch.U85: "EthosU85"}

CORE_OPERATOR_NAMES = {"ARG_MAX": "ARGMAX"}
"""Operator types that the core spells in another way than the TFLite schema."""

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
        with subprocess.Popen(
            started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as worker:
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
            "the compiler must be installed: the package ethos-u-vela was not found",
            help="pip install ethos-u-vela==5.2.0",
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
        "disable_feature=",
        f"cpu_tensor_alignment={CPU_TENSOR_ALIGNMENT_BYTES}",
        "tensor_allocator=HillClimb",
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
    worker: subprocess.Popen[bytes],
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
