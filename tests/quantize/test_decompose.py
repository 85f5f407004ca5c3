"""Decompositions compute what PyTorch's own operators do, before anything is quantized."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - everybody's name of it

from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

# Sums in another order: a few units in the last place of float32, of values near 1.
TOLERANCE: dict[str, Any] = {"rtol": 2e-5, "atol": 2e-5}


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


def one(function: Callable[[torch.Tensor], torch.Tensor]) -> nn.Module:
    return Apply(function)


def two(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> nn.Module:
    return Apply(function)


def batch_norm() -> nn.Module:
    module: Any = nn.BatchNorm2d(6)
    module.running_mean.uniform_(-1, 1)
    module.running_var.uniform_(0.5, 2)
    return nn.Sequential(nn.ReLU(), module)


def prelu() -> nn.Module:
    module = nn.PReLU(6)
    module.weight.data.uniform_(-0.5, 1)
    return module


X = (2, 6, 4, 4)
vector_norm: Any = torch.linalg.vector_norm
normalize: Any = F.normalize
CASES: dict[str, tuple[nn.Module, list[tuple[int, ...]]]] = {
    "softmax": (nn.Softmax(1), [X]),
    "log_softmax": (nn.LogSoftmax(-1), [X]),
    "layer_norm": (nn.LayerNorm(4), [X]),
    "layer_norm_two_axes": (nn.LayerNorm([4, 4]), [X]),
    "rms_norm": (nn.RMSNorm(4), [X]),
    "group_norm": (nn.GroupNorm(3, 6), [X]),
    "instance_norm": (nn.InstanceNorm2d(6, affine=True), [X]),
    "batch_norm": (batch_norm(), [X]),
    "prelu": (prelu(), [X]),
    "prelu_one": (nn.PReLU(), [X]),
    "glu": (nn.GLU(1), [X]),
    "divide": (two(lambda x, y: x / (y.abs() + 1)), [X, X]),
    "divide_by_number": (one(lambda x: x / 3.5), [X]),
    "alpha": (two(lambda x, y: torch.add(x, y, alpha=2.5)), [X, X]),
    "var": (one(lambda x: x.var(-1)), [X]),
    "var_biased": (one(lambda x: x.var((1, 2), correction=0, keepdim=True)), [X]),
    "std": (one(lambda x: x.std(1)), [X]),
    "norm": (one(lambda x: vector_norm(x, dim=1)), [X]),
    "norm_1": (one(lambda x: vector_norm(x, 1, dim=-1, keepdim=True)), [X]),
    "normalize": (one(lambda x: normalize(x, dim=1)), [X]),
    "matmul_4": (Apply(torch.matmul), [X, X]),
    "matmul_broadcast": (Apply(torch.matmul), [X, (4, 5)]),
    "einsum": (two(lambda x, y: torch.einsum("bcij,bcjk->bcik", x, y)), [X, X]),
    "cosine": (two(lambda x, y: F.cosine_similarity(x, y, 1)), [X, X]),
    "addcmul": (two(lambda x, y: torch.addcmul(x, x, y, value=0.5)), [X, X]),
    "lerp": (two(lambda x, y: torch.lerp(x, y, 0.3)), [X, X]),
    "attention": (Apply(F.scaled_dot_product_attention), [X, X, X]),
    "in_place": (one(lambda x: (x + 1).relu_().mul_(2).add_(x)), [X]),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), [(2, 5, 8)]),
    "multihead": (one(lambda x: x.softmax(-1) @ x.transpose(-1, -2)), [X]),
}


def transformed(module: nn.Module, *inputs: torch.Tensor) -> torch.fx.GraphModule:
    quantizer = EthosUQuantizer("ethos-u55-128").set_global(get_symmetric_quantization_config())
    program = torch.export.export(module.eval(), inputs).module()
    return quantizer.transform_for_annotation(program)


@pytest.mark.parametrize("name", CASES)
def test_results_are_the_same(name: str) -> None:
    module, shapes = CASES[name]
    inputs = tuple(torch.randn(shape) for shape in shapes)
    torch.testing.assert_close(transformed(module, *inputs)(*inputs), module(*inputs), **TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_everything_is_quantized_afterwards(name: str, quantize: Callable[..., Any]) -> None:
    module, shapes = CASES[name]
    flow = quantize(module, *(torch.randn(shape) for shape in shapes))
    assert flow.float_islands() == []
    assert flow.quantizer.report() == []


@pytest.mark.parametrize("name", CASES)
def test_shapes_and_places_of_new_nodes_are_known(name: str) -> None:
    module, shapes = CASES[name]
    inputs = tuple(torch.randn(shape) for shape in shapes)
    program = transformed(module, *inputs)
    seen: dict[str, torch.Size] = {}

    class Shapes(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            result = super().run_node(n)
            if isinstance(result, torch.Tensor):
                seen[n.name] = result.shape
            return result

    Shapes(program).run(*inputs)
    for node in program.graph.nodes:
        if node.op == "call_function" and node.name in seen:
            assert node.meta["val"].shape == seen[node.name]
            assert node.meta["nn_module_stack"]


def test_a_scaled_value_keeps_its_integers(quantize: Callable[..., Any]) -> None:
    flow = quantize(one(lambda x: torch.relu(x) * 0.125), torch.randn(4, 4))
    _, (scale, zero_point, _), scaled = flow.quantizations()
    assert scaled[:2] == (scale * 0.125, zero_point)


def test_a_causal_mask_hides_what_comes_later(quantize: Callable[..., Any]) -> None:
    attention = Apply(partial(F.scaled_dot_product_attention, is_causal=True))
    inputs = [torch.randn(1, 2, 6, 8) for _ in range(3)]
    flow = quantize(attention, *inputs)
    first = flow.converted(*inputs)[:, :, 0]
    # The first position sees itself alone: its own value, rounded where it is read and written.
    steps = [scale for scale, *_ in flow.quantizations()]
    assert (first - inputs[2][:, :, 0]).abs().max() < 4 * max(steps[-2:])


def test_masks_of_minus_infinity_become_finite(quantize: Callable[..., Any]) -> None:
    mask = torch.full((5, 5), -torch.inf).triu(1)

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mask = nn.Buffer(mask)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x + self.mask, -1)

    x = torch.randn(1, 5, 5)
    flow = quantize(Masked(), x)
    assert flow.noise(x) > 20
    assert (flow.converted(x)[0].triu(1) == 0).all()


def test_a_product_with_a_constant_matrix_is_a_linear_layer() -> None:
    weight = nn.Parameter(torch.randn(6, 3))

    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight

    program = transformed(Product(), torch.randn(2, 6))
    assert [n.name for n in program.graph.nodes if n.op == "call_function"] == ["linear_default"]


def test_unselected_modules_are_left_whole() -> None:
    quantizer = EthosUQuantizer("ethos-u55-128").set_module_type(
        nn.Linear, get_symmetric_quantization_config()
    )
    network = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Softmax(-1)).eval()
    program = torch.export.export(network, (torch.randn(1, 4),)).module()
    names = [str(n.target) for n in quantizer.transform_for_annotation(program).graph.nodes]
    assert "aten.layer_norm.default" in names
    assert "aten.softmax.int" in names
