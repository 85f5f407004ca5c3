"""Files of strangers by every verb that takes them: a diagnostic and exit status 2, never a bug."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.cli.main import main
from mizzen.flatbuffer import read, write
from mizzen.flatbuffer.tflite import SCHEMA

from ..properties.small import small_network  # noqa: TID252 tests are no package with a name


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("ethosu.regor", reason="Vela is not installed")
    path = tmp_path_factory.mktemp("strangers") / "small_vela.tflite"
    mizzen.compile(small_network(), "ethos-u55-128").save(path)
    return path


USES = {
    "label_huge.csv": (("evaluate {artifact} --data {data} --labels {file}", "E244"),),
    "not_an_array.npz": (
        ("run {artifact} --input {file} --output-dir {out}", "E203"),
        ("evaluate {artifact} --data {file}", "E203"),
    ),
    "riff16.wav": (
        ("run {artifact} --input {file} --output-dir {out}", "E203"),
        ("run {artifact} --input {file} --features mlperf-kws --output-dir {out}", "E203"),
    ),
    "zip-12-57a34878.zip": (
        ("inspect {file}", "E115"),
        ("run {file}", "E115"),
        ("check --artifact {file}", "E115"),
        ("check {file}", "E101"),
        ("compile {file} --output-dir {out}", "E101"),
        ("report {file} -o {out}/page.html", "E115"),
        ("evaluate {file} --data {data}", "E115"),
        ("export {file} --to c --board corstone300 --output-dir {out}", "E115"),
        ("emulate {file}", "E115"),
    ),
    "tosa-13-a3f2139d.tosa": (
        ("run {file} --output-dir {out}", "E157"),
        ("check {file} --accelerator-config ethos-u85-256", "E157"),
        ("compile {file} --accelerator-config ethos-u55-128 --output-dir {out}", "E157"),
        ("compile {file} --accelerator-config ethos-n78-4tops-4ple --output-dir {out}", "E995"),
        ("inspect {file}", "E101"),
    ),
    "tflite_check-12-024a95c9.tflite": (
        ("check {file}", "E143"),
        ("inspect {file}", "E143"),
        ("compile {file} --accelerator-config ethos-n78-4tops-4ple --output-dir {out}", "E143"),
    ),
}
"""What users would do with a file, and the code that they get."""


@pytest.mark.parametrize(
    ("name", "line", "code"), [(name, *use) for name, uses in USES.items() for use in uses]
)
def test_cases(
    cases: Path, artifact: Path, tmp_path: Path, name: str, line: str, code: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    np.save(tmp_path / "data.npy", np.zeros((100, 6, 5, 3), np.int8))
    file, data = cases / "safety" / name, tmp_path / "data.npy"
    words = [
        word.format(artifact=artifact, data=data, file=file, out=tmp_path) for word in line.split()
    ]
    assert main(words) == 2
    assert re.findall(r"error\[(E\d+)\]", capsys.readouterr().err)[:1] == [code]


def test_an_artifact_that_gives_nothing(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It runs, as its state may be what it is for; nothing of it can be judged."""
    record = read(artifact.read_bytes(), SCHEMA, artifact.name)
    record["subgraphs"][0]["outputs"] = []
    (file := tmp_path / "silent.tflite").write_bytes(write(record, SCHEMA))
    (info,) = mizzen.load(file).inputs
    np.save(tmp_path / "data.npy", np.zeros((5, *info.shape[1:]), info.dtype))
    words = ["--data", str(tmp_path / "data.npy")]
    assert main(["run", str(file), "--input", words[1], "--output-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("5 inferences in ")
    assert main(["evaluate", str(file), *words]) == 2
    assert "error[E254]: silent.tflite must have an output to judge" in capsys.readouterr().err
