"""Programs with data in files beside them, and with examples in them."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.checking.artifacts import check_artifact
from mizzen.analysis.checking.examples import compare_examples
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import bpte, ptd, read, write
from mizzen.package.executorch.joining import keys_elsewhere

HERE = Path(__file__).parent
DATA = [HERE / "commands.ptd", HERE / "weights.ptd"]


def alone(folder: Path) -> Path:
    """The program without its data."""
    return Path(shutil.copy(HERE / "apart_u85.pte", folder / "net.pte"))


def refusal(path: Path, *beside: Path) -> str:
    with pytest.raises(MizzenError) as caught:
        mizzen.load(path, ptd=beside)
    return str(caught.value)


def test_data_is_found_beside_the_program_or_given(tmp_path: Path) -> None:
    with np.load(HERE / "apart_u85.npz") as known:
        inputs, wanted = known["inputs"], known["outputs"]
    for artifact in (
        mizzen.load(HERE / "apart_u85.pte"),
        mizzen.load(alone(tmp_path), ptd=DATA),
    ):
        np.testing.assert_array_equal(artifact.run(inputs[2]), wanted[2])
        assert not keys_elsewhere(artifact.data, "net.pte")
        again = pickle.loads(pickle.dumps(artifact))
        np.testing.assert_array_equal(again.run(inputs[3]), wanted[3])


def test_data_that_is_missing_is_asked_for(tmp_path: Path) -> None:
    path = alone(tmp_path)
    asked = (
        "error[E172]: net.pte: delegate 0: the contents of {} must be given, and are in another "
        "file\n"
        "  rule ExecuTorch 1.5, backends/arm/runtime/VelaBinStream.cpp\n"
        "  help give it with --ptd FILE, or put the .ptd beside the program"
    )
    assert refusal(path) == asked.format("cmd_data")
    assert refusal(path, DATA[0]) == asked.format("weight_data")
    (tmp_path / "gone.ptd").write_bytes(DATA[0].read_bytes())
    assert refusal(path) == asked.format("weight_data")


def test_data_is_of_programs_alone(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(b"")
    assert refusal(path, DATA[0]) == (
        f"error[E200]: the command line is wrong: {DATA[0]} is data of an ExecuTorch program, and "
        f"{path} is none\n"
        "  help leave out --ptd"
    )


def code_of(data: bytes) -> str:
    """Of the error that data ends in; none if there is none."""
    try:
        ptd.named_data(data, "x.ptd")
    except MizzenError as error:
        return error.diagnostic.code
    return ""


def test_damaged_data_is_told() -> None:
    rng = np.random.default_rng(1)
    codes: set[str] = set()
    for source in DATA:
        for _ in range(400):
            changed = bytearray(source.read_bytes())
            for at in rng.integers(0, len(changed), 3):
                changed[at] = int(rng.integers(256))
            codes |= {code_of(bytes(changed)), code_of(bytes(changed[: int(rng.integers(400))]))}
    assert codes <= {"", "E101", "E102", "E141", "E173"}


def test_examples_are_run_and_compared() -> None:
    artifact = mizzen.load(HERE / "cortex_m_u55.bpte")
    assert len(artifact.examples) == 2
    compared = list(compare_examples(artifact))
    assert [(each.example, each.numbers, each.largest) for each in compared] == [
        (0, 3, 0.0), (1, 3, 0.0),
    ]  # fmt: skip
    assert not check_artifact(artifact).findings


def changed_bundle(folder: Path, number: float) -> Path:
    """The bundle with one number of what it expects made another."""
    root = read((HERE / "cortex_m_u55.bpte").read_bytes(), bpte.SCHEMA, "net.bpte")
    (suite,) = root["method_test_suites"]
    expected = suite["test_cases"][1]["expected_outputs"][0]["val"].fields
    values = expected["data"].copy()
    values.view(np.float32)[0] += number
    expected["data"] = values
    path = folder / "net.bpte"
    path.write_bytes(write(root, bpte.SCHEMA))
    return path


def test_what_is_not_as_expected_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = changed_bundle(tmp_path, 0.5)
    said = (
        "error[E694]: output_0 of example 1 must be what the file expects, and 1 of 3 numbers "
        "differ, by 0.5 at most\n"
        "  help find out whether the program or the expectation is of another version"
    )
    assert [str(finding.render()) for finding in check_artifact(mizzen.load(path)).findings] == [
        said
    ]
    assert main(["run", str(path)]) == 1
    assert said in capsys.readouterr().err


def test_a_number_may_be_near(tmp_path: Path) -> None:
    artifact = mizzen.load(changed_bundle(tmp_path, 0.005))
    assert [each.differing for each in compare_examples(artifact)] == [0, 0]


def test_damaged_bundles_are_told(tmp_path: Path) -> None:
    data = bytearray((HERE / "cortex_m_u55.bpte").read_bytes())
    rng = np.random.default_rng(2)
    path = tmp_path / "net.bpte"
    for _ in range(150):
        changed = bytearray(data)
        for at in rng.integers(0, len(data), 4):
            changed[at] = int(rng.integers(256))
        path.write_bytes(changed)
        try:
            list(compare_examples(mizzen.load(path)))
        except MizzenError:
            continue
