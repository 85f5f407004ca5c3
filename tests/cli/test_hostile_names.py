"""Networks whose names steer a terminal, forge a message, or are a formula: every verb shows them.

The names are not invented for one verb: each is given the same network, and nothing that it writes
may contain a control character, a line that begins like a message, or a cell that computes.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from mizzen.cli.main import main

from ..hostile import (  # noqa: TID252 tests are no package with a name
    FORGED,
    NAMES,
    STEERING,
    hostile,
    renamed,
)
from .conftest import Run

ACCELERATOR = ("--accelerator-config", "ethos-u55-128", "--generator", "vela")
MOST = 200_000
"""Characters that a verb writes of 20 tensors, of which two have names of a million."""


@pytest.fixture
def network(here: Path) -> Path:
    """The example with such names in place of its own; two have a million characters."""
    path = here / "hostile.tflite"
    path.write_bytes(hostile((here / "digits.tflite").read_bytes()))
    return path


def require_shown(*texts: str) -> None:
    for text in texts:
        assert not STEERING.search(text)
        assert not any(line.startswith((FORGED, "::")) for line in text.split("\n"))
        assert len(text) < MOST


@pytest.fixture
def artifact(network: Path, run: Run) -> Path:
    status, out, err = run("compile", network, *ACCELERATOR)
    assert status == 0
    require_shown(out, err)
    return Path("output/hostile_vela.tflite")


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "--listing", "--hazards"),
        ("inspect", "--why"),
        ("check", "--artifact"),
        ("run", "--input", "images.npy"),
        ("export", "--to", "c", "--board", "corstone300", "--output-dir", "made"),
        ("emulate",),
    ],
    ids=" ".join,
)
def test_what_is_said_of_an_artifact_is_shown(
    words: tuple[str, ...], artifact: Path, run: Run
) -> None:
    verb, *options = words
    given = (
        [*options, str(artifact)] if options[-1:] == ["--artifact"] else [str(artifact), *options]
    )
    status, out, err = run(verb, *given)
    assert status in (0, 2), err
    require_shown(out, err)


@pytest.mark.parametrize("verb", ["check", "compare"])
def test_what_is_said_of_a_network_is_shown(verb: str, network: Path, run: Run) -> None:
    status, out, err = run(verb, network, *ACCELERATOR)
    assert status in (0, 1), err
    require_shown(out, err)


def test_a_message_names_a_tensor_on_one_line(here: Path, run: Run) -> None:
    path = here / "softmax.tflite"
    path.write_bytes(renamed((here / "digits.tflite").read_bytes(), lambda index, _: NAMES[3]))
    status, out, err = run(
        "check", path, *ACCELERATOR, "--max-cpu-ops", "0", "--ignore-ops", "SOFTMAX"
    )
    assert status == 1
    require_shown(out, err)
    assert rf'-> "line\n{FORGED}\n' in " ".join(out.split())


def test_json_has_the_names_as_they_are(network: Path, run: Run) -> None:
    status, out, _ = run("check", network, *ACCELERATOR, "--json")
    assert status == 0
    names = {row["name"] for row in json.loads(out)["operators"]}
    assert all(name.startswith(NAMES) for name in names)
    assert not STEERING.search(out)


def test_files_with_such_names(here: Path, run: Run) -> None:
    for number, name in enumerate(name for name in NAMES if len(name) < 60 and "/" not in name):
        path = here / f"{name}.tflite"
        path.write_bytes((here / "digits.tflite").read_bytes() if number < 3 else b"nothing")
        status, out, err = run("check", path, *ACCELERATOR)
        assert status == (0 if number < 3 else 2)
        require_shown(out, err)


def test_a_path_of_bytes_that_are_no_text(here: Path, run: Run) -> None:
    path = here / "caf\udce9.tflite"
    path.write_bytes((here / "digits.tflite").read_bytes())
    status, out, err = run("compile", path, *ACCELERATOR)
    assert (status, "caf\\udce9.tflite" in out) == (0, True)
    require_shown(out, err)


def test_no_cell_of_a_table_computes(artifact: Path, run: Run) -> None:
    assert run("report", artifact, "--csv", "tables", "-o", "page.html")[0] == 0
    texts = 0
    for path in Path("tables").iterdir():
        with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
            for cell in (cell for row in csv.reader(file) for cell in row):
                try:
                    float(cell)
                except ValueError:
                    texts += 1
                    assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert texts > 50


def test_an_encoding_that_lacks_a_character(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    (here / "größe.tflite").write_bytes((here / "digits.tflite").read_bytes())
    assert main(["check", "größe.tflite", "--quiet", *ACCELERATOR]) == 0
    out.seek(0)
    assert out.read().startswith("gr\\xf6\\xdfe.tflite\n")


@pytest.mark.parametrize("name", ["term.tflite", "csv.tflite"])
def test_cases_of_names(name: str, cases: Path, here: Path, run: Run) -> None:
    status, out, err = run("check", cases / "safety" / name, *ACCELERATOR)
    assert status == 0
    require_shown(out, err)


def test_case_of_a_forged_console(cases: Path, run: Run) -> None:
    status, out, err = run("emulate", cases / "safety" / "forged_console.elf", "--quiet")
    assert (status, err) == (0, "")
    require_shown(out)
    output, _, _ = out.partition("\n\n")
    assert output == (
        "Output\n"
        "  | \\x1b]0;PWNED\\x07\\x1b[2J\\x1b[31mhostile\n"
        "  | error[E000]: forged\n"
        "  | mizzen: ok"
    )
