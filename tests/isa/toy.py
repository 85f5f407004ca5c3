"""A machine of three commands, for tests of the vocabulary."""

from __future__ import annotations

from enum import IntEnum

from mizzen.isa import Command, InstructionSet, Kind, bits, choice, minus_one, number, signed


class Colour(IntEnum):
    """What the paint looks like."""

    RED = 0
    BLUE = 2


PAINT = Command(
    "PAINT",
    key=0x01,
    words=1,
    kind=Kind.OPERATION,
    fields=(
        choice("colour", Colour, bits(9, 8), doc="Colour of the paint"),
        minus_one("coats", bits(12), bits(20), doc="Layers of paint", unit="layers"),
    ),
    doc="Paint what MOVE has reached",
    source="Toy manual 1.1",
    key_width=8,
)
MOVE = Command(
    "MOVE",
    key=0x02,
    words=2,
    kind=Kind.SETTING,
    fields=(
        signed("distance", bits(63, 32), bits(31, 24), doc="How far", unit="bytes"),
        number("speed", bits(15, 8), doc="How fast"),
    ),
    doc="Set the position",
    source="Toy manual 1.2",
    key_width=8,
)
HALT = Command("HALT", 0xFF, 1, Kind.CONTROL, (), "Stop", "Toy manual 1.3", key_width=8)
TOY = InstructionSet("Toy", (PAINT, MOVE, HALT))
