"""When each operation of a stream is at work: the front end, the kernel queue, the DMA, the buses.

Events follow from each other: the front end starts operations in the stream's order and stops
where a queue is full or a wait says so. Which transfer is beside which kernel operation follows
from that order alone. The two share their buses, and it is the operation that gets longer by what
the transfer moves. So nothing that a faster machine does earlier makes anything else later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mizzen.targets.ethos_u.judge.hazards.operations import ORDERS, Outstanding
from mizzen.targets.ethos_u.judge.hazards.stream import Queue, Wait
from mizzen.targets.ethos_u.judge.timing.buses import BusUse, inside_cycles, occupied, transfer_uses
from mizzen.targets.ethos_u.judge.timing.machine import Machine
from mizzen.targets.ethos_u.judge.timing.stages import Cause, Reason, Stages, stages_of
from mizzen.targets.ethos_u.judge.timing.work import KernelWork, Step, TransferWork

WORD_BYTES = 4
"""A command word, which the front end takes in a cycle."""

Causes = dict[Reason, float]


@dataclass(slots=True)
class Timed:
    """An operation on the timeline.

    start, end  in cycles, when it is at work
    cycles      what the stream gets longer by it
    causes      `cycles` by what is waited for; they add up to it
    vela_cycles what Vela's formula gives for it, and for the NPU if memories never make it wait
    """

    work: KernelWork | TransferWork
    uses: tuple[BusUse, ...]
    start: float
    end: float
    cycles: float = 0.0
    causes: Causes = field(default_factory=dict[Reason, float])
    stages: Stages | None = None
    vela_cycles: int = 0
    vela_npu_cycles: int = 0


@dataclass(slots=True)
class _Entry:
    """What follows an operation of the kernel queue, or goes on in its chain, must know of it.

    ready          when the array has its first input
    output_cycles  of the output unit, for all of a chain
    """

    ready: float
    main_end: float
    end: float
    output_cycles: float
    block_cycles: float
    blocks: int


class Timeline:
    """Executes the steps of a stream, without its arithmetic."""

    def __init__(self, machine: Machine) -> None:
        self.operations: list[Timed] = []
        self._machine = machine
        self._order: Outstanding = ORDERS[machine.accelerator.arch]
        self._front = float(machine.constants.read_latency_cycles)
        self._issued = self._front
        self._fetched = self._front
        self._frontier = 0.0
        self._kernels: list[float] = []
        self._transfers: list[Timed] = []
        self._before: _Entry | None = None
        self._chain = False

    def run(self, steps: Sequence[Step]) -> None:
        """Time all steps."""
        beside = _beside(steps, self._machine)
        for place, step in enumerate(steps):
            match step:
                case Wait():
                    self._wait(step.queue, step.outstanding)
                case KernelWork():
                    self._kernel(step, beside.get(place, ()))
                case TransferWork():
                    self._transfer(step)
        self._wait(Queue.TRANSFERS, 0)

    def _wait(self, queue: Queue, outstanding: int) -> None:
        if queue is Queue.KERNELS:
            done = self._kernels[: max(0, len(self._kernels) - outstanding)]
            del self._kernels[: len(done)]
            self._front = max([self._front, *done])
            return
        finished = self._transfers[: max(0, len(self._transfers) - outstanding)]
        del self._transfers[: len(finished)]
        for transfer in finished:
            self._charge(transfer)
            self._front = max(self._front, transfer.end)

    def _charge(self, transfer: Timed) -> None:
        """Charge a transfer with the time that nothing else but it fills."""
        late = transfer.end - self._frontier
        if late > 0:
            slowest = max(transfer.uses, key=lambda use: use.cycles)
            transfer.cycles += late
            transfer.causes = {(Cause.MEMORY, slowest.bus.port): transfer.cycles}
            self._frontier = transfer.end

    def _issue(self, command_bytes: int) -> float:
        """Return when the front end has the commands of the next operation, read ahead.

        They come over the port of the constants, beside what operations read through it.
        """
        cycles = command_bytes / self._machine.constants.bytes_per_cycle
        self._fetched = max(self._fetched, self._issued) + cycles
        self._front = max(self._front, self._issued + max(cycles, command_bytes / WORD_BYTES))
        self._issued = self._front
        return self._front

    def _transfer(self, work: TransferWork) -> None:
        self._wait(Queue.TRANSFERS, self._order.transfers - 1)
        start = self._issue(work.command_bytes)
        uses = tuple(transfer_uses(work, self._machine))
        latency = max(
            [use.bus.read_latency_cycles for use in uses if use.read_bytes]
            + [use.bus.write_latency_cycles for use in uses if use.written_bytes],
            default=0,
        )
        alone = max([inside_cycles(work, self._machine), *occupied(uses).values()])
        start = max([start, *(earlier.end for earlier in self._transfers[-1:])])
        timed = Timed(work, uses, start, start + latency + alone)
        self.operations.append(timed)
        self._transfers.append(timed)

    def _kernel(self, work: KernelWork, beside: Sequence[BusUse]) -> None:
        stages = stages_of(work, self._machine, beside)
        if self._chain and self._before is not None:
            self._link(work, stages, self._before)
        else:
            self._start(work, stages)
        self._chain = work.goes_on

    def _start(self, work: KernelWork, stages: Stages) -> None:
        self._wait(Queue.KERNELS, self._order.kernels - 1)
        start = self._issue(work.command_bytes)
        free = self._ready(start, stages, self._order.blockdep)
        ready = self._ready(start, stages, work.blockdep)
        main_end = max(ready + stages.main_cycles, self._read(ready, stages))
        entry = _Entry(ready, main_end, main_end + stages.drain_cycles, stages.output_cycles,
                       stages.block_cycles, stages.blocks)  # fmt: skip
        timed = Timed(work, stages.uses, ready - stages.fetch_cycles, entry.end, stages=stages)
        late = main_end - ready - stages.main_cycles
        over: dict[Reason, float] = {(Cause.WAITING, None): ready - free}
        over[Cause.MEMORY, self._machine.constants.port] = late
        self._follow(timed, stages, entry, over)

    def _read(self, ready: float, stages: Stages) -> float:
        """Return when an operation has its constants, which commands read ahead may delay."""
        cycles = stages.port_cycles.get(self._machine.constants.port, 0.0)
        if not cycles:
            return ready
        self._fetched = max(self._fetched, ready) + cycles
        return self._fetched

    def _ready(self, start: float, stages: Stages, blockdep: int) -> float:
        """Return when the array has its first input and weights."""
        ready = start + max(stages.fetch_cycles, stages.constants_cycles)
        before = self._before
        if before is None:
            return ready
        allowed = before.end
        if blockdep:
            buffered = before.main_end - before.block_cycles
            open_blocks = min(blockdep, before.blocks)
            allowed = max(before.end - open_blocks * before.block_cycles, buffered)
        return max(ready, allowed + stages.fetch_cycles, before.main_end)

    def _link(self, work: KernelWork, stages: Stages, before: _Entry) -> None:
        """Let an operation join the chain before it, whose blocks it takes from inside the NPU.

        The output unit does what it does for each of them, one after the other.
        """
        output = before.output_cycles + stages.output_cycles
        main_end = max(before.main_end, before.ready + max(output, stages.main_cycles))
        entry = _Entry(before.ready, main_end, main_end + stages.drain_cycles, output,
                       stages.block_cycles, stages.blocks)  # fmt: skip
        timed = Timed(work, stages.uses, self.operations[-1].start, entry.end, stages=stages)
        self._kernels.pop()
        self._follow(timed, stages, entry, {})

    def _follow(
        self, timed: Timed, stages: Stages, entry: _Entry, over: Mapping[Reason, float]
    ) -> None:
        timed.end = entry.end = max(entry.end, self._before.end if self._before else 0.0)
        timed.cycles = max(0.0, timed.end - self._frontier)
        timed.causes = _shares(stages, timed.cycles, over)
        self._frontier = max(self._frontier, timed.end)
        self._before = entry
        self._kernels.append(timed.end)
        self.operations.append(timed)


def _beside(steps: Sequence[Step], machine: Machine) -> dict[int, list[BusUse]]:
    """Return the traffic of transfers on the buses beside each kernel operation, by its place.

    A transfer is beside the last operation before it, unless that is waited for; then it is beside
    the next one, unless the transfer is waited for before.
    """
    beside: defaultdict[int, list[BusUse]] = defaultdict(list)
    at_work: int | None = None
    moving: list[BusUse] = []
    for place, step in enumerate(steps):
        match step:
            case Wait(queue=Queue.KERNELS, outstanding=0):
                at_work = None
            case Wait(queue=Queue.TRANSFERS, outstanding=0):
                moving = []
            case TransferWork():
                uses = transfer_uses(step, machine)
                if at_work is None:
                    moving += uses
                else:
                    beside[at_work] += uses
            case KernelWork():
                beside[place] += moving
                at_work, moving = place, []
            case _:
                pass
    return beside


def _shares(stages: Stages, cycles: float, over: Mapping[Reason, float]) -> Causes:
    """Divide the cycles that an operation adds by what it waits for.

    What its stages need comes first, then what is `over`; the rest is filling and draining.
    """
    main = sum(stages.causes.values())
    part = min(1.0, cycles / main) if main else 0.0
    shares = {cause: share * part for cause, share in stages.causes.items() if share}
    rest = max(0.0, cycles - main * part)
    filling: Reason = Cause.FILL, None
    for cause, most in (*over.items(), (filling, rest)):
        share = min(rest, most)
        rest -= share
        if share > 0:
            shares[cause] = shares.get(cause, 0.0) + share
    return shares
