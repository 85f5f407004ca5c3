"""What a sequence of operations computes, by NumPy alone: a reference for whoever makes sequences.

Written from the manuals' words and TFLite's arithmetic, apart from the simulator, which reads
registers. Tensors lie in memories of their own, in NHWC where they have no layout, and hold
`UNWRITTEN` until something is written. Sums are of 64 bits, and must fit the accumulators.

Its TANH and SIGMOID are the simulator's, whose tables they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    PERMUTATIONS,
    Activation,
    Box,
    Bytes,
    Chain,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Kernel,
    Lines,
    Map,
    MatrixProduct,
    OperandScale,
    Operation,
    Pooling,
    Resize,
    Rounding,
    Scalar,
    Scale,
    Shape,
    Steps,
    Tensor,
)
from mizzen.targets.ethos_u.generator.operations import Sequence as Operations
from mizzen.targets.ethos_u.judge.sim.activation_functions import sigmoid, tanh
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ClipRange,
    ClipRangeU85,
    ElementwiseMode,
    ElementwiseModeU85,
    IfmScaleMode,
    Layout,
    PoolingMode,
    PoolingModeU85,
    ResizeModeU85,
    ReverseU85,
    RoundMode,
    RoundModeOfmU85,
    UpscaleMode,
)

Array = npt.NDArray[Any]
UNWRITTEN = 0xA5
FORCED: dict[ClipRange, np.dtype[Any]] = {
    ClipRange.FORCE_UINT8: np.dtype(np.uint8),
    ClipRange.FORCE_INT8: np.dtype(np.int8),
    ClipRange.FORCE_INT16: np.dtype(np.int16),
}
SEGMENTS_BYTES = 2048
INDICES: dict[int, np.dtype[Any]] = {
    512: np.dtype(np.int8),
    1024: np.dtype(np.int8),
    SEGMENTS_BYTES: np.dtype(np.int16),
}
"""Types of what is looked up in tables that are not as wide as their result, by their bytes."""
LEFT_SHIFT = {1: 20, 2: 15, 4: 15}
TO_ZERO = (RoundMode.TRUNCATE, RoundModeOfmU85.TRUNCATE_TO_ZERO)
UNSCALED = (
    ElementwiseMode.MIN, ElementwiseMode.MAX, ElementwiseMode.SHL, ElementwiseMode.SHR,
    ElementwiseMode.CLZ, ElementwiseMode.LRELU,
)  # fmt: skip


def interpret(sequence: Operations, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs for inputs in the order of the sequence's interface, in NHWC."""
    memory = Memory(sequence.tensors)
    for index, values in zip(sequence.inputs, inputs, strict=True):
        memory.put(index, values)
    for operation in sequence.operations:
        _execute(operation, memory)
    return [memory.get(index) for index in sequence.outputs]


def _execute(operation: Operation, memory: Memory) -> None:
    match operation:
        case Convolution():
            _convolve(operation, memory)
        case MatrixProduct():
            _multiply(operation, memory)
        case Pooling():
            _pool(operation, memory)
        case Resize():
            _resize(operation, memory)
        case Elementwise():
            _combine(operation, memory)
        case Chain(links=links):
            for link in links:
                _execute(link, memory)
        case Copy():
            memory.copy(operation)


def random_inputs(sequence: Operations, seed: int = 0) -> list[Array]:
    """Return inputs that use the whole range of their types."""
    generator = np.random.default_rng(seed)
    rows = [sequence.tensors[index] for index in sequence.inputs]
    limits = [np.iinfo(row.dtype) for row in rows]
    return [
        generator.integers(info.min, info.max, row.shape, row.dtype, endpoint=True)
        for row, info in zip(rows, limits, strict=True)
    ]


def is_same(first: Operations, second: Operations, seeds: Iterable[int] = range(3)) -> bool:
    """Whether two sequences give the same outputs for random inputs."""
    return all(
        np.array_equal(one, other)
        for seed in seeds
        for one, other in zip(
            interpret(first, random_inputs(first, seed)),
            interpret(second, random_inputs(first, seed)),
            strict=True,
        )
    )


