"""What must hold between an operator, its options and the shapes of its tensors.

Kernels and compilers take these from a file as they are: a stride of -1 or a map of another rank
makes them compute for minutes, or outside their tensors. So a file that says such a thing is
refused before anything computes with it.

Ref: TensorFlow Lite Micro, kernels/*_common.cc, kernels/padding.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.flatbuffer.tflite import ActivationFunctionType, Padding
from mizzen.frontends.tflite.model import ABSENT, Model, Operator, Subgraph, Tensor

Shape = tuple[int, ...]

MOST = 1 << 15
"""Of strides, dilations and windows: more than any map around an NPU is wide."""

FACTORS = frozenset(
    (
        "stride_w", "stride_h", "stride_d", "filter_width", "filter_height",
        "dilation_w_factor", "dilation_h_factor", "dilation_d_factor",
    )
)  # fmt: skip
"""Options that count elements, of which there is at least one."""

ENUMERATIONS = {
    "padding": frozenset(map(int, Padding)),
    "fused_activation_function": frozenset(map(int, ActivationFunctionType)),
}
"""Options that are numbers of an enumeration, in every table that has them."""

WINDOWED = frozenset(
    ("AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "L2_POOL_2D", "MAX_POOL_2D",
     "TRANSPOSE_CONV")
)  # fmt: skip
"""Operators that cannot do without options: a stride is at least 1, and absent ones are 0."""


@dataclass(frozen=True, slots=True)
class _Call:
    """An operator with its tensors."""

    operator: Operator
    subgraph: Subgraph
    origin: Origin

    def input(self, index: int) -> Tensor | None:
        """The tensor that an input is, if it is there."""
        inputs = self.operator.inputs
        if index >= len(inputs) or inputs[index] == ABSENT:
            return None
        return self.subgraph.tensors[inputs[index]]

    def shape(self, index: int) -> Shape:
        """The shape of an input; that of an absent one is that of a number."""
        tensor = self.input(index)
        return () if tensor is None else tensor.shape

    @property
    def output(self) -> Shape:
        """The shape of the first output."""
        outputs = self.operator.outputs
        return self.subgraph.tensors[outputs[0]].shape if outputs else ()

    def option(self, name: str) -> int:
        """An option that is a whole number, 0 without options. E142 for options of another kind."""
        options = self.operator.options
        if options and name not in options:
            raise _option(self.origin, f"have {name}", f"and have {', '.join(options)}")
        return int(options.get(name, 0))

    def integers(self, index: int) -> list[int] | None:
        """The elements of an input that is a constant of integers."""
        tensor = self.input(index)
        values = None if tensor is None else tensor.values
        return None if values is None else [int(number) for number in values.reshape(-1)]


def require_agreement(model: Model) -> None:
    """Refuse a network with an operator that cannot be what its file says.

    E142 for an option that no operator has, E143 for shapes that do not fit together, E144 for a
    tensor that is a result besides something else.
    """
    for subgraph in model.subgraphs:
        _require_single(model, subgraph)
        for operator in subgraph.operators:
            if not operator.custom:
                _require(model, operator, subgraph)


def _require_single(model: Model, subgraph: Subgraph) -> None:
    """Refuse operators that write what others read as something else: a compiler moves them."""
    known = {*subgraph.inputs, *(each.index for each in subgraph.tensors if each.data is not None)}
    for operator in subgraph.operators:
        for tensor in subgraph.present(operator.outputs):
            if tensor.index in known and tensor.elements and not operator.custom:
                raise _made_twice(tensor, model.origin(operator, subgraph))
            known.add(tensor.index)


def _made_twice(tensor: Tensor, origin: Origin) -> MizzenError:
    before = "a constant" if tensor.data is not None else "an input, or another's result"
    return fail(
        "E144",
        f'tensor {tensor.index} "{tensor.name}" must be one result, and is {before} too',
        origin=origin,
        help="get the file again, or convert the network again",
    )


def _require(model: Model, operator: Operator, subgraph: Subgraph) -> None:
    origin = model.origin(operator, subgraph)
    if operator.kind in WINDOWED and not operator.options:
        raise _option(origin, "be there", "and are not")
    for name, value in operator.options.items():
        if name in FACTORS and not 1 <= value <= MOST:
            raise _option(origin, f"have {name} in 1..{MOST}", f"not {value}")
        if value not in ENUMERATIONS.get(name, (value,)):
            raise _option(origin, f"have {name} of {sorted(ENUMERATIONS[name])}", f"not {value}")
    rule = RULES.get(operator.kind)
    if (
        rule is None
        or not operator.outputs
        or any(index == ABSENT for index in operator.inputs[:1])
    ):
        return
    call = _Call(operator, subgraph, origin)
    for holds, must in rule(call):
        if not holds:
            raise _disagreement(origin, call, must)


def _option(origin: Origin, must: str, comes: str) -> MizzenError:
    return fail(
        "E142",
        f"the options of {origin.kind} must {must}, {comes}",
        origin=origin,
        rule="TensorFlow Lite schema, BuiltinOptions",
        help="get the file again, or convert the network again",
    )


def _disagreement(origin: Origin, call: _Call, must: str) -> MizzenError:
    shapes = ", ".join(
        str(list(tensor.shape)) for tensor in call.subgraph.present(call.operator.inputs)
    )
    return fail(
        "E143",
        f"{origin.kind} must have {must}, and takes {shapes} to give {list(call.output)}",
        origin=origin,
        help="convert the network again, with the shape of every input fixed",
    )


Rule = Iterator[tuple[bool, str]]
"""Whether each thing holds that must, and what that is."""


def _maps(call: _Call, data: int = 0) -> Rule:
    same = len(call.shape(data)) == len(call.output) == 4
    yield same, "maps of 4 dimensions"
    yield same and call.shape(data)[0] == call.output[0], "as many maps as it gives"


def _filtered(call: _Call, data: int, channels: int) -> Rule:
    yield from _maps(call, data)
    weights = call.shape(1)
    yield len(weights) == 4, "weights of 4 dimensions"
    yield weights[channels] == call.output[3], "a filter for each channel that it gives"


def _bias(call: _Call, index: int) -> Rule:
    bias = call.input(index)
    fits = bias is None or math.prod(bias.shape) == call.output[-1]
    yield fits, "a bias for each channel that it gives"


def _covered(extent: int, kernel: int, stride: int, padding: int) -> int:
    """Return how many windows lie along an axis."""
    inside = extent if padding == Padding.SAME else extent - kernel + 1
    return max(0, -(-inside // stride))


def _windows(call: _Call, given: Shape, made: Shape, kernel: Sequence[int]) -> Rule:
    strides = call.option("stride_h"), call.option("stride_w")
    padding = call.option("padding")
    for axis, name in enumerate(("rows", "columns")):
        size = _covered(given[1 + axis], kernel[axis], strides[axis], padding)
        yield size == made[1 + axis], f"as many {name} as its windows cover, which is {size}"


def _dilated(call: _Call) -> list[int]:
    factors = call.option("dilation_h_factor"), call.option("dilation_w_factor")
    return [(size - 1) * by + 1 for size, by in zip(call.shape(1)[1:3], factors, strict=True)]


def _conv_2d(call: _Call) -> Rule:
    yield from _filtered(call, 0, 0)
    depth, group = call.shape(0)[3], call.shape(1)[3]
    yield group > 0 and depth % group == 0, "weights for whole groups of channels"
    yield from _bias(call, 2)
    yield from _windows(call, call.shape(0), call.output, _dilated(call))


def _depthwise(call: _Call) -> Rule:
    yield from _filtered(call, 0, 3)
    depth, made = call.shape(0)[3], call.output[3]
    times = call.option("depth_multiplier")
    yield depth * times == made, f"{made} channels for {depth} times its multiplier, {times}"
    yield from _bias(call, 2)
    yield from _windows(call, call.shape(0), call.output, _dilated(call))


def _transpose_conv(call: _Call) -> Rule:
    yield from _filtered(call, 2, 0)
    yield call.shape(1)[3] == call.shape(2)[3], "weights for each channel that it takes"
    said = call.integers(0)
    yield said is None or said == list(call.output), "a shape as its first input says"
    yield from _bias(call, 3)
    yield from _windows(call, call.output, call.shape(2), call.shape(1)[1:3])


def _pool(call: _Call) -> Rule:
    yield from _maps(call)
    yield call.shape(0)[3] == call.output[3], "as many channels as it gives"
    kernel = call.option("filter_height"), call.option("filter_width")
    yield from _windows(call, call.shape(0), call.output, kernel)


def _fully_connected(call: _Call) -> Rule:
    weights = call.shape(1)
    yield len(weights) == 2 and weights[1] > 0, "weights of 2 dimensions"
    lines, rest = divmod(math.prod(call.shape(0)), weights[1])
    yield not rest, "whole rows of weights"
    made = lines * weights[0]
    yield math.prod(call.output) == made, f"as many results as its weights give, which is {made}"
    bias = call.input(2)
    yield bias is None or math.prod(bias.shape) == weights[0], "a bias for each row of weights"


def _same_count(call: _Call) -> Rule:
    yield math.prod(call.shape(0)) == math.prod(call.output), "as many elements as it gives"


def _same_shape(call: _Call) -> Rule:
    yield call.shape(0) == call.output, "the shape that it gives"


def _broadcast(call: _Call) -> Rule:
    shapes = [call.shape(0), call.shape(1)]
    rank = max(map(len, shapes))
    extents = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    made = tuple(b if a == 1 else a for a, b in zip(*extents, strict=True))
    fits = all(a == b or 1 in (a, b) for a, b in zip(*extents, strict=True))
    yield fits, "shapes of which one can be repeated to be the other"
    yield made == call.output, f"the shape that follows, which is {list(made)}"


def _concatenation(call: _Call) -> Rule:
    rank, axis = len(call.output), call.option("axis")
    yield -rank <= axis < rank, f"an axis of {rank}, not {axis}"
    shapes = [tensor.shape for tensor in call.subgraph.present(call.operator.inputs)]
    yield all(len(shape) == rank for shape in shapes), f"inputs of {rank} dimensions"
    axis %= rank
    others = {shape[:axis] + shape[axis + 1 :] for shape in (*shapes, call.output)}
    yield len(others) == 1, f"inputs that are alike but along axis {axis}"
    size = sum(shape[axis] for shape in shapes)
    yield size == call.output[axis], f"as many along axis {axis} as its inputs, which is {size}"


def _transpose(call: _Call) -> Rule:
    order, rank = call.integers(1), len(call.shape(0))
    if order is not None:
        axes = [axis + rank if axis < 0 else axis for axis in order]
        yield sorted(axes) == list(range(rank)), f"every axis of {rank} once, not {order}"
        made = [call.shape(0)[axis] for axis in axes]
        yield made == list(call.output), f"the shape that follows, which is {made}"


def _pad(call: _Call) -> Rule:
    pads, rank = call.integers(1), len(call.shape(0))
    if pads is not None:
        yield len(pads) == 2 * rank, f"two pads for each of {rank} dimensions, not {len(pads)}"
        yield min(pads, default=0) >= 0, f"no pad below 0, not {pads}"
        given = zip(call.shape(0), pads[::2], pads[1::2], strict=True)
        made = [sum(extents) for extents in given]
        yield made == list(call.output), f"the shape that follows, which is {made}"


RULES: dict[str, Callable[[_Call], Rule]] = {
    "CONV_2D": _conv_2d,
    "DEPTHWISE_CONV_2D": _depthwise,
    "TRANSPOSE_CONV": _transpose_conv,
    "FULLY_CONNECTED": _fully_connected,
    "CONCATENATION": _concatenation,
    "TRANSPOSE": _transpose,
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), _pool),
    **dict.fromkeys(("EXPAND_DIMS", "RESHAPE", "SQUEEZE"), _same_count),
    **dict.fromkeys(("MIRROR_PAD", "PAD", "PADV2"), _pad),
    **dict.fromkeys(
        ("ADD", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "MUL", "SQUARED_DIFFERENCE",
         "SUB"),
        _broadcast,
    ),
    **dict.fromkeys(
        ("ABS", "DEQUANTIZE", "ELU", "EXP", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG",
         "LOG_SOFTMAX", "LOGISTIC", "NEG", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1",
         "RELU_N1_TO_1", "RSQRT", "SOFTMAX", "SQRT", "SQUARE", "TANH"),
        _same_shape,
    ),
}  # fmt: skip
"""What must hold, in an order in which each may take for granted what those before it say."""
