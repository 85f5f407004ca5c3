"""The ways to compile a PyTorch network: in one call, in steps, through torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import mizzen
from mizzen.partition import Device
from mizzen.torch import (
    EthosUCompileSpec,
    EthosUPartitioner,
    compile,
    compile_for,
)
from mizzen.torch.backend import mizzen as backend

from .networks import Split, Whole

Build = Callable[..., Any]

U55 = "ethos-u55-128"


def _image() -> torch.Tensor:
    return torch.randn(1, 3, 12, 12)


@pytest.mark.parametrize(("kind", "suffix"), [(Whole, ".tflite"), (Split, ".zip")])
def test_an_artifact_is_the_same_when_it_is_loaded(
    kind: type[nn.Module], suffix: str, tmp_path: Path
) -> None:
    """One NPU operator is a TFLite file that anything reads; more are an archive."""
    image = _image()
    artifact = compile(kind().eval(), (image,), U55, calibration=[_image() for _ in range(4)])
    assert Path(artifact.name).suffix == suffix
    path = tmp_path / artifact.name
    artifact.save(path)
    loaded = mizzen.load(path)
    if suffix == ".zip":
        assert np.array_equal(loaded.run(image.numpy()), artifact.run(image.numpy()))
    assert loaded.accelerator == U55
    assert path.read_bytes() == artifact.data


def test_steps_give_what_the_one_call_gives(converted: Build) -> None:
    """A specification and a partitioner in place of arguments."""
    torch.manual_seed(0)
    calls = [(_image(),) for _ in range(4)]
    exported = converted(Whole(), calls)
    spec = EthosUCompileSpec(U55, memory_mode="Shared_Sram", extra_flags=["--optimise Size"])
    partitioner = EthosUPartitioner(spec)
    assert [row.device for row in partitioner.placement(exported).regions].count(Device.NPU) == 1
    artifact = compile_for(exported, partitioner)
    assert artifact.report is not None
    assert not artifact.report.on_cpu
    assert artifact.report.configuration["memory_mode"] == "Shared_Sram"


def test_checks_of_the_user_keep_operators_on_the_cpu_with_their_words(converted: Build) -> None:
    """A check is a function, or an object as ExecuTorch has them."""

    def no_mean(node: Any) -> str | None:
        return "means are computed on the CPU here" if "mean" in str(node.target) else None

    class NoLinear:
        def is_node_supported(self, submodules: Any, node: Any) -> bool:
            return "linear" not in str(node.target)

    exported = converted(Whole(), [(_image(),) for _ in range(4)])
    partitioner = EthosUPartitioner(EthosUCompileSpec(U55), [no_mean, NoLinear()])
    artifact = compile_for(exported, partitioner)
    assert artifact.report is not None
    found = {row.kind: row.reasons[0].message for row in artifact.report.on_cpu}
    assert found["aten.mean"] == "means are computed on the CPU here"
    assert found["aten.linear"] == "NoLinear does not support it"
    assert "aten.conv2d" not in found


def test_torch_compile_calibrates_and_then_runs_on_the_simulator() -> None:
    """The first calls are PyTorch's own; the next ones are int8.

    The artifact may be off by the noise of 8 bits: two steps for each of the three layers, of the
    output's range of at most 4 in 255 steps.
    """
    model, image = Whole().eval(), _image()
    fast = torch.compile(model, backend=backend, options={"calibration_calls": 2})
    with torch.no_grad():
        expected = model(image)
        first, second, third = fast(image), fast(image), fast(image)
    assert torch.equal(first, expected)
    assert torch.equal(second, expected)
    assert not torch.equal(third, expected)
    assert (third - expected).abs().max() <= 6 * 4 / 255


class _Around(nn.Module):
    """What the CPU computes goes by two ways, over an operator of the NPU and directly."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.prod(x, 2, keepdim=True)
        y = torch.prod(x, 3, keepdim=True)
        return torch.prod(self.conv(x), 3, keepdim=True) + y


STRIDES = {
    "transposed convolution, two strides": lambda: nn.Sequential(
        nn.Conv2d(3, 16, 5), nn.ConvTranspose2d(16, 4, 3, stride=(1, 2))
    ),
    "convolution, stride 4 and dilation": lambda: nn.Sequential(
        nn.Conv2d(3, 16, 5), nn.Conv2d(16, 4, 3, stride=4, dilation=2)
    ),
}
"""Vela refuses these."""


