"""Convolutions of volumes as those of images: the same integers, and the NPU has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import nn

from mizzen.torch import compile

from .exactness import lowered

VOLUMES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "padded": (lambda: nn.Conv3d(2, 4, 3, padding=1), (1, 2, 5, 4, 6)),
    "long strides of a batch": (
        lambda: nn.Conv3d(2, 3, (3, 2, 3), stride=(2, 1, 2), padding=(1, 0, 1)),
        (2, 2, 6, 4, 5),
    ),
    "dilated": (lambda: nn.Conv3d(2, 3, 3, padding="same", dilation=(2, 1, 2)), (1, 2, 5, 4, 5)),
    "patches": (lambda: nn.Conv3d(3, 8, (2, 4, 4), stride=(2, 4, 4)), (1, 3, 5, 8, 8)),
    "flat kernels": (lambda: nn.Conv3d(1, 4, (3, 3, 1), padding=(1, 1, 0)), (1, 1, 4, 4, 6)),
}


@cache
def volume(name: str) -> torch.Tensor:
    return torch.randn(VOLUMES[name][1], generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("name", VOLUMES)
def test_a_convolution_of_volumes(name: str, bits: int) -> None:
    torch.manual_seed(0)
    found = lowered(nn.Sequential(VOLUMES[name][0](), nn.ReLU()), volume(name), bits=bits)
    assert found.on_cpu == {}
    assert found.steps_off() <= 1


def test_groups_are_computed_on_the_cpu() -> None:
    found = lowered(nn.Conv3d(4, 4, 2, groups=2), torch.randn(1, 4, 3, 3, 3))
    assert found.on_cpu == {"aten.conv3d": "it has groups"}


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_they_are_on_the_npu(accelerator: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(VOLUMES["padded"][0](), nn.ReLU(), nn.Conv3d(4, 2, 2, stride=2)).eval()
    example = volume("padded")
    artifact = compile(model, example, accelerator, calibration=[example])
    assert artifact.report is not None
    assert {row.device.value for row in artifact.report.placements} == {"NPU"}
