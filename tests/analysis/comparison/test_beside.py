"""An artifact of another compiler beside Mizzen's code: costs of both, layer by layer."""

from __future__ import annotations

from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.comparison.beside import Beside, beside
from mizzen.artifact.loading import artifact_of
from mizzen.cli.comparison import beside_text
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.options import CompileOptions
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

from ...mesa.lowering import lowered  # noqa: TID252 tests are no package with a name
from ...mesa.networks import network  # noqa: TID252

U65 = "ethos-u65-256"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("beside") / "residual.tflite"
    path.write_bytes(network("residual"))
    return path


def compared(model: Path, artifact: Path) -> Beside:
    return beside(str(model), mizzen.load(artifact, U65), resolve_target(CompileOptions(U65)))


def test_a_file_of_mesa_is_laid_to_the_layers_of_the_network(model: Path, tmp_path: Path) -> None:
    made = lowered(network("residual"), ACCELERATORS[U65].arch)
    path = tmp_path / "net.bin"
    path.write_bytes(made.file(made.stream.words()))
    found = compared(model, path)
    assert found.unknown == 0
    assert [layer.kind for layer in found.layers] == [
        "CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "ADD", "LOGISTIC", "MAX_POOL_2D",
    ]  # fmt: skip
    assert sum(layer.theirs for layer in found.layers) == found.theirs.cycles
    assert all(layer.theirs > layer.ours and layer.their_bound for layer in found.layers)
    lines = beside_text(found, width=100).splitlines()
    assert "Layers, Mizzen's slowest first: slower in 0 of 6" in lines
    assert lines[1].split()[:3] == ["model", "accelerator", "cycles"]


def test_operations_that_cannot_be_watched_are_of_no_operator(model: Path, tmp_path: Path) -> None:
    n78 = "ethos-n78-4tops-4ple"
    path = tmp_path / "residual_ethosn.tflite"
    path.write_bytes(mizzen.compile(model, n78, prove="off").data)
    found = beside(str(model), mizzen.load(path), resolve_target(CompileOptions(n78)))
    assert found.unknown == found.theirs.cycles > 0


def test_an_artifact_with_its_report_may_be_of_any_network(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")
    from ...compiler.onnx.networks import whole  # noqa: TID252

    path = tmp_path / "whole.onnx"
    path.write_bytes(whole("int8").data)
    artifact = mizzen.compile(path, U65, prove="off")
    found = beside(str(path), artifact, resolve_target(CompileOptions(U65)))
    assert found.theirs.cycles == found.ours.cycles
    assert all(layer.slower == 0 for layer in found.layers)
    bare = artifact_of(artifact.data, artifact.name)
    with pytest.raises(MizzenError, match=r"E832.* known for networks of TFLite and TOSA"):
        beside(str(path), bare, resolve_target(CompileOptions(U65)))


def test_an_artifact_of_vela_needs_no_report(model: Path, tmp_path: Path) -> None:
    from ethosu.vela import vela

    vela.main([str(model), f"--accelerator-config={U65}", f"--output-dir={tmp_path}"])
    found = compared(model, tmp_path / "residual_vela.tflite")
    assert found.ours.cycles < found.theirs.cycles
    assert found.unknown < found.theirs.cycles / 10
    assert found.as_dict()["layers_beside"][0]["kind"] == "CONV_2D"
