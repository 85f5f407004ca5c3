"""Softmax, its kin, and normalization, next to what they are in real numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mizzen.frontends.quantized import normalization, softmax
from mizzen.frontends.quantized.normalization import Normalization, layer_norm, rms_norm
from mizzen.frontends.quantized.scales import widened
from mizzen.frontends.quantized.terms import Array, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Quantization, Value

from .graphs import Bench, target_of

UNIT = Quantization((1 / 256,), (-128,))
AXES = {"last": (2,), "first": (0,), "two": (1, 2)}


def exponentials(x: Array, axes: tuple[int, ...]) -> Array:
    return np.exp(x - x.max(axes, keepdims=True))


MODELS: dict[str, tuple[Callable[..., Value], Callable[[Array, Any], Array]]] = {
    "softmax": (
        softmax.softmax,
        lambda x, axes: exponentials(x, axes) / exponentials(x, axes).sum(axes, keepdims=True),
    ),
    "log_softmax": (
        softmax.log_softmax,
        lambda x, axes: (
            x - x.max(axes, keepdims=True)
            - np.log(exponentials(x, axes).sum(axes, keepdims=True))
        ),
    ),
    "logsumexp": (
        softmax.logsumexp,
        lambda x, axes: x.max(axes) + np.log(exponentials(x, axes).sum(axes)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", MODELS)
def test_within_a_step(name: str, axes: str, dtype: DType) -> None:
    """Of 8 bits, numbers are widened first; of their distances only the scale matters."""
    function, model = MODELS[name]
    bench = Bench(1)
    x = bench.real((5, 7, 30), dtype, 0.05 if dtype is DType.INT8 else 0.0003)
    wanted = model(bench.numbers(x), AXES[axes])
    target = Target(DType.INT8, UNIT, -128, 127) if name == "softmax" else target_of(wanted)

    def emit(to: Target) -> Value:
        return function(bench.b, widened(bench.b, x), AXES[axes], to, wanted.shape)

    most, count = bench.steps_off(emit, wanted, target)
    assert most <= 1
    assert count <= max(1, wanted.size // 100)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 25.0, 1000.0])
def test_any_scale_is_taken(scale: float) -> None:
    bench = Bench(2)
    x = bench.real((40, 10), scale=scale)
    _, model = MODELS["softmax"]
    wanted = model(bench.numbers(x), (1,))

    def emit(to: Target) -> Value:
        return softmax.softmax(bench.b, widened(bench.b, x), (1,), to, wanted.shape)

    most, _ = bench.steps_off(emit, wanted, Target(DType.INT8, UNIT, -128, 127))
    assert most <= 1


def test_more_terms_than_32_bits_hold_are_refused() -> None:
    softmax.need_few_terms((4, 1 << 16), (1,))
    with pytest.raises(RefusedError, match="its sum has 65537 terms"):
        softmax.need_few_terms((4, (1 << 16) + 1), (1,))
    with pytest.raises(RefusedError, match="it sums 262144 numbers"):
        normalization.need_few_terms((4, 1 << 16), (0, 1))


def normalized(x: Array, how: Normalization, centre: bool) -> Array:
    axes = tuple(how.axes)
    x = x - x.mean(axes, keepdims=True) if centre else x
    x = x / np.sqrt((x**2).mean(axes, keepdims=True) + how.epsilon)
    x = x if how.weight is None else x * how.weight
    return x if how.bias is None else x + how.bias


@pytest.mark.parametrize("is_affine", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 1e-5, 0.5])
@pytest.mark.parametrize("function", [layer_norm, rms_norm])
def test_norms_are_within_a_step(
    function: Callable[[Any, Real, Normalization, Target], Value], epsilon: float, is_affine: bool
) -> None:
    bench = Bench(3)
    weight = bench.random.normal(size=(1, 1, 24)) if is_affine else None
    bias = bench.random.normal(size=(1, 1, 24)) if is_affine else None
    how = Normalization((2,), epsilon, weight, bias)
    x = bench.real((4, 6, 24), DType.INT16, 0.0002)
    wanted = normalized(bench.numbers(x), how, function is layer_norm)
    most, _ = bench.steps_off(
        lambda to: function(bench.b, x, how, to), wanted, target_of(wanted, DType.INT16)
    )
    assert most <= 1