ON_CPU = {
    "two operators in a row": (
        nn.Sequential(
            nn.Conv3d(2, 4, 3, padding=1, groups=2), nn.ReLU(), nn.Conv3d(4, 4, 3, groups=2)
        ),
        (1, 2, 6, 6, 6),
        "",
    ),
    "a way round them": (_Around(), (1, 4, 8, 8), "there is no TOSA form"),
    "one image without a batch": (
        nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1)),
        (4, 8, 8),
        "its input has no batch dimension",
    ),
    "one row without a batch": (
        nn.Sequential(nn.Conv1d(4, 8, 3), nn.ReLU(), nn.Conv1d(8, 4, 2)),
        (4, 9),
        "its input has no batch dimension",
    ),
}


@pytest.mark.parametrize("name", ON_CPU)
def test_operators_in_a_row_on_the_cpu(name: str, built: Build) -> None:
    """What PyTorch rounds between its operators it rounds in the artifact too."""
    model, shape, reason = ON_CPU[name]
    network = built(model, torch.randn(shape), accelerator=U55)
    assert network.steps_off() == 0
    assert any(reason in message for message in network.on_cpu.values())


def test_long_strides_are_on_the_npu(built: Build) -> None:
    """Strides above 3 become blocks: patches side by side, and patches that overlap."""
    layers = nn.Sequential(nn.Conv2d(3, 16, 4, stride=4), nn.Conv2d(16, 4, 5, stride=4, padding=2))
    network = built(layers, torch.randn(1, 3, 38, 38), accelerator=U55)
    assert network.steps_off() <= 1
    assert not network.on_cpu


TRANSPOSED = {
    "a decoder of sound": (nn.ConvTranspose1d(8, 4, 16, 8, padding=4), (1, 8, 20)),
    "groups": (nn.ConvTranspose2d(4, 4, 8, 4, padding=2, groups=4, bias=False), (1, 4, 6, 6)),
    "kernel below the stride": (nn.ConvTranspose2d(4, 6, 2, 3, output_padding=1), (1, 4, 5, 4)),
}


@pytest.mark.parametrize("accelerator", [U55, "ethos-u85-256"])
@pytest.mark.parametrize("name", TRANSPOSED)
def test_long_transposed_strides_are_on_the_npu(name: str, accelerator: str, built: Build) -> None:
    model, shape = TRANSPOSED[name]
    network = built(nn.Sequential(model, nn.ReLU()), torch.randn(shape), accelerator=accelerator)
    assert network.steps_off() <= 1
    assert not network.on_cpu


@pytest.mark.parametrize("name", STRIDES)
def test_odd_strides_are_on_the_npu(name: str, built: Build) -> None:
    network = built(STRIDES[name](), torch.randn(1, 3, 32, 32), accelerator=U55)
    assert network.steps_off() <= 1
    assert not network.on_cpu


class _Roll(nn.Module):
    """Dimensions moved round, as windows are in shifted attention."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.roll((1, -2), (2, 3)).movedim(1, 3).roll(5)


class _Spread(nn.Module):
    """The deviation of each plane."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.std((2, 3))


MOVED = {
    "pixel shuffle": nn.PixelShuffle(2),
    "pixel unshuffle": nn.PixelUnshuffle(3),
    "channel shuffle": nn.ChannelShuffle(4),
    "roll": _Roll(),
    "standard deviation": _Spread(),
}


@pytest.mark.parametrize("name", MOVED)
def test_what_moves_elements_is_on_the_npu(name: str, built: Build) -> None:
    """Besides the convolution's ties, which may be a step, nothing is rounded but the deviation."""
    network = built(
        nn.Sequential(nn.Conv2d(3, 8, 3), MOVED[name]), torch.randn(1, 3, 20, 14), accelerator=U55
    )
    assert network.on_cpu == {}
    assert network.npu_regions == 1
    assert network.steps_off() <= 1


class _Still(nn.Module):
    """What the CPU computes, turned and transposed with itself, which moves nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.layer(x.amin(1, keepdim=True))
        return y.flip(-1), y.transpose(1, 1) + 0.25


def test_a_value_that_nothing_moves_is_computed_on_the_cpu() -> None:
    """It has two roundings there, the second of which no operator of the graph computes."""
    torch.manual_seed(0)
    row, model = torch.randn(1, 4, 5), _Still().eval()
    artifact = compile(model, (row,), "ethos-u55-64", calibration=[(row,)] * 2)
    found = artifact.run(row.numpy())
    assert isinstance(found, tuple)
    with torch.no_grad():
        for ours, theirs in zip(found, model(row), strict=True):
            assert np.abs(ours - theirs.numpy()).max() <= 0.05
