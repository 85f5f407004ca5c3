"""Passes that bring computations into a form that NPUs do faster, or at all.

The projection of a sequence is computed in pieces, each when its steps need it; greatest numbers
are found along rows, many at once; linear layers get the shape in which an NPU multiplies fastest;
convolutions with long strides work on blocks of pixels; each user has a RESCALE of its own.

Convolutions and poolings pad their input themselves: an NPU reads padding for nothing, but makes a
PAD by copying the tensor. PyTorch's causal and asymmetric convolutions, and those that pad with
other numbers than TensorFlow's, come with a PAD. What can only be written first in a CONCAT is put
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from mizzen.graph import (
    Array,
    Attributes,
    DType,
    Graph,
    Operation,
    TensorType,
    Value,
    integer_range,
)
from mizzen.ops.builder import reshaped
from mizzen.ops.data_layout import Concat, Pad, Reshape, Slice
from mizzen.ops.limits import WindowLimits
from mizzen.ops.reduction import ReduceMax
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d, MaxPool2d, TransposeConv2d
from mizzen.ops.type_conversion import Rescale
from mizzen.passes.pipeline import Pass
from mizzen.patterns import Const, Is, Match, Pattern, Reject, Rule, Rules, Var, chain, find, of, op

ROWS = 4
"""Steps of a piece. Fewer need less memory, and read the weights more often."""

LONG = 2 * ROWS
"""Shorter sequences stay as they are."""

ROW_AXIS = 1


CONVOLUTION = op(
    Conv2d,
    weight=Var("weights", Is("a kernel of 1x1", lambda value: value.shape[1:3] == (1, 1))),
    having={"stride": (1, 1), "pad": (0, 0, 0, 0)},
    once=True,
)
RESCALE = op(Rescale, CONVOLUTION, result=of(DType.INT8, DType.INT16))


def _is_long(match: Match) -> Reject | None:
    """The sequence has more rows than a few pieces are worth."""
    shape = match[RESCALE].result.shape
    if len(shape) != 4 or shape[ROW_AXIS] <= LONG:
        return Reject(
            f"rows must be more than {LONG}, of a shape like 1x{LONG + 1}x1x8, not {shape}"
        )
    return None


def _gives_rows(match: Match) -> Reject | None:
    """Every user takes a single row."""
    result = match[RESCALE].result
    if not result.uses:
        return Reject("somebody must take a row, and nobody does")
    for user in result.uses:
        if not _takes_a_row(user, result.shape):
            return Reject("every user must take one row, and this one does not", user)
    return None


def _takes_a_row(user: Operation, shape: Sequence[int]) -> bool:
    if not isinstance(user, Slice):
        return False
    wanted = tuple(1 if axis == ROW_AXIS else extent for axis, extent in enumerate(shape))
    return user.result.shape == wanted


def _split(graph: Graph, match: Match) -> None:
    rescale = match[RESCALE]
    pieces: dict[int, Value] = {}
    for user in tuple(rescale.result.uses):
        assert isinstance(user, Slice)
        starts = user.start.constant
        assert starts is not None
        y = int(starts[ROW_AXIS])
        first = y // ROWS * ROWS
        if first not in pieces:
            pieces[first] = _piece(graph, rescale, first)
        moved = [y - first if axis == ROW_AXIS else 0 for axis in range(len(starts))]
        place = graph.constant(moved, DType.SHAPE)
        graph.set_operand(user, Slice.input1.index, pieces[first])
        graph.set_operand(user, Slice.start.index, place)


def _piece(graph: Graph, rescale: Rescale, first: int) -> Value:
    """Compute some rows from the first on."""
    convolution = rescale.input.producer
    assert isinstance(convolution, Conv2d)
    source = convolution.input
    count = min(ROWS, source.shape[ROW_AXIS] - first)
    starts = [first if axis == ROW_AXIS else 0 for axis in range(4)]
    sizes = [count if axis == ROW_AXIS else extent for axis, extent in enumerate(source.shape)]
    places = [graph.constant(numbers, DType.SHAPE) for numbers in (starts, sizes)]
    value = _like(graph, rescale, "SLICE", [source, *places], source, count)
    operands = [value, *convolution.operands[1:]]
    value = _like(graph, convolution, "CONV2D", operands, convolution.result, count)
    operands = [value, *rescale.operands[1:]]
    return _like(graph, rescale, "RESCALE", operands, rescale.result, count)


def _like(
    graph: Graph, model: Operation, kind: str, operands: Sequence[Value], value: Value, height: int
) -> Value:
    """Add an operation whose result is like a value, with fewer rows."""
    shape = tuple(height if axis == ROW_AXIS else size for axis, size in enumerate(value.shape))
    attributes = dict(model.attributes) if model.kind == kind else {}
    return graph.add_beside(model, kind, operands, value.type.with_shape(shape), attributes)


PATTERN = Pattern("a projection taken by rows", RESCALE, (_is_long, _gives_rows))
RULES = Rules([Rule(PATTERN, _split)])

SPLIT_PROJECTIONS = Pass("split-projections", RULES.rewrite)
"""Cut CONV2D with a kernel of 1x1 along its rows where only single rows of it are taken.

