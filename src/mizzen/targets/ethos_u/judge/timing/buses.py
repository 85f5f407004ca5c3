"""What an operation has on the buses, and how long a block's part of it takes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from mizzen.targets.ethos_u.judge.timing.array import up
from mizzen.targets.ethos_u.judge.timing.machine import TABLE_BYTES_PER_CYCLE, Bus, Machine
from mizzen.targets.ethos_u.judge.timing.rates import BUFFER_UNIT_BYTES, BUFFERS_U85, Buffers
from mizzen.targets.ethos_u.judge.timing.reads import Moved, reads_of, refetches, write_of
from mizzen.targets.ethos_u.judge.timing.work import KernelWork, TransferWork
from mizzen.targets.ethos_u.machine.config import Port


class Held(Enum):
    """What bytes on a bus are; the names are those of `mizzen.report.cost.Purpose`."""

    FEATURE_MAP = "FEATURE_MAP"
    WEIGHTS = "WEIGHTS"
    SCALES = "SCALES"
    TABLE = "TABLE"
    TRANSFER = "TRANSFER"
    COMMANDS = "COMMANDS"


@dataclass(frozen=True, slots=True)
class BusUse:
    """Bytes of one reader or writer on a bus.

    cycles       that it takes to move them when nothing else does
    port_cycles  for which nothing else can have the bus
    """

    bus: Bus
    held: Held
    read_bytes: int
    written_bytes: int
    cycles: float
    port_cycles: float


@dataclass(frozen=True, slots=True)
class Moves:
    """What the largest block moves.

    fetch_latency, fetch  cycles until a job's first input comes, and until all of it has
    port                  that the input comes through; of several, the slowest
    write_latency, write  cycles until writing is acknowledged, and of the last rows that leave
    constants             cycles until the first weights come
    """

    fetch_latency: float
    fetch: float
    port: Port | None
    write_latency: float
    write: float
    constants: float


def uses_of(work: KernelWork, machine: Machine) -> tuple[tuple[BusUse, ...], Moves]:
    """Return the traffic of an operation on the buses, and of a block."""
    inputs = list(_inputs(work, machine))
    output = _output(work, machine)
    constants = list(_constants(work, machine))
    fetch: dict[Port, float] = {}
    for use, moved in inputs:
        share = moved.block_bytes / max(1, moved.bytes_)
        port = use.bus.port
        fetch[port] = fetch.get(port, 0.0) + use.cycles * share / jobs_of(work)
    latency = max((use.bus.read_latency_cycles for use, _ in inputs), default=0)
    moves = Moves(
        fetch_latency=latency,
        fetch=max(fetch.values(), default=0.0),
        port=max(fetch, key=lambda port: fetch[port], default=None),
        write_latency=output[0].bus.write_latency_cycles if output else 0,
        write=output[0].cycles * _tail(output[1], work) if output else 0.0,
        constants=max((use.bus.read_latency_cycles for use in constants), default=0),
    )
    uses = [use for use, _ in inputs]
    uses += [output[0]] if output else []
    return (*uses, *constants, _commands(work.command_bytes, machine)), moves


def transfer_uses(work: TransferWork, machine: Machine) -> Iterator[BusUse]:
    """Return the traffic of a transfer on the buses."""
    held = Held.TRANSFER if machine.bus(work.destination.place) else Held.TABLE
    buffers = _buffers(machine)
    room = None if buffers is None else buffers.transfer * BUFFER_UNIT_BYTES
    for run in work.sources:
        bus = machine.bus(run.place)
        if bus is not None and run.bytes_:
            yield _reading(bus, held, run.bytes_, run.run_bytes, room)
    run = work.destination
    bus = machine.bus(run.place)
    if bus is not None and run.bytes_:
        yield _writing(bus, held, run.bytes_, run.run_bytes)
    yield _commands(work.command_bytes, machine)


def _reading(bus: Bus, held: Held, total: int, run_bytes: float, room: int | None) -> BusUse:
    cycles = total / bus.read_bytes_per_cycle(run_bytes, room)
    return BusUse(bus, held, total, 0, cycles, total / bus.shared_bytes_per_cycle(run_bytes))


def _writing(bus: Bus, held: Held, total: int, run_bytes: float) -> BusUse:
    cycles = total / bus.write_bytes_per_cycle(run_bytes)
    return BusUse(bus, held, 0, total, cycles, total / bus.shared_bytes_per_cycle(run_bytes))


def occupied(uses: Iterable[BusUse]) -> dict[Port, float]:
    """Return the cycles for which each bus is needed: by all together, or by the slowest of them.

    Commands are read ahead, and not counted.
    """
    together: defaultdict[Port, float] = defaultdict(float)
    slowest: defaultdict[Port, float] = defaultdict(float)
    for use in uses:
        if use.held is not Held.COMMANDS:
            port = use.bus.port
            together[port] += use.port_cycles
            slowest[port] = max(slowest[port], use.cycles)
    return {port: max(cycles, slowest[port]) for port, cycles in together.items()}


def inside_cycles(work: TransferWork, machine: Machine) -> float:
    """Return the cycles that the NPU's own memory takes of a transfer."""
    inside = machine.bus(work.destination.place) is None
    return work.destination.bytes_ / TABLE_BYTES_PER_CYCLE if inside else 0.0


