"""Compound operators as arithmetic that has an integer form: each step has a range of its own.

First arithmetic without an integer form, such as division; then normalizations.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from mizzen.diagnostics import fail
from mizzen.quantize.decompose.rewriting import (
    Rewriter,
    aten,
    shape_of,
    writes_first_operand,
)
from mizzen.quantize.nodes import origin_of, row_name


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
        if not factor:
            raise fail(
                "E871",
                "calibration must see finite values only, and this divides by 0",
                origin=origin_of(node),
                help="divide by another number",
            )
        return rewriter.call(aten.mul.Tensor, dividend, 1 / factor)
    constant = rewriter.value(divisor)
    if constant is not None:
        return multiply_constant(rewriter, dividend, 1 / constant)
    if isinstance(divisor, Node) and isinstance(divisor.meta["val"], torch.SymInt):
        return None  # an extent, which a program for one shape has as a number
    reciprocal = rewriter.call(aten.reciprocal.default, divisor)
    if number(dividend) == 1:
        return reciprocal
    return rewriter.call(aten.mul.Tensor, dividend, reciprocal)


def div_mode(rewriter: Rewriter, node: Node) -> Node | None:
    """A quotient that nothing cuts is any other."""
    if argument(node, 2, "rounding_mode") is not None:
        return None
    return rewriter.call(aten.div.Tensor, *node.args[:2])


def multiply_constant(rewriter: Rewriter, value: Any, constant: torch.Tensor) -> Node:
    """Multiply by a constant tensor; one that is the same everywhere becomes a number."""
    if constant.dim() == 0:
        return rewriter.call(aten.mul.Tensor, value, constant.item())
    return rewriter.call(aten.mul.Tensor, value, rewriter.constant(constant, "factor"))


def copy(rewriter: Rewriter, node: Node) -> Node | None:
    """Return the value that is written over a whole tensor, in that tensor's shape and type."""
    if writes_first_operand(node):
        return None
    written, source = node.args[:2]
    assert isinstance(written, Node)
    assert isinstance(source, Node)
    shape, dtype = shape_of(written), written.meta["val"].dtype
    value = rewriter.value(source)
    if value is not None:
        return rewriter.constant(value.to(dtype).expand(shape), "written")
    if source.meta["val"].dtype != dtype:
        source = rewriter.call(aten.to.dtype, source, dtype)
    if shape_of(source) == shape:
        return source
    return rewriter.call(aten.expand.default, source, list(shape))


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


def mul(rewriter: Rewriter, node: Node) -> Node | None:
    """Multiply; by truth values it is a choice between a number and 0."""
    one, other = node.args[:2]
    for value, truths in ((one, other), (other, one)):
        if _is_truth(truths) and isinstance(value, Node) and not _is_truth(value):
            return rewriter.call(aten.where.ScalarOther, truths, value, 0.0)
    return with_numbers(rewriter, node)


def _is_truth(value: object) -> bool:
    return isinstance(value, Node) and value.meta["val"].dtype == torch.bool


def addmm(rewriter: Rewriter, node: Node) -> Node | None:
    """``addmm`` with constant weights is a linear layer; otherwise a product and a sum."""
    bias, one, other = node.args[:3]
    beta, alpha = (number(node.kwargs.get(name, 1)) or 0.0 for name in ("beta", "alpha"))
    weight, offset = rewriter.value(other), rewriter.value(bias)
    if weight is not None and offset is not None and offset.dim() == 1:
        return rewriter.call(
            aten.linear.default,
            one,
            rewriter.constant(weight.t() * alpha, "weight"),
            rewriter.constant(offset * beta, "bias"),
        )
    assert isinstance(bias, Node)
    product = scaled(rewriter, rewriter.call(aten.mm.default, one, other), alpha)
    if beta == 0:
        return product
    return rewriter.call(aten.add.Tensor, product, scaled(rewriter, bias, beta))


def linear(rewriter: Rewriter, node: Node) -> Node | None:
    """``linear`` with a computed weight is a product and a sum; one with a constant stays."""
    value, weight, bias = node.args[0], node.args[1], argument(node, 2, "bias")
    assert isinstance(weight, Node)
    if weight.op == "get_attr" or rewriter.is_qat:
        return None
    turned = rewriter.call(aten.transpose.int, weight, 0, 1)
    product = rewriter.call(aten.matmul.default, value, turned)
    return product if bias is None else rewriter.call(aten.add.Tensor, product, bias)


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
    torch_: Any = torch
    batch: tuple[Any, ...] = tuple(torch_.broadcast_shapes(left[:-2], right[:-2]))

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


def addcdiv(rewriter: Rewriter, node: Node) -> Node | None:
    """``addcdiv`` is a sum and a quotient."""
    value, one, other = node.args[:3]
    factor = number(node.kwargs.get("value", 1))
    quotient = rewriter.call(aten.div.Tensor, one, other)
    return rewriter.call(aten.add.Tensor, value, scaled(rewriter, quotient, factor or 0.0))


