"""Norms: over batches as learnt, over layers, groups and instances as measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.frontends.torch.call import Arguments
from mizzen.frontends.torch.fp_lowering.fp_arithmetic import add, filled, mean, mul, square, sub
from mizzen.frontends.torch.fp_lowering.fp_context import FpCall, Result
from mizzen.frontends.torch.program import Array
from mizzen.frontends.torch.shapes import reshape
from mizzen.graph import Value
from mizzen.ops import Builder

BATCH_NORM = frozenset(
    {"aten.batch_norm.default", "aten._native_batch_norm_legit_no_training.default"}
)
"""Operators that a convolution in front of them may take in."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """What a batch norm does to each channel, float64: ``y = x * factor + offset``."""

    factor: Array
    offset: Array


def scaling_of(node: Any, constant: Callable[[Any], Array | None]) -> Scaling | None:
    """Return what a batch norm does, if all it needs is constant and it is not in training."""
    call = Arguments(node)
    if call.arguments.get("training"):
        return None
    running = [constant(call[name]) for name in ("running_mean", "running_var")]
    affine = [constant(call[name]) for name in ("weight", "bias")]
    average, variance = running
    if average is None or variance is None:
        return None
    if any(call[name] is not None and found is None
           for name, found in zip(("weight", "bias"), affine, strict=True)):  # fmt: skip
        return None
    factor = 1.0 / np.sqrt(variance.astype(np.float64) + float(call["eps"]))
    if affine[0] is not None:
        factor = factor * affine[0]
    offset = -average.astype(np.float64) * factor
    return Scaling(factor, offset if affine[1] is None else offset + affine[1])


def batch_norm(call: FpCall) -> Result:
    """Scale and shift channels as learnt; nothing is left to do behind a convolution."""
    b, x = call.b, call.value("input")
    if call.node in call.context.absorbed:
        return (x,) if call.gives_several else x
    call.need(
        not call.arguments.get("training") and call.given("running_mean"),
        "it measures each batch",
        "call `model.eval()` before export",
    )
    scaling = scaling_of(call.node, lambda node: _fixed(call, node))
    call.need(scaling is not None, "its statistics are no constants of the model")
    assert scaling is not None
    shape = [1, -1, *(1,) * (x.type.rank - 2)]
    value = mul(b, x, filled(b, scaling.factor.reshape(shape), x.dtype))
    value = add(b, value, filled(b, scaling.offset.reshape(shape), x.dtype))
    return (value,) if call.gives_several else value


def _fixed(call: FpCall, node: Any) -> Array | None:
    name = next((name for name, given in call.arguments.items() if given is node), None)
    return call.fixed(name) if name and node is not None else None


def layer_norm(call: FpCall) -> Result:
    """Bring the last dimensions to mean 0 and variance 1, then scale and shift."""
    x = call.value("input")
    rank = x.type.rank
    axes = list(range(rank - len(call["normalized_shape"]), rank))
    value = affine(call, normalized(call.b, x, axes, float(call["eps"])))
    return (value,) if call.gives_several else value


def group_norm(call: FpCall) -> Result:
    """Bring groups of channels to mean 0 and variance 1, then scale and shift channels."""
    x = call.value("input")
    value = _grouped(call, x, int(call["group" if call.gives_several else "num_groups"]))
    return (value,) if call.gives_several else value


def instance_norm(call: FpCall) -> Value:
    """Bring each channel of each image to mean 0 and variance 1, then scale and shift."""
    call.need(bool(call["use_input_stats"]), "it has statistics of its own")
    x = call.value("input")
    return _grouped(call, x, x.shape[1])


def _grouped(call: FpCall, x: Value, groups: int) -> Value:
    b = call.b
    rows = reshape(b, x, (x.shape[0], groups, x.type.elements // (x.shape[0] * groups)))
    value = reshape(b, normalized(b, rows, [2], float(call["eps"])), x.shape)
    return affine(call, value, [1, x.shape[1], *(1,) * (x.type.rank - 2)])


def rms_norm(call: FpCall) -> Value:
    """Bring the last dimensions to mean square 1, then scale."""
    b, x = call.b, call.value("input")
    rank = x.type.rank
    axes = list(range(rank - len(call["normalized_shape"]), rank))
    eps = float(np.finfo(np.float32).eps) if call["eps"] is None else float(call["eps"])
    power = mean(b, square(b, x), axes)
    return affine(call, mul(b, x, b("RSQRT", add(b, power, eps))))


def normalized(b: Builder, x: Value, axes: list[int], eps: float) -> Value:
    """Bring dimensions to mean 0 and variance 1."""
    centred = sub(b, x, mean(b, x, axes))
    variance = mean(b, square(b, centred), axes)
    return mul(b, centred, b("RSQRT", add(b, variance, eps)))


def affine(call: FpCall, x: Value, shape: Sequence[int] | None = None) -> Value:
    """Multiply by `weight` and add `bias` where the operator has them."""
    for name, combine in (("weight", mul), ("bias", add)):
        if call.given(name):
            factor = call.value(name)
            x = combine(call.b, x, reshape(call.b, factor, shape) if shape else factor)
    return x
