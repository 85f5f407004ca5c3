"""Ordinary models, however little of them an NPU can do: an artifact, or a reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own name
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.diagnostics import MizzenError
from mizzen.torch import (
    EthosUQuantizer,
    compile,
    compile_converted,
    get_symmetric_quantization_config,
)

U55, U85 = "ethos-u55-256", "ethos-u85-256"

Function = Callable[..., torch.Tensor]


def _sorted(x: torch.Tensor) -> torch.Tensor:
    return torch.sort(x, 1)[0]


def _sums(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 + y


def _turned(x: torch.Tensor) -> torch.Tensor:
    return x.flip(0).t()


def _truths(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x & y) | ~x


def _itself(x: torch.Tensor) -> torch.Tensor:
    return x


def _compared(x: torch.Tensor) -> torch.Tensor:
    return x > 0


WHOLE: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "sorted numbers": (_sorted, (torch.linspace(-1, 1, 12).view(2, 6),)),
    "sums of integers": (_sums, (torch.arange(12), torch.arange(12) - 6)),
    "small integers": (_turned, (torch.arange(12).to(torch.int8).view(3, 4),)),
    "truths": (_truths, (torch.arange(12) > 4, torch.arange(12) % 2 == 0)),
    "an input that goes out": (_itself, (torch.linspace(-1, 1, 12),)),
    "a comparison": (_compared, (torch.linspace(-1, 1, 12),)),
}


@pytest.mark.parametrize("accelerator", [U55, U85])
@pytest.mark.parametrize("name", WHOLE)
def test_a_model_of_which_nothing_is_quantised_is_exact(name: str, accelerator: str) -> None:
    function, inputs = WHOLE[name]
    artifact = compile(function, inputs, accelerator, calibration=[inputs], prove="off")
    found, expected = artifact.run(*(x.numpy() for x in inputs)), function(*inputs).numpy()
    assert isinstance(found, np.ndarray)
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        assert np.abs(found - expected).max() <= 2 / 255
    else:
        assert np.array_equal(found, expected)


def _dot(x: torch.Tensor) -> torch.Tensor:
    return torch.dot(x[0], x[1])


def _vectors(x: torch.Tensor) -> torch.Tensor:
    return x[0] @ x[1]


def _inner(x: torch.Tensor) -> torch.Tensor:
    return torch.inner(x[0], x[1])


def _tensordot(x: torch.Tensor) -> torch.Tensor:
    return torch.tensordot(x, x, dims=2)


def _mean(x: torch.Tensor) -> torch.Tensor:
    return F.adaptive_avg_pool2d(x, 3)


def _greatest(x: torch.Tensor) -> torch.Tensor:
    return F.adaptive_max_pool2d(x, 3)


PRODUCTS: dict[str, tuple[Function, tuple[int, ...]]] = {
    "dot": (_dot, (2, 6)),
    "a vector by a vector": (_vectors, (2, 6)),
    "inner": (_inner, (2, 6)),
    "tensordot": (_tensordot, (2, 6)),
    "one pixel as nine": (_mean, (1, 4, 1, 1)),
    "the greatest of one pixel": (_greatest, (1, 4, 1, 1)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_of_products_and_windows_of_one_pixel_are_right(name: str) -> None:
    """Each of four layers may be off by two steps of the result's range.

    What the compiler makes wrong of them, the proof finds.
    """
    function, shape = PRODUCTS[name]
    torch.manual_seed(0)
    calls = [torch.rand(shape) * 2 - 1 for _ in range(4)]
    artifact = compile(function, calls[0], U55, calibration=calls)
    expected = np.array([function(call).numpy() for call in calls])
    found = np.array([artifact.run(call.numpy()) for call in calls]).reshape(expected.shape)
    span = max(expected.max(), 0) - min(expected.min(), 0)
    assert np.abs(found - expected).max() <= 8 * span / 255


@pytest.mark.parametrize("number", [0, 0.0])
def test_a_quotient_by_zero_is_refused_at_its_line(number: float) -> None:
    class Quotient(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / number

    with pytest.raises(MizzenError) as caught:
        compile(Quotient().eval(), torch.ones(2, 6), U55)
    found = caught.value.diagnostic
    assert found.code == "E871"
    assert found.origin is not None
    assert (found.origin.source or "").startswith("test_ordinary.py:")


LARGE = {
    "more than 16 bits": ((65537, 2, 2), (1, 2, 0)),
    "many matrices": ((65537, 2, 2), (0, 2, 1)),
    "rows": ((65537, 2), (1, 0)),
    "axes that stay together": ((2, 2, 257, 257), (0, 2, 3, 1)),
    "and more of them": ((2, 2, 41, 41, 41), (0, 2, 3, 4, 1)),
}


@pytest.mark.parametrize("name", LARGE)
def test_transpositions_too_large_for_the_compiler_are_cut(name: str) -> None:
    shape, order = LARGE[name]
    numbers = torch.linspace(-1, 1, math.prod(shape)).view(shape)

    def permuted(x: torch.Tensor) -> torch.Tensor:
        return x.permute(order)

    artifact = compile(permuted, numbers, U55, prove="off")
    found: Any = artifact.run(numbers.numpy())
    assert np.abs(found - numbers.permute(order).numpy()).max() <= 2 / 255
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()


def test_a_batch_norm_behind_weights_that_are_buffers_is_folded() -> None:
    class Fixed(nn.Module):
        weight: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.randn(4, 3, 3, 3))
            self.norm = nn.BatchNorm2d(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(F.conv2d(x, self.weight))

    torch.manual_seed(0)
    model, image = Fixed().eval(), torch.randn(1, 3, 8, 8)
    artifact = compile(model, image, U55, calibration=[image], prove="off")
    expected = model(image).detach().numpy()
    assert np.abs(np.asarray(artifact.run(image.numpy())) - expected).max() <= (
        4 * (expected.max() - expected.min()) / 255
    )
    assert artifact.report is not None
    assert [row.kind for row in artifact.report.placements] == ["aten.conv2d"]


def test_results_that_are_no_tensors_are_left_out() -> None:
    class Several(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return {"row": torch.relu(x), "none": None, "count": x.shape[0]}

    row = torch.linspace(-1, 1, 12)
    artifact = compile(Several().eval(), row, U55, prove="off")
    assert np.abs(np.asarray(artifact.run(row.numpy())) - row.relu().numpy()).max() <= 2 / 255


def _least(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.minimum(x, y)


def _greater(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(x > y, x, y)


def _joined(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.t(), y.flip(0).t()], 1)


WHOLE_NUMBERS: dict[str, tuple[Function, torch.dtype, str]] = {
    "the least of 32 bits": (_least, torch.int32, U55),
    "chosen by comparison": (_greater, torch.int32, U85),
    "moved, of 32 bits": (_joined, torch.int32, U85),
    "moved, of 8 bits": (_joined, torch.int8, U85),
    "moved truths": (_joined, torch.bool, U85),
}


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
def test_integers_and_truths_are_moved_and_chosen_on_the_npu(name: str) -> None:
    """Exactly: nothing is rounded."""
    function, dtype, accelerator = WHOLE_NUMBERS[name]
    x, y = ((torch.arange(12).view(3, 4) * step % 11 - 5).to(dtype) for step in (5, 7))
    artifact = compile(function, (x, y), accelerator, calibration=[(x, y)])
    assert np.array_equal(artifact.run(x.numpy(), y.numpy()), function(x, y).numpy())
    assert artifact.report is not None
    assert not artifact.report.on_cpu


def test_a_model_of_integers_goes_through_the_published_steps() -> None:
    """`set_global` was called: that nothing of it applies is no mistake of the user."""

    class Joined(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return _joined(x, y)

    x, y = (torch.arange(12, dtype=torch.int32).view(3, 4) * step for step in (1, -2))
    quantizer = EthosUQuantizer(U85).set_global(get_symmetric_quantization_config())
    program = torch.export.export(Joined().eval(), (x, y)).module(check_guards=False)
    prepared = prepare_pt2e(program, quantizer)
    prepared(x, y)
    converted = torch.export.export(convert_pt2e(prepared), (x, y))
    artifact = compile_converted(converted, U85)
    assert np.array_equal(artifact.run(x.numpy(), y.numpy()), _joined(x, y).numpy())
    assert artifact.report is not None
    assert not artifact.report.on_cpu


def test_quotients_of_integers_say_why_they_are_on_the_cpu() -> None:
    numbers = torch.arange(12, dtype=torch.int32)
    artifact = compile(_reduced, (numbers,), U85, calibration=[(numbers,)])
    assert artifact.report is not None
    assert [row.reasons[0].message for row in artifact.report.on_cpu] == [
        "its input is of i32, and it takes quantised numbers only"
    ]


def _reduced(x: torch.Tensor) -> torch.Tensor:
    return x.pow(2)


class _Frozen(nn.Module):
    """A part without gradients, as fine-tuned models have."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 5), nn.Linear(5, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = torch.relu(self.body(x))
        return torch.sort(self.head(features), -1)[0]