class Memory:
    """The bytes of all tensors."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors
        self.bytes = [
            np.full(row.size_bytes(_layout(row)), UNWRITTEN, np.uint8) if row.data is None
            else row.data.copy()
            for row in tensors
        ]  # fmt: skip

    def put(self, index: int, values: Array) -> None:
        """Write a whole tensor."""
        self.write(self._whole(index), values)

    def get(self, index: int) -> Array:
        """Return a whole tensor [height, width, depth]."""
        return self.read(self._whole(index))

    def _whole(self, index: int) -> Map:
        row = self.tensors[index]
        return Map(Box(index, row.shape), row.dtype)

    def read(self, map_: Map) -> Array:
        """Return the elements of a map."""
        places = self.places(map_)
        return self.bytes[map_.tensor][places].view(map_.dtype)[..., 0]

    def write(self, map_: Map, values: Array) -> None:
        """Set the elements of a map."""
        dense = np.ascontiguousarray(values.astype(map_.dtype).reshape(map_.shape))
        places = self.places(map_)
        self.bytes[map_.tensor][places] = dense.view(np.uint8).reshape(places.shape)

    def copy(self, row: Copy) -> None:
        """Transfer bytes; both ends must be inside their tensors."""
        source, destination = self.bytes[row.source], self.bytes[row.destination]
        first, to = row.source_offset_bytes, row.destination_offset_bytes
        if row.lines is not None:
            self._copy_lines(row, row.lines, source[first:], destination[to:])
            return
        assert 0 <= first <= source.size - row.length_bytes
        assert 0 <= to <= destination.size - row.length_bytes
        destination[to : to + row.length_bytes] = source[first : first + row.length_bytes]

    def _copy_lines(self, row: Copy, lines: Lines, source: Array, destination: Array) -> None:
        raw = self.bytes[lines.indices][lines.offset_bytes :][: 4 * lines.count]
        length = row.length_bytes
        for place, index in enumerate(raw.view(np.int32).tolist()):
            assert 0 <= index <= lines.greatest, "an index names a line"
            places = (place, index) if lines.scatters else (index, place)
            start, end = (at * step for at, step in zip(places, lines.strides_bytes, strict=True))
            assert max(start + length - source.size, end + length - destination.size) <= 0
            destination[end : end + length] = source[start : start + length]

    def places(self, map_: Map) -> Array:
        """Return where the bytes of a map's elements are, [height, width, depth, size]."""
        size = map_.dtype.itemsize
        height, width, depth = map_.shape
        y, x = np.arange(height)[:, None, None], np.arange(width)[None, :, None]
        c = np.arange(depth)[None, None, :]
        match map_.view:
            case Box(start=start, steps=steps):
                row = self.tensors[map_.tensor]
                assert row.dtype.itemsize == size, "a box has elements of its tensor"
                layout, strides, base = _layout(row), row.strides_bytes(_layout(row)), 0
                y, x, c = start[0] + steps[0] * y, start[1] + steps[1] * x, start[2] + c
                for places, extent in zip((y, x, c), row.shape, strict=True):
                    assert 0 <= places.min() <= places.max() < extent, "a box is in its tensor"
                whole = not start[2] % BRICK and (steps[1] == 1 or width == 1)
                assert layout is Layout.NHWC or whole, "bricks have whole rows of whole bricks"
            case Bytes(layout=layout, strides_bytes=strides, offset_bytes=base, tiles=tiles):
                if tiles is not None:
                    right = x >= tiles.width_0
                    below = y >= np.where(right, tiles.height_1, tiles.height_0)
                    base = np.select(
                        [right & below, below, right],
                        [tiles.offsets_bytes[2], tiles.offsets_bytes[1], tiles.offsets_bytes[0]],
                        base,
                    )
                    y = np.where(below, y - np.where(right, tiles.height_1, tiles.height_0), y)
                    x = np.where(right, x - tiles.width_0, x)
        if layout is Layout.NHCWB16:
            in_brick = (x * BRICK + c % BRICK) * size
            found = base + y * strides[0] + c // BRICK * strides[2] + in_brick
        else:
            found = base + y * strides[0] + x * strides[1] + c * size
        places = found[..., None] + np.arange(size)
        memory = self.bytes[map_.tensor]
        assert 0 <= places.min() <= places.max() < memory.size, "a map is in its tensor"
        return places


