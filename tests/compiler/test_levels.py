"""Networks in which a requantisation leaves little of a tensor, and others in which it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import read_network
from mizzen.cli.main import main
from mizzen.compiler.levels import few_levels
from mizzen.package.tflite.builder import NetworkBuilder

SHAPE = (1, 4, 4, 8)
FINE, COARSE = 1 / 256, 2.5

Build = Callable[[NetworkBuilder], tuple[list[int], int]]


def joined(kind: str, shape: tuple[int, ...]) -> Build:
    def build(net: NetworkBuilder) -> tuple[list[int], int]:
        scores = net.tensor("scores", SHAPE, np.int8, FINE, -128)
        boxes = net.tensor("boxes", SHAPE, np.int8, COARSE, -128)
        y = net.tensor("y", shape, np.int8, COARSE, -128)
        table = "ConcatenationOptions" if kind == "CONCATENATION" else "PackOptions"
        options = {"axis": 0, **({"values_count": 2} if kind == "PACK" else {})}
        net.operator(kind, [scores, boxes], [y], (table, options))
        return [scores, boxes], y

    return build


def added(net: NetworkBuilder) -> tuple[list[int], int]:
    small = net.tensor("small", SHAPE, np.int8, 0.001)
    large = net.tensor("large", SHAPE, np.int8, 0.05)
    y = net.tensor("y", SHAPE, np.int8, 0.05)
    net.operator("ADD", [small, large], [y], ("AddOptions", {}))
    return [small, large], y


def shifted(net: NetworkBuilder) -> tuple[list[int], int]:
    """Numbers from 0 to 1 less 1: what comes out is elsewhere, and as many."""
    scores = net.tensor("scores", SHAPE, np.int8, FINE, -128)
    one = net.constant("one", np.full((1,), 127, np.int8), 1 / 127)
    y = net.tensor("y", SHAPE, np.int8, FINE, 127)
    net.operator("SUB", [scores, one], [y], ("SubOptions", {}))
    return [scores], y


def multiplied(net: NetworkBuilder) -> tuple[list[int], int]:
    one, other = (net.tensor(name, SHAPE, np.int8, 0.01) for name in ("one", "other"))
    y = net.tensor("y", SHAPE, np.int8, 0.5)
    net.operator("MUL", [one, other], [y], ("MulOptions", {}))
    return [one, other], y


def in_two_steps(net: NetworkBuilder) -> tuple[list[int], int]:
    """Each rescaling leaves enough by itself: 43 levels of 256, then a sixth of these."""
    x = net.tensor("x", SHAPE, np.int8, FINE, -128)
    first = net.tensor("first", SHAPE, np.int8, 6 * FINE, -128)
    flat = net.tensor("flat", (1, 128), np.int8, 6 * FINE, -128)
    second = net.tensor("second", (1, 128), np.int8, 36 * FINE, -128)
    net.operator("QUANTIZE", [x], [first])
    wanted = net.constant("shape", np.array([1, 128], np.int32))
    net.operator("RESHAPE", [first, wanted], [flat], ("ReshapeOptions", {}))
    net.operator("QUANTIZE", [flat], [second])
    return [x], second


def of_16_bits(net: NetworkBuilder) -> tuple[list[int], int]:
    x = net.tensor("x", SHAPE, np.int16, 0.0001)
    y = net.tensor("y", SHAPE, np.int16, 0.05)
    net.operator("QUANTIZE", [x], [y])
    return [x], y


def beyond_the_range(net: NetworkBuilder) -> tuple[list[int], int]:
    x = net.tensor("x", SHAPE, np.int8, FINE, -128)
    y = net.tensor("y", SHAPE, np.int8, 0.1, -148)
    net.operator("QUANTIZE", [x], [y])
    return [x], y


def halved(net: NetworkBuilder) -> tuple[list[int], int]:
    x = net.tensor("x", SHAPE, np.int8, 0.02)
    y = net.tensor("y", SHAPE, np.int8, 0.04)
    net.operator("QUANTIZE", [x], [y])
    return [x], y


def at_the_limit(net: NetworkBuilder) -> tuple[list[int], int]:
    """255 fine steps are 15 coarse ones: 16 levels."""
    x = net.tensor("x", SHAPE, np.int8, 0.02)
    y = net.tensor("y", SHAPE, np.int8, 0.34)
    net.operator("QUANTIZE", [x], [y])
    return [x], y


def built(build: Build) -> bytes:
    net = NetworkBuilder()
    inputs, output = build(net)
    return net.finish(inputs, [output])


LOST: dict[str, tuple[Build, str]] = {
    "concatenation": (
        joined("CONCATENATION", (2, 4, 4, 8)),
        '"scores" must keep at least 16 different numbers in "y", and keeps 1: '
        "it holds 0 to 0.996, and a step is 2.5 there",
    ),
    "pack": (
        joined("PACK", (2, *SHAPE)),
        '"scores" must keep at least 16 different numbers in "y", and keeps 1: '
        "it holds 0 to 0.996, and a step is 2.5 there",
    ),
    "sum": (
        added,
        '"small" must keep at least 16 different numbers in "y", and keeps 6: '
        "it holds -0.128 to 0.127, and a step is 0.05 there",
    ),
    "product": (
        multiplied,
        '"y" must keep at least 16 different numbers in "y", and keeps 8: '
        "it holds -1.63 to 1.64, and a step is 0.5 there",
    ),
    "in two steps": (
        in_two_steps,
        '"x" must keep at least 16 different numbers in "second", and keeps 8: '
        "it holds 0 to 0.996, and a step is 0.141 there",
    ),
    "16 bits": (
        of_16_bits,
        '"x" must keep at least 256 different numbers in "y", and keeps 132: '
        "it holds -3.28 to 3.28, and a step is 0.05 there",
    ),
    "out of range": (
        beyond_the_range,
        '"x" must keep at least 16 different numbers in "y", and keeps 1: '
        "it holds 0 to 0.996, and a step is 0.1 there",
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_what_loses_its_levels_is_named(name: str) -> None:
    build, text = LOST[name]
    (found,) = few_levels(read_network(built(build), "net.tflite"))
    assert (found.code, found.message) == ("W319", text)
    assert found.help


@pytest.mark.parametrize("build", [halved, at_the_limit, shifted])
def test_what_keeps_enough_is_not(build: Build) -> None:
    assert not list(few_levels(read_network(built(build), "net.tflite")))


def test_compilation_and_check_say_it() -> None:
    network = built(joined("CONCATENATION", (2, 4, 4, 8)))
    with pytest.warns(UserWarning, match="W319"):
        report = mizzen.compile(network, "ethos-u55-128").report
    assert report is not None
    (found,) = [row for row in report.diagnostics if row.code == "W319"]
    assert found.origin is not None
    assert (found.origin.operator, found.origin.kind) == (0, "CONCATENATION")
    assert found.help == (
        "let the network give these tensors as outputs of their own, each with its own scale, or "
        "scale them to one range before they are joined"
    )


def test_check_says_it_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(built(joined("CONCATENATION", (2, 4, 4, 8))))
    main(["check", str(path), "--accelerator-config", "ethos-u85-256", "--json"])
    codes = [row["code"] for row in json.loads(capsys.readouterr().out)["diagnostics"]]
    assert "W319" in codes


def test_the_reported_detector_is_told_of_its_scores(cases: Path) -> None:
    path = cases / "Y1_yolo_scores_share_scale.tflite"
    (found,) = few_levels(read_network(path.read_bytes(), path.name))
    assert found.message.startswith(
        '"p" must keep at least 16 different numbers in "pr", and keeps 1'
    )
    assert found.help is not None
    assert found.help.startswith("let the network give these tensors as outputs of their own")


REAL = {"rnnoise_INT8": 3}
"""What real networks lose: states of -1 to 1 beside features up to 28, with 10 numbers left."""


def test_real_networks_lose_little(models: Path) -> None:
    for path in sorted(models.glob("*.tflite")):
        found = list(few_levels(read_network(path.read_bytes(), path.name)))
        assert len(found) == REAL.get(path.stem, 0), path.name


def test_a_program_is_told_too() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch programs need PyTorch")
    import mizzen.torch

    class Detector(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scores, self.boxes = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            return torch.cat([torch.sigmoid(self.scores(x)), self.boxes(x) * 400], -1)

    torch.manual_seed(0)
    calls = [(torch.randn(1, 8),) for _ in range(16)]
    with pytest.warns(UserWarning, match="W319"):
        artifact = mizzen.torch.compile(
            Detector().eval(), calls[0], "ethos-u55-128", calibration=calls
        )
    assert artifact.report is not None
    (found,) = [row for row in artifact.report.diagnostics if row.code == "W319"]
    assert '"sigmoid" must keep at least 16 different numbers in "sigmoid", and keeps 1' in (
        found.message
    )
