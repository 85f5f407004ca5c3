"""Which box of each value of a layer's chain a box of its result needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.graph import Array, Graph, Operation, Value
from mizzen.mesh.network.boxes import Box, box_of, intersection, within
from mizzen.mesh.network.regions import Span
from mizzen.ops import DEFINITIONS, data_layout, reduction
from mizzen.ops import tensor as tensor_operators
from mizzen.ops.control_flow import Identity
from mizzen.ops.type_conversion import Cast, Rescale
from mizzen.reference import elementwise

Need = Box | Array | None
"""What an operation takes of an operand: a box, other constants in its place, or nothing."""
Attributes = dict[str, Any]
Rule = Callable[[Any, Box, Span | None], tuple[Sequence[Need], Attributes]]
"""Returns what the operands must be for a box of the result, and attributes that are others."""

CHANNELS_LAST = -1


@dataclass(frozen=True, slots=True)
class Demands:
    """What a box of a value needs.

    order       the operations, each after those whose results it takes; constants left out
    boxes       the box of each value that is computed or taken
    needs       what each operation takes of its operands
    attributes  that are others for a box than for the whole
    """

    order: list[Operation]
    boxes: dict[Value, Box]
    needs: dict[Operation, tuple[Need, ...]] = field(
        default_factory=dict[Operation, tuple[Need, ...]]
    )
    attributes: dict[Operation, Attributes] = field(default_factory=dict[Operation, Attributes])


def demands(chain: Graph, last: Value, box: Box, channels: Span | None) -> Demands:
    """Return the demands of a box of a value; `channels` are those that a convolution sums over.

    Raises E531 where an operation cannot be computed in parts.
    """
    demanded = Demands([], {last: box})
    for operation in reversed(chain.sorted()):
        wanted = [demanded.boxes[value] for value in operation.results if value in demanded.boxes]
        if not wanted or operation.operands == []:
            continue
        needs, attributes = _needs(operation, wanted[0], channels)
        demanded.order.insert(0, operation)
        demanded.needs[operation] = tuple(needs)
        demanded.attributes[operation] = attributes
        for value, need in zip(operation.operands, needs, strict=True):
            if isinstance(need, tuple) and value.constant is None:
                have = demanded.boxes.get(value)
                demanded.boxes[value] = need if have is None else _hull(have, need)
    return demanded


def _hull(one: Box, other: Box) -> Box:
    pairs = zip(one, other, strict=True)
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in pairs)


def _needs(
    operation: Operation, box: Box, channels: Span | None
) -> tuple[Sequence[Need], Attributes]:
    if len(operation.results) == 1:
        rule = RULES.get(type(operation))
        if rule is not None:
            return rule(operation, box, channels)
        if type(operation) in elementwise.KERNELS:
            return _elementwise(operation, box, channels)
    if box != box_of(operation.results[0].shape):
        raise _whole(operation, "cannot be computed in parts")
    return [box_of(value.shape) for value in operation.operands], {}


def _whole(operation: Operation, why: str) -> MizzenError:
    return fail("E531", f"{operation.kind} {why}", origin=operation.origin)


def _elementwise(operation: Operation, box: Box, _: Span | None) -> tuple[list[Need], Attributes]:
    fixed = [operand.constant for operand in DEFINITIONS[operation.kind].operands]
    return [
        box_of(value.shape) if is_fixed else _broadcast(value.shape, box)
        for value, is_fixed in zip(operation.operands, fixed, strict=True)
    ], {}


def _broadcast(shape: tuple[int, ...], box: Box) -> Box:
    return tuple((0, 1) if extent == 1 else span for extent, span in zip(shape, box, strict=True))


def _along(value: Value, span: Span) -> Box:
    """Return the part of one constant for all channels, or one each, that channels need."""
    return (span,) if value.shape != (1,) else ((0, 1),)


def _rescale(operation: Rescale, box: Box, _: Span | None) -> tuple[list[Need], Attributes]:
    multiplier, shift, *zero_points = operation.operands[1:]
    across = box[CHANNELS_LAST] if box else (0, 1)
    return [
        box,
        _along(multiplier, across),
        _along(shift, across),
        *(box_of(each.shape) for each in zero_points),
    ], {}


def _window(
    operation: tensor_operators.Windowed | tensor_operators.Pool2d,
    box: Box,
    kernel: Sequence[int],
    dilation: Sequence[int],
) -> tuple[list[Span], tuple[int, ...]]:
    """Return the spans of height and width that a window needs, and the padding that is left."""
    spans, padding = list[Span](), list[int]()
    for place, axis in enumerate((1, 2)):
        extent = operation.input.shape[axis]
        reach = (kernel[place] - 1) * dilation[place] + 1
        start = box[axis][0] * operation.stride[place] - operation.pad[2 * place]
        stop = (box[axis][1] - 1) * operation.stride[place] - operation.pad[2 * place] + reach
        first, last = max(start, 0), min(stop, extent)
        if first >= last:
            raise _whole(operation, "must have a window with more than padding in it")
        spans.append((first, last))
        padding += [first - start, stop - last]
    return spans, tuple(padding)


def _convolution(
    operation: tensor_operators.Conv2d, box: Box, channels: Span | None
) -> tuple[list[Need], Attributes]:
    weight, bias, *zero_points = operation.operands[1:]
    kernel = weight.shape[1:3]
    spans, pad = _window(operation, box, kernel, operation.dilation)
    summed = channels or (0, weight.shape[3])
    across = box[CHANNELS_LAST]
    return [
        (box[0], *spans, summed),
        (across, (0, kernel[0]), (0, kernel[1]), summed),
        _along(bias, across),
        *(box_of(each.shape) for each in zero_points),
    ], {"pad": pad}


def _depthwise(
    operation: tensor_operators.DepthwiseConv2d, box: Box, _: Span | None
) -> tuple[list[Need], Attributes]:
    weight, bias, *zero_points = operation.operands[1:]
    height, width, depth, multiplier = weight.shape
    spans, pad = _window(operation, box, (height, width), operation.dilation)
    across = box[CHANNELS_LAST]
    of_input, of_each = _depths(operation, across, depth, multiplier)
    return [
        (box[0], *spans, of_input),
        ((0, height), (0, width), of_input, of_each),
        _along(bias, across),
        *(box_of(each.shape) for each in zero_points),
    ], {"pad": pad}


def _depths(operation: Operation, across: Span, depth: int, multiplier: int) -> tuple[Span, Span]:
    """Return the input channels of some output channels, and which of the outputs of each."""
    if depth == 1:
        return (0, 1), across
    if across[0] % multiplier or across[1] % multiplier:
        raise _whole(operation, f"must have all {multiplier} channels of an input channel")
    return (across[0] // multiplier, across[1] // multiplier), (0, multiplier)


def _pool(
    operation: tensor_operators.Pool2d, box: Box, _: Span | None
) -> tuple[list[Need], Attributes]:
    zero_points = operation.operands[1:]
    spans, pad = _window(operation, box, operation.kernel, (1, 1))
    return [
        (box[0], *spans, box[CHANNELS_LAST]),
        *(box_of(each.shape) for each in zero_points),
    ], {"pad": pad}


def _matmul(
    operation: tensor_operators.Matmul, box: Box, _: Span | None
) -> tuple[list[Need], Attributes]:
    first, lines, columns = box
    depth = (0, operation.operand.shape[2])
    zero_points = operation.operands[2:]
    return [
        (first, lines, depth),
        (first, depth, columns),
        *(box_of(each.shape) for each in zero_points),
    ], {}


def _concat(
    operation: data_layout.Concat, box: Box, _: Span | None
) -> tuple[list[Need], Attributes]:
    needs, first, axis = list[Need](), 0, operation.axis
    for value in operation.operands:
        place = list(box_of(value.shape))
        place[axis] = (first, first + value.shape[axis])
        common = intersection(tuple(place), box)
        origin = [(0, 0)] * len(box)
        origin[axis] = (first, first)
        needs.append(None if common is None else within(common, tuple(origin)))
        first += value.shape[axis]
    return needs, {}


def _known(value: Value) -> list[int]:
    assert value.constant is not None, "the builder refuses shapes that are not constant"
    return cast("list[int]", value.constant.tolist())


def _pad(operation: data_layout.Pad, box: Box, _: Span | None) -> tuple[list[Need], Attributes]:
    """Return the needs of a box with padding; nothing of the operand if all of it is padding."""
    before = _known(operation.padding)[::2]
    taken, around = list[Span](), list[int]()
    for (start, stop), offset, extent in zip(box, before, operation.operand.shape, strict=True):
        first, last = max(start - offset, 0), min(stop - offset, extent)
        if first >= last:
            return [None] * len(operation.operands), {}
        taken.append((first, last))
        around += [first - (start - offset), stop - offset - last]
    padding = np.array(around, operation.padding.dtype.numpy)
    return [tuple(taken), padding, *(box_of(v.shape) for v in operation.operands[2:])], {}


def _slice(operation: data_layout.Slice, box: Box, _: Span | None) -> tuple[list[Need], Attributes]:
    offsets = _known(operation.start)
    moved = tuple(
        (start + offset, stop + offset) for (start, stop), offset in zip(box, offsets, strict=True)
    )
    dtype = operation.start.dtype.numpy
    size = [stop - start for start, stop in box]
    return [moved, np.zeros(len(box), dtype), np.array(size, dtype)], {}


def _reshape(
    operation: data_layout.Reshape, box: Box, _: Span | None
) -> tuple[list[Need], Attributes]:
    given, shape = operation.operand.shape, operation.result.shape
    size = np.array([stop - start for start, stop in box], operation.shape.dtype.numpy)
    if box == box_of(shape):
        return [box_of(given), size], {}
    if [each for each in given if each > 1] != [each for each in shape if each > 1]:
        raise _whole(operation, "cannot be computed in parts where it mixes dimensions")
    spans = iter([span for span, extent in zip(box, shape, strict=True) if extent > 1])
    return [tuple(next(spans) if extent > 1 else (0, 1) for extent in given), size], {}


def _transpose(
    operation: data_layout.Transpose, box: Box, _: Span | None
) -> tuple[list[Need], Attributes]:
    spans = dict(zip(operation.perms, box, strict=True))
    return [tuple(spans[axis] for axis in range(len(box)))], {}


def _reduction(
    operation: reduction.Reduction, box: Box, _: Span | None
) -> tuple[list[Need], Attributes]:
    spans = list(box)
    spans[operation.axis] = (0, operation.operand.shape[operation.axis])
    return [tuple(spans)], {}


RULES: dict[type[Operation], Rule] = {
    tensor_operators.Conv2d: _convolution,
    tensor_operators.DepthwiseConv2d: _depthwise,
    tensor_operators.AvgPool2d: _pool,
    tensor_operators.MaxPool2d: _pool,
    tensor_operators.Matmul: _matmul,
    Rescale: _rescale,
    Cast: _elementwise,
    Identity: _elementwise,
    data_layout.Concat: _concat,
    data_layout.Pad: _pad,
    data_layout.Slice: _slice,
    data_layout.Reshape: _reshape,
    data_layout.Transpose: _transpose,
    **{
        definition: _reduction
        for definition in Operation.of_kind.values()
        if issubclass(definition, reduction.Reduction)
    },
}
"""Operations that can be computed in parts, besides those on each element alone."""