def _layout(row: Tensor) -> Layout:
    return Layout.NHWC if row.layout is None else row.layout


# Windows


def _windows(values: Array, kernel: Kernel, shape: tuple[int, int], fill: int) -> Array:
    """Return the elements of each window, [height, width, kernel height, kernel width, depth]."""
    height = (shape[0] - 1) * kernel.stride_y + kernel.dilated_height
    width = (shape[1] - 1) * kernel.stride_x + kernel.dilated_width
    inside = height - kernel.pad_top - kernel.pad_bottom, width - kernel.pad_left - kernel.pad_right
    for needed, given in zip(inside, values.shape, strict=False):
        assert needed <= given, "a window is in its map"
    padded = np.full((height, width, values.shape[2]), fill, np.int64)
    top, left = kernel.pad_top, kernel.pad_left
    padded[top : top + inside[0], left : left + inside[1]] = values[: inside[0], : inside[1]]
    y = np.arange(shape[0])[:, None] * kernel.stride_y
    x = np.arange(shape[1])[:, None] * kernel.stride_x
    y = y + np.arange(kernel.height) * kernel.dilation_y
    x = x + np.arange(kernel.width) * kernel.dilation_x
    return padded[y[:, None, :, None], x[None, :, None, :]]


def _doubled(values: Array, mode: UpscaleMode) -> Array:
    if mode is UpscaleMode.NONE:
        return values
    doubled = values.repeat(2, axis=0).repeat(2, axis=1)
    if mode is UpscaleMode.ZEROS:
        doubled[1::2] = 0
        doubled[:, 1::2] = 0
    return doubled


def _loaded(map_: Map, memory: Memory) -> Array:
    """Return a map without its zero point, which 32-bit maps do not have."""
    values = memory.read(map_).astype(np.int64)
    return values if map_.dtype.itemsize == 4 else values - map_.zero_point


def _computed(row: Computation) -> Shape:
    """Return the shape of what is computed, before it is permuted."""
    return row.order.computed(row.ofm.shape)


def _convolve(row: Convolution, memory: Memory) -> None:
    shape = _computed(row)
    values = _doubled(_loaded(row.ifm, memory), row.upscale)
    seen = _windows(values, row.kernel, shape[:2], 0).astype(np.float64)
    weights = row.weights.astype(np.float64)
    assert weights.shape[1:3] == (row.kernel.height, row.kernel.width)
    if row.depthwise:
        sums = np.einsum("yxhwc,chw->yxc", seen, weights[..., 0])
    else:
        sums = np.tensordot(seen, weights, ((2, 3, 4), (1, 2, 3)))
    assert sums.shape == shape
    totals = sums.astype(np.int64) + row.scales.biases
    _check_sums(totals, row.accumulators)
    scaled = _scaled(totals, row.scales.multipliers, row.scales.shifts, row.rounding)
    _finish(scaled, row, memory)


def _multiply(row: MatrixProduct, memory: Memory) -> None:
    second = _loaded(row.ifm2, memory)
    assert second.shape == (1, _computed(row)[2], row.ifm.shape[2])
    sums = _loaded(row.ifm, memory) @ second[0].T
    _check_sums(sums, row.accumulators)
    _finish(_scaled_by(sums, row.scale, row.rounding), row, memory)


def _pool(row: Pooling, memory: Memory) -> None:
    kernel, shape = row.kernel, _computed(row)
    if row.mode in SELECTING:
        values = _doubled(memory.read(row.ifm).astype(np.int64), row.upscale)
        info = np.iinfo(row.ifm.dtype)
        fill = info.max if row.mode is PoolingModeU85.MIN else info.min
        seen = _windows(values, kernel, shape[:2], int(fill))
        selected = SELECTING[row.mode](seen, row.ifm.zero_point)
        _finish(_scaled_by(selected, row.scale, row.rounding), row, memory)
        return
    values = _doubled(_loaded(row.ifm, memory), row.upscale)
    sums = _windows(values, kernel, shape[:2], 0).sum(axis=(2, 3))
    if row.mode is PoolingMode.REDUCE_SUM:
        sums = sums.sum(axis=2, keepdims=True)
    _check_sums(sums, row.accumulators)
    if row.mode is PoolingMode.AVERAGE and any(kernel.pads):
        here = _windows(np.ones_like(values), kernel, shape[:2], 0).sum(axis=(2, 3))
        quotients = (2 * np.abs(sums) + here) // (2 * here)
        sums = np.where(sums < 0, -quotients, quotients)
    else:
        sums = _scaled_by(sums, row.scale, row.rounding)
    _finish(sums, row, memory)


