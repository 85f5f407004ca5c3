"""The programs of a stream's parts: the same commands, with what each must be told again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mizzen.diagnostics import Origin
from mizzen.isa import Instruction
from mizzen.targets.ethos_u.cutting.places import Worked, cuts, worked
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
    again_words  words that it was given in front of its own commands
    """

    program: Program
    layers: tuple[Origin, ...]
    operations: int
    again_words: int


def parts_of(program: Program) -> tuple[Part, ...]:
    """Cut a stream wherever it may be cut. E5xx and E61x for a damaged stream, E677 for branches.

    A part ends with its last kernel operation; transfers that come after, which prepare what is
    next, are in the next part. Each ends as a stream does, when all of it has ended.
    """
    kernels = worked(program)
    places = [0, *cuts(kernels), len(kernels)]
    if len(places) <= 2:
        return (Part(program, _layers(kernels), len(kernels), 0),)
    return tuple(_part(program, kernels, first, last) for first, last in pairwise(places))


def _part(program: Program, kernels: Sequence[Worked], first: int, last: int) -> Part:
    stream, arch = program.instructions, accelerator_of(program.hardware).arch
    start = kernels[first - 1].at + 1 if first else 0
    is_last = last == len(kernels)
    own = stream[start:] if is_last else stream[start : kernels[last - 1].at + 1]
    mine = kernels[first:last]
    missing = {table.at for kernel in mine for table in kernel.tables if table.at < start}
    again = [
        *reloaded(stream, sorted(missing), arch),
        *replayed(stream[:start], own),
    ]
    end = () if is_last else _end(own, arch)
    words = encode((*again, *own, *end), arch)
    ahead = sum(each.command.words for each in again)
    moved = 4 * (ahead - own[0].offset_words)
    origins = {
        4 * each.offset_words + moved: program.origins[4 * each.offset_words]
        for each in own
        if 4 * each.offset_words in program.origins
    }
    made = replace(program, words=words, origins=origins)
    return Part(made, _layers(mine), len(mine), ahead)


def _end(own: Sequence[Instruction], arch: Arch) -> Iterator[Instruction]:
    if any(each.name == TRANSFER for each in own):
        yield wait_for_transfers(arch)
    yield instruction_set(arch)["OP_STOP"](mask=STOP_MASK)


def _layers(kernels: Sequence[Worked]) -> tuple[Origin, ...]:
    return tuple(dict.fromkeys(kernel.layer for kernel in kernels))
