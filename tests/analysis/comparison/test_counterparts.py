"""Layers of a quantised network beside those of its floating-point one, where names mislead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch programs need PyTorch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402

from mizzen.analysis.comparison.precision import Data, precision, precision_of_programs  # noqa: E402
from mizzen.archives import ArchiveError, unpacked  # noqa: E402
from mizzen.package.tflite.builder import NetworkBuilder  # noqa: E402
from mizzen.report.precision import InputSource, Precision  # noqa: E402

SOUND_DB = 20
"""Of 8 bits calibrated on the very inputs that are compared: 6 dB a bit, less the peaks' share."""


class Softmax(nn.Module):
    """Taken apart, a softmax has a subtraction and two products before the model's own."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.Buffer(torch.randn(4, 6))

    def forward(self, x: Any) -> tuple[Any, Any]:
        first = self.offset - torch.softmax(x, -1)
        return first, first - x * 5


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 16)
        self.inner, self.outer = nn.LayerNorm(32), nn.LayerNorm(16)

    def forward(self, x: Any) -> Any:
        return self.outer(x + self.second(F.gelu(self.inner(self.first(x)))))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: Any) -> Any:
        q, k, v = (
            layer(x).reshape(1, 8, 2, 8).transpose(1, 2) for layer in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(1, 8, 16)
        return x + self.out(y)


class Swishes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)
        self.norm, self.group = nn.BatchNorm2d(8), nn.GroupNorm(2, 8)
        self.norm.running_mean = torch.randn(8)

    def forward(self, x: Any) -> Any:
        y = F.silu(self.group(F.hardswish(self.norm(self.first(x)))))
        z = self.second(y)
        return F.log_softmax((F.hardsigmoid(z) * z).flatten(1), -1)


class Twins(nn.Module):
    """Three convolutions of one shape that take one tensor, used in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Conv2d(4, 4, 3, padding=1) for _ in range(3))

    def forward(self, x: Any) -> Any:
        return torch.relu(self.b(x)) + torch.tanh(self.a(x)) * torch.relu(self.c(x))


NETWORKS: dict[str, tuple[type[nn.Module], tuple[int, ...], set[str]]] = {
    "softmax": (Softmax, (1, 4, 6), {"softmax", "sub", "mul", "sub_1"}),
    "norms": (
        Norms, (1, 8, 16), {"linear", "layer_norm", "gelu", "linear_1", "add", "layer_norm_1"},
    ),
    "attention": (
        Attention, (1, 8, 16),
        {"linear", "linear_1", "linear_2", "scaled_dot_product_attention", "linear_3", "add"},
    ),
    "swishes": (
        Swishes, (1, 3, 12, 12),
        {"batch_norm", "hardswish", "group_norm", "silu", "conv2d_1", "mul", "log_softmax"},
    ),
    "twins": (Twins, (1, 4, 10, 10), {"relu", "conv2d_1", "tanh", "relu_1", "mul", "add"}),
}  # fmt: skip
"""Networks, the shape of their inputs, and layers of theirs that must be found."""


def compared(name: str) -> Precision:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

    torch.manual_seed(1)
    network, shape, _ = NETWORKS[name]
    exported = torch.export.export(network().eval(), (torch.randn(shape),))
    quantizer = EthosUQuantizer("ethos-u55-128")
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(exported.module(), quantizer)
    inputs = torch.randn(8, *shape)
    for one in inputs:
        prepared(one)
    converted = torch.export.export(convert_pt2e(prepared), (inputs[0],))
    return precision_of_programs(converted, exported, Data([inputs.numpy()]))


@pytest.mark.parametrize("name", NETWORKS)
def test_no_layer_is_held_against_another(name: str) -> None:
    found = compared(name)
    assert NETWORKS[name][2] <= {row.counterpart for row in found.layers}
    for row in found.layers:
        assert row.sqnr_db is None or row.sqnr_db > SOUND_DB, row