SELECTING: dict[PoolingMode | PoolingModeU85, Callable[[Array, int], Array]] = {
    PoolingMode.MAX: lambda seen, zero: seen.max(axis=(2, 3)) - zero,
    PoolingModeU85.MIN: lambda seen, zero: seen.min(axis=(2, 3)) - zero,
    PoolingModeU85.ARGMAX_X: lambda seen, zero: _first_greatest(seen),
    PoolingModeU85.ARGMAX_Y: lambda seen, zero: _first_greatest(seen),
}


def _first_greatest(seen: Array) -> Array:
    """Return the place of the greatest in each window, in units of 1 / 65,536."""
    flat = seen.reshape(*seen.shape[:2], -1, seen.shape[4])
    return flat.argmax(axis=2).astype(np.int64) << 16


def _resize(row: Resize, memory: Memory) -> None:
    height, width, _ = _computed(row)
    values = _loaded(row.ifm, memory)
    for axis, steps, count in ((0, row.rows, height), (1, row.columns, width)):
        values = _resized(values, axis, steps, count, row.mode)
    _finish(_scaled_by(values << 16, row.scale, row.rounding), row, memory)


def _resized(values: Array, axis: int, steps: Steps, count: int, mode: ResizeModeU85) -> Array:
    """Return what is at `count` places of an axis; times `steps.scale` if it is interpolated."""
    whole, part = np.divmod(np.arange(count) * steps.step + steps.offset, steps.scale)
    last = values.shape[axis] - 1
    if mode is ResizeModeU85.NEAREST:
        whole = whole + (2 * part >= steps.scale)
    first = values.take(np.clip(whole, 0, last), axis)
    if mode is not ResizeModeU85.BILINEAR:
        return first
    part = np.moveaxis(part[:, None, None], 0, axis)
    second = values.take(np.clip(whole + 1, 0, last), axis)
    return first * (steps.scale - part) + second * part


def _check_sums(sums: Array, accumulators: AccFormat) -> None:
    limit = 1 << (39 if accumulators is AccFormat.I40 else 31)
    assert -limit <= sums.min() <= sums.max() < limit, "sums fit the accumulators"


# Elementwise operations


def _combine(row: Elementwise, memory: Memory) -> None:
    shape = _computed(row)
    a = np.broadcast_to(_loaded(row.ifm, memory), shape)
    match row.ifm2:
        case None:
            b = a
        case Scalar(value=value, dtype=dtype, zero_point=zero):
            b = np.full(shape, value if dtype.itemsize == 4 else value - zero, np.int64)
        case Map():
            b = np.broadcast_to(_loaded(row.ifm2, memory), shape)
    if row.reversed:
        a, b = b, a
    result = _combined(row, *_operands(row, a, b))
    is_scaled = row.mode not in UNSCALED or row.operand_scales is not None
    if is_scaled and row.scale is not None:
        by = row.scale
        if row.mode is ElementwiseMode.MUL and row.ifm.dtype.itemsize == 4:
            by = Scale(1, by.shift)
        result = _scaled_by(result, by, row.rounding)
    _finish(result, row, memory)


