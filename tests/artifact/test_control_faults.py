"""Loops that do not end, and subgraphs that do not take what the operator hands them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact import control_step
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import read, write
from mizzen.flatbuffer.tflite import SCHEMA

NETWORK = Path(__file__).resolve().parents[2] / "examples" / "signatures" / "network.py"
CONDITION, BODY = 2, 3
TURNS = 50


@pytest.fixture
def settling(tmp_path: Path) -> bytes:
    subprocess.run([sys.executable, NETWORK, tmp_path / "settling.tflite"], check=True)
    return (tmp_path / "settling.tflite").read_bytes()


def test_a_loop_without_an_end_is_a_fault(settling: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its condition asks for more turns than a counter can hold."""
    monkeypatch.setattr(control_step, "MOST_ITERATIONS", TURNS)
    record = read(settling, SCHEMA, "settling")
    steps = next(row for row in record["subgraphs"][CONDITION]["tensors"] if row["name"] == "steps")
    record["buffers"][int(steps["buffer"])]["data"] = np.full(1, 2**31 - 1, "<i4").view(np.uint8)
    artifact = mizzen.compile(write(record, SCHEMA), "ethos-u55-128", prove="off")
    with pytest.raises(MizzenError) as caught:
        artifact.signature("settle").run(np.zeros((1, 32), np.int8))
    assert caught.value.diagnostic.code == "E137"
    assert "a loop must end within 50 iterations, and this one does not" in str(caught.value)
    assert "look at what its condition compares" in str(caught.value)
    assert caught.value.diagnostic.origin is not None
    assert caught.value.diagnostic.origin.kind == "WHILE"


@pytest.mark.parametrize("subgraph", [CONDITION, BODY])
def test_a_subgraph_of_other_tensors_is_refused(settling: bytes, subgraph: int) -> None:
    """The first of what it gives is missing."""
    record = read(settling, SCHEMA, "settling")
    changed = record["subgraphs"][subgraph]
    changed["outputs"] = changed["outputs"][1:]
    with pytest.raises(MizzenError) as caught:
        mizzen.compile(write(record, SCHEMA), "ethos-u55-128")
    name = changed["name"]
    assert caught.value.diagnostic.code == "E136"
    assert f"{name} must take and give tensors like those of the WHILE that executes it" in str(
        caught.value
    )