def test_the_reported_program_has_no_noisy_layer(cases: Path) -> None:
    files = cases / "PX_q.pt2", cases / "PX_f.pt2"
    for file in files:
        try:
            unpacked(file.read_bytes())
        except ArchiveError as error:
            pytest.skip(f"{file.name} {error}")
    found = precision(*files)
    assert found.source is InputSource.EXAMPLE
    for row in found.layers:
        assert row.sqnr_db is None or row.sqnr_db >= 30, row


def test_the_example_of_a_file_is_what_is_inferred(tmp_path: Path) -> None:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

    torch.manual_seed(1)
    example = (torch.randn(1, 4, 6),)
    exported = torch.export.export(Softmax().eval(), example)
    quantizer = EthosUQuantizer("ethos-u55-128")
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(exported.module(), quantizer)
    prepared(*example)
    converted = torch.export.export(convert_pt2e(prepared), example)
    torch.export.save(converted, tmp_path / "q.pt2")
    torch.export.save(exported, tmp_path / "f.pt2")
    found = precision(tmp_path / "q.pt2", tmp_path / "f.pt2")
    assert (found.source, found.inputs) == (InputSource.EXAMPLE, 1)
    given = precision(tmp_path / "q.pt2", tmp_path / "f.pt2", Data([example[0].numpy()[None]]))
    assert found.layers == given.layers


# A hard swish that a converter took apart: x * min(max(x + 3, 0), 6) / 6.

STEP, WIDE_STEP = 0.05, 0.2
TENSORS = np.random.default_rng(5).normal(0, 1.2, (12, 1, 4, 5, 8)).astype(np.float32)


def floating() -> bytes:
    net = NetworkBuilder()
    x, y, z, w = (
        net.tensor(name, (1, 4, 5, 8), np.float32) for name in ("x", "hard_swish", "mul", "add")
    )
    three = net.constant("c", np.full((1,), 2.0, np.float32))
    net.operator("HARD_SWISH", [x], [y], ("HardSwishOptions", {}))
    net.operator("MUL", [y, three], [z], ("MulOptions", {}))
    net.operator("ADD", [z, x], [w], ("AddOptions", {}))
    return net.finish([x], [w])


def quantised() -> bytes:
    net = NetworkBuilder()
    shape = (1, 4, 5, 8)
    x = net.tensor("x", shape, np.int8, STEP, 0)
    plus = net.tensor("add", shape, np.int8, STEP, -70)
    clipped = net.tensor("relu6", shape, np.int8, STEP, -70)
    product = net.tensor("mul", shape, np.int8, WIDE_STEP, -100)
    swish = net.tensor("mul_1", shape, np.int8, 0.03, -110)
    double = net.tensor("mul_2", shape, np.int8, 0.06, -110)
    total = net.tensor("add_1", shape, np.int8, 0.08, -64)
    three = net.constant("three", np.array([120], np.int8), 0.025)
    sixth = net.constant("sixth", np.array([127], np.int8), 1 / 6 / 127)
    two = net.constant("two", np.array([100], np.int8), 0.02)
    net.operator("ADD", [x, three], [plus], ("AddOptions", {}))
    net.operator("RELU6", [plus], [clipped])
    net.operator("MUL", [x, clipped], [product], ("MulOptions", {}))
    net.operator("MUL", [product, sixth], [swish], ("MulOptions", {}))
    net.operator("MUL", [swish, two], [double], ("MulOptions", {}))
    net.operator("ADD", [double, x], [total], ("AddOptions", {}))
    return net.finish([x], [total])


def test_names_that_a_converter_numbered_anew_mislead_nobody(tmp_path: Path) -> None:
    one, other = tmp_path / "net.tflite", tmp_path / "float.tflite"
    one.write_bytes(quantised())
    other.write_bytes(floating())
    found = precision(one, other, Data([TENSORS]))
    assert {(row.name, row.counterpart) for row in found.layers} == {
        ("mul_2", "mul"), ("add_1", "add"),
    }  # fmt: skip
    assert {name for _, _, name in found.unmatched} == {"add", "relu6", "mul", "mul_1"}
    for row in found.layers:
        assert row.sqnr_db is not None
        assert row.sqnr_db > SOUND_DB