def triangle(rewriter: Rewriter, node: Node) -> Node | None:
    """``tril`` and ``triu`` multiply by a triangle of ones."""
    value, offset = node.args[0], int(argument(node, 1, "diagonal", 0))
    assert isinstance(value, Node)
    if not value.meta["val"].is_floating_point():
        return None
    ones = torch.ones(shape_of(value)[-2:])
    kept = ones.tril(offset) if row_name(node) == "tril" else ones.triu(offset)
    return rewriter.call(aten.mul.Tensor, value, rewriter.constant(kept, "triangle"))


def numbers_of_truths(rewriter: Rewriter, node: Node) -> Node | None:
    """Truth values as numbers are a choice between 1 and 0."""
    truths = node.args[0]
    assert isinstance(truths, Node)
    if truths.meta["val"].dtype != torch.bool or node.meta["val"].dtype != torch.float32:
        return None
    return rewriter.call(aten.where.ScalarOther, truths, rewriter.constant(torch.ones(())), 0.0)


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


WHOLE_MAXIMUM = 1 << 16
"""Numbers of one row of 16 bits, whose sum 32 bits hold."""


def normalized(
    rewriter: Rewriter, node: Node, value: Node, axes: list[int], epsilon: float
) -> Node:
    """Return ``(x - mean) / sqrt(variance + epsilon)`` along the last `axes`.

    Of 16 bits it is a step of its own: the range of variances that is calibrated is not fine enough
    for rows that are much less spread than others.
    """
    extents = [shape_of(value)[axis] for axis in axes]
    if rewriter.is_wide(node) and math.prod(extents) <= WHOLE_MAXIMUM:
        return rewriter.call(aten.layer_norm.default, value, extents, None, None, epsilon)
    mean = rewriter.call(aten.mean.dim, value, axes, True)
    centered = rewriter.call(aten.sub.Tensor, value, mean)
    square = rewriter.call(aten.mul.Tensor, centered, centered)
    variance = rewriter.call(aten.mean.dim, square, axes, True)
    above_zero = rewriter.call(aten.add.Tensor, variance, epsilon)
    inverse = rewriter.call(aten.rsqrt.default, above_zero)
    return rewriter.call(aten.mul.Tensor, centered, inverse)


def layer_norm(rewriter: Rewriter, node: Node) -> Node | None:
    """Normalize along the last axes, then scale and shift."""
    value = node.args[0]
    assert isinstance(value, Node)
    axes = _last_axes(node)
    scale, offset = argument(node, 2, "weight"), argument(node, 3, "bias")
    if _stays_whole(rewriter, node, (scale, offset)):
        return None
    result = normalized(rewriter, node, value, axes, argument(node, 4, "eps", 1e-5))
    return scale_and_shift(rewriter, result, scale, offset)


def _stays_whole(rewriter: Rewriter, node: Node, parameters: tuple[Any, ...]) -> bool:
    """Whether a normalization has integers of 16 bits in one step."""
    constant = all(each is None or rewriter.value(each) is not None for each in parameters)
    count = math.prod(argument(node, 1, "normalized_shape"))
    return constant and rewriter.is_wide(node) and count <= WHOLE_MAXIMUM


def _last_axes(node: Node) -> list[int]:
    """Return the axes that a normalization is along, counted from the last."""
    return list(range(-len(argument(node, 1, "normalized_shape")), 0))


def scale_and_shift(rewriter: Rewriter, value: Node, scale: Any, offset: Any) -> Node:
    """Return ``value * scale + offset``, leaving out what is not there or changes nothing."""
    factors, offsets = rewriter.value(scale), rewriter.value(offset)
    trivial = factors is not None and bool((factors == 1).all()) and not rewriter.is_qat
    if isinstance(scale, Node) and not trivial:
        value = rewriter.call(aten.mul.Tensor, value, scale)
    trivial = offsets is not None and not bool(offsets.any()) and not rewriter.is_qat
    if isinstance(offset, Node) and not trivial:
        value = rewriter.call(aten.add.Tensor, value, offset)
    return value


def rms_norm(rewriter: Rewriter, node: Node) -> Node | None:
    """Divide by the root of the mean square along the last axes, then scale."""
    value = node.args[0]
    assert isinstance(value, Node)
    if _stays_whole(rewriter, node, (argument(node, 2, "weight"),)):
        return None
    epsilon = argument(node, 3, "eps")
    epsilon = torch.finfo(torch.float32).eps if epsilon is None else epsilon
    axes = _last_axes(node)
    square = rewriter.call(aten.mul.Tensor, value, value)
    mean = rewriter.call(aten.mean.dim, square, axes, True)
    above_zero = rewriter.call(aten.add.Tensor, mean, epsilon)
    inverse = rewriter.call(aten.rsqrt.default, above_zero)
    result = rewriter.call(aten.mul.Tensor, value, inverse)
    return scale_and_shift(rewriter, result, argument(node, 2, "weight"), None)


