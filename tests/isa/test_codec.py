from __future__ import annotations

import re

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.isa import Command, Field, InstructionSet, Kind, bits, number

from .toy import HALT, MOVE, PAINT, TOY, Colour


def command(*fields: Field, name: str = "X", key: int = 0, words: int = 1) -> Command:
    return Command(name, key, words, Kind.SETTING, fields, "", "", key_width=8)


def test_a_program_has_its_words_and_offsets() -> None:
    program = [MOVE(distance=-3, speed=7), PAINT(colour=2, coats=4), HALT()]
    words = TOY.encode(program)
    assert [f"{word:08x}" for word in words] == ["ff000702", "fffffffd", "00101201", "000000ff"]
    decoded = TOY.decode(words)
    assert decoded == program
    assert [one.offset_words for one in decoded] == [0, 2, 3]
    assert decoded[1].values == {"colour": Colour.BLUE, "coats": 4}
    assert decoded[1].values["colour"] is Colour.BLUE


def test_an_empty_stream_is_an_empty_program() -> None:
    assert TOY.decode(np.zeros(0, np.uint32)) == []
    assert TOY.encode([]).tolist() == []


def test_the_good_prefix_of_a_bad_stream_is_kept() -> None:
    partial = TOY.decode_partial(np.array([0xFF, 0x02, 0x00, 0x03], np.uint32))
    assert [one.name for one in partial.instructions] == ["HALT", "MOVE"]
    assert partial.stopped_by is not None
    assert partial.stopped_by.render() == (
        "error[E502]: 0x00000003 must start a command of Toy, but key 0x0003 is no command\n"
        "  at   command at word 3"
    )


def test_an_instruction_made_from_numbers_holds_members() -> None:
    assert PAINT(colour=2, coats=1).values["colour"] is Colour.BLUE


def test_commands_are_found_by_name() -> None:
    assert TOY["MOVE"] is MOVE
    assert "MOVE" in TOY
    assert "JUMP" not in TOY
    with pytest.raises(MizzenError, match=r"^error\[E513\]: Toy has no command JUMP$"):
        TOY["JUMP"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: command(number("a", bits(32), doc="")), "X: a lies beyond 32 bits"),
        (lambda: command(number("a", bits(7), doc="")), "X: a lies over the key"),
        (
            lambda: command(number("a", bits(9, 8), doc=""), number("b", bits(12, 9), doc="")),
            "X: b lies over a",
        ),
        (lambda: command(key=0x100), "X: key 0x100 is over 8 bits"),
        (
            lambda: InstructionSet("Y", (command(), command(key=1))),
            "Y: two commands have the same name",
        ),
        (
            lambda: InstructionSet("Y", (command(), command(name="Z"))),
            "Y: Z has the key of X",
        ),
    ],
)
def test_mistakes_in_a_table_show_when_it_is_made(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


def test_keys_have_one_width() -> None:
    wide = Command("W", 1, 1, Kind.SETTING, (), "", "")
    with pytest.raises(
        ValueError, match=r"^Y: commands must have keys of one width, not \{8, 16\}$"
    ):
        InstructionSet("Y", (command(), wide))
