"""The help of the program and of every verb, compared as a whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mizzen.cli.parser import VERBS, help_texts, name_of

GOLDEN = Path(__file__).with_name("golden") / "help.txt"
USAGE = re.compile(r"^usage: .*?(?=\n\n)", re.DOTALL | re.MULTILINE)


def unwrapped(text: str) -> str:
    """Each usage on one line: Pythons differ in where they break it."""
    return USAGE.sub(lambda usage: " ".join(usage[0].split()), text)


def test_help_is_what_it_was(monkeypatch: pytest.MonkeyPatch, update_golden: bool) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = "\n".join(f"$ {name} --help\n{help}" for name, help in help_texts().items())
    if update_golden:
        GOLDEN.write_text(text)
    assert unwrapped(text) == unwrapped(GOLDEN.read_text())


def test_help_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = [line for text in help_texts().values() for line in text.split("\n") if len(line) > 80]
    assert not long


def test_the_program_lists_every_verb_once() -> None:
    listing = help_texts()["mizzen"]
    for verb in VERBS:
        lines = [line for line in listing.split("\n") if line.startswith(f"  {name_of(verb)} ")]
        assert len(lines) == 1, name_of(verb)
