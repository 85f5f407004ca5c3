from __future__ import annotations

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.isa import Register, bits, choice, number

from .toy import Colour

STATE = Register(
    "STATE",
    (choice("colour", Colour, bits(1, 0), doc=""), number("count", bits(15, 8), doc="")),
    doc="What goes on",
    source="Toy manual 2.1",
)


def test_a_register_reads_and_writes() -> None:
    assert STATE.unpack(0xFFFF_05FE) == {"colour": Colour.BLUE, "count": 5}
    assert STATE.pack({"colour": Colour.BLUE, "count": 5}) == 0x0502


def test_an_undefined_member_is_an_error() -> None:
    with pytest.raises(MizzenError) as caught:
        STATE.unpack(0x0503)
    assert str(caught.value) == (
        "error[E505]: STATE is 0x00000503, whose colour must be one of RED (0), BLUE (2)\n"
        "  rule Toy manual 2.1"
    )


def test_a_value_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(MizzenError) as caught:
        STATE.pack({"colour": 0, "count": 256})
    assert str(caught.value) == "error[E511]: STATE: count must be in 0..255, not 256"


def test_fields_must_be_apart() -> None:
    fields = (number("a", bits(3, 0), doc=""), number("b", bits(5, 3), doc=""))
    with pytest.raises(ValueError, match=r"^STATE: b lies over a$"):
        Register("STATE", fields, "", "")
