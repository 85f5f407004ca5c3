"""What CMD.run does: the command stream at QBASE, executed over the board's memory.

A stream is planned once for the bytes of its constants, and kept; each invocation compares those
bytes again, since firmware may exchange them. Whatever is wrong with a stream, its pointers or its
accesses is a `Stop`, as a bus or a parser would say it, never an exception; what is read and
written lies in the board's memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic, MizzenError, Origin, Severity, fail
from mizzen.emulate.estimate import NO_CYCLES, Cycles, TimingModel, elements, host_seconds
from mizzen.emulate.guest import GuestMemory
from mizzen.emulate.registers import REGIONS, RESET_ID, Channel
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.judge.sim.hardware import hardware_of
from mizzen.targets.ethos_u.judge.sim.memory import OutsideRegionError
from mizzen.targets.ethos_u.judge.sim.operations import (
    INTERNAL,
    Convolution,
    Dma,
    DmaEnd,
    Operation,
    Pooling,
    Space,
    Stream,
    Where,
)
from mizzen.targets.ethos_u.judge.sim.plan import REGISTERS, Computation
from mizzen.targets.ethos_u.machine.commands import Instruction, decode_partial
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import (
    HardwareId,
    Program,
    StagedRun,
    accelerator_of,
)

Bytes = npt.NDArray[np.uint8]
Run = Callable[[], None]
OnTime = Callable[[float], None]
"""Called with the seconds that are needed next."""

LARGEST_STREAM_BYTES = 1 << 22
"""Streams of real networks are far shorter; a longer one is a wrong QSIZE."""
LARGEST_MAP_ELEMENTS = 1 << 27
LARGEST_WEIGHTS_BYTES = 1 << 25
ALIGNMENT_BYTES = 16
KEPT_PLANS = 16
WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Queue:
    """What the registers say when the NPU starts."""

    base: int
    size_bytes: int
    pointers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """How an invocation ended.

    read_bytes   QREAD: how far the stream was read
    history      interrupts that the stream raised, 16 bits
    channel      what the NPU wanted of memory where it reached none; None if it did
    malformed    whether the stream could not be parsed or executed
    reason       what was wrong, for the user
    """

    read_bytes: int
    history: int = 0
    cycles: Cycles = NO_CYCLES
    region: int | None = None
    channel: Channel | None = None
    malformed: bool = False
    reason: Diagnostic | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Stream:
    """A decoded stream: its commands, and where its constants lie.

    constants  regions that hold nothing else
    staged     what is read as constants in others and has been there before, as an earlier stream
               may have brought weights
    """

    words: npt.NDArray[np.uint32]
    instructions: tuple[Instruction, ...]
    constants: frozenset[int]
    staged: tuple[Stream, ...]
    end_bytes: int
    history: int


@dataclass(slots=True, eq=False)
class _Planned:
    """A simulator, the constants it was planned for, and where it was last bound."""

    simulator: Simulator
    used_bytes: Mapping[int, int]
    digests: Mapping[int, bytes]
    cycles: Cycles
    seconds: Sequence[float]
    bound_to: tuple[int, ...] = ()
    runs: Sequence[Run] = ()


class TimeIsUpError(Exception):
    """The time for the run is over while the NPU works."""


class Executor:
    """Executes queues over a board's memory, with plans that it keeps.

    timing   how long the NPU is busy with a program
    on_time  called before each operation with the seconds that it takes about; it may raise
             `TimeIsUpError`
    """

    def __init__(
        self, accelerator: Accelerator, memory: GuestMemory, timing: TimingModel, on_time: OnTime
    ) -> None:
        self._memory = memory
        self._timing = timing
        self._on_time = on_time
        self._identity = HardwareId(accelerator.config_word, RESET_ID[accelerator.arch])
        self._streams: OrderedDict[bytes, _Stream] = OrderedDict()
        self._plans: OrderedDict[tuple[bytes, tuple[int, ...]], _Planned] = OrderedDict()

    def execute(self, queue: Queue) -> Stop:
        """Execute a queue to its end, or to what stops it."""
        words = self._words(queue)
        if isinstance(words, Stop):
            return words
        key = blake2b(words.tobytes(), digest_size=16).digest()
        stream = _kept(self._streams, key, lambda: _read(words, self._identity))
        if isinstance(stream, Stop):
            return stream
        return self._run(key, stream, queue)

    def _words(self, queue: Queue) -> npt.NDArray[np.uint32] | Stop:
        if queue.base % ALIGNMENT_BYTES or queue.size_bytes % WORD_BYTES:
            return _misaligned(
                f"QBASE must be a multiple of {ALIGNMENT_BYTES} and QSIZE of {WORD_BYTES}, not "
                f"{queue.base:#x} and {queue.size_bytes:#x}"
            )
        if not WORD_BYTES <= queue.size_bytes <= LARGEST_STREAM_BYTES:
            return _unparsed(
                f"QSIZE must be {WORD_BYTES}..{LARGEST_STREAM_BYTES} bytes, not {queue.size_bytes}"
            )
        rest = self._memory.rest(queue.base)
        if queue.size_bytes > len(rest):
            message = f"QBASE must name memory that the NPU reaches, not {queue.base:#x}"
            return _unreached(message, 0, Channel.CMD_READ, None)
        self._memory.fetch(queue.base, queue.size_bytes)
        return rest[: queue.size_bytes].view(np.dtype("<u4")).copy()

    def _run(self, key: bytes, stream: _Stream, queue: Queue) -> Stop:
        views = {
            region: self._memory.rest(pointer) for region, pointer in enumerate(queue.pointers)
        }
        try:
            planned = self._planned(key, stream, queue, views)
        except MizzenError as error:
            if isinstance(error, OutsideRegionError) and error.region >= 0:
                return self._outside(error, stream, queue)
            return Stop(_place(error.diagnostic), malformed=True, reason=error.diagnostic)
        for region in planned.used_bytes:
            if region < 0:
                continue
            if queue.pointers[region] % ALIGNMENT_BYTES:
                return _misaligned(
                    f"BASEP{region} must be a multiple of {ALIGNMENT_BYTES}, not "
                    f"{queue.pointers[region]:#x}"
                )
        try:
            self._perform(planned, stream, queue, views)
        except MizzenError as error:
            return Stop(_place(error.diagnostic), malformed=True, reason=error.diagnostic)
        return Stop(stream.end_bytes, stream.history, planned.cycles)

    def _perform(
        self, planned: _Planned, stream: _Stream, queue: Queue, views: Mapping[int, Bytes]
    ) -> None:
        used = {region: size for region, size in planned.used_bytes.items() if region >= 0}
        changing = {region: size for region, size in used.items() if region not in stream.constants}
        for region, size in changing.items():
            self._memory.fetch(queue.pointers[region], size)
        if planned.bound_to != queue.pointers:
            held = {region: views[region] for region in changing}
            planned.runs = planned.simulator.over(held)
            planned.bound_to = queue.pointers
        for run, seconds in zip(planned.runs, planned.seconds, strict=True):
            self._on_time(seconds)
            run()
        for region, size in changing.items():
            self._memory.store(queue.pointers[region], size)

    def _planned(
        self, key: bytes, stream: _Stream, queue: Queue, views: Mapping[int, Bytes]
    ) -> _Planned:
        """Return the plan for a stream with the constants that are there now."""
        place = (key, tuple(len(views[region]) for region in range(REGIONS)))
        planned = self._plans.get(place)
        if planned is not None:
            used = planned.used_bytes
            if self._digests(stream, queue, views, used) == planned.digests:
                self._plans.move_to_end(place)
                return planned
        for region in stream.constants:
            self._fetch_constants(queue, region, views[region])
        constants = {region: views[region] for region in stream.constants}
        sizes = {region: len(view) for region, view in views.items()}
        program = Program(
            stream.words,
            self._identity,
            sizes,
            constants,
            (),
            (),
            staged=self._staged(stream, queue, views),
        )
        simulator = Simulator(program)
        used = dict(simulator.plan.used_bytes)
        planned = _Planned(
            simulator,
            used,
            self._digests(stream, queue, views, used),
            self._timing(program),
            [host_seconds(step.operation) for step in simulator.plan.steps],
        )
        self._plans[place] = planned
        while len(self._plans) > KEPT_PLANS:
            self._plans.popitem(last=False)
        return planned

    def _staged(
        self, stream: _Stream, queue: Queue, views: Mapping[int, Bytes]
    ) -> dict[int, list[StagedRun]]:
        """Return what is in memory where a stream takes constants that it does not bring."""
        there: dict[int, list[StagedRun]] = {}
        for each in stream.staged:
            self._memory.fetch(queue.pointers[each.region], each.offset + each.length)
            held = views[each.region][each.offset : each.offset + each.length]
            if held.size == each.length:
                there.setdefault(each.region, []).append((each.offset, held.copy()))
        return there

    def _fetch_constants(self, queue: Queue, region: int, view: Bytes) -> None:
        """Bring all that may be constants, as far as a stream's addresses say."""
        self._memory.fetch(queue.pointers[region], len(view))

    def _digests(
        self,
        stream: _Stream,
        queue: Queue,
        views: Mapping[int, Bytes],
        used_bytes: Mapping[int, int],
    ) -> dict[int, bytes]:
        digests: dict[int, bytes] = {}
        for region in stream.constants:
            size = used_bytes.get(region, 0)
            self._memory.fetch(queue.pointers[region], size)
            digests[region] = blake2b(views[region][:size].data, digest_size=16).digest()
        for region, runs in self._staged(stream, queue, views).items():
            held = b"".join(data.tobytes() for _, data in runs)
            digests[region] = blake2b(held, digest_size=16).digest()
        return digests

    def _outside(self, error: OutsideRegionError, stream: _Stream, queue: Queue) -> Stop:
        at = _place(error.diagnostic)
        channel = _channel(stream, at, error)
        pointer = queue.pointers[error.region]
        bank = self._memory.bank(pointer)
        place = "no memory" if bank is None else bank[0].memory.name
        beyond = bank is not None and not bank[0].memory.npu
        hint = f", in {place}" + (", which the NPU does not reach" if beyond else "")
        message = f"{error.diagnostic.message}; BASEP{error.region} is {pointer:#x}{hint}"
        return _unreached(message, at, channel, error.region)


