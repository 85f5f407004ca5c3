"""How an NPU does each operation of a stream, and what it would take in another block."""

from __future__ import annotations

from dataclasses import asdict, dataclass

Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class PricedBlock:
    """A block by itself, without what lies between operations.

    block        height, width, depth of the output that is computed at once
    order        of the input's channels, ``depth first`` or ``kernel first``; else empty
    cycles       by the timing model, about
    vela_cycles  by Vela's formula
    """

    block: Shape
    order: str
    cycles: int
    vela_cycles: int


@dataclass(frozen=True, slots=True)
class Banks:
    """A part of the shared buffer: banks of 1 KiB from `start` to before `end`."""

    holds: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided for an operation.

    command    word offset in the stream
    name       of the command
    shape      what it takes and gives: ``49x10x1 -> 25x5x64``
    microblock that a block is made of, where an NPU has several; else empty
    layouts    of its inputs, and of its output; `chain` what is handed on inside the NPU
    constants  memory that weights and scales are read from; empty without
    format     of weights, where it is not the usual one; else empty
    banks      how the shared buffer is divided; empty where there is none
    before     transfers since the operation before, and what they wait for, in words
    waits      what it waits for, in words
    blockdep   blocks that it may begin before the operation before it has ended
    table      slot of the lookup table; None without
    cycles     what the inference gets longer by it, and `bound`, what most of them wait for
    taken      its block by itself; None where nothing is known of others
    others     the next best block by itself; None where there is no other
    fitting    how many blocks fit
    """

    command: int
    name: str
    operator: str
    shape: str
    block: Shape
    order: str
    layouts: tuple[str, ...]
    constants: str
    banks: tuple[Banks, ...]
    before: tuple[str, ...]
    waits: tuple[str, ...]
    blockdep: int
    table: int | None
    cycles: int
    bound: str
    microblock: tuple[int, ...] = ()
    format: str = ""
    taken: PricedBlock | None = None
    other: PricedBlock | None = None
    fitting: int = 0

    def as_dict(self) -> dict[str, object]:
        """Return the decision as JSON-ready data."""
        return asdict(self)
