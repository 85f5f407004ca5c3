"""ONNX networks on the command line: every verb that takes TFLite takes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from ..compiler.onnx.networks import images, torn, whole  # noqa: TID252 no package with a name

Run = Callable[..., tuple[int, str, str]]
U55 = ("--accelerator-config", "ethos-u55-128")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two networks and inputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "whole.onnx").write_bytes(whole().data)
    (tmp_path / "torn.onnx").write_bytes(torn().data)
    np.save(tmp_path / "images.npy", images(4)[:, 0])
    return tmp_path


def test_compile_and_run(there: Path, run: Run) -> None:
    status, out, _ = run("compile", "whole.onnx", *U55, "--output-dir", ".")
    assert status == 0
    assert "on the NPU 2 of 2 operators" in " ".join(out.split())
    assert "bit-exact on " in out
    status, out, _ = run("run", "whole_vela.tflite", "--input", "images.npy", "--output-dir", "o")
    assert status == 0
    assert "4 inferences" in out
    (written,) = (there / "o").iterdir()
    assert np.load(written).shape == (4, 4, 6, 5)


def test_estimates_are_those_of_the_file(there: Path, run: Run) -> None:
    """The file takes integers: what makes them of floats is told apart."""
    words = ("whole.onnx", *U55, "--board", "corstone300", "--json")
    compiled = json.loads(run("compile", *words, "--output-dir", ".")[1])
    checked = json.loads(run("check", *words)[1])
    reported = json.loads(run("report", "whole_vela.tflite", "--json")[1])
    cost = reported["cost"]
    assert compiled["cycles"] == checked["cycles"] == cost["cycles"] == cost["npu_cycles"]
    assert compiled["conversion_cycles"] == checked["conversion_cycles"] > 0
    assert compiled["cpu_cycles"] == cost["conversion_cycles"] == 0
    assert sum(layer["cycles"] for layer in checked["layers"]) == cost["cycles"]
    memory = reported["memory"]
    assert compiled["memory"]["arena_bytes"] == checked["memory"]["arena_bytes"]
    assert compiled["memory"]["arena_bytes"] == memory["arena_bytes"]
    used = {area["area"]: area["used_bytes"] for area in memory["areas"]}
    arena = used["arena"] + used["runtime"]
    assert [room["used_bytes"] for room in compiled["board"]["headroom"]].count(arena) == 1
    for verb in ("compile", "check", "report"):
        text = " ".join(run(verb, "whole.onnx", *U55, "--board", "corstone300")[1].split())
        more = f"conversions {compiled['conversion_cycles']:,} cycles more on a Cortex-M55"
        assert f"{more}, if your program hands over floats" in text


def test_an_artifact_with_parts_for_the_host(there: Path, run: Run) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    status, out, _ = run("compile", "torn.onnx", *U55, "--output-dir", ".")
    assert status == 0
    assert 'operator 1 LRN -> "' in out
    assert run("run", "torn_vela.zip", "--input", "images.npy", "--output-dir", "o")[0] == 0
    status, out, err = run("inspect", "torn_vela.zip")
    assert status == 0
    assert "LRN" in out
    assert "2 NPU operators, 1 CPU operator" in err
    assert run("report", "torn_vela.zip", "-o", "page.html")[0] == 0


def test_check_says_what_no_device_has(there: Path, run: Run) -> None:
    assert run("check", "whole.onnx", "--board", "corstone300")[0] == 0
    status, _, err = run("check", "torn.onnx", "--board", "corstone300", "--max-cpu-ops", "9")
    assert status == 1
    assert (
        "error[E196]: every operator of torn_vela.zip must be on the NPU to run on a device, and "
        "ONNX Runtime computes LRN" in err
    )


def test_export_refuses_before_anything_is_written(there: Path, run: Run) -> None:
    assert run("compile", "torn.onnx", *U55, "--output-dir", ".")[0] == 0
    words = ("--board", "corstone300", "--output-dir", "project")
    for runtime in ("c", "executorch"):
        status, _, err = run("export", "torn_vela.zip", "--to", runtime, *words)
        assert status != 0
        assert err.startswith("error[E196]")
        assert not (there / "project").exists()


@pytest.mark.parametrize("runtime", ["c", "tflm", "executorch"])
def test_export(there: Path, run: Run, runtime: str) -> None:
    if runtime == "executorch":
        pytest.importorskip("executorch", reason="ExecuTorch is not installed")
    assert run("compile", "whole.onnx", *U55, "--output-dir", ".")[0] == 0
    words = ("--board", "corstone300", "--input", "images.npy", "--output-dir", "project")
    status, out, _ = run("export", "whole_vela.tflite", "--to", runtime, *words)
    assert status == 0
    assert "4 inferences" in out


def test_report_of_a_model(there: Path, run: Run) -> None:
    assert run("report", "whole.onnx", *U55, "-o", "page.html")[0] == 0
    page = (there / "page.html").read_text()
    assert "Conv" in page


def test_tune(there: Path, run: Run) -> None:
    words = ("--budget-seconds", "2", "--jobs", "1", "--output-dir", ".")
    status, out, _ = run("tune", "whole.onnx", *U55, *words)
    assert status == 0
    assert "mizzen compile whole.onnx" in out


def test_compare(there: Path, run: Run) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    status, out, _ = run("compare", "whole.onnx", *U55)
    assert status == 0
    assert out.startswith("whole.onnx beside ONNX Runtime\n")
    status, out, _ = run("compare", "torn.onnx", *U55, "--json")
    assert status == 0
    layers = json.loads(out)["layers"]
    assert [layer["kind"] for layer in layers] == ["Conv", "LRN", "Conv"]
    assert [layer["device"] for layer in layers] == ["NPU", "CPU", "NPU"]
    assert all(layer["steps"] <= 1 for layer in layers)


def test_versions_side_by_side(there: Path, run: Run) -> None:
    words = (*U55, "--accelerator-config", "ethos-u65-256")
    status, out, _ = run("compare", "whole.onnx", *words)
    assert status == 0
    assert out.count("whole.onnx ") == 2


def test_evaluate_beside_the_network(there: Path, run: Run) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    assert run("compile", "whole.onnx", *U55, "--output-dir", ".")[0] == 0
    words = ("--data", "images.npy", "--reference", "whole.onnx")
    status, out, _ = run("evaluate", "whole_vela.tflite", *words)
    assert status == 0
    assert "Reference whole.onnx" in out


def test_on_a_mesh(there: Path, run: Run) -> None:
    status, out, _ = run("mesh", "map", "whole.onnx", "--machine", "spinnaker2-1", "-o", "n.mesh")
    assert status == 0, out
    assert run("mesh", "check", "n.mesh")[0] == 0
    status, _, err = run("mesh", "map", "torn.onnx", "--machine", "spinnaker2-1", "-o", "n.mesh")
    assert status != 0
    assert err.startswith("error[E506]: an operator on a mesh must have an integer form, and LRN")


def test_what_lies_between(there: Path, run: Run) -> None:
    status, out, _ = run("inspect", "whole.onnx", "--between", "lower,schedule", *U55)
    assert status == 0
    assert "CONV2D" in out
    assert "onnx." not in out
    status, _, err = run("inspect", "torn.onnx", "--between", "lower", *U55)
    assert status != 0
    assert err.splitlines()[-3].startswith("error[E168]: every operator must have a TOSA form, and")


@pytest.mark.parametrize("shape", ["image", "image=", "image=1,x", "=3", "image=0", "image=1,,2"])
def test_shapes_that_are_none(there: Path, run: Run, shape: str) -> None:
    for verb in (("compile",), ("check",), ("tune",), ("mesh", "map", "--machine", "one")):
        status, _, err = run(*verb, "whole.onnx", "--shape", shape)
        assert status == 2
        assert err.splitlines()[0] == (
            "error[E197]: a shape must be the name of an input, or of an extent, and whole "
            f"numbers from 1, and {shape} came"
        )


def test_shapes_that_are_said(there: Path, run: Run) -> None:
    import onnx

    model = whole().proto
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, there / "open.onnx")
    status, _, err = run("compile", "open.onnx", *U55, "--output-dir", ".")
    assert status == 0
    assert 'note[N189]: dimension "batch" of input "image" is taken as 1' in err
    status, _, err = run("compile", "open.onnx", *U55, "--shape", "batch=2", "--output-dir", ".")
    assert status == 0
    assert "N189" not in err
    report = json.loads((there / "open_vela.json").read_text())
    assert not [each for each in report["diagnostics"] if each["code"] == "N189"]


def test_running_a_network_that_is_not_compiled(there: Path, run: Run) -> None:
    status, _, err = run("run", "whole.onnx", "--input", "images.npy")
    assert status == 2
    assert err == (
        "error[E101]: whole.onnx must be compiled to be executed or looked into, and is an ONNX "
        "network\n  help mizzen compile whole.onnx\n"
    )
