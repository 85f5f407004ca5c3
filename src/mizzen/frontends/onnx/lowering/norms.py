"""Normalisations: by constants for each channel, or by mean and spread of the numbers themselves.

The first are a factor and an addend in 32 bits, rounded once. The others are those of
`frontends.quantized.normalization`, on 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from mizzen.frontends.arrangement.movement import permuted, reshape
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.normalization import (
    Normalization,
    layer_norm,
    need_few_terms,
    rms_norm,
)
from mizzen.frontends.quantized.scales import centered, requantize, rescale, widened
from mizzen.frontends.quantized.terms import Pending, Real, Target
from mizzen.graph import DType, Value, integer_range

PRODUCT_BITS = 30
"""Of a number times its factor, with the addend."""


def batch_normalization(call: OnnxCall) -> Pending:
    """Multiply by a constant for each channel of [N,C,...], and add one."""
    call.need(not call.whole("training_mode", 0), "it is in training mode", "export for inference")
    _need_one_result(call)
    x = call.real(0)
    factor, addend, middle, spread = (
        call.constant(index).real.astype(np.float64) for index in range(1, 5)
    )
    epsilon = call.number("epsilon", 1e-5)
    factors = factor / np.sqrt(spread + epsilon)
    addends = addend - middle * factors
    finite = np.all(np.isfinite(factors) & np.isfinite(addends))
    call.need(bool(finite), "its factors are not finite")
    return Pending(lambda target: _scaled(call, x, factors, addends, target), call.shape)


def _scaled(call: OnnxCall, x: Real, factors: Array, addends: Array, target: Target) -> Value:
    """Multiply and add by channel, in 32 bits; numbers of 16 bits by RESCALE, which has more."""
    low, high = integer_range(x.value.dtype)
    furthest = max(high - x.zero_point, x.zero_point - low) * x.scale
    most = float(np.max(np.abs(factors) * furthest + np.abs(addends), initial=0.0)) or 1.0
    unit = most * 2.0**-PRODUCT_BITS
    b, rank = call.b, x.value.type.rank
    by_channel = [-1 if axis == 1 else 1 for axis in range(rank)]
    added = b.constant(np.rint(addends / unit).reshape(by_channel), DType.INT32)
    if x.value.dtype is DType.INT8:
        weights = b.constant(np.rint(factors * x.scale / unit).reshape(by_channel), DType.INT32)
        product = b("MUL", centered(b, x), weights, b.constant([0], DType.INT8))
    else:
        product = _of_16_bits(call, x, factors * x.scale / unit)
    return requantize(b, b("ADD", product, added), unit, target)


def _of_16_bits(call: OnnxCall, x: Real, factors: Array) -> Value:
    """Multiply by channel, with 31 bits of factor; signs by a product."""
    b, rank = call.b, x.value.type.rank
    order = [0, *range(2, rank), 1]
    signs = np.sign(factors)
    sizes = np.where(signs == 0, 1.0, np.abs(factors)).clip(2.0**-20)
    wide = rescale(b, permuted(b, x.value, order), sizes, DType.INT32)
    if np.any(signs < 1):
        sign = b.constant(signs.reshape((*(1,) * (rank - 1), -1)), DType.INT32)
        wide = b("MUL", wide, sign, b.constant([0], DType.INT8))
    return permuted(b, wide, [order.index(axis) for axis in range(rank)])


def layer_normalization(call: OnnxCall) -> Pending:
    """Return distances from the mean over their root mean square, along the last dimensions."""
    return _along(call, _last(call), is_centred=True)


def rms_normalization(call: OnnxCall) -> Pending:
    """Return numbers over their root mean square, along the last dimensions."""
    return _along(call, _last(call), is_centred=False)


def _last(call: OnnxCall) -> list[int]:
    return list(range(call.axis(-1), len(call.shape)))


def _along(call: OnnxCall, axes: Sequence[int], *, is_centred: bool) -> Pending:
    _need_one_result(call)
    rank = len(call.shape)
    weight, bias = (_constant(call, index, rank) for index in (1, 2))
    how = Normalization(axes, call.number("epsilon", 1e-5), weight, bias)
    return _normalized(call, how, call.shape, is_centred=is_centred)


def _constant(call: OnnxCall, index: int, rank: int) -> Array | None:
    """Return a constant operand, float64, in a rank; None where it is left out."""
    if not call.given(index):
        return None
    real = call.constant(index).real.astype(np.float64)
    return real.reshape((*(1,) * (rank - real.ndim), *real.shape))


def _need_one_result(call: OnnxCall) -> None:
    call.need(
        not any(call.is_used(index) for index in range(1, len(call.node.outputs))),
        "it gives the mean or the spread too",
        "export for inference, where only the first result is used",
    )


def _normalized(
    call: OnnxCall, how: Normalization, shape: Sequence[int], *, is_centred: bool
) -> Pending:
    """Normalise the input in a shape."""
    x, b = call.real(0), call.b
    need_few_terms(shape, how.axes)
    compute = layer_norm if is_centred else rms_norm

    def emit(target: Target) -> Value:
        wide = widened(b, x) if x.value.dtype is DType.INT8 else x
        lifted = Real(reshape(b, wide.value, shape))
        return reshape(b, compute(b, lifted, how, target), call.shape)

    return Pending(emit, call.shape)


def instance_normalization(call: OnnxCall) -> Pending:
    """Normalise each plane of [N,C,...]."""
    batch, channels, *space = call.shape
    weight, bias = (_by_channel(call, index, (1, channels, 1)) for index in (1, 2))
    how = Normalization([2], call.number("epsilon", 1e-5), weight, bias)
    return _normalized(call, how, (batch, channels, prod(space)), is_centred=True)


def group_normalization(call: OnnxCall) -> Pending:
    """Normalise groups of channels of [N,C,...]; factors are those of channels, or of groups."""
    batch, channels, *space = call.shape
    groups = call.whole("num_groups", 1)
    size = channels // groups
    count = call.constant(1).real.size
    own = (1, groups, size, 1) if count == channels else (1, groups, 1, 1)
    weight, bias = (_by_channel(call, index, own) for index in (1, 2))
    how = Normalization([2, 3], call.number("epsilon", 1e-5), weight, bias)
    return _normalized(call, how, (batch, groups, size, prod(space)), is_centred=True)


def _by_channel(call: OnnxCall, index: int, shape: Sequence[int]) -> Array:
    return call.constant(index).real.astype(np.float64).reshape(shape)


def mean_variance_normalization(call: OnnxCall) -> Pending:
    """Return distances from the mean over their root mean square, along some dimensions."""
    rank = len(call.shape)
    axes = sorted({axis % rank for axis in call.wholes("axes", (0, 2, 3))})
    # The root has 1e-9 added, which no integer shows.
    return _normalized(call, Normalization(axes, 0.0), call.shape, is_centred=True)
