"""Normalizations and softmax, as steps that each have a range of their own."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from mizzen.frontends.torch.operators.row import UNIT
from mizzen.quantize.decompose.arithmetic import argument, scaled
from mizzen.quantize.decompose.rewriting import Rewriter, aten, shape_of
from mizzen.quantize.nodes import KNOWN_RANGE


def softmax(rewriter: Rewriter, node: Node) -> Node | None:
    """Return ``exp(x - max) / sum(exp(x - max))`` along an axis.

    Five tables and reductions of the integers' own width, and a product whose range is [0, 1).
    """
    value, axis = node.args[:2]
    exponential = rewriter.call(aten.exp.default, _below_maximum(rewriter, value, axis))
    total = rewriter.call(aten.sum.dim_IntList, exponential, [axis], True)
    inverse = rewriter.call(aten.reciprocal.default, total)
    result = rewriter.call(aten.mul.Tensor, exponential, inverse)
    result.meta[KNOWN_RANGE] = UNIT
    return result


def log_softmax(rewriter: Rewriter, node: Node) -> Node | None:
    """Return ``(x - max) - log(sum(exp(x - max)))`` along an axis."""
    value, axis = node.args[:2]
    below = _below_maximum(rewriter, value, axis)
    exponential = rewriter.call(aten.exp.default, below)
    total = rewriter.call(aten.sum.dim_IntList, exponential, [axis], True)
    return rewriter.call(aten.sub.Tensor, below, rewriter.call(aten.log.default, total))


def logsumexp(rewriter: Rewriter, node: Node) -> Node | None:
    """Return ``max + log(sum(exp(x - max)))`` along axes."""
    value, axes, keep = node.args[0], node.args[1], bool(argument(node, 2, "keepdim", False))
    axes = [axes] if isinstance(axes, int) else axes
    greatest = rewriter.call(aten.amax.default, value, axes, True)
    exponential = rewriter.call(aten.exp.default, rewriter.call(aten.sub.Tensor, value, greatest))
    total = rewriter.call(aten.sum.dim_IntList, exponential, axes, True)
    result = rewriter.call(aten.add.Tensor, rewriter.call(aten.log.default, total), greatest)
    return result if keep else rewriter.call(aten.squeeze.dims, result, axes)


def _below_maximum(rewriter: Rewriter, value: Any, axis: Any) -> Node:
    greatest = rewriter.call(aten.amax.default, value, [axis], True)
    return rewriter.call(aten.sub.Tensor, value, greatest)


def normalized(rewriter: Rewriter, value: Node, axes: list[int], epsilon: float) -> Node:
    """Return ``(x - mean) / sqrt(variance + epsilon)`` along `axes`."""
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
    result = normalized(rewriter, value, axes, argument(node, 4, "eps", 1e-5))
    scale, offset = argument(node, 2, "weight"), argument(node, 3, "bias")
    return scale_and_shift(rewriter, result, scale, offset)


def _last_axes(node: Node) -> list[int]:
    """Return the axes that a normalization is along, counted from behind."""
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
    result = normalized(rewriter, result, [-1], argument(node, 4, "eps", 1e-5))
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
    result = normalized(rewriter, value, axes, argument(node, 7, "eps", 1e-5))
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
    found = rewriter.call(aten.mean.dim, square, axes, bool(keep))
    return scaled(rewriter, found, count / (count - correction))


def std(rewriter: Rewriter, node: Node) -> Node | None:
    """Return the root of the variance."""
    target = aten.var.dim if str(node.target) == "aten.std.dim" else aten.var.correction
    with rewriter.module.graph.inserting_before(node):
        spread = rewriter.module.graph.call_function(target, node.args, node.kwargs)
    spread.meta |= node.meta
    found = var(rewriter, spread)
    rewriter.module.graph.erase_node(spread)
    return None if found is None else rewriter.call(aten.sqrt.default, found)


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
