"""Texts in generated sources, read back by the programs that they are for."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.escaping import c_comment, c_string, cmake_argument, make_value

from ..hostile import NAMES  # noqa: TID252 tests are no package with a name

TEXTS = (
    *(name for name in NAMES if len(name) < 1000),
    "*/ int x; /*", "/*/", "**/", "*/*/", "/", "*", "\\", "a\\\\", "//", "??/", "??'",
    "$(shell touch made)", "${x}", "$$x", "#x", "\\#x", "\\\\#x", "a b", "'", '"', "`touch made`",
    "]]", "]=]", "]==]", "]", "]==", "[==[", ";", "a;b", "x\\", "x\\\\", "größer",
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_comment_ends_where_ours_ends(text: str) -> None:
    source = f"/* {c_comment(text)}: made by Mizzen. */"
    assert source.index("*/") == len(source) - 2
    assert source.rindex("/*") == 0
    assert "\n" not in source


@pytest.mark.parametrize("text", TEXTS)
def test_a_string_is_one_literal(text: str) -> None:
    literal = c_string(text)
    assert re.fullmatch(r'"([A-Za-z0-9 _.,:;+()\[\]{}=@/-]|\\[0-7]{3})*"', literal)
    inner = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), literal[1:-1])
    assert inner.encode("latin-1") == text.encode("utf-8", "surrogateescape")


def printed_by_make(value: str, folder: Path) -> str:
    """Return what make has for a variable, by a file that another line follows."""
    (folder / "model.mk").write_text(f"VALUE ?= {value}\nAFTER := here\n")
    (folder / "Makefile").write_text(
        "include model.mk\nexport VALUE\nexport AFTER\nall:\n\t@printenv VALUE AFTER\n"
    )
    environment = {"PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        ["make", "-s", "-C", str(folder)], capture_output=True, text=True, check=True,
        env=environment,
    )  # fmt: skip
    said, after = ended.stdout.removesuffix("\n").rsplit("\n", 1)
    assert after == "here"
    return said


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")


@needs_make
@pytest.mark.parametrize("text", [row for row in TEXTS if row.isprintable() and row == row.strip()])
def test_make_reads_what_was_meant(text: str, tmp_path: Path) -> None:
    assert printed_by_make(make_value(text), tmp_path) == text
    assert not (tmp_path / "made").exists()


@given(st.text(st.sampled_from("[]=; $\"'\\x\n")))
def test_no_text_ends_an_argument_of_cmake(text: str) -> None:
    argument = cmake_argument(text)
    opening = re.match(r"\[(=*)\[", argument)
    assert opening
    closing = f"]{opening[1]}]"
    assert argument.index(closing, len(opening[0])) == len(argument) - len(closing)
    assert argument[len(opening[0]) : -len(closing)] == text