A recurrent layer takes one row in each step. Whole, the projection lies in memory until the
last step, and is the largest tensor there.
"""


LEAST_ROWS = 8
"""Rows from which on turning them costs less than it saves."""


REDUCED = Var("source", Is("of integers", lambda value: value.dtype.is_integer))
MAXIMUM = op(ReduceMax, REDUCED)


def _rows(shape: tuple[int, ...]) -> int:
    return next((size for size in reversed(shape[:-1]) if size > 1), 1)


def _along_rows(match: Match) -> Reject | None:
    """The axis is the last one, and rows are enough to be worth turning."""
    shape, axis = match[REDUCED].shape, match[MAXIMUM].axis
    last = len(shape) - 1
    if axis != last or last == 0:
        return Reject(f"axis must be the last of several, and is {axis} of {len(shape)}")
    if shape[last] == 1:
        return Reject("rows must have more than one element")
    if _rows(shape) < LEAST_ROWS:
        return Reject(f"rows must be at least {LEAST_ROWS}, and are {_rows(shape)}")
    return None


def _turn(graph: Graph, match: Match) -> None:
    operation, value = match[MAXIMUM], match[REDUCED]
    result = operation.result
    lines, width = _rows(value.shape), value.shape[-1]
    batch = prod(value.shape[:-1]) // lines
    flat = reshaped(graph, operation, value, (batch, lines, width))
    across = flat.type.with_shape((batch, width, lines))
    turned = graph.add_beside(operation, "TRANSPOSE", (flat,), across, {"perms": (0, 2, 1)})
    type, attributes = (
        result.type.with_shape((batch, 1, lines)),
        {**operation.attributes, "axis": 1},
    )
    greatest = graph.add_beside(operation, operation.kind, (turned,), type, attributes)
    graph.supersede(result, reshaped(graph, operation, greatest, result.shape))


REDUCTION = Pattern("maxima along rows", MAXIMUM, (_along_rows,))
REDUCTION_RULES = Rules([Rule(REDUCTION, _turn)])

TURN_MAXIMA = Pass("turn-maxima", REDUCTION_RULES.rewrite)
"""Turn a tensor before the greatest of its last dimension is found.

An NPU finds the greatest with a pooling, of many channels at once. Along the last dimension
there is a single channel; that costs more than it does to turn rows into channels first.
"""


LEAST_WIDTH = 2
"""Pixels that an NPU computes at once beside each other; a column of single ones is half idle."""

LEAST_PIXELS = 8
"""Fewer fit into one block whatever their shape."""


WIDE_SOURCE = Var("source", Is("one pixel wide", lambda value: value.shape[2] == 1))
KERNEL = Var("weights", Is("a kernel of 1x1", lambda value: value.shape[1:3] == (1, 1)))
WIDE_CONVOLUTION = op(Conv2d, WIDE_SOURCE, KERNEL, having={"stride": (1, 1), "pad": (0, 0, 0, 0)})


def _has_pixels(match: Match) -> Reject | None:
    """The image has more pixels than fit into one block whatever their shape."""
    batch, lines, *_ = match[WIDE_SOURCE].shape
    if batch * lines < LEAST_PIXELS:
        return Reject(f"pixels must be at least {LEAST_PIXELS}, and are {batch * lines}")
    return None


def _widen(graph: Graph, match: Match) -> None:
    operation, source = match[WIDE_CONVOLUTION], match[WIDE_SOURCE]
    result = operation.result
    pixels = source.shape[0] * source.shape[1]
    # Rows stay as many as can be: a compiler cuts an image that does not fit between rows.
    width = LEAST_WIDTH if pixels % LEAST_WIDTH == 0 else pixels
    image = (1, pixels // width, width)
    value = reshaped(graph, operation, source, (*image, source.shape[3]))
    operands = (value, *operation.operands[1:])
    type = result.type.with_shape((*image, result.shape[3]))
    wide = graph.add_beside(operation, operation.kind, operands, type, operation.attributes)
    graph.supersede(result, reshaped(graph, operation, wide, result.shape))


WIDENED = Pattern("a linear layer in a column", WIDE_CONVOLUTION, (_has_pixels,))
WIDENING_RULES = Rules([Rule(WIDENED, _widen)])

WIDEN_COLUMNS = Pass("widen-columns", WIDENING_RULES.rewrite)
"""Let CONV2D of single pixels, one column of them, work on rows instead.

