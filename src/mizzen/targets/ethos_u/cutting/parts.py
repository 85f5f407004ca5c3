"""The programs of a stream's parts: the same commands, with what each must be told again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mizzen.diagnostics import Origin
from mizzen.isa import Instruction
from mizzen.targets.ethos_u.cutting.places import Work, cuts, work_of
from mizzen.targets.ethos_u.cutting.state import (
    TRANSFER,
    reloaded,
    replayed,
    wait_for_transfers,
)
from mizzen.targets.ethos_u.machine.commands import Arch, encode, instruction_set
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of

STOP_MASK = 0xFFFF
"""What OP_STOP says in every compiler's stream."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a stream.

    program     what it executes; its inputs and outputs are those of the whole stream
    layers      operators of the network whose operations it has, in the stream's order
    operations  how many kernel operations it has
    transfers   how many transfers the whole stream has in its place; it leaves out those of lookup
                tables that others need
    again       how many transfers it does again before its own
    """

    program: Program
    layers: tuple[Origin, ...]
    operations: int
    transfers: int
    again: int


def parts_of(program: Program) -> tuple[Part, ...]:
    """Cut a stream wherever it may be cut. E5xx and E61x for a damaged stream, E677 for branches.

    Each part ends as a stream does, when all of it has ended.
    """
    work = work_of(program)
    places = [0, *cuts(work.kernels), len(work.kernels)]
    return tuple(_part(program, work, first, last) for first, last in pairwise(places))


def _part(program: Program, work: Work, first: int, last: int) -> Part:
    stream, arch = program.instructions, accelerator_of(program.hardware).arch
    mine = work.kernels[first:last]
    start = work.kernels[first - 1].end if first else 0
    end = mine[-1].end if last < len(work.kernels) else len(stream)
    needed = {table.at for kernel in mine for table in kernel.tables}
    missing = sorted(place for place in needed if place < start)
    own = [stream[place] for place in range(start, end) if place not in work.loads - needed]
    ahead = [*reloaded(stream, missing, arch), *replayed(stream[:start], own)]
    after = _end(own, arch) if last < len(work.kernels) else ()
    words = encode((*ahead, *own, *after), arch)
    made = replace(program, words=words, origins=_origins(program, ahead, own))
    layers = tuple(dict.fromkeys(kernel.layer for kernel in mine))
    return Part(made, layers, len(mine), _transfers(stream[start:end]), len(missing))


def _origins(
    program: Program, ahead: Sequence[Instruction], own: Sequence[Instruction]
) -> dict[int, Origin]:
    """Return the origins of a part's commands, by their byte offsets in the part."""
    at, origins = 4 * sum(each.command.words for each in ahead), dict[int, Origin]()
    for each in own:
        origin = program.origins.get(4 * each.offset_words)
        if origin is not None:
            origins[at] = origin
        at += 4 * each.command.words
    return origins


def _end(own: Sequence[Instruction], arch: Arch) -> Iterator[Instruction]:
    if _transfers(own):
        yield wait_for_transfers(arch)
    yield instruction_set(arch)["OP_STOP"](mask=STOP_MASK)


def _transfers(commands: Sequence[Instruction]) -> int:
    return sum(each.name == TRANSFER for each in commands)