def _require_size(operation: Operation) -> None:
    """E427 for a feature map or weights that a host's memory is not for; no real ones are so large.

    A damaged stream asks for such ones, and would take the host's memory and time.
    """
    where = operation.where
    count = elements(operation)
    if count > LARGEST_MAP_ELEMENTS:
        message = f"a feature map must have at most {LARGEST_MAP_ELEMENTS} elements, not {count}"
        raise fail("E427", f"{where.name}: {message}", origin=where.origin)
    streams = [] if isinstance(operation, Dma) else _streams(operation)
    longest = max((stream.length for stream in streams), default=0)
    if longest > LARGEST_WEIGHTS_BYTES:
        message = f"weights must have at most {LARGEST_WEIGHTS_BYTES} bytes, not {longest}"
        raise fail("E427", f"{where.name}: {message}", origin=where.origin)


def _read(words: npt.NDArray[np.uint32], identity: HardwareId) -> _Stream | Stop:
    """Decode up to OP_STOP; what follows is never read."""
    decoded = decode_partial(words, accelerator_of(identity).arch)
    kept: list[Instruction] = []
    history = 0
    for instruction in decoded.instructions:
        kept.append(instruction)
        if instruction.name in {"OP_STOP", "OP_IRQ"}:
            history |= instruction.values["mask"]
        if instruction.name == "OP_STOP":
            end = WORD_BYTES * (instruction.offset_words + 1)
            whole = words[: end // WORD_BYTES]
            try:
                constants, staged = _constants(kept, identity)
            except MizzenError as error:
                return Stop(_place(error.diagnostic), malformed=True, reason=error.diagnostic)
            return _Stream(whole, tuple(kept), constants, staged, end, history)
    if decoded.stopped_by is not None:
        return Stop(_place(decoded.stopped_by), malformed=True, reason=decoded.stopped_by)
    return _unparsed("the command stream must end with OP_STOP, and QSIZE ends before one")


def _constants(
    instructions: Sequence[Instruction], identity: HardwareId
) -> tuple[frozenset[int], tuple[Stream, ...]]:
    """Return the regions that weights, scales or transfers are read from and nothing is written to,
    and what weights and scales are read in others without a transfer before that brings them.

    Weights are decoded when the stream is planned, so what they are must be known then. Raises
    E6xx for a command that says nothing that the NPU could do.
    """
    hardware = hardware_of(identity)
    registers = REGISTERS[hardware.arch](hardware)
    read: set[int] = set()
    written: set[int] = set()
    brought: list[tuple[int, int, int]] = []
    staged: dict[Stream, None] = {}
    for instruction in instructions:
        if not instruction.name.startswith("OP_"):
            registers.write(instruction)
            continue
        where = Where(instruction.name, Origin(command=instruction.offset_words))
        operation = registers.operation(instruction, where)
        if operation is not None:
            _require_size(operation)
        match operation:
            case None:
                pass
            case Dma() as dma:
                read |= _external(dma.source)
                written |= _external(dma.destination)
                brought.append(_brought(dma))
            case _:
                streams = _streams(operation)
                read |= {stream.region for stream in streams}
                written.add(operation.output.fm.region)
                staged.update(dict.fromkeys(each for each in streams if not _is_in(each, brought)))
    constants = frozenset(region for region in read - written if region >= 0)
    return constants, tuple(each for each in staged if each.region in written)


def _brought(dma: Dma) -> tuple[int, int, int]:
    """Return region, first byte, and one past the last, of what a transfer writes among."""
    end = dma.destination
    ends = (0, (dma.rows - 1) * end.row_stride), (0, (dma.planes - 1) * end.plane_stride)
    low, high = (end.offset + sum(pick(each) for each in ends) for pick in (min, max))
    return (end.region if end.space is Space.EXTERNAL else INTERNAL), low, high + dma.length


def _is_in(stream: Stream, brought: Sequence[tuple[int, int, int]]) -> bool:
    """Whether a transfer has brought a byte of a stream."""
    end = stream.offset + stream.length
    return any(
        region == stream.region and first < end and last > stream.offset
        for region, first, last in brought
    )


def _streams(operation: Computation) -> list[Stream]:
    """Return where an operation's constants lie."""
    streams: list[Stream] = []
    if isinstance(operation, Convolution):
        streams += operation.weights
    if isinstance(operation, Convolution | Pooling):
        streams += operation.scales
    table = operation.output.activation.table
    return streams if table is None else [*streams, table]


def _external(end: DmaEnd) -> set[int]:
    return {end.region} if end.space is Space.EXTERNAL else set()


def _named(instruction: Instruction | None) -> set[int]:
    """Return the region that a command selects; none if it selects the NPU's own memory."""
    if instruction is None or instruction.values.get("region_mode", 0):
        return set()
    return {instruction.values["region"]}


def _channel(stream: _Stream, at_bytes: int, error: OutsideRegionError) -> Channel:
    """Say for what an operation wanted memory, from its registers."""
    before = [
        instruction
        for instruction in stream.instructions
        if WORD_BYTES * instruction.offset_words <= at_bytes
    ]
    now = {instruction.name: instruction for instruction in before}
    if before[-1].name == "OP_DMA_START":
        return Channel.MEM2MEM_WRITE if error.written else Channel.MEM2MEM_READ
    if error.written:
        return Channel.OFM_WRITE
    if error.region in _named(now.get("SET_IFM_REGION")):
        return Channel.IFM_READ
    is_weight = error.region in _named(now.get("SET_WEIGHT_REGION"))
    return Channel.WEIGHT_READ if is_weight else Channel.SBS_READ


def _place(diagnostic: Diagnostic) -> int:
    """Return the byte in the stream that a diagnostic is about."""
    origin = diagnostic.origin
    return 0 if origin is None or origin.command is None else WORD_BYTES * origin.command


def _unreached(message: str, at: int, channel: Channel, region: int | None) -> Stop:
    reason = Diagnostic("E430", f"the NPU stopped with a bus error: {message}", Severity.WARNING)
    return Stop(at, channel=channel, region=region, reason=reason)


def _misaligned(message: str) -> Stop:
    return _unreached(message, 0, Channel.CMD_READ, None)


def _unparsed(message: str) -> Stop:
    reason = Diagnostic("E431", f"the NPU could not parse: {message}", Severity.WARNING)
    return Stop(0, malformed=True, reason=reason)


def _kept(
    kept: OrderedDict[bytes, _Stream], key: bytes, make: Callable[[], _Stream | Stop]
) -> _Stream | Stop:
    """Return the stream that is kept under a key, or make it and keep it."""
    known = kept.get(key)
    if known is None:
        made = make()
        if isinstance(made, Stop):
            return made
        known = kept[key] = made
        while len(kept) > KEPT_PLANS:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return known
