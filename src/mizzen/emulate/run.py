"""Run firmware: a board, an NPU, a processor, and the file that they are to run."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mizzen.boards import Board, find_board, require_registers
from mizzen.diagnostics import Diagnostic, fail, unreadable
from mizzen.emulate.console import Console
from mizzen.emulate.device import Fault, NpuDevice
from mizzen.emulate.estimate import TimingModel, stream_estimate
from mizzen.emulate.guest import GuestMemory
from mizzen.emulate.image import Image, Segment, read_image, with_segments
from mizzen.emulate.processor import Core, Deadline, End, Limits
from mizzen.emulate.result import MARKER, EmulationResult, failures, has_line, unique
from mizzen.emulate.trace import NpuBus
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.system_config import find_accelerator

TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    """How firmware is run.

    fault         what to make go wrong
    seconds       of the clock on the wall that it may take
    instructions  that it may take; counted by M33 only, some hundred times slower
    marker        the line that says that all is well
    timing        how long the NPU is busy
    on_text       called with each line that the firmware writes
    beside        what lies in memory besides the firmware
    """

    core: Core = Core.M33
    fault: Fault | None = None
    seconds: float = TIMEOUT_SECONDS
    instructions: int | None = None
    marker: str = MARKER
    timing: TimingModel = stream_estimate
    on_text: Callable[[str], None] | None = None
    beside: tuple[Segment, ...] = ()


DEFAULTS = Options()


def emulate(
    firmware: str | os.PathLike[str] | bytes,
    board: str | Board,
    accelerator: str,
    options: Options = DEFAULTS,
) -> EmulationResult:
    """Run firmware until it ends, or is ended, and return what it did.

    firmware     an ELF file, by path or as bytes
    board        the name of a board, or the path of its file; a `Board` that was read
    accelerator  the NPU, as ``ethos-u55-128``

    Raises E110 and E420 to E423 for what is wrong with the firmware, E410 to E415 with the board,
    E441 for a board whose file does not say where its NPU is, E442 for an NPU that it has not,
    E210 for an unknown accelerator, E424 to E426 for what is not installed or not there, E428 for
    a limit that M55 does not have.
    What the firmware does wrong is in the result.
    """
    chosen = find_board(board) if isinstance(board, str) else board
    npu = find_accelerator(accelerator)
    chosen = chosen.for_npu(npu.name)
    require_registers(chosen)
    data = with_segments(_read(firmware), options.beside) if options.beside else _read(firmware)
    image = read_image(data)
    deadline = Deadline(options.seconds)
    match options.core:
        case Core.M33:
            result = _on_unicorn(image, chosen, npu, options, deadline)
            gc.collect()  # Unicorn's callbacks hold it in a circle, with all that it has allocated
            return result
        case Core.M55:
            return _on_qemu(data, image, chosen, npu, options, deadline)


def _read(firmware: str | os.PathLike[str] | bytes) -> bytes:
    if isinstance(firmware, bytes):
        return firmware
    path = Path(firmware)
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def _on_unicorn(
    image: Image, board: Board, npu: Accelerator, options: Options, deadline: Deadline
) -> EmulationResult:
    from mizzen.emulate.unicorn_cpu import UnicornProcessor

    memory = GuestMemory(board)
    image.load(memory)
    console = Console(options.on_text)
    bus = NpuBus(NpuDevice(npu, memory, options.fault, options.timing, deadline.check))
    processor = UnicornProcessor(board, image, memory, bus, console)
    end = processor.run(Limits(options.seconds, options.instructions), deadline)
    return _result(end, console, bus, options, processor.semihosting.diagnostics)


def _on_qemu(
    data: bytes,
    image: Image,
    board: Board,
    npu: Accelerator,
    options: Options,
    deadline: Deadline,
) -> EmulationResult:
    from mizzen.emulate.qemu_cpu import QemuMemory, QemuProcessor
    from mizzen.emulate.qemu_process import started

    if options.instructions is not None:
        raise fail("E428", "instructions are counted by the processor m33 only")
    image.load(GuestMemory(board))
    console = Console(options.on_text)
    with started(board, data, console) as process:
        memory = QemuMemory(board, process)
        bus = NpuBus(NpuDevice(npu, memory, options.fault, options.timing, deadline.check))
        processor = QemuProcessor(board, image, memory, bus, console, process)
        end = processor.run(Limits(options.seconds), deadline)
    return _result(end, console, bus, options, processor.files.diagnostics)


def _result(
    end: End, console: Console, bus: NpuBus, options: Options, notes: list[Diagnostic]
) -> EmulationResult:
    seen = has_line(console.text, options.marker)
    device = bus.device
    return EmulationResult(
        output=console.text,
        reason=end.reason,
        exit_status=end.status,
        marker=options.marker,
        marker_seen=seen,
        invocations=tuple(device.invocations),
        invocation_count=device.invocation_count,
        trace=tuple(bus.rows),
        failures=failures(end, options.marker, marker_seen=seen),
        notes=unique([*device.diagnostics, *notes]),
    )
