"""Functions of one number: tables, filled by PyTorch's own function.

An 8-bit table has an entry for each of the 256 integers, so it gives what PyTorch gives, exactly.
A 16-bit table has 513 entries between which TOSA interpolates.

Ref: TOSA 1.0, 2.4.14 TABLE.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.context import Call, lowers
from mizzen.frontends.torch.int_lowering.rescale import clamp, requantize, typed
from mizzen.frontends.torch.tensors import tensor_of, without_gradient
from mizzen.frontends.torch.values import Array, Pending, Real, Target
from mizzen.graph import DType, Quantization, Value

STEP_16 = 128
"""Distance of the 16-bit integers that a 16-bit table has entries for."""

FRACTION_BITS = 7
"""Bits of fraction in what a 16-bit table gives."""


@lowers(
    "aten.sigmoid.default",
    "aten.sigmoid_.default",
    "aten.tanh.default",
    "aten.tanh_.default",
    "aten.silu.default",
    "aten.silu_.default",
    "aten.hardswish.default",
    "aten.hardswish_.default",
    "aten.hardsigmoid.default",
    "aten.hardsigmoid_.default",
    "aten.gelu.default",
    "aten.mish.default",
    "aten.elu.default",
    "aten.elu_.default",
    "aten.celu.default",
    "aten.selu.default",
    "aten.leaky_relu.default",
    "aten.leaky_relu_.default",
    "aten.log_sigmoid.default",
    "aten.softplus.default",
    "aten.exp.default",
    "aten.expm1.default",
    "aten.log.default",
    "aten.log2.default",
    "aten.log10.default",
    "aten.log1p.default",
    "aten.logit.default",
    "aten.sqrt.default",
    "aten.rsqrt.default",
    "aten.reciprocal.default",
    "aten.square.default",
    "aten.pow.Tensor_Scalar",
    "aten.pow.Scalar",
    "aten.abs.default",
    "aten.neg.default",
    "aten.sign.default",
    "aten.floor.default",
    "aten.ceil.default",
    "aten.round.default",
    "aten.trunc.default",
    "aten.erf.default",
    "aten.erfc.default",
    "aten.erfinv.default",
    "aten.sin.default",
    "aten.cos.default",
    "aten.tan.default",
    "aten.asin.default",
    "aten.acos.default",
    "aten.atan.default",
    "aten.sinh.default",
    "aten.cosh.default",
    "aten.asinh.default",
    "aten.acosh.default",
    "aten.atanh.default",
    "aten.softshrink.default",
    "aten.hardshrink.default",
    "aten.threshold.default",
    "aten.rsub.Scalar",
    "aten.add.Scalar",
    "aten.sub.Scalar",
    "aten.mul.Scalar",
    "aten.div.Scalar",
    "aten.remainder.Scalar",
)
def function(call: Call) -> Pending:
    """A function of each number."""
    name = next(
        name for name in ("self", "input", "exponent") if hasattr(call.arguments.get(name), "meta")
    )
    x = call.real(name)
    return Pending(lambda target: table(call, x, call[name], target), call.shape)


def table(call: Call, x: Real, argument: Any, target: Target) -> Value:
    """Add the table of a node's function."""
    match x.value.dtype, target.dtype:
        case DType.INT8, DType.INT8:
            return _table_8(call, x, argument, target)
        case DType.INT16, _:
            return _table_16(call, x, argument, target)
        case given, wanted:
            raise RefusedError(f"no table takes {given.value} and gives {wanted.value}")


def _table_8(call: Call, x: Real, argument: Any, target: Target) -> Value:
    b = call.b
    reals = reals_of(x, np.arange(-128, 128))
    entries = quantized(evaluate(call.node, argument, reals), target)
    return typed(b("TABLE", x.value, b.constant(entries, DType.INT8)), target)


def _table_16(call: Call, x: Real, argument: Any, target: Target) -> Value:
    b = call.b
    points = np.arange(-32768, 32768 + 1, STEP_16)
    entries = quantized(evaluate(call.node, argument, reals_of(x, points)), _wide(target))
    sums = b("TABLE", x.value, b.constant(entries, DType.INT16))
    fraction = target.scale if target.dtype is DType.INT16 else _wide(target).scale
    value = requantize(b, sums, fraction / (1 << FRACTION_BITS), _unclamped(target))
    return clamp(b, value, target)


def _wide(target: Target) -> Target:
    """The 16-bit integers that a table's entries are."""
    scale = target.scale if target.dtype is DType.INT16 else target.scale / 128
    return Target(DType.INT16, Quantization((scale,), (0,)), -32768, 32767)


def _unclamped(target: Target) -> Target:
    return Target(target.dtype, target.quantization, *RANGES[target.dtype])


RANGES = {DType.INT8: (-128, 127), DType.INT16: (-32768, 32767)}


def reals_of(x: Real, integers: Array) -> Array:
    """Return the real numbers that integers stand for, in float32 as PyTorch computes them."""
    return (integers - x.zero_point).astype(np.float32) * np.float32(x.scale)


def evaluate(node: Any, argument: Any, reals: Array) -> Array:
    """Let PyTorch compute a node's function of each number, float32."""
    tensor = tensor_of(reals)
    arguments = [tensor if item is argument else item for item in node.args]
    named = {name: tensor if item is argument else item for name, item in node.kwargs.items()}
    target = OUT_OF_PLACE.get(str(node.target))
    function = node.target if target is None else _operator(target)
    return without_gradient(function, *arguments, **named).numpy()


OUT_OF_PLACE = {
    f"aten.{name}_.default": f"aten.{name}.default"
    for name in ("sigmoid", "tanh", "silu", "hardswish", "hardsigmoid", "elu", "leaky_relu")
}


def _operator(name: str) -> Any:
    import torch

    _, operator, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, operator), overload)


def quantized(reals: Array, target: Target) -> Array:
    """Quantise as PyTorch does: times the inverse scale in float32, half to even, clamped.

    What is no number has no place on the NPU: it becomes the zero point.
    """
    scaled = np.rint(reals.astype(np.float32) * np.float32(1.0 / target.scale))
    shifted = np.nan_to_num(scaled, nan=0.0, posinf=1e9, neginf=-1e9) + target.zero_point
    low, high = target.bounds
    return np.clip(shifted, low, high).astype(np.int64)
