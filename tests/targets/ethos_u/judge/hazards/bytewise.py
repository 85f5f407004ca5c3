"""What a stream reads unwritten, touches outside, and leaves unwritten: an oracle byte by byte.

Memories are integers with a bit for each byte; which bytes an operation touches is what the oracle
of orders says. For small streams without chains.
"""

from __future__ import annotations

from itertools import groupby

from mizzen.targets.ethos_u.machine.commands import Instruction
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of

from .interleaving import Bytes, Event, Stream, joined, run

Place = tuple[str, int]
Fault = tuple[str, int, Place, int, int]
"""Code, word offset of the operation, memory, lowest and highest byte."""


def faults(program: Program, instructions: list[Instruction]) -> set[Fault]:
    """Return what is wrong with each operation, and with the outputs at the end."""
    accelerator = accelerator_of(program.hardware)
    stream = Stream(instructions, accelerator)
    own = (accelerator.shram_kib or 2) * 1024 // accelerator.cores
    sizes = {("region", i): size for i, size in program.region_bytes.items()} | {INTERNAL: own}
    written = {("region", i): run(0, len(data)) for i, data in program.constants.items()}
    for item in program.inputs:
        place = "region", item.region
        written[place] = written.get(place, 0) | run(item.offset, item.size_bytes)
    found: set[Fault] = set()
    for offset, group in groupby(stream.events, key=lambda event: event.offset):
        events = list(group)
        reads = joined(pair for event in events for pair in event.reads.items())
        writes = joined(pair for event in events for pair in event.writes.items())
        for place in reads.keys() | writes.keys():
            touched = reads.get(place, 0) | writes.get(place, 0)
            # What an operation keeps for itself is no access of its own.
            outside = touched if place != INTERNAL else _not_scratch(touched, events)
            found |= fault("E675", offset, place, outside & ~run(0, sizes.get(place, 0)))
        if isinstance(stream.operations[offset], dict):
            for place, mask in reads.items():
                found |= fault("E674", offset, place, mask & ~written.get(place, 0))
            _write(written, writes, events)
        else:
            _copy(written, reads, writes)
    for item in program.outputs:
        place = "region", item.region
        missing = run(item.offset, item.size_bytes) & ~written.get(place, 0)
        found |= fault("E676", -1, place, missing)
    return found


INTERNAL = ("internal", 0)


def fault(code: str, offset: int, place: Place, mask: int) -> set[Fault]:
    if not mask:
        return set()
    return {(code, offset, place, (mask & -mask).bit_length() - 1, mask.bit_length() - 1)}


def _not_scratch(touched: int, events: list[Event]) -> int:
    """Leave tables, and what transfers load."""
    if len(events) == 1:
        return touched
    tables = 0
    for event in events:
        tables |= event.reads.get(INTERNAL, 0)
    return tables


def _write(written: Bytes, writes: Bytes, events: list[Event]) -> None:
    for place, mask in writes.items():
        before = written.get(place, 0)
        written[place] = before & ~mask if place == INTERNAL else before | mask


def _copy(written: Bytes, reads: Bytes, writes: Bytes) -> None:
    ((source, read),) = reads.items()
    ((target, write),) = writes.items()
    distance = (write & -write).bit_length() - (read & -read).bit_length()
    there = written.get(source, 0) & read
    moved = there << distance if distance >= 0 else there >> -distance
    written[target] = written.get(target, 0) & ~write | moved