def test_models_are_compiled_in_threads_and_parts_without_gradients_are_operators() -> None:
    torch.manual_seed(0)
    rows = [torch.randn(2, 6) for _ in range(4)]
    models = [_Frozen().eval() for _ in range(3)]

    def off(model: nn.Module) -> float:
        artifact = compile(model, rows[0], U55, calibration=rows, prove="off")
        assert artifact.report is not None
        assert [row.kind for row in artifact.report.on_cpu] == ["aten.sort"]
        expected = model(rows[0]).detach().numpy()
        return float(np.abs(np.asarray(artifact.run(rows[0].numpy())) - expected).max())

    with ThreadPoolExecutor(3) as pool:
        assert max(pool.map(off, models)) <= 6 * 4 / 255


class _Causal(nn.Module):
    """PyTorch's encoder with a causal mask, which it compares with one by its numbers."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(4)
        return self.encoder(x, mask=mask)


def test_an_encoder_with_a_causal_mask_sees_nothing_that_comes_later() -> None:
    torch.manual_seed(0)
    calls = [torch.randn(1, 4, 8) for _ in range(4)]
    artifact = compile(_Causal().eval(), calls[0], U55, calibration=calls)
    later = calls[0].clone()
    later[:, 2:] = calls[1][:, 2:]
    found, other = (np.asarray(artifact.run(call.numpy())) for call in (calls[0], later))
    assert np.array_equal(found[:, :2], other[:, :2])
    assert not np.array_equal(found[:, 2:], other[:, 2:])


def _viewed(x: torch.Tensor) -> torch.Tensor:
    """PyTorch's attention gives what can be viewed so; its parts do not."""
    heads = x.view(1, 6, 2, 4).transpose(1, 2)
    return F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).view(1, 6, 8)


def _biased(x: torch.Tensor) -> torch.Tensor:
    """A product of several axes, which PyTorch takes apart with views."""
    places = torch.linspace(-1, 1, 24).reshape(2, 3, 4)
    grid = x.view(1, 2, 3, 2, 4).permute(0, 3, 1, 2, 4)
    return torch.einsum("byhwc,hkc->byhwk", grid, places).sum(1)


@pytest.mark.parametrize("function", [_viewed, _biased])
def test_views_of_what_is_in_another_order(function: Function) -> None:
    """Eight roundings at most, each of half a step of a range at most twice the result's."""
    torch.manual_seed(0)
    calls = [torch.randn(1, 6, 8) for _ in range(4)]
    artifact = compile(function, calls[0], U55, calibration=calls)
    expected = function(calls[0]).numpy()
    span = np.ptp(expected)
    assert np.abs(artifact.run(calls[0].numpy()) - expected).max() <= 8 * span / 255
