from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .conftest import Run

onnx: Any = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

NET, DATA, TEST = "digits_float.onnx", "calibration.npz", "test.npz"


@pytest.fixture
def digits(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the floating-point example."""
    for name in (NET, DATA, TEST):
        shutil.copy(repository / "examples" / "digits" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_network_is_quantised(digits: Path, run: Run) -> None:
    status, out, err = run("quantize", NET, "--data", DATA, "--test", TEST)
    assert status == 0
    head, accuracy, layers, written = out.split("\n\n")
    assert head == (
        "digits_float.onnx\n"
        "  form         ONNX\n"
        "  calibration  64 samples of calibration.npz, minmax\n"
        "  integers     int8 activations, int8 weights with a scale by channel\n"
        "  in float     nothing"
    )
    assert accuracy.startswith("Accuracy on 200 samples of test.npz\n  metric       float  quant")
    assert layers.startswith("Noisiest of 7 layers\n")
    assert written.startswith("Written\n  digits_float_int8.onnx  ")
    assert err == 'dimension "N" of input "image" is taken as 1; --shape N=N says another\n'
    onnx.checker.check_model(str(digits / "digits_float_int8.onnx"))


def test_the_document(digits: Path, run: Run) -> None:
    status, out, _ = run("quantize", NET, "--data", DATA, "--test", TEST, "-o", "q.onnx", "--json")
    told = json.loads(out)
    assert status == 0
    assert told["output"] == "q.onnx"
    assert told["holds"] is True
    assert told["float_operators"] == []
    assert set(told["accuracy"]["top1"]) == {"float", "quantised"}
    assert told["accuracy"]["same-class"] > 0.99
    assert len(told["precision"]["layers"]) == 7
    assert (digits / "q.onnx").is_file()


@pytest.mark.parametrize(
    ("bound", "status"), [("top1=0.9", 0), ("0.9999", 1), ("same-class=0.9", 0)]
)
def test_what_must_be_reached(digits: Path, run: Run, bound: str, status: int) -> None:
    words = ("quantize", NET, "--data", DATA, "--test", TEST, "--at-least", bound)
    found, _, err = run(*words)
    assert found == status
    assert ("error[E251]: top1 must be at least 0.9999" in err) == bool(status)
    assert (digits / "digits_float_int8.onnx").is_file()


def test_warnings_are_of_the_data(digits: Path, run: Run) -> None:
    np.save("zeros.npy", np.zeros((3, 1, 8, 8), np.float32))
    status, _, err = run("quantize", NET, "--data", "zeros.npy")
    assert status == 0
    assert [line[:13] for line in err.splitlines() if line.startswith("warning")] == [
        "warning[W197]",
        "warning[W198]",
    ]


def test_noisy_layers_and_what_may_help(digits: Path, run: Run) -> None:
    """One input far from the others takes the bits of all."""
    images = np.load(DATA)["image"]
    images[5] *= 400
    np.save("outlier.npy", images)
    status, out, err = run("quantize", NET, "--data", "outlier.npy", "--test", TEST)
    assert status == 0
    assert "warning[W199]: no single input must make the range of a tensor" in err
    assert "by outlier.npy[5]" in err
    status, out, _ = run("quantize", NET, "--data", DATA, "--activation-type", "int16")
    assert status == 0
    assert "int16 activations" in out
    assert "What may help" not in out
    assert (digits / "digits_float_int16.onnx").is_file()


def test_names_of_the_output(digits: Path, run: Run) -> None:
    for output, said in (
        (NET, "and digits_float.onnx is the network"),
        ("q.tflite", "end with .onnx"),
    ):
        status, _, err = run("quantize", NET, "--data", DATA, "-o", output)
        assert status == 2
        assert err.count("error[E201]") == 1
        assert said in err
    assert (digits / NET).stat().st_size > 20_000


def test_compiled_in_one_command(digits: Path, run: Run) -> None:
    """The report beside the artifact says so too."""
    words = ("--calibrate", DATA, "--accelerator-config", "ethos-u55-128")
    status, out, err = run("compile", NET, *words)
    assert status == 0
    assert "7 of 7 operators" in out
    assert "note[N199]: digits_float.onnx was quantised first, with 64 samples" in err
    report = next((digits / "output").glob("digits_float_vela.json")).read_text()
    assert "N199" in report
    assert sorted(path.name for path in digits.iterdir()) == [DATA, NET, "output", TEST]


def test_what_is_not_quantised_says_how(digits: Path, run: Run) -> None:
    status, _, err = run("compile", NET)
    assert status == 2
    assert "error[E107]" in err
    assert "mizzen quantize digits_float.onnx --data" in err
