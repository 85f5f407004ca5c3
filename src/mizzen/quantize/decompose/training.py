"""Batch normalization in programs that will be trained."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.fx import Node

from mizzen.quantize.batch_norm import NormalizedConvolution
from mizzen.quantize.decompose.arithmetic import argument
from mizzen.quantize.decompose.rewriting import Rewriter, aten, shape_of
from mizzen.quantize.nodes import channel_axis, groups_of, row_name


def join_normalizations(rewriter: Rewriter, selected: Callable[[Node], bool]) -> None:
    """Make one node of each batch normalization and the convolution before it.

    One without a convolution gets one that changes nothing, which folding gives its factors.
    """
    switch: Node | None = None
    for node in rewriter.nodes():
        if row_name(node) != "batch_norm" or not selected(node):
            continue
        if rewriter.value_or_none(node.args[3]) is None:
            continue  # without statistics of its own, it normalizes each batch
        if switch is None:
            switch = _switch(rewriter.at(node), training=bool(argument(node, 5, "training")))
        rewriter.at(node)
        convolution = node.args[0]
        assert isinstance(convolution, Node)
        if _can_fold(convolution):
            _join(rewriter, node, convolution, switch)
        elif len(shape_of(convolution)) in (3, 4):
            _join(rewriter, node, _identity(rewriter, convolution), switch)
    forget_counters(rewriter)


def _switch(rewriter: Rewriter, training: bool) -> Node:
    """Insert a number that is 1 outside of training: torchao turns dropout on and off."""
    one = rewriter.constant(torch.ones(1), "switch")
    return rewriter.call(aten.dropout.default, one, 0.5, training)


def _can_fold(node: Node) -> bool:
    if channel_axis(node) is None or len(node.users) != 1:
        return False
    if row_name(node) == "linear":
        return len(shape_of(node)) == 2
    return not (channel_axis(node) == 1 and groups_of(node) > 1)


def _identity(rewriter: Rewriter, value: Node) -> Node:
    """Insert a convolution of each channel with 1."""
    rank, channels = len(shape_of(value)), shape_of(value)[1]
    weight = rewriter.constant(torch.ones(channels, 1, *(1,) * (rank - 2)), "ones")
    operator = aten.conv2d.default if rank == 4 else aten.conv1d.default
    ones, zeros = [1] * (rank - 2), [0] * (rank - 2)
    return rewriter.call(operator, value, weight, None, ones, zeros, ones, channels)


def _join(rewriter: Rewriter, node: Node, convolution: Node, switch: Node) -> None:
    module = NormalizedConvolution(
        convolution.target,
        tuple(convolution.args[3:]),
        argument(node, 6, "momentum", 0.1),
        argument(node, 7, "eps", 1e-5),
    )
    value, weight = convolution.args[:2]
    bias = argument(convolution, 2, "bias")
    operands = [value, weight, bias, *node.args[1:5], switch]
    joined = rewriter.call_module(module, "convolution", operands, (node.meta["val"],))
    result = rewriter.item(joined, 0)
    joined.meta |= {
        key: convolution.meta[key]
        for key in ("nn_module_stack", "stack_trace")
        if key in convolution.meta
    }
    node.replace_all_uses_with(result)
    rewriter.module.graph.erase_node(node)
    rewriter.module.graph.erase_node(convolution)


def forget_counters(rewriter: Rewriter) -> None:
    """Remove what counts batches: nothing reads it."""
    for node in rewriter.nodes():
        counter = node.args[0] if node.args else None
        if (
            str(node.target) == "aten.add_.Tensor"
            and isinstance(counter, Node)
            and str(counter.target).endswith("num_batches_tracked")
        ):
            rewriter.module.graph.erase_node(node)
