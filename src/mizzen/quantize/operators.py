"""What each PyTorch operator asks of the integers around it: a table.

Names are those of `torch.ops.aten`, without overload, in their functional form: ``relu_`` is found
as ``relu``. What is not here has no integer form and stays in floating point.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import Enum, auto

from torch.fx import Node


class Role(Enum):
    """How the range of an operator's result relates to those of its operands."""

    WEIGHTED = auto()
    """Operands are activation, weight, bias; the result has a range of its own."""
    COMPUTED = auto()
    """The result has a range of its own."""
    SHARED = auto()
    """The result's values are among the operands' (or between them): one range for all."""
    FIXED = auto()
    """The result's range is known beforehand."""
    COMPARED = auto()
    """Operands share a range; the result is no number."""
    CONSUMED = auto()
    """The operand has its range; the result is an index."""
    RECURRENT = auto()
    """Operands are a projection, first states and weights; the states share ranges with results."""
    NORMALIZED = auto()
    """A convolution with batch normalization, in training."""
    STATE = auto()
    """Reads a buffer that the program writes."""
    TRANSPARENT = auto()
    """Nothing is computed: the operand itself goes on."""


@dataclass(frozen=True)
class Range:
    """A known range of results: the scale's exponent and zero point for 8 bits.

    For 16 bits the scale is 2**-15 and the zero point 0, whatever the function.
    """

    scale: float
    zero_point: int


UNIT = Range(1 / 256, -128)
SIGNED_UNIT = Range(1 / 128, 0)

KNOWN_RANGE = "mizzen_range"
"""Key in a node's meta: the `Range` of its result, where a rewriting knows it beforehand."""

FIXED_RANGES = {
    "sigmoid": UNIT,
    "hardsigmoid": UNIT,
    "softmax": UNIT,
    "_softmax": UNIT,
    "tanh": SIGNED_UNIT,
    "sin": SIGNED_UNIT,
    "cos": SIGNED_UNIT,
    "erf": SIGNED_UNIT,
}

CHANNEL_AXES = {
    "conv1d": 0,
    "conv2d": 0,
    "conv3d": 0,
    "convolution": 0,
    "linear": 0,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
    "conv_transpose3d": 1,
}
"""Operators with weights, and the axis of their output channels in the weight."""

COMPUTED = """
    abs acos acosh add asin asinh atan atanh bmm ceil celu clamp clamp_max clamp_min cos cosh
    cumsum div elu exp expm1 floor gelu glu hardshrink hardswish hardtanh leaky_relu log log10
    log1p log2 log_sigmoid log_softmax logit masked_fill matmul mean mish mm mul neg pow prelu prod
    reciprocal relu relu6 remainder round rsqrt rsub selu sgn sign silu sinh softplus softshrink
    softsign sqrt square sub sum tan tanhshrink threshold trunc var std addcmul lerp
"""

SHARED = """
    alias amax amin as_strided avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d
    adaptive_max_pool1d adaptive_max_pool2d broadcast_to cat channel_shuffle chunk clone
    constant_pad_nd concat concatenate contiguous diagonal embedding expand expand_as flatten flip
    gather index index_select max max_pool1d max_pool2d max_pool2d_with_indices maximum
    min minimum movedim narrow pad permute pixel_shuffle pixel_unshuffle reflection_pad1d
    reflection_pad2d repeat repeat_interleave replication_pad1d replication_pad2d reshape
    resolve_conj roll scatter select slice split split_with_sizes squeeze stack swapaxes t tile
    transpose unbind unflatten unfold unsqueeze upsample_bilinear2d upsample_nearest1d
    upsample_nearest2d view view_as where hstack vstack index_copy slice_scatter select_scatter
    _unsafe_view index_put
"""

COMPARED = "eq ge gt le lt ne"
CONSUMED = "argmax argmin"
TRANSPARENT = "detach dropout feature_dropout dropout1d alpha_dropout lift_fresh_copy"


def _roles() -> dict[str, Role]:
    roles = dict.fromkeys(COMPUTED.split(), Role.COMPUTED)
    roles |= dict.fromkeys(SHARED.split(), Role.SHARED)
    roles |= dict.fromkeys(COMPARED.split(), Role.COMPARED)
    roles |= dict.fromkeys(CONSUMED.split(), Role.CONSUMED)
    roles |= dict.fromkeys(TRANSPARENT.split(), Role.TRANSPARENT)
    roles |= dict.fromkeys(FIXED_RANGES, Role.FIXED)
    return roles | dict.fromkeys(CHANNEL_AXES, Role.WEIGHTED)


ROLES: dict[str, Role] = _roles()

FUSED_AFTER = {
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "linear"),
    *("add", "sub", "mul", "bmm", "matmul", "mm"),
}
"""Operators whose result an activation may cut without being quantized in between."""


def operator_name(node: Node) -> str:
    """Return the operator's name as the table has it; empty for what is no ATen operator."""
    name = str(node.target)
    if node.op != "call_function" or not name.startswith("aten."):
        return ""
    base = name.split(".")[1]
    return base if base.startswith("__") else base.removesuffix("_")


def role_of(node: Node) -> Role | None:
    """Return the operator's role, None where it has no integer form."""
    if node.target is operator.getitem:
        return Role.SHARED
    return ROLES.get(operator_name(node))


def cuts_at_zero(node: Node) -> bool:
    """Whether a node is ReLU or a clamp whose lower limit is 0: an activation to fuse."""
    match operator_name(node):
        case "relu" | "relu6":
            return True
        case "hardtanh" | "clamp":
            low = node.args[1] if len(node.args) > 1 else node.kwargs.get("min", -1.0)
            return isinstance(low, (int, float)) and low == 0
        case "clamp_min":
            return isinstance(node.args[1], (int, float)) and node.args[1] == 0
        case _:
            return False
