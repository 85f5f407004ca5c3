"""Find accesses whose order nothing guarantees, and reads of what nothing has written.

The front end starts operations in the stream's order; it stops only where a queue is full or a
wait says so. Transfers and kernel operations then go on at the same time. Of kernel operations
two are outstanding at most, and the second starts its jobs while the last blocks of the first are
unfinished, as far as its BLOCKDEP lets it: job f may read before block b from the end of the
operation before it is written, if f + b < BLOCKDEP. Jobs read in order and blocks are written in
order, so that a kernel operation never overtakes what the one before it reads, nor its writes.
Where an output lies over the operation's own input, no block may be written that a later one reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mizzen.diagnostics import Diagnostic
from mizzen.targets.ethos_u.judge.hazards.contents import Contents, Ranges, Surroundings
from mizzen.targets.ethos_u.judge.hazards.findings import Finding, Misfit, Order, Race, span_of
from mizzen.targets.ethos_u.judge.hazards.fit_u85 import misfits_u85
from mizzen.targets.ethos_u.judge.hazards.inplace import Patience, overwritten
from mizzen.targets.ethos_u.judge.hazards.intervals import EMPTY, Intervals
from mizzen.targets.ethos_u.judge.hazards.maps import (
    INTERNAL,
    Kind,
    are_alike,
    bytes_of,
    overlaps_itself,
)
from mizzen.targets.ethos_u.judge.hazards.operations import (
    ORDERS,
    Access,
    Kernel,
    Operation,
    Transfer,
)
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.judge.hazards.shared_buffer import misfits
from mizzen.targets.ethos_u.judge.hazards.stream import Queue, Wait, steps
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of


@dataclass(frozen=True, slots=True)
class HazardReport:
    """What was checked and found in one program, whose memory then has these contents."""

    accelerator: str
    operations: int
    findings: tuple[Finding, ...]
    contents: Contents = field(repr=False, compare=False)

    @property
    def written(self) -> Mapping[int, Ranges]:
        """The bytes of each region that hold something after the program."""
        return self.contents.written

    @property
    def own(self) -> Mapping[int, Ranges]:
        """The bytes of each region that the program itself writes."""
        return self.contents.own

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found, for people."""
        return tuple(finding.diagnostic for finding in self.findings)

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready data."""
        return {
            "accelerator": self.accelerator,
            "operations": self.operations,
            "findings": [finding.as_dict() for finding in self.findings],
        }


def find_hazards(program: Program, around: Surroundings | None = None) -> HazardReport:
    """Check the stream of a program for the accelerator that its payload names.

    around  what other programs leave in its memory and find there; None if it is alone

    Raises E604 and E605 for a payload that names no accelerator, E5xx for a stream that cannot be
    decoded, E611 and E613 for operations that cannot be resolved, E677 for a stream with branches,
    E645 where more blocks write over what they read than can be looked at.
    """
    accelerator = accelerator_of(program.hardware)
    checker = _Checker(program, accelerator, around)
    findings = tuple(checker.run())
    return HazardReport(accelerator.name, checker.operations, findings, checker.contents)


Entry = list[Kernel]
"""A place in the kernel queue: one operation, or all of a chain."""


class _Checker:
    def __init__(
        self, program: Program, accelerator: Accelerator, around: Surroundings | None
    ) -> None:
        self._program = program
        self._accelerator = accelerator
        self._registers = Registers()
        self._order = ORDERS[accelerator.arch]
        self.contents = Contents(program, accelerator, around)
        self._kernels: list[Entry] = []
        self._transfers: list[Transfer] = []
        self._before: Entry = []
        self._goes_on = False
        self._patience = Patience()
        self.operations = 0

    def run(self) -> Iterator[Finding]:
        """Return the findings in the order of the stream, then those about the outputs."""
        for step in steps(self._program, self._accelerator, self._registers):
            match step:
                case Wait():
                    self._wait(step)
                    continue
                case Kernel():
                    yield from self._kernel(step)
                case Transfer():
                    yield from self._transfer(step)
            self.operations += 1
            yield from self.contents.execute(step)
        yield from self.contents.outputs()

    def _wait(self, wait: Wait) -> None:
        queue = self._kernels if wait.queue is Queue.KERNELS else self._transfers
        _finish(queue, wait.outstanding)

    def _transfer(self, transfer: Transfer) -> Iterator[Race]:
        _finish(self._transfers, self._order.transfers - 1)
        for later, entry in enumerate(reversed(self._kernels)):
            for kernel in entry:
                yield from _races(kernel, transfer, f"put KERNEL_WAIT {later} before")
        yield from self._after_transfers(transfer)
        self._transfers.append(transfer)

    def _kernel(self, kernel: Kernel) -> Iterator[Race | Misfit]:
        for what in self._misfits(kernel):
            yield Misfit(kernel, what)
        if not (self._goes_on and self._kernels):
            _finish(self._kernels, self._order.kernels - 1)
            self._before = self._kernels[-1] if self._kernels else []
            self._kernels.append([])
        self._goes_on = kernel.goes_on
        yield from self._after_transfers(kernel)
        self._kernels[-1].append(kernel)
        guard = max(self._kernels[-1][0], kernel, key=lambda one: one.blockdep)
        for earlier in self._before:
            yield from _overtakes(earlier, kernel, guard)
        yield from _overwrites(self._kernels[-1], kernel, self._patience)
        yield from _collides(kernel)

    def _misfits(self, kernel: Kernel) -> Iterator[str]:
        if self._accelerator.arch is not Arch.U85:
            return misfits(kernel, self._registers, self._accelerator)
        first = self._kernels[-1][0] if self._goes_on and self._kernels else None
        return misfits_u85(kernel, first, self._registers, self._accelerator)

    def _after_transfers(self, operation: Operation) -> Iterator[Race]:
        for later, transfer in enumerate(reversed(self._transfers)):
            yield from _races(transfer, operation, f"put DMA_WAIT {later} before")


def _finish(queue: list[Entry] | list[Transfer], outstanding: int) -> None:
    """Take from a queue what is finished once only so many are outstanding."""
    del queue[: max(0, len(queue) - outstanding)]


def _races(first: Operation, second: Operation, fix: str) -> Iterator[Race]:
    """Return the accesses of two operations at the same time that touch the same bytes."""
    writes_first, writes_second = _writes(first), _writes(second)
    for order, ones, others in (
        (Order.READ_AFTER_WRITE, writes_first, second.reads),
        (Order.WRITE_AFTER_READ, first.reads, writes_second),
        (Order.WRITE_AFTER_WRITE, writes_first, writes_second),
    ):
        for one in ones:
            for other in others:
                if one.place == other.place and one.bytes.touches(other.bytes):
                    span = span_of(one.place, one.bytes.intervals & other.bytes.intervals)
                    where = f"{fix} the command at word {second.origin.command}"
                    yield Race(order, first, one.what, second, other.what, span, where)


def _writes(operation: Operation) -> tuple[Access, ...]:
    if isinstance(operation, Kernel) and operation.scratch:
        return (*operation.writes, Access("shared buffer", INTERNAL, operation.scratch))
    return operation.writes


def _overtakes(first: Kernel, second: Kernel, guard: Kernel) -> Iterator[Race]:
    """Return the accesses that one operation's jobs may make before another's blocks are done.

    guard  whose BLOCKDEP counts: a link of a chain starts when the chain's first operation may
    """
    if guard.blockdep == 0:
        return
    if first.table.touches(second.scratch):
        span = span_of(INTERNAL, first.table.intervals & second.scratch.intervals)
        fix = _blockdep(0, guard)
        yield Race(
            Order.WRITE_AFTER_READ, first, "lookup table", second, "shared buffer", span, fix
        )
    for written in first.writes:
        for read in second.reads:
            # What goes through a chain buffer is handed on inside the NPU.
            outside = written.place == read.place and written.place.kind is not Kind.CHAIN
            if outside and written.bytes.touches(read.bytes):
                yield from _read_early(first, written, second, read, guard)


def _read_early(
    first: Kernel, written: Access, second: Kernel, read: Access, guard: Kernel
) -> Iterator[Race]:
    safe, bytes_ = _overlap(first, second, read, guard.blockdep)
    if bytes_:
        span = span_of(read.place, bytes_)
        fix = _blockdep(safe, guard)
        yield Race(Order.READ_AFTER_WRITE, first, written.what, second, read.what, span, fix)


def _overlap(first: Kernel, second: Kernel, read: Access, depth: int) -> tuple[int, Intervals]:
    """Return the greatest BLOCKDEP that is safe, and the bytes that `depth` endangers."""
    blocks, result = first.blocks, first.blocks.result
    assert result is not None
    item = next((item for item in second.blocks.inputs if item.what == read.what), None)
    safe, shared = depth, EMPTY
    last = blocks.last_written(depth)
    jobs = [None] * depth if item is None else second.blocks.first_jobs(depth, item)
    alike = item is not None and are_alike(item.map, result.map)
    for f, needed in enumerate(jobs):
        for b, written in enumerate(last[: depth - f]):
            if alike and needed is not None and not needed.meets(written):
                continue
            ours = read.bytes if item is None or needed is None else bytes_of(item.map, needed)
            theirs = bytes_of(result.map, written)
            if ours.touches(theirs):
                safe, shared = min(safe, f + b), shared | (ours.intervals & theirs.intervals)
    return safe, shared


def _overwrites(entry: Entry, writer: Kernel, patience: Patience) -> Iterator[Race]:
    for reader, item, bytes_ in overwritten(entry, writer, patience):
        span = span_of(item.map.place, bytes_)
        fix = "write elsewhere: no wait orders the blocks of an operation or a chain"
        yield Race(Order.WRITE_AFTER_READ, reader, item.what, writer, "OFM", span, fix)


def _collides(kernel: Kernel) -> Iterator[Race]:
    """Return the output of an operation if elements of it lie over one another."""
    result = kernel.blocks.result
    if result is not None and overlaps_itself(result.map):
        span = span_of(result.map.place, result.map.bytes.intervals)
        fix = "write its elements apart: no wait orders the blocks of an operation"
        yield Race(Order.WRITE_AFTER_WRITE, kernel, "OFM", kernel, "OFM", span, fix)


def _blockdep(value: int, kernel: Kernel) -> str:
    return f"set BLOCKDEP to {value} for the command at word {kernel.origin.command}"
