"""Arithmetic without an integer form of its own, as arithmetic that has one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from mizzen.quantize.decompose.rewriting import Rewriter, aten, shape_of
from mizzen.quantize.nodes import row_name


def number(value: object) -> float | None:
    """Return a Python number, None for anything else."""
    return float(value) if isinstance(value, (int, float)) else None


def argument(node: Node, position: int, name: str, default: Any = None) -> Any:
    """Return an argument of a node by position or name."""
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(name, default)


def scaled(rewriter: Rewriter, value: Node, factor: float) -> Node:
    """Return `value` times a number; nothing where that is 1."""
    return value if factor == 1 else rewriter.call(aten.mul.Tensor, value, factor)


def div(rewriter: Rewriter, node: Node) -> Node | None:
    """Divide by multiplying: an NPU has a table of reciprocals, and no division."""
    dividend, divisor = node.args[:2]
    if (factor := number(divisor)) is not None:
        return rewriter.call(aten.mul.Tensor, dividend, 1 / factor)
    constant = rewriter.value(divisor)
    if constant is not None:
        return multiply_constant(rewriter, dividend, 1 / constant)
    reciprocal = rewriter.call(aten.reciprocal.default, divisor)
    if number(dividend) == 1:
        return reciprocal
    return rewriter.call(aten.mul.Tensor, dividend, reciprocal)


def multiply_constant(rewriter: Rewriter, value: Any, constant: torch.Tensor) -> Node:
    """Multiply by a constant tensor; one that is the same everywhere becomes a number."""
    if constant.dim() == 0:
        return rewriter.call(aten.mul.Tensor, value, constant.item())
    return rewriter.call(aten.mul.Tensor, value, rewriter.constant(constant, "factor"))


def unscale(rewriter: Rewriter, node: Node) -> Node | None:
    """Take ``alpha`` out of an addition or subtraction."""
    alpha = number(argument(node, 2, "alpha", 1))
    if alpha is None or alpha == 1 or "alpha" not in node.kwargs or not _tensor(node):
        return with_numbers(rewriter, node)
    other = node.args[1]
    assert isinstance(other, Node)
    return rewriter.call(node.target, node.args[0], scaled(rewriter, other, alpha))


def _tensor(node: Node) -> bool:
    return len(node.args) > 1 and isinstance(node.args[1], Node)


def with_numbers(rewriter: Rewriter, node: Node) -> Node | None:
    """Replace operands that are constants of one element, without a shape, by numbers."""
    if len(node.args) < 2:
        return None
    one, other = node.args[:2]
    value = rewriter.value(other)
    if value is not None and value.dim() == 0 and isinstance(one, Node):
        return rewriter.call(node.target, one, value.item())
    value = rewriter.value(one)
    if value is not None and value.dim() == 0 and row_name(node) in ("add", "mul"):
        return rewriter.call(node.target, other, value.item())
    return None


def addmm(rewriter: Rewriter, node: Node) -> Node | None:
    """``addmm`` with constant weights is a linear layer; otherwise a product and a sum."""
    bias, one, other = node.args[:3]
    beta, alpha = node.kwargs.get("beta", 1), node.kwargs.get("alpha", 1)
    if beta != 1 or alpha != 1:
        return None
    weight, offset = rewriter.value(other), rewriter.value(bias)
    if weight is not None and offset is not None and offset.dim() == 1:
        return rewriter.call(
            aten.linear.default,
            one,
            rewriter.constant(weight.t(), "weight"),
            rewriter.constant(offset, "bias"),
        )
    return rewriter.call(aten.add.Tensor, rewriter.call(aten.mm.default, one, other), bias)


def matmul(rewriter: Rewriter, node: Node) -> Node | None:
    """Products with a constant matrix are linear layers; others are products in batches."""
    one, other = node.args[:2]
    assert isinstance(one, Node)
    assert isinstance(other, Node)
    weight = rewriter.value(other)
    if weight is not None and weight.dim() == 2 and rewriter.value(one) is None:
        return rewriter.call(aten.linear.default, one, rewriter.constant(weight.t(), "weight"))
    left, right = shape_of(one), shape_of(other)
    if len(left) < 2 or len(right) < 2:
        return rewriter.record(aten.matmul.default, one, other)
    if row_name(node) == "bmm":
        return None
    if len(left) == len(right) == 3 and left[0] == right[0]:
        return rewriter.call(aten.bmm.default, one, other)
    return _in_batches(rewriter, one, other)


def _in_batches(rewriter: Rewriter, one: Node, other: Node) -> Node:
    left, right = shape_of(one), shape_of(other)
    batch = tuple(np.broadcast_shapes(left[:-2], right[:-2]))

    def flat(value: Node) -> Node:
        shape = shape_of(value)
        if shape[:-2] != batch:
            value = rewriter.call(aten.expand.default, value, [*batch, *shape[-2:]])
        return rewriter.call(aten.reshape.default, value, [math.prod(batch), *shape[-2:]])

    product = rewriter.call(aten.bmm.default, flat(one), flat(other))
    return rewriter.call(aten.reshape.default, product, [*batch, left[-2], right[-1]])


def glu(rewriter: Rewriter, node: Node) -> Node | None:
    """``glu`` is one half times the sigmoid of the other."""
    value, axis = node.args[0], int(argument(node, 1, "dim", -1))
    assert isinstance(value, Node)
    half = shape_of(value)[axis] // 2
    one = rewriter.call(aten.slice.Tensor, value, axis, 0, half)
    other = rewriter.call(aten.slice.Tensor, value, axis, half, 2 * half)
    return rewriter.call(aten.mul.Tensor, one, rewriter.call(aten.sigmoid.default, other))


def prelu(rewriter: Rewriter, node: Node) -> Node | None:
    """``prelu`` is the greater of ``x`` and ``slope * x`` where no slope is above 1."""
    value, slope = node.args[:2]
    slopes = rewriter.value(slope)
    if slopes is None or bool((slopes > 1).any()) or rewriter.is_qat:
        return None
    if slopes.numel() == 1:
        return rewriter.call(aten.leaky_relu.default, value, slopes.item())
    assert isinstance(value, Node)
    rank = len(shape_of(value))
    factor = slopes.reshape(-1, *(1,) * (rank - 2)) if rank > 1 else slopes
    scaled_value = rewriter.call(aten.mul.Tensor, value, rewriter.constant(factor, "slope"))
    return rewriter.call(aten.maximum.default, value, scaled_value)


def lerp(rewriter: Rewriter, node: Node) -> Node | None:
    """``lerp`` is ``start + weight * (end - start)``."""
    start, end, weight = node.args[:3]
    change = rewriter.call(aten.sub.Tensor, end, start)
    return rewriter.call(aten.add.Tensor, start, rewriter.call(aten.mul.Tensor, change, weight))


def addcmul(rewriter: Rewriter, node: Node) -> Node | None:
    """``addcmul`` is a sum and a product."""
    value, one, other = node.args[:3]
    factor = number(node.kwargs.get("value", 1))
    product = rewriter.call(aten.mul.Tensor, one, other)
    return rewriter.call(aten.add.Tensor, value, scaled(rewriter, product, factor or 1.0))


def cosine_similarity(rewriter: Rewriter, node: Node) -> Node | None:
    """Return the sum of products over the roots of the sums of squares, along an axis."""
    one, other = node.args[:2]
    axis, epsilon = argument(node, 2, "dim", 1), argument(node, 3, "eps", 1e-8)

    def total(left: Any, right: Any) -> Node:
        product = rewriter.call(aten.mul.Tensor, left, right)
        return rewriter.call(aten.sum.dim_IntList, product, [axis])

    def inverse_norm(value: Any) -> Node:
        square = rewriter.call(aten.clamp_min.default, total(value, value), epsilon**2)
        return rewriter.call(aten.rsqrt.default, square)

    left = rewriter.call(aten.mul.Tensor, total(one, other), inverse_norm(one))
    return rewriter.call(aten.mul.Tensor, left, inverse_norm(other))


def compound(rewriter: Rewriter, node: Node) -> Node | None:
    """Take an operator apart as PyTorch itself does; one that it does not take apart stays."""
    made = rewriter.record(node.target, *node.args) if not node.kwargs else None
    return None if made is None or made.target is node.target else made


def rsub(rewriter: Rewriter, node: Node) -> Node | None:
    """Subtract the other way round."""
    return rewriter.call(aten.sub.Tensor, node.args[1], node.args[0], **node.kwargs)


def clamp(rewriter: Rewriter, node: Node) -> Node | None:
    """Clamp to tensors: the greater of a value and the low, the lesser of that and the high."""
    low, high = argument(node, 1, "min"), argument(node, 2, "max")
    if "clamp_max" in str(node.target):
        low, high = None, argument(node, 1, "max")
    value: Any = node.args[0]
    if low is not None:
        value = rewriter.call(aten.maximum.default, value, low)
    return value if high is None else rewriter.call(aten.minimum.default, value, high)


def vectors(rewriter: Rewriter, node: Node) -> Node | None:
    """Multiply a matrix, or a row, by a column: `mv` and `dot` are products of matrices."""
    one, other = node.args[:2]
    assert isinstance(one, Node)
    column = rewriter.call(aten.unsqueeze.default, other, 1)
    matrix = one if row_name(node) == "mv" else rewriter.call(aten.unsqueeze.default, one, 0)
    product = rewriter.call(aten.mm.default, matrix, column)
    return rewriter.call(aten.reshape.default, product, list(shape_of(node)))


def baddbmm(rewriter: Rewriter, node: Node) -> Node | None:
    """Add a tensor to products in batches."""
    value, one, other = node.args[:3]
    beta, alpha = (number(node.kwargs.get(name, 1)) or 0.0 for name in ("beta", "alpha"))
    assert isinstance(value, Node)
    product = scaled(rewriter, rewriter.call(aten.bmm.default, one, other), alpha)
    return rewriter.call(aten.add.Tensor, product, scaled(rewriter, value, beta))