A linear layer on a sequence is a convolution with a kernel of 1x1. To it the shape of its image
is all the same, but an NPU that computes blocks of two by two pixels leaves half of itself idle
in an image that is one pixel wide.
"""


def fold_strides(limits: WindowLimits) -> Pass:
    """Return the pass that gives CONV2Ds with too long a stride blocks of pixels as channels.

    With blocks of stride times stride pixels as channels the stride is one, and the kernel has as
    many blocks as it touches; weights are zero where a block reaches beyond it. Pixels beside each
    other become channels by a RESHAPE; rows below each other by a CONCAT of slices.
    """

    def run(graph: Graph) -> bool:
        convolutions = [
            each for each in graph if isinstance(each, Conv2d) and _strides_far(each, limits)
        ]
        for operation in convolutions:
            _Folding(graph, operation).fold()
        if convolutions:
            graph.erase_dead()
        return bool(convolutions)

    return Pass("fold-strides", run)


def _strides_far(operation: Conv2d, limits: WindowLimits) -> bool:
    return (
        max(operation.stride) > limits.longest_stride
        and operation.dilation == (1, 1)
        and all(operand.constant is not None for operand in operation.operands[1:])
    )


class _Folding:
    def __init__(self, graph: Graph, operation: Conv2d) -> None:
        self.graph = graph
        self.operation = operation
        self.down, self.across = operation.stride
        _, height, width, _ = operation.weight.shape
        self.kernel = (-(-height // self.down), -(-width // self.across))
        """Height and width of the kernel in blocks."""

    def fold(self) -> None:
        """Replace the convolution."""
        old = self.operation
        attributes = {**old.attributes, "stride": (1, 1), "pad": (0, 0, 0, 0)}
        operands = [self._blocks(), self._weights(), *old.operands[2:]]
        result = self._add("CONV2D", operands, old.result.type, attributes)
        self.graph.supersede(old.result, result)

    def _blocks(self) -> Value:
        """Return the input as [N, rows of blocks, columns of blocks, numbers of a block]."""
        value = self._padded()
        batch, height, width, channels = value.shape
        lines, columns = height // self.down, width // self.across
        # Memory of a row of blocks: its first row of pixels, block by block, then the next.
        beside = (batch, lines, self.down * columns, self.across * channels)
        value = reshaped(self.graph, self.operation, value, beside)
        if self.down == 1:
            return value
        part = (batch, lines, columns, self.across * channels)
        size, slices = self._shape(part), list[Value]()
        for line in range(self.down):
            start = self._shape((0, 0, line * columns, 0))
            slices.append(self._add("SLICE", (value, start, size), value.type.with_shape(part)))
        whole = value.type.with_shape((*part[:3], self.down * part[3]))
        return self._add("CONCAT", slices, whole, {"axis": 3})

    def _padded(self) -> Value:
        """Return the input with its padding, and with what the last blocks reach beyond it."""
        value, weights = self.operation.input, self.operation.weight
        top, bottom, left, right = self.operation.pad
        bottom += self.kernel[0] * self.down - weights.shape[1]
        right += self.kernel[1] * self.across - weights.shape[2]
        if not any((top, bottom, left, right)):
            return value
        batch, height, width, channels = value.shape
        shape = (batch, top + height + bottom, left + width + right, channels)
        amounts = self._shape((0, 0, top, bottom, left, right, 0, 0))
        operands = (value, amounts, self.operation.input_zp)
        return self._add("PAD", operands, value.type.with_shape(shape))

    def _weights(self) -> Value:
        """Return the weights as [OC, blocks down, blocks across, numbers of a block]."""
        old, zero = self.operation.weight, self.operation.weight_zp
        values, (outputs, height, width, channels) = old.constant, old.shape
        assert values is not None
        assert zero.constant is not None
        down, across = self.kernel
        whole: Array = np.full(
            (outputs, down * self.down, across * self.across, channels),
            zero.constant.reshape(-1)[0],
            values.dtype,
        )
        whole[:, :height, :width] = values
        blocks = whole.reshape(outputs, down, self.down, across, self.across, channels)
        memory = np.ascontiguousarray(blocks.transpose(0, 1, 3, 2, 4, 5))
        given = self.graph.constant_like(old, memory.reshape(outputs, down, across, -1))
        given.name, old.name = old.name, ""
        return given

    def _shape(self, numbers: tuple[int, ...]) -> Value:
        return self.graph.constant(numbers, DType.SHAPE)

    def _add(
        self,
        kind: str,
        operands: Sequence[Value],
        type: TensorType,
        attributes: Attributes | None = None,
    ) -> Value:
        return self.graph.add_beside(self.operation, kind, operands, type, attributes)


def _split_rescales(graph: Graph) -> bool:
    """Copy RESCALEs to 32 bits so that each has one user.

    An NPU rescales what an elementwise operation takes on the way, for nothing, but only where
    nothing else takes the 32-bit numbers.
    """
    shared = [each for each in graph if _is_shared(each)]
    for operation in shared:
        for user in tuple(operation.result.uses)[1:]:
            _give(graph, operation, user)
    return bool(shared)


def _is_shared(operation: Operation) -> bool:
    return (
        isinstance(operation, Rescale)
        and operation.result.dtype is DType.INT32
        and len(operation.result.uses) > 1
    )


def _give(graph: Graph, operation: Operation, user: Operation) -> None:
    attributes, type = dict(operation.attributes), operation.result.type
    copy = graph.add_beside(operation, operation.kind, operation.operands, type, attributes)
    for index, operand in enumerate(user.operands):
        if operand is operation.result:
            graph.set_operand(user, index, copy)


SPLIT_RESCALES = Pass("split-rescales", _split_rescales)


SOURCE = Var("source")
AMOUNTS = Const("amounts")
NUMBER = Const("number")
ZERO = Const("zero")
PAD = op(Pad, SOURCE, AMOUNTS, NUMBER)
PADDED_CONVOLUTION = op((Conv2d, DepthwiseConv2d), chain(op(Reshape, PAD)), input_zp=ZERO)
POOLING = op(
    MaxPool2d,
    chain(op(Reshape, PAD)),
    result=Is("of integers", lambda value: value.dtype.is_integer),
)


Reader = Conv2d | DepthwiseConv2d | MaxPool2d


def _reader(match: Match) -> Reader:
    return match[PADDED_CONVOLUTION] if PADDED_CONVOLUTION in match else match[POOLING]


def _pads_alike(match: Match) -> Reject | None:
    """Both pad with one number: a convolution with its zero point, a pooling with the least."""
    own = _only(match[ZERO]) if ZERO in match else integer_range(match.root.result.dtype)[0]
    if _only(match[NUMBER]) != own:
        return Reject(f"padding must be with {own}, and is with {_only(match[NUMBER])}", match[PAD])
    return None


def _pads_rows_and_columns(match: Match) -> Reject | None:
    """Nothing but rows and columns is padded, by less than the kernel covers."""
    amounts = _amounts(match)
    if amounts is None:
        return Reject("padding must be of rows and columns", match[PAD])
    reader = _reader(match)
    whole = _whole(reader, amounts)
    height, width = _kernel(reader)
    if max(whole[:2]) >= height or max(whole[2:]) >= width:
        return Reject(f"padding must be less than a kernel of {height}x{width}, and is {whole}")
    return None


def _fuse(graph: Graph, match: Match) -> None:
    reader, amounts = _reader(match), _amounts(match)
    assert amounts is not None
    batch, lines, columns, channels = reader.input.shape
    shape = (batch, lines - sum(amounts[:2]), columns - sum(amounts[2:]), channels)
    graph.set_operand(reader, 0, reshaped(graph, match[PAD], match[SOURCE], shape))
    reader.attributes = {**reader.attributes, "pad": _whole(reader, amounts)}


def _only(value: Value) -> int | float:
    array = value.constant
    assert array is not None
    return array.reshape(-1)[0].item()


def _whole(reader: Reader, amounts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(own + more for own, more in zip(reader.pad, amounts, strict=True))


def _amounts(match: Match) -> tuple[int, int, int, int] | None:
    """Return padding of rows and columns, if a PAD seen in a shape [N, H, W, C] is that only."""
    shape, padded = _reader(match).input.shape, match[PAD].result.shape
    numbers = match[AMOUNTS].constant
    assert numbers is not None
    before = numbers.reshape(-1, 2).tolist()
    seen = [(size, tuple(before[dim])) for dim, size in enumerate(padded) if size > 1]
    if [size for size, _ in seen] != [size for size in shape if size > 1]:
        return None
    amounts = iter([amount for _, amount in seen])
    batch, lines, columns, channels = [next(amounts) if size > 1 else (0, 0) for size in shape]
    if any((*batch, *channels)):
        return None
    return lines[0], lines[1], columns[0], columns[1]


def _kernel(reader: Reader) -> tuple[int, int]:
    """Return the height and width that a kernel covers, dilated."""
    if isinstance(reader, MaxPool2d):
        height, width = reader.kernel
        return height, width
    depthwise = isinstance(reader, DepthwiseConv2d)
    sizes = reader.weight.shape[:2] if depthwise else reader.weight.shape[1:3]
    height, width = (
        (size - 1) * step + 1 for size, step in zip(sizes, reader.dilation, strict=True)
    )
    return height, width


GUARDS = (_pads_alike, _pads_rows_and_columns)
PADDING_RULES = Rules(
    [
        Rule(Pattern("a convolution of padded values", PADDED_CONVOLUTION, GUARDS), _fuse),
        Rule(Pattern("a pooling of padded values", POOLING, GUARDS), _fuse),
    ]
)

FUSE_PADDING = Pass("fuse-padding", PADDING_RULES.rewrite)
"""Take a PAD into the `pad` of what reads it, where both pad with the same number."""


CHANNELS = 3
INPUT_CHANNELS = 3
"""Dimensions of CONV2D's images [N, H, W, C] and of its weights [OC, KH, KW, IC]."""

