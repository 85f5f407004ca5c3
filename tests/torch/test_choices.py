"""Comparisons and choices: on Ethos-U85's NPU, on the CPU with a reason beside Ethos-U55's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from mizzen.artifact.interface import Array
from mizzen.compiler.ethos_u.makers import region_compiler
from mizzen.compiler.ethos_u.regions import WINDOW_LIMITS
from mizzen.compiler.proof.options import OFF
from mizzen.compiler.torch.placement import place
from mizzen.frontends.torch.int_lowering.int_lower import lower
from mizzen.frontends.torch.narrowing import read
from mizzen.graph import Graph
from mizzen.partition import Device, extract
from mizzen.quantize import get_symmetric_a16w8_quantization_config
from mizzen.targets.ethos_u.machine.system_config import resolve

Build = Callable[..., Any]
Oracle = Callable[[Graph, Sequence[Array]], list[Array]]
Choose = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

U55, U85 = "ethos-u55-128", "ethos-u85-256"

CHOICES: dict[str, Choose] = {
    "gt": lambda a, b: torch.where(a > b, a, b),
    "ge": lambda a, b: torch.where(a >= b, 0.5, b),
    "lt": lambda a, b: torch.where(a < b, a, -0.5),
    "le": lambda a, b: torch.where(a <= b, a, b),
    "eq": lambda a, b: a.masked_fill(a == b, 0.5),
    "ne": lambda a, b: a.masked_fill(a != b, 0.5),
    "gt number": lambda a, b: torch.where(a > 0.25, a, b),
    "ge number": lambda a, b: torch.where(a >= 0.25, a, b),
    "lt number": lambda a, b: torch.where(a < 0.25, a, b),
    "le number": lambda a, b: torch.where(a <= 0.25, a, b),
    "eq number": lambda a, b: torch.where(a == 0, 1.0, b),
    "ne number": lambda a, b: torch.where(a != 0, a, b),
    "number beyond all": lambda a, b: torch.where(a > 1e6, a, b),
    "truths": lambda a, b: torch.where((a > 0) & ~(b > 0.1) | ((a != b) ^ (b < 0)), a, b * 2),
    "logical": lambda a, b: torch.where(torch.logical_and(a > 0, torch.logical_not(b > 0)), a, b),
    "constant mask": lambda a, b: a.masked_fill(torch.ones(10, 10).tril() == 0, -1.0) + b,
    "broadcast": lambda a, b: torch.where(a.mean((2, 3), keepdim=True) > b, a, b),
}


class _Chooses(nn.Module):
    """Two convolutions, and a choice between them."""

    def __init__(self, choose: Choose) -> None:
        super().__init__()
        self.choose = choose
        self.one = nn.Conv2d(3, 8, 3)
        self.other = nn.Conv2d(3, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.choose(self.one(x), self.other(x))


WIDE = ("gt", "ne", "le number", "eq number", "truths")


@pytest.mark.parametrize(
    ("name", "bits"), [*((name, 8) for name in CHOICES), *((name, 16) for name in WIDE)]
)
def test_choices_are_on_u85_what_pytorch_computes(
    name: str, bits: int, converted: Build, tosa_oracle: Oracle
) -> None:
    """One region; what it means by TOSA's reference model is what PyTorch computes.

    But for a step where the convolutions' rounding is a tie, and where such a tie decides the
    choice: at most one number in a hundred. With 16 bits, a rescaling by 15 bits is a step off
    more often, by at most four.
    """
    torch.manual_seed(1)
    calls = [(torch.randn(1, 3, 12, 12),) for _ in range(2)]
    config = get_symmetric_a16w8_quantization_config() if bits == 16 else None
    exported = converted(_Chooses(CHOICES[name]), calls, U85, config)
    lowered = lower(read(exported), WINDOW_LIMITS)
    placed = place(lowered, region_compiler(resolve(U85)), (), OFF, None)
    (region,) = [row for row in placed.partition.regions if row.device is Device.NPU]
    part = extract(lowered.graph, region.groups)
    (output,) = part.outputs
    (taken,) = part.inputs
    assert taken.quantization is not None
    assert output.quantization is not None
    for (image,) in calls:
        scale, zero_point = taken.quantization.scale, taken.quantization.zero_point
        integers = np.rint(image.numpy() / np.float32(scale)) + zero_point
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        given = np.clip(integers, low, high).astype(taken.dtype.numpy)
        (found,) = tosa_oracle(part.graph, [given])
        scale, zero_point = output.quantization.scale, output.quantization.zero_point
        wanted = np.rint(exported.module()(image).numpy() / scale) + zero_point
        off = np.abs(wanted - found)
        assert np.mean(off > (1 if bits == 8 else 4)) <= 0.01


@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_on_the_cpu_beside_u55_with_a_reason(name: str, built: Build) -> None:
    """And the result is PyTorch's, but for a tie of the convolutions."""
    network = built(_Chooses(CHOICES[name]), torch.randn(1, 3, 12, 12), accelerator=U55)
    assert network.npu_regions >= 1
    assert network.steps_off() <= 1
    assert any(kind in ("aten.where", "aten.masked_fill") for kind in network.on_cpu)
    for why in network.on_cpu.values():
        assert (
            why.endswith("but Ethos-U85 has one")
            or why
            == "so little is computed there, between operators on the CPU, that moving "
            "the data costs more"
        )


@pytest.mark.parametrize("bits", [8, 16])
def test_truth_values_may_leave_the_model(bits: int, converted: Build) -> None:
    """As bool, on U85 from the NPU."""
    calls = [(torch.randn(1, 3, 12, 12),)] * 2
    config = get_symmetric_a16w8_quantization_config() if bits == 16 else None
    exported = converted(_Chooses(lambda a, b: a > b), calls, U85, config)
    lowered = lower(read(exported), WINDOW_LIMITS)
    placed = place(lowered, region_compiler(resolve(U85)), (), OFF, None)
    assert [row.device for row in placed.partition.groups.values()].count(Device.NPU) == 3
    assert lowered.graph.outputs[0].dtype.numpy == np.bool_


def test_a_choice_by_numbers_is_refused_with_what_to_do(built: Build) -> None:
    """A mask must be truth values, or nothing says which of the numbers are true."""
    network = built(_Chooses(lambda a, b: torch.logical_and(a, b) * a), torch.randn(1, 3, 12, 12))
    assert network.on_cpu["aten.logical_and"] == "its input is no truth value"
