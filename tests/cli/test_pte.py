"""Verbs that take any artifact take ExecuTorch programs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mizzen.cli.main import main

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

GOLDEN = Path(__file__).parents[1] / "artifact" / "pte"
PROGRAM = GOLDEN / "ds_cnn_u55.pte"


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    status = main([*arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_inspect_tells_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = answer(capsys, "inspect", str(PROGRAM), "--hazards")
    assert status == 0
    assert found["accelerator"] == "ethos-u55-128"
    steps = found["steps"]
    assert isinstance(steps, list)
    on_cpu = [row["operators"] for row in steps if row["region"] == "CPU"]
    assert on_cpu == [["quantize"], ["dequantize"], ["aten::avg_pool2d.out"], ["quantize"],
                      ["dequantize"]]  # fmt: skip


def test_check_reads_its_streams(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = answer(capsys, "check", "--artifact", str(PROGRAM))
    assert status == 0
    steps = found["steps"]
    assert isinstance(steps, list)
    assert [row["malformed"] for row in steps] == [False, False]


def test_run_computes_its_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with np.load(GOLDEN / "ds_cnn_u55.npz") as known:
        np.save(tmp_path / "images.npy", known["inputs"][:, 0])
        wanted = known["outputs"][:, 0]
    given = ("--input", str(tmp_path / "images.npy"), "--output-dir", str(tmp_path))
    status, _ = answer(capsys, "run", str(PROGRAM), *given)
    assert status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy"), wanted)