FIRST = Var("first")
SECOND = op(Rescale, op(TransposeConv2d, once=True), result=of(DType.INT8), once=True)
JOIN = op(Concat, FIRST, SECOND, having={"axis": CHANNELS})
IN_PIECES = Pattern("what is made in pieces", SECOND)


def _begins_whole(match: Match) -> Reject | None:
    """The first part is not made in pieces too."""
    producer = match[FIRST].producer
    if producer is not None and find(match.graph, IN_PIECES, producer) is not None:
        return Reject("the first part must not be in pieces too", producer)
    return None


def _is_added_up(match: Match) -> Reject | None:
    """One image is joined, and nothing but CONV2Ds with constant weights takes it."""
    joined = match[JOIN].result
    if joined in match.graph.outputs or joined.shape[0] != 1:
        return Reject("the joined tensor must be one image and no output")
    for user in joined.uses:
        if not isinstance(user, Conv2d) or user.weight.constant is None:
            return Reject("every user must be CONV2D with constant weights", user)
    return None


def _exchange(graph: Graph, match: Match) -> None:
    join = match[JOIN]
    first, second = join.input1[:2]
    graph.set_operand(join, 0, second)
    graph.set_operand(join, 1, first)
    depths = (first.shape[CHANNELS], second.shape[CHANNELS])
    for user in join.result.uses:
        assert isinstance(user, Conv2d)
        graph.set_operand(user, Conv2d.weight.index, _turned(graph, user.weight, depths))


def _turned(graph: Graph, weights: Value, depths: tuple[int, int]) -> Value:
    """Return weights whose first two blocks of input channels have changed places."""
    array = weights.constant
    assert array is not None
    first, both = depths[0], sum(depths)
    blocks = (array[..., first:both], array[..., :first], array[..., both:])
    return graph.constant_like(weights, np.concatenate(blocks, axis=INPUT_CHANNELS))


JOINING = Pattern("channels joined behind others", JOIN, (_begins_whole, _is_added_up))
JOINING_RULES = Rules([Rule(JOINING, _exchange)])

BEGIN_JOINS = Pass("begin-joins", JOINING_RULES.rewrite)
"""Let CONCATs of channels begin with a transposed convolution, where only CONV2Ds read them.

An NPU makes a transposed convolution in pieces; at the start of a larger tensor the pieces are
in their place at once, elsewhere the whole is moved. A convolution does not mind the order of
the channels that it adds up: its weights change places as they do.
"""
