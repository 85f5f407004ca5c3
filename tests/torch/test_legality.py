"""Operators that an NPU family's rules refuse are on the CPU with the reason, before compiling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import mizzen
from mizzen.diagnostics import MizzenError
from mizzen.frontends import tosa as frontend
from mizzen.partition import Device
from mizzen.quantize import get_symmetric_a16w8_quantization_config
from mizzen.torch import EthosUCompileSpec, EthosUPartitioner, compile, compile_converted
from mizzen.torch.lowering import to_tosa

Build = Callable[..., Any]

U55, U85 = "ethos-u55-128", "ethos-u85-256"


class _Then(nn.Module):
    """A convolution, then what a function makes of its result."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 5)
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self.conv(x))


class _Product(nn.Module):
    """A product of two tensors that the network computes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x, x.transpose(1, 2))


def _average(kernel: int, stride: int, padding: int) -> nn.Module:
    """Average the pixels that there are; what is beside the image is none."""
    return nn.AvgPool2d(kernel, stride, padding, count_include_pad=False)


REFUSED: dict[str, tuple[Callable[[], nn.Module], str, str]] = {
    "average pooling, kernel 9 and padding": (
        lambda: nn.Sequential(nn.Conv2d(3, 16, 5), _average(9, 2, 4)),
        "aten.avg_pool2d",
        "the NPU does not compute this AVG_POOL2D: its padded window is large",
    ),
    "comparison and choice": (
        lambda: _Then(lambda y: torch.where(y > 0.5, y, y * y)),
        "aten.where",
        "the NPU does not compute this SELECT: no rule has a form of SELECT, but Ethos-U85 has one",
    ),
}
TAKEN: dict[str, Callable[[], nn.Module]] = {
    "average pooling, stride 5 and padding": lambda: nn.Sequential(
        nn.Conv2d(3, 16, 5), _average(3, 5, 1)
    ),
    "depthwise convolution, stride 4": lambda: nn.Sequential(
        nn.Conv2d(3, 16, 5), nn.Conv2d(16, 16, 4, stride=4, groups=16)
    ),
    "maximum pooling, stride 5 and padding": lambda: nn.Sequential(
        nn.Conv2d(3, 16, 5), nn.MaxPool2d(3, 5, padding=1)
    ),
    "bilinear upscaling": lambda: _Then(
        lambda y: nn.functional.interpolate(y, scale_factor=2, mode="bilinear")
    ),
}
"""Vela refuses these."""


def _image() -> torch.Tensor:
    return torch.randn(1, 3, 32, 32)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_rule_refuses_is_on_the_cpu_with_its_reason(name: str, built: Build) -> None:
    """The rest stays on the NPU, and the result is right, with at most a step for ties."""
    make, kind, message = REFUSED[name]
    network = built(make(), _image(), accelerator=U55)
    (row,) = [row for row in network.artifact.report.on_cpu if row.kind == kind]
    assert (row.reasons[0].rule, row.reasons[0].message) == ("no-rule", message)
    assert row.reasons[0].help
    assert row.reasons[0].source == "Mizzen's rules for Ethos-U"
    assert network.steps_off() <= 1
    assert "aten.conv2d" in [row.kind for row in network.artifact.report.on_npu]


@pytest.mark.parametrize("name", TAKEN)
def test_what_rules_take_is_on_the_npu(name: str, built: Build) -> None:
    network = built(TAKEN[name](), _image(), accelerator=U55)
    assert network.on_cpu == {}
    assert network.steps_off() <= 1


@pytest.mark.parametrize("name", REFUSED)
def test_partitioning_alone_gives_the_reason(name: str, converted: Build) -> None:
    """Nothing is compiled for it."""
    make, _, message = REFUSED[name]
    found = EthosUPartitioner(EthosUCompileSpec(U55)).placement(converted(make(), [(_image(),)]))
    said = [reason.message for row in found.groups.values() for reason in row.reasons]
    assert message in said


def test_the_newest_family_takes_choices(converted: Build) -> None:
    exported = converted(REFUSED["comparison and choice"][0](), [(_image(),)])
    newer = EthosUPartitioner(EthosUCompileSpec(U85)).placement(exported)
    assert [row.device for row in newer.regions].count(Device.NPU) == 1


def test_a_product_of_16_bits_is_refused_by_its_type(converted: Build) -> None:
    """On the family whose products are of 8 bits; what the CPU gives is PyTorch's."""
    config = get_symmetric_a16w8_quantization_config()
    exported = converted(_Product(), [(torch.randn(2, 8, 8),)], config=config)
    artifact = compile_converted(exported, U55, prove="off")
    assert artifact.report is not None
    said = {row.kind: row.reasons[0].message for row in artifact.report.on_cpu}
    assert "which only Ethos-U85 multiplies" in said["aten.bmm"]
    x = torch.randn(2, 8, 8)
    expected = exported.module(check_guards=False)(x)
    assert torch.equal(torch.as_tensor(artifact.run(x.numpy())), expected)


def test_lowering_to_tosa_knows_no_npu(converted: Build) -> None:
    """What Vela refuses for U55 has a form in TOSA all the same."""
    exported = converted(TAKEN["bilinear upscaling"](), [(_image(),)])
    graph = frontend.read(to_tosa(exported), "network.tosa")
    assert "RESIZE" in [operation.kind for operation in graph]


def test_checking_a_file_gives_the_same_reasons(tmp_path: Path, converted: Build) -> None:
    """As for any other network; one that was never quantised is refused as by compiling."""
    make, kind, message = REFUSED["average pooling, kernel 9 and padding"]
    path = tmp_path / "network.pt2"
    torch.export.save(converted(make(), [(_image(),)]), path)
    found = mizzen.check(path, U55)
    assert [failure.code for failure in found.failures] == ["E401"]
    reasons = {row.kind: [each.message for each in row.reasons] for row in found.placements}
    assert reasons == {"aten.conv2d": [], kind: [message]}
    assert mizzen.check(path, U55, max_cpu_ops=1).holds
    torch.export.save(torch.export.export(make().eval(), (_image(),)), path)
    with pytest.raises(MizzenError, match="E167"):
        mizzen.check(path, U55)


class _While(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def less(x: torch.Tensor) -> torch.Tensor:
            return x.sum() < 100

        def doubled(x: torch.Tensor) -> tuple[torch.Tensor]:
            return (x * 2,)

        return torch.while_loop(less, doubled, (x,))[0]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def test_a_loop_is_refused_with_what_may_be_done_about_loops() -> None:
    """Before anything is said of quantisation, which cannot help, and before it is tried."""
    exported = torch.export.export(_While().eval(), (torch.ones(1, 3),))
    with pytest.raises(MizzenError) as tried:
        compile(_While().eval(), (torch.ones(1, 3),), U55)
    with pytest.raises(MizzenError) as caught:
        compile_converted(exported, U55, name="loop")
    assert tried.value.diagnostic.message == caught.value.diagnostic.message
    assert caught.value.diagnostic.code == "E161"
    assert caught.value.diagnostic.message == (
        "control flow that depends on data, while_loop, must not be in the program"
    )
    assert "let Python loop a fixed number of times" in (caught.value.diagnostic.help or "")
