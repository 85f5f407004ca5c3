"""Batch normalization in programs that will be trained: folded when the program is converted.

In training the statistics change with every batch, and the weights that will ship are those scaled
by them. Rounding per channel commutes with scaling per channel, so a convolution with rounded
weights and then a normalization train what a folded convolution computes. One node is made of the
two, a composite that observes what it needs and folds itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from mizzen.frontends.torch.operators import OPERATORS
from mizzen.quantize.configuration import QuantizationConfig, product_of_scales
from mizzen.quantize.decompose.arithmetic import argument
from mizzen.quantize.decompose.rewriting import Rewriter, aten, shape_of
from mizzen.quantize.nodes import channel_axis, groups_of, row_name
from mizzen.quantize.observers import Composite, replace_composite

INT32 = torch.iinfo(torch.int32)
Q: Any = torch.ops.quantized_decomposed


class NormalizedConvolution(Composite):
    """A convolution (or linear layer) with the batch normalization of its result.

    Call it with: the input; weight and bias of the convolution; scale, offset, mean and variance of
    the normalization; and the switch, a tensor that is 1 when not training.
    """

    def __init__(
        self, operator: Any, literals: tuple[Any, ...], momentum: float, epsilon: float
    ) -> None:
        super().__init__()
        self.operator = operator
        self.literals = literals
        self.momentum = momentum
        self.epsilon = epsilon
        self.axis = OPERATORS[str(operator)].channel_axis or 0

    def quantize_weights(self, config: QuantizationConfig) -> None:
        """Round the weights as `config` says."""
        spec: Any = config.weight_spec(self.axis)
        arguments = {
            "dtype": spec.dtype,
            "quant_min": spec.quant_min,
            "quant_max": spec.quant_max,
            "qscheme": spec.qscheme,
        }
        if spec.ch_axis is not None:
            arguments["ch_axis"] = spec.ch_axis
        self.observe("weight", spec.observer_or_fake_quant_ctr.with_args(**arguments)())

    def wire(self, node: Node, observers: dict[Any, Any]) -> None:
        """Take over the observer of the input, whose scale the bias needs."""
        if (edge := (node.args[0], node)) in observers:
            self.observe("input", observers[edge])

    def run(
        self, value: Tensor, weight: Tensor, bias: Tensor | None, *normalization: Tensor
    ) -> tuple[Tensor]:
        """Convolve with rounded weights, then normalize."""
        scale, offset, mean, variance, switch = normalization
        if "weight" in self.observers:
            weight = self._rounded(weight, scale, variance)
        result = self.operator(value, weight, bias, *self.literals)
        training = bool(switch != 1)
        result = torch.nn.functional.batch_norm(
            result, mean, variance, scale, offset, training, self.momentum, self.epsilon
        )
        return (result,)

    def _rounded(self, weight: Tensor, scale: Tensor | None, variance: Tensor) -> Tensor:
        observer: Any = self.observers["weight"]
        if observer.is_per_channel:
            return observer(weight)
        factor = self._shaped(self._factor(scale, variance), weight)
        factor = torch.where(factor == 0, torch.ones_like(factor), factor)
        return observer(weight * factor) / factor

    def _factor(self, scale: Tensor | None, variance: Tensor) -> Tensor:
        factor = torch.rsqrt(variance + self.epsilon)
        return factor if scale is None else factor * scale

    def _shaped(self, factor: Tensor, weight: Tensor) -> Tensor:
        shape = [1] * weight.dim()
        shape[self.axis] = -1
        return factor.reshape(shape)

    def folded(
        self, weight: Tensor, bias: Tensor | None, *normalization: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return weight and bias of the one convolution that does the same."""
        scale, offset, mean, variance = normalization
        assert mean is not None
        assert variance is not None
        factor = self._factor(scale, variance)
        shift = -mean if bias is None else bias - mean
        shift = shift * factor
        return weight * self._shaped(factor, weight), shift if offset is None else shift + offset

    def convert(self, model: GraphModule, node: Node) -> None:
        """Replace the node by a convolution with folded weights, quantised."""
        operands = [_tensor(model, operand) for operand in node.args[1:7]]
        weight, bias = self.folded(*cast(Any, operands))
        switch = cast(Node, node.args[7])
        with model.graph.inserting_before(node):
            if "weight" in self.observers:
                w, b = self._quantized(model, node, weight, bias)
            else:
                w, b = _attribute(model, node, weight), _attribute(model, node, bias)
            result = model.graph.call_function(self.operator, (node.args[0], w, b, *self.literals))
        replace_composite(model, node, result)
        if not switch.users:
            model.graph.erase_node(switch)

    def _quantized(
        self, model: GraphModule, node: Node, weight: Tensor, bias: Tensor
    ) -> tuple[Node, Node]:
        """Insert weight and bias with the quantisation that torchao would give them."""
        observer: Any = self.observers["weight"]
        last = observer.activation_post_process
        last.reset_min_max_vals()
        last(weight)
        scales, zero_points = last.calculate_qparams()
        limits = (last.quant_min, last.quant_max, torch.int8)
        axis = self.axis if observer.is_per_channel else None
        w = _round_trip(model, node, (weight, scales, zero_points), limits, axis)
        derived, zeros = product_of_scales([self.observers["input"], last])
        limits = (INT32.min, INT32.max - 1, torch.int32)
        axis = None if axis is None else 0
        return w, _round_trip(model, node, (bias, derived, zeros), limits, axis)


def _tensor(model: GraphModule, operand: Any) -> Tensor | None:
    if operand is None:
        return None
    attribute: Any = model
    for name in str(operand.target).split("."):
        attribute = getattr(attribute, name)
    return attribute.detach()


def _attribute(model: GraphModule, node: Node, value: Tensor) -> Node:
    number = 0
    while hasattr(model, f"_folded_{number}"):
        number += 1
    model.register_buffer(f"_folded_{number}", value.detach().clone())
    attribute = model.graph.get_attr(f"_folded_{number}")
    attribute.meta["val"] = value.detach()
    return attribute


def _round_trip(
    model: GraphModule,
    node: Node,
    tensors: tuple[Tensor, Tensor, Tensor],
    limits: tuple[int, int, torch.dtype],
    axis: int | None,
) -> Node:
    """Insert quantisation and dequantisation of a constant."""
    value, scales, zero_points = tensors
    attribute = _attribute(model, node, value)
    if axis is None:
        rest = (float(scales), int(zero_points), *limits)
        quantized = model.graph.call_function(Q.quantize_per_tensor.default, (attribute, *rest))
        return model.graph.call_function(Q.dequantize_per_tensor.default, (quantized, *rest))
    grid = (_attribute(model, node, scales), _attribute(model, node, zero_points), axis, *limits)
    quantized = model.graph.call_function(Q.quantize_per_channel.default, (attribute, *grid))
    return model.graph.call_function(Q.dequantize_per_channel.default, (quantized, *grid))


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