def _operands(row: Elementwise, a: Array, b: Array) -> tuple[Array, Array]:
    """Return the operands of ADD and SUB as they are scaled, others as they are."""
    if row.operand_scales is not None:
        if row.mode is ElementwiseMode.LRELU:
            return a, b
        assert row.mode is not ElementwiseMode.MUL, "operands of a product are not scaled"
        first, second = row.operand_scales[::-1] if row.reversed else row.operand_scales
        return _operand(a, first), _operand(b, second)
    if row.mode not in (ElementwiseMode.ADD, ElementwiseMode.SUB):
        return a, b
    assert row.scale_a is not None
    left = LEFT_SHIFT[row.ifm.dtype.itemsize]
    fine = Scale(row.scale_a.multiplier, row.scale_a.shift + left)
    match row.scale_mode:
        case IfmScaleMode.OPA_OPB_16:
            assert row.scale_b is not None
            return a * row.scale_a.multiplier, b * row.scale_b.multiplier
        case IfmScaleMode.OPA_32:
            return _scaled_by(a << left, fine, row.ifm_rounding), b << (left - 1)
        case IfmScaleMode.OPB_32:
            return a << (left - 1), _scaled_by(b << left, fine, row.ifm_rounding)


def _operand(values: Array, by: OperandScale | None) -> Array:
    """Return an operand as U85 scales it."""
    if by is None:
        return values
    one, shift = np.array(by.multiplier), np.array(by.shift)
    return _scaled(values, one, shift, by.rounding, 31 - by.left)


def _combined(row: Elementwise, a: Array, b: Array) -> Array:
    match row.mode:
        case ElementwiseMode.LRELU if row.operand_scales is not None:
            above, below = (_operand(a, by) for by in row.operand_scales)
            return np.where(a >= 0, above, below)
        case ElementwiseMode.LRELU:
            assert row.scale is not None
            return np.where(a >= 0, a, _scaled_by(a, row.scale, row.rounding))
        case ElementwiseMode.CLZ:
            words = (a & 0xFFFFFFFF).ravel().tolist()
            return np.array([32 - word.bit_length() for word in words], np.int64).reshape(a.shape)
        case ElementwiseMode.SHR if _is_one_of(row.rounding, *TO_ZERO):
            return np.where(a < 0, -(-a >> b), a >> b)
        case ElementwiseMode.SHR if row.rounding is RoundModeOfmU85.TRUNCATE_TO_LOWER:
            return a >> b
        case ElementwiseMode.SHR if row.rounding is RoundModeOfmU85.SYMMETRIC:
            return np.sign(a) * ((np.abs(a) + ((1 << b) >> 1)) >> b)
        case ElementwiseModeU85.LSR:
            bits = 8 * row.ifm.dtype.itemsize
            shifted = (a & ((1 << bits) - 1)) >> b
            return np.where(shifted >> (bits - 1), shifted - (1 << bits), shifted)
        case ElementwiseModeU85.DIV:
            assert b.all(), "a divisor is not 0"
            return np.abs(a) // np.abs(b) * np.sign(a) * np.sign(b)
        case mode:
            return SIMPLE[mode](a, b)


SIMPLE: dict[ElementwiseMode | ElementwiseModeU85, Callable[[Array, Array], Array]] = {
    ElementwiseMode.MUL: lambda a, b: a * b,
    ElementwiseMode.ADD: lambda a, b: a + b,
    ElementwiseMode.SUB: lambda a, b: a - b,
    ElementwiseMode.MIN: np.minimum,
    ElementwiseMode.MAX: np.maximum,
    ElementwiseMode.ABS: lambda a, b: np.abs(a),
    ElementwiseMode.SHL: lambda a, b: a << b,
    ElementwiseMode.SHR: lambda a, b: (a + ((1 << b) >> 1)) >> b,
    ElementwiseModeU85.CMP_EQ: lambda a, b: -(a == b).astype(np.int64),
    ElementwiseModeU85.CMP_NE: lambda a, b: -(a != b).astype(np.int64),
    ElementwiseModeU85.CMP_GE: lambda a, b: -(a >= b).astype(np.int64),
    ElementwiseModeU85.CMP_GT: lambda a, b: -(a > b).astype(np.int64),
    ElementwiseModeU85.AND: lambda a, b: a & b,
    ElementwiseModeU85.OR: lambda a, b: a | b,
    ElementwiseModeU85.XOR: lambda a, b: a ^ b,
    ElementwiseModeU85.NOT: lambda a, b: ~a,
    ElementwiseModeU85.AND_NOT: lambda a, b: a & ~b,
}