def _inputs(work: KernelWork, machine: Machine) -> Iterator[tuple[BusUse, Moved]]:
    buffers = _buffers(machine)
    room = None if buffers is None else buffers.input * BUFFER_UNIT_BYTES
    for moved in reads_of(work, machine.beat_bytes):
        bus = machine.bus(moved.place)
        if bus is not None:
            run_bytes = _run_bytes(moved)
            yield _reading(bus, Held.FEATURE_MAP, moved.bytes_, run_bytes, room), moved


def _output(work: KernelWork, machine: Machine) -> tuple[BusUse, Moved] | None:
    moved = write_of(work, machine.beat_bytes)
    bus = machine.bus(moved.place) if moved else None
    if moved is None or bus is None:
        return None
    return _writing(bus, Held.FEATURE_MAP, moved.bytes_, _run_bytes(moved)), moved


def _constants(work: KernelWork, machine: Machine) -> Iterator[BusUse]:
    times, buffers = refetches(work), _buffers(machine)
    for stream in work.streams:
        bus = machine.bus(stream.place)
        if bus is not None and stream.bytes_:
            held = Held.WEIGHTS if stream.what == "weights" else Held.SCALES
            room = None if buffers is None else _room(work, held, buffers)
            yield _reading(bus, held, times * stream.bytes_, stream.bytes_, room)


def _run_bytes(moved: Moved) -> float:
    """Return the length of runs; after one that is alone nothing waits for its burst."""
    return moved.run_bytes if moved.bytes_ > moved.run_bytes else math.inf


def _room(work: KernelWork, held: Held, buffers: Buffers) -> int:
    if held is Held.SCALES:
        return buffers.scales * BUFFER_UNIT_BYTES
    return (buffers.fast_weights if work.fast_weights else buffers.weights) * BUFFER_UNIT_BYTES


def _commands(total: int, machine: Machine) -> BusUse:
    bus = machine.constants
    cycles = total / bus.bytes_per_cycle
    return BusUse(bus, Held.COMMANDS, total, 0, cycles, cycles)


def _buffers(machine: Machine) -> Buffers | None:
    return BUFFERS_U85[machine.accelerator.macs] if machine.is_u85 else None


def jobs_of(work: KernelWork) -> int:
    """Return how many jobs a block is done in: slabs of input channels, parts of the kernel."""
    slabs = up(work.channels, work.slab) if work.slab else 1
    return slabs * len(work.subkernels)


def _tail(moved: Moved, work: KernelWork) -> float:
    """Return the share of an operation's writing that the last row of its last block has."""
    height = min(work.blocks.block[0], work.blocks.shape[0])
    return moved.block_bytes / height / max(1, moved.bytes_)
