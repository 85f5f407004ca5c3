"""What is shown on a terminal: nothing of a stranger's text moves the cursor or hides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.escaping import cut, one_line, quoted_lines, shown
from mizzen.escaping.terminal import LONGEST_TEXT

from ..hostile import (  # noqa: TID252 tests are no package with a name
    NAMES,
    STEERING,
)

ANY = st.text(st.characters())
"""Surrogates too."""

CASES = [
    ("\x1b[2J", r"\x1b[2J"),
    ("\x9b2J", r"\x9b2J"),
    ("a\x07\x08\x7f", r"a\x07\x08\x7f"),
    ("a\rb\nc", r"a\rb\nc"),
    ("\u202etxt.exe", r"\u202etxt.exe"),
    ("\u2066\u2069\u200e\u200f", r"\u2066\u2069\u200e\u200f"),
    ("\u200b\ufeff", r"\u200b\ufeff"),
    ("\udc80", r"\udc80"),
    ("conv/Relu;größer, 日本語", "conv/Relu;größer, 日本語"),
    ("C:\\new\\table", "C:\\new\\table"),
]


@pytest.mark.parametrize(("text", "seen"), CASES)
def test_one_line(text: str, seen: str) -> None:
    assert one_line(text) == seen


@given(ANY)
def test_nothing_that_is_shown_steers(text: str) -> None:
    assert not STEERING.search(one_line(text))
    assert "\n" not in one_line(text)
    assert not STEERING.search(shown(text))
    assert not STEERING.search(quoted_lines(text))


@given(ANY)
def test_lines_of_our_own_stay_lines(text: str) -> None:
    assert shown(text).count("\n") == text.count("\n")


@given(ANY)
def test_no_line_of_a_stranger_is_like_ours(text: str) -> None:
    assert all(line == "  |" or line.startswith("  | ") for line in quoted_lines(text).split("\n"))


def test_ends_of_lines_of_a_serial_port_are_ends_of_lines() -> None:
    assert quoted_lines("one\r\n\r\ntwo\r\n") == "  | one\n  |\n  | two"


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_is_bounded(name: str) -> None:
    assert len(one_line(name)) <= 10 * LONGEST_TEXT
    assert len(one_line(name * 10)) <= 10 * LONGEST_TEXT


def test_long_names_are_cut_in_the_middle() -> None:
    assert cut("a" * 50 + "b" * 50, 13) == "aaaaa...bbbbb"
    shown_name = one_line("x/" + "long" * 100 + "/last and a word")
    assert shown_name.startswith("x/long")
    assert shown_name.endswith("/last and a word")
    assert len(shown_name) == 240 + len(" and a word")


def test_paths_that_people_have_stay_whole() -> None:
    path = "/home/runner/work/" + "project/" * 20 + "model.tflite"
    assert one_line(path) == path