# Scaling, and what follows it


def _is_one_of(rounding: Rounding, *modes: Rounding) -> bool:
    """Whether a rounding is one of some: numbers of modes of both machines are alike."""
    return any(rounding is mode for mode in modes)


def _scaled_by(values: Array, scale: Scale, rounding: Rounding) -> Array:
    return _scaled(values, np.array(scale.multiplier), np.array(scale.shift), rounding)


def _scaled(
    values: Array, multipliers: Array, shifts: Array, rounding: Rounding, bit: int = 31
) -> Array:
    """Return `values * multiplier / 2**shift`, rounded; DBL rounds at `bit` and then again."""
    largest = int(np.abs(values).max()) * int(np.abs(multipliers).max())
    assert largest < 1 << 62, "products fit 64 bits"
    products = values * multipliers.astype(np.int64)
    if _is_one_of(rounding, *TO_ZERO):
        return np.where(products < 0, -(-products >> shifts), products >> shifts)
    if rounding is RoundModeOfmU85.TRUNCATE_TO_LOWER:
        return products >> shifts
    once = np.minimum(shifts, bit)
    if _is_one_of(rounding, RoundMode.NATURAL, RoundModeOfmU85.NATURAL):
        once = shifts
    if rounding is RoundModeOfmU85.SYMMETRIC:
        once = shifts - shifts
    high = (products + ((np.int64(1) << once) >> 1)) >> once
    rest = shifts - once
    away = (np.abs(high) + ((np.int64(1) << rest) >> 1)) >> rest
    return np.where(high < 0, -away, away)


def _finish(values: Array, row: Computation, memory: Memory) -> None:
    """Add the zero point, clip, look up, and write in the order that is wanted."""
    ofm, activation = row.ofm, row.activation
    curve = None if activation.table is not None else CURVES[activation.function]
    if curve is not None:
        _store(curve(values), row, memory)
        return
    if activation.clip_range is ClipRangeU85.NONE:
        _store((values + ofm.zero_point).astype(ofm.dtype), row, memory)
        return
    ranged = _ranged(activation, ofm.dtype)
    if ranged.itemsize <= 2:
        info, low, high = np.iinfo(ranged), activation.minimum, activation.maximum
        if info.min == 0:
            low, high = low & 0xFFFF, high & 0xFFFF
        low, high = max(low, int(info.min)), min(high, int(info.max))
        values = np.clip(values + ofm.zero_point, low, high)
    if activation.table is not None:
        values = _looked_up(values, activation.table.data, ofm.dtype, ranged)
    held = np.iinfo(ofm.dtype)
    assert held.min <= values.min() <= values.max() <= held.max, "results fit their type"
    _store(values, row, memory)


def _ranged(activation: Activation, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type whose range clips a result."""
    if activation.table is not None and len(activation.table.data) in INDICES:
        return INDICES[len(activation.table.data)]
    if isinstance(activation.clip_range, ClipRange):
        return FORCED.get(activation.clip_range, dtype)
    return dtype


def _store(values: Array, row: Computation, memory: Memory) -> None:
    """Write what was computed, reversed and permuted."""
    if row.order.reverse is not ReverseU85.NONE:
        values = np.flip(values, int(row.order.reverse) - 1)
    memory.write(row.ofm, values.transpose(PERMUTATIONS[row.order.transpose]))


CURVES: dict[str, Callable[[Array], Array] | None] = {
    "RELU": None,
    "SIGMOID": sigmoid,
    "TANH": tanh,
}


def _looked_up(values: Array, data: bytes, dtype: np.dtype[Any], index: np.dtype[Any]) -> Array:
    if len(data) == SEGMENTS_BYTES:
        pairs = np.frombuffer(data, np.int16).reshape(512, 2).astype(np.int64)
        base, slope = pairs[(values + 32768) >> 7].transpose(3, 0, 1, 2)
        line = slope * (values & 127)
        return base + ((line + 64) >> 7) if dtype.itemsize == 2 else (base << 7) + line
    return np.frombuffer(data, dtype)[values - int(np.iinfo(index).min)].astype(np.int64)
