"""What kind of layer some operations are, by how their result depends on their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mizzen.graph import Operation, Value
from mizzen.mesh.network.network import CHANNEL, LayerKind, Window
from mizzen.ops.data_layout import Concat, Pad, Slice
from mizzen.ops.reduction import Reduction
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d, Matmul, Pool2d

POINTWISE = frozenset(
    (
        *("ABS", "ADD", "ARITHMETIC_RIGHT_SHIFT", "BITWISE_AND", "BITWISE_NOT", "BITWISE_OR"),
        *("BITWISE_XOR", "CAST", "CLAMP", "CLZ", "EQUAL", "GREATER", "GREATER_EQUAL", "INTDIV"),
        *("LOGICAL_AND", "LOGICAL_LEFT_SHIFT", "LOGICAL_NOT", "LOGICAL_OR", "LOGICAL_RIGHT_SHIFT"),
        *(
            "LOGICAL_XOR",
            "MAXIMUM",
            "MINIMUM",
            "MUL",
            "NEGATE",
            "RESCALE",
            "SELECT",
            "SUB",
            "TABLE",
        ),
    )
)
"""Operations whose result at a position depends on their operands at that position alone."""

CONSTANTS = frozenset({"CONST", "CONST_SHAPE"})

WEIGHTS, BIAS = 1, 2
"""Operands of a convolution."""


@dataclass(frozen=True)
class Form:
    """What a layer is besides its operations; the fields are those of `Layer`."""

    kind: LayerKind
    inputs: tuple[Value, ...]
    window: Window | None = None
    input_channels: int = 0
    weight_item_bytes: int = 1
    channel_bytes: int = 0
    constant_bytes: int = 0
    offsets: tuple[tuple[int, ...], ...] = ()
    reduced_axes: tuple[int, ...] = ()


def form_of(
    operations: Sequence[Operation], anchors: Sequence[Operation], inputs: Sequence[Value]
) -> Form:
    """Return the form of operations, of which the anchors are those that are not pointwise.

    Whatever has no rule is GENERAL: it takes everything, and is not split.
    """
    result = operations[-1].result
    form = _split_form(operations, anchors, inputs, result)
    general = Form(LayerKind.GENERAL, tuple(inputs))
    return _with_constants(form or general, operations, anchors, result)


def _split_form(
    operations: Sequence[Operation],
    anchors: Sequence[Operation],
    inputs: Sequence[Value],
    result: Value,
) -> Form | None:
    if not anchors:
        spread = all(_is_broadcast(value, result) for value in inputs)
        return Form(LayerKind.POINTWISE, tuple(inputs)) if inputs and spread else None
    if all(isinstance(anchor, Reduction) for anchor in anchors):
        return _reduction(operations, anchors, inputs, result)
    if len(anchors) > 1:
        return None
    (anchor,) = anchors
    match anchor:
        case Conv2d() | DepthwiseConv2d() | Pool2d():
            return _windowed(operations, anchor, inputs)
        case Matmul():
            return _matmul(operations, anchor, inputs)
        case Concat() | Pad() | Slice():
            return _movement(anchor, inputs, result)
        case _:
            return None


def _is_broadcast(value: Value, result: Value) -> bool:
    return len(value.shape) == len(result.shape) and all(
        extent in (1, whole) for extent, whole in zip(value.shape, result.shape, strict=True)
    )


def _ordered(
    taken: Sequence[Value],
    operations: Sequence[Operation],
    anchor: Operation,
    inputs: Sequence[Value],
) -> tuple[Value, ...] | None:
    """Return the inputs with those of the anchor first, if all others are beside its result."""
    result = operations[-1].result
    others = [value for value in inputs if value not in taken]
    beside = all(_is_broadcast(value, result) for value in others)
    members = set(operations) - {anchor}
    once = all(value in inputs and members.isdisjoint(value.uses) for value in taken)
    if anchor.result.shape != result.shape or not beside or not once:
        return None
    return (*taken, *others) if len(set(taken)) == len(taken) else None


def _windowed(
    operations: Sequence[Operation], anchor: Operation, inputs: Sequence[Value]
) -> Form | None:
    ordered = _ordered([anchor.operand], operations, anchor, inputs)
    if ordered is None:
        return None
    top, _, left, _ = anchor["pad"]
    if isinstance(anchor, Pool2d):
        window = Window(tuple(anchor["kernel"]), tuple(anchor["stride"]), padding=(top, left))
        return Form(LayerKind.POOLING, ordered, window)
    weights = anchor.operands[WEIGHTS]
    if weights.constant is None or anchor.operands[BIAS].constant is None:
        return None
    window = Window((0, 0), tuple(anchor["stride"]), tuple(anchor["dilation"]), (top, left))
    item_bytes = weights.dtype.numpy.itemsize
    if isinstance(anchor, Conv2d):
        _, height, width, channels = weights.shape
        window = replace(window, kernel=(height, width))
        return Form(LayerKind.CONVOLUTION, ordered, window, channels, item_bytes)
    height, width, _, multiplier = weights.shape
    if multiplier != 1:
        return None
    window = replace(window, kernel=(height, width))
    return Form(LayerKind.DEPTHWISE, ordered, window, 1, item_bytes)


def _matmul(
    operations: Sequence[Operation], anchor: Operation, inputs: Sequence[Value]
) -> Form | None:
    ordered = _ordered(list(anchor.operands[:2]), operations, anchor, inputs)
    return Form(LayerKind.MATMUL, ordered) if ordered else None


def _movement(anchor: Operation, inputs: Sequence[Value], result: Value) -> Form | None:
    taken = [value for value in anchor.operands if value in inputs]
    moved = len(anchor.operands) if isinstance(anchor, Concat) else 1
    if len(taken) != moved or len(inputs) != moved or anchor.result.shape != result.shape:
        return None
    if len(set(taken)) != moved:
        return None
    return Form(LayerKind.MOVEMENT, tuple(taken), offsets=_offsets(anchor, taken))


def _offsets(anchor: Operation, taken: Sequence[Value]) -> tuple[tuple[int, ...], ...]:
    match anchor:
        case Pad():
            padding = anchor.padding.constant
            assert padding is not None
            return (tuple(int(before) for before in padding.reshape(-1)[::2]),)
        case Slice():
            start = anchor.start.constant
            assert start is not None
            return (tuple(-int(first) for first in start),)
        case _:
            axis: int = anchor["axis"]
            places = accumulate((value.shape[axis] for value in taken[:-1]), initial=0)
            rank = len(taken[0].shape)
            return tuple(
                tuple(place if other == axis else 0 for other in range(rank)) for place in places
            )


def _reduction(
    operations: Sequence[Operation],
    anchors: Sequence[Operation],
    inputs: Sequence[Value],
    result: Value,
) -> Form | None:
    """Return the form of reductions along one axis, and of what follows: sums, a whole softmax."""
    axes = {anchor.axis for anchor in anchors if isinstance(anchor, Reduction)}
    whole = anchors[0].operand
    if len(axes) != 1 or not all(_is_broadcast(value, whole) for value in inputs):
        return None
    (axis,) = axes
    reduced = tuple(1 if place == axis else extent for place, extent in enumerate(whole.shape))
    if not all(operation.result.shape in (whole.shape, reduced) for operation in operations):
        return None
    if result.shape not in (whole.shape, reduced):
        return None
    return Form(LayerKind.REDUCTION, tuple(inputs), reduced_axes=(axis,))


def _with_constants(
    form: Form, operations: Sequence[Operation], anchors: Sequence[Operation], result: Value
) -> Form:
    """Count the bytes of constants: a channel's, and those that every tile needs."""
    channels = result.shape[CHANNEL] if len(result.shape) > CHANNEL else 0
    split = form.kind in (LayerKind.CONVOLUTION, LayerKind.DEPTHWISE)
    of_channel, of_tile = 0, 0
    for operation in operations:
        for index, value in enumerate(operation.operands):
            array = value.constant
            if array is None or (split and operation in anchors and index == WEIGHTS):
                continue
            if split and channels and array.size == channels:
                of_channel += array.itemsize
            else:
                of_tile += array.nbytes
    return replace(form, channel_bytes=of_channel, constant_bytes=of_tile)