def group_norm(rewriter: Rewriter, node: Node) -> Node | None:
    """Normalize groups of channels, [N, groups, rest], then scale and shift each channel."""
    value, groups = node.args[:2]
    assert isinstance(value, Node)
    assert isinstance(groups, int)
    shape = shape_of(value)
    flat = [shape[0], groups, math.prod(shape[1:]) // groups]
    result = rewriter.call(aten.reshape.default, value, flat)
    result = normalized(rewriter, node, result, [-1], argument(node, 4, "eps", 1e-5))
    result = rewriter.call(aten.reshape.default, result, list(shape))
    scale, offset = argument(node, 2, "weight"), argument(node, 3, "bias")
    return _by_channel(rewriter, result, scale, offset)


def instance_norm(rewriter: Rewriter, node: Node) -> Node | None:
    """Normalize each channel of each image over its positions, then scale and shift it."""
    value, scale, offset = node.args[:3]
    assert isinstance(value, Node)
    if not argument(node, 5, "use_input_stats", True):
        return None
    axes = list(range(2, len(shape_of(value))))
    result = normalized(rewriter, node, value, axes, argument(node, 7, "eps", 1e-5))
    return _by_channel(rewriter, result, scale, offset)


def _by_channel(rewriter: Rewriter, value: Node, scale: Any, offset: Any) -> Node:
    """Scale and shift along axis 1."""
    shape = [-1, *(1,) * (len(shape_of(value)) - 2)]

    def channels(node: Any) -> Any:
        constant = rewriter.value(node)
        if constant is not None and not rewriter.is_qat:
            return rewriter.constant(constant.reshape(shape), "channels")
        return rewriter.call(aten.reshape.default, node, shape) if node is not None else None

    return scale_and_shift(rewriter, value, channels(scale), channels(offset))


def batch_norm(rewriter: Rewriter, node: Node) -> Node | None:
    """With fixed statistics, and no convolution before it, a factor and an offset per channel."""
    value, scale, offset, mean, variance = node.args[:5]
    assert isinstance(value, Node)
    training, epsilon = argument(node, 5, "training"), argument(node, 7, "eps", 1e-5)
    means, variances = rewriter.value(mean), rewriter.value(variance)
    if training or means is None or variances is None:
        return None
    factor = torch.rsqrt(variances + epsilon)
    if (scales := rewriter.value(scale)) is not None:
        factor = factor * scales
    shift = -means * factor
    if (offsets := rewriter.value(offset)) is not None:
        shift = shift + offsets
    shape = [-1, *(1,) * (len(shape_of(value)) - 2)]
    factor, shift = factor.reshape(shape), shift.reshape(shape)
    product = rewriter.call(aten.mul.Tensor, value, rewriter.constant(factor, "factor"))
    return rewriter.call(aten.add.Tensor, product, rewriter.constant(shift, "shift"))


def var(rewriter: Rewriter, node: Node) -> Node | None:
    """Return the mean square distance from the mean, times ``n / (n - correction)``."""
    value, axes = node.args[0], argument(node, 1, "dim")
    assert isinstance(value, Node)
    if str(node.target) == "aten.var.dim":
        correction, keep = float(argument(node, 2, "unbiased", True)), argument(node, 3, "keepdim")
    else:
        given: Any = node.kwargs.get("correction")
        correction = 1.0 if given is None else float(given)
        keep = node.kwargs.get("keepdim", False)
    axes = list(range(len(shape_of(value)))) if axes is None else axes
    count = math.prod(shape_of(value)[axis] for axis in axes)
    mean = rewriter.call(aten.mean.dim, value, axes, True)
    centered = rewriter.call(aten.sub.Tensor, value, mean)
    square = rewriter.call(aten.mul.Tensor, centered, centered)
    squares = rewriter.call(aten.mean.dim, square, axes, bool(keep))
    return scaled(rewriter, squares, count / (count - correction))


def std(rewriter: Rewriter, node: Node) -> Node | None:
    """Return the root of the variance."""
    target = aten.var.dim if str(node.target) == "aten.std.dim" else aten.var.correction
    with rewriter.module.graph.inserting_before(node):
        spread = rewriter.module.graph.call_function(target, node.args, node.kwargs)
    spread.meta |= node.meta
    variance = var(rewriter, spread)
    rewriter.module.graph.erase_node(spread)
    return None if variance is None else rewriter.call(aten.sqrt.default, variance)


def linalg_vector_norm(rewriter: Rewriter, node: Node) -> Node | None:
    """Return the norm of order 1, 2 or infinity along axes."""
    value, order = node.args[0], argument(node, 1, "ord", 2)
    order = 2 if order is None else order
    assert isinstance(value, Node)
    axes, keep = argument(node, 2, "dim"), bool(argument(node, 3, "keepdim", False))
    axes = list(range(len(shape_of(value)))) if axes is None else axes
    if order == 2:
        square = rewriter.call(aten.mul.Tensor, value, value)
        total = rewriter.call(aten.sum.dim_IntList, square, axes, keep)
        return rewriter.call(aten.sqrt.default, total)
    size = rewriter.call(aten.abs.default, value)
    if order == 1:
        return rewriter.call(aten.sum.dim_IntList, size, axes, keep)
    return rewriter.call(aten.amax.default, size, axes, keep) if order == math.inf else None
