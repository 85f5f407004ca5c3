"""`mizzen inspect --why`: how the operations of a stream are done, in words and as data."""

from __future__ import annotations

import json

import pytest

from .conftest import Run


@pytest.fixture
def artifact(here: object, run: Run) -> str:
    options = ("--accelerator-config", "ethos-u55-128", "--generator", "vela", "--prove", "off")
    assert run("compile", "digits.tflite", *options, "--output-dir", ".")[0] == 0
    return "digits_vela.tflite"


def test_inspect_says_why(artifact: str, run: Run) -> None:
    status, out, _ = run("inspect", artifact, "--why")
    assert status == 0
    start = out.index("Decisions of step 0")
    first, second = out[start:].split("  word ")[1:3]
    assert first.startswith("72: OP_CONV, operator 0 CONV_2D, 8x8x1 -> 8x8x16\n    block ")
    assert " output 0..2, input 2..6, accumulators 14..22, tables 22..24\n" in first
    assert "NHWC -> NHCWB16\n    " in first
    assert "OP_CONV, operator 1 CONV_2D" in second


def test_the_same_as_data(artifact: str, run: Run) -> None:
    status, out, _ = run("inspect", artifact, "--why", "--json")
    assert status == 0
    rows = json.loads(out)["steps"][0]["decisions"]
    assert len(rows) == 34
    assert rows[0]["block"] == [8, 8, 16]
    assert rows[0]["other"]["vela_cycles"] > 0
