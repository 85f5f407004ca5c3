from __future__ import annotations

from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.isa import Field, Slice, bits, choice, minus_one, number, signed

from .toy import Colour


def test_bits_are_written_as_manuals_do() -> None:
    assert bits(7, 4) == Slice(4, 4)
    assert bits(3) == Slice(3, 1)
    assert [str(bits(7, 4)), str(bits(3))] == ["7:4", "3"]
    assert bits(7, 4).mask == 0xF0


@pytest.mark.parametrize(
    ("field", "minimum", "maximum", "legal"),
    [
        (number("n", bits(3, 0), doc=""), 0, 15, "in 0..15"),
        (minus_one("n", bits(3, 0), doc="", unit="rows"), 1, 16, "in 1..16 rows"),
        (signed("n", bits(3, 0), doc=""), -8, 7, "in -8..7"),
        (number("n", bits(1, 0), bits(9, 8), doc=""), 0, 15, "in 0..15"),
        (choice("n", Colour, bits(1, 0), doc=""), 0, 3, "one of RED (0), BLUE (2)"),
    ],
)
def test_a_field_knows_what_it_can_hold(
    field: Field, minimum: int, maximum: int, legal: str
) -> None:
    assert (field.minimum, field.maximum, field.legal) == (minimum, maximum, legal)


def test_slices_are_listed_from_the_least_significant() -> None:
    split = number("n", bits(1, 0), bits(9, 8), doc="")
    assert split.pack(0b1001) == 0b10_0000_0001
    assert split.unpack(0b10_0000_0001) == 0b1001
    assert split.mask == 0x303


def test_two_words_count_on() -> None:
    wide = signed("n", bits(63, 32), bits(7, 0), doc="")
    assert wide.pack(-2) == 0xFFFFFFFE_000000FF
    assert wide.unpack(0xFFFFFFFE_000000FF) == -2


@given(value=st.integers(-8, 7), noise=st.integers(0, 2**32 - 1))
def test_other_bits_do_not_disturb(value: int, noise: int) -> None:
    field = signed("n", bits(5), bits(20, 18), doc="")
    assert field.unpack(field.pack(value) | noise & ~field.mask) == value


def test_an_undefined_member_is_none() -> None:
    field = choice("n", Colour, bits(1, 0), doc="")
    assert field.unpack(2) is Colour.BLUE
    assert field.unpack(1) is None
    assert field.read(2) is Colour.BLUE


def test_a_value_that_does_not_fit_is_refused() -> None:
    field = minus_one("coats", bits(1, 0), doc="", unit="layers")
    assert field.require(4, "PAINT") == 4
    with pytest.raises(MizzenError) as caught:
        field.require(5, "PAINT")
    assert str(caught.value) == "error[E511]: PAINT: coats must be in 1..4 layers, not 5"


def test_slices_must_be_apart() -> None:
    with pytest.raises(ValueError, match=r"^field n: bits 3:1 are listed twice$"):
        number("n", bits(1, 0), bits(3, 1), doc="")


def test_members_must_fit() -> None:
    class Wide(IntEnum):
        LAST = 4

    with pytest.raises(ValueError, match=r"^field n: Wide needs over 2 bits$"):
        choice("n", Wide, bits(1, 0), doc="")
