"""Functions of one number: tables, filled by PyTorch's own function.

An 8-bit table has an entry for each of the 256 integers, so it gives what PyTorch gives, exactly.
A 16-bit table has 513 entries between which TOSA interpolates.

Ref: TOSA 1.0, 2.4.14 TABLE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_terms import (
    Pending,
    Real,
    Target,
    clamped,
    requantize,
    typed,
)
from mizzen.frontends.torch.operators import functional_name
from mizzen.frontends.torch.tensors import Array, operator_of, tensor_of, without_gradient
from mizzen.graph import DType, Quantization, Value, integer_range
from mizzen.ops import Builder

STEP_16 = 128
"""Distance of the 16-bit integers that a 16-bit table has entries for."""

FRACTION_BITS = 7
"""Bits of fraction in what a 16-bit table gives."""

Entries = Callable[[Array], Array]
"""Returns the integers that a table has for integers of its input."""


def unary(call: IntCall) -> Pending:
    """Return a function of each number."""
    names = ("self", "input", "exponent")
    name = next(name for name in names if hasattr(call.arguments.get(name), "meta"))
    x, argument = call.real(name), call[name]

    def emit(target: Target) -> Value:
        match x.value.dtype, target.dtype:
            case DType.INT8, DType.INT8:
                wide = target
            case DType.INT16, _:
                wide = _wide(target)
            case given, wanted:
                raise RefusedError(f"no table takes {given.value} and gives {wanted.value}")

        def entries(integers: Array) -> Array:
            return quantized(evaluate(call.node, argument, reals_of(x, integers)), wide)

        return table(call.b, x, entries, target)

    return Pending(emit, call.shape)


def table(b: Builder, x: Real, entries: Entries, target: Target) -> Value:
    """Add a table; one of 16 bits has entries of the target's scale, or of 16 bits of its range."""
    if x.value.dtype is DType.INT8:
        integers = b.constant(entries(np.arange(-128, 128)), DType.INT8)
        return typed(b("TABLE", x.value, integers), target)
    points = np.arange(-32768, 32768 + 1, STEP_16)
    sums = b("TABLE", x.value, b.constant(entries(points), DType.INT16))
    unclamped = Target(target.dtype, target.quantization, *integer_range(target.dtype))
    value = requantize(b, sums, _wide(target).scale / (1 << FRACTION_BITS), unclamped)
    return clamped(b, value, target)


def _wide(target: Target) -> Target:
    """The 16-bit integers that a table's entries are."""
    scale = target.scale if target.dtype is DType.INT16 else target.scale / 128
    return Target(DType.INT16, Quantization((scale,), (0,)), -32768, 32767)


def reals_of(x: Real, integers: Array) -> Array:
    """Return the real numbers that integers stand for, in float32 as PyTorch computes them."""
    return (integers - x.zero_point).astype(np.float32) * np.float32(x.scale)


def evaluate(node: Any, argument: Any, reals: Array) -> Array:
    """Let PyTorch compute a node's function of each number, float32."""
    tensor = tensor_of(reals)
    arguments = [tensor if item is argument else item for item in node.args]
    named = {name: tensor if item is argument else item for name, item in node.kwargs.items()}
    name = str(node.target)
    kept = functional_name(name) == name
    function = node.target if kept else operator_of(functional_name(name))
    return without_gradient(function, *arguments, **named).numpy()


def quantized(reals: Array, target: Target) -> Array:
    """Quantise as PyTorch does: times the inverse scale in float32, half to even, clamped.

    What is no number has no place on the NPU: it becomes the zero point.
    """
    scaled = np.rint(reals.astype(np.float32) * np.float32(1.0 / target.scale))
    shifted = np.nan_to_num(scaled, nan=0.0, posinf=1e9, neginf=-1e9) + target.zero_point
    low, high = target.bounds
    return np.clip(shifted, low, high).astype(np.int64)
