"""Random TFLite networks: branches, views and odd shapes of every operator that compilers take."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fuzz_grower import Grow, Grower, Made, Shape
from mizzen.flatbuffer import Record

SAME, VALID = 0, 1
MOST_ELEMENTS = 3000
"""Of a tensor; larger ones take time and show nothing more."""


def _rarely(g: Grower, x: Made) -> bool:
    """Whether to pass over what no kernel on the CPU computes in this type, and the NPU may."""
    return x.dtype != "int8" and g.rng.random() < 0.9


def _fits(shape: Shape) -> bool:
    return 0 < math.prod(shape) <= MOST_ELEMENTS


def _window(g: Grower, size: int, kernel: int, stride: int, dilation: int, padding: int) -> int:
    reach = (kernel - 1) * dilation + 1
    return -(-size // stride) if padding == SAME else (size - reach) // stride + 1


def _geometry(g: Grower, x: Made, largest: int = 4) -> tuple[Record, Shape, Shape] | None:
    """Return options of a window over a map, its size, and the size of the result."""
    rng = g.rng
    kernel = (rng.randint(1, largest), rng.randint(1, largest))
    stride = (rng.choice((1, 1, 1, 2, 3)), rng.choice((1, 1, 1, 2, 3)))
    if g.square and rng.random() < 0.9:
        kernel = (rng.choice((1, 2, 3, 3, 5)),) * 2
        stride = (rng.choice((1, 1, 2)),) * 2
    padding = rng.choice((SAME, VALID))
    size = tuple(_window(g, x.shape[1 + i], kernel[i], stride[i], 1, padding) for i in (0, 1))
    if min(size) < 1:
        return None
    options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1],
               "fused_activation_function": g.activation()}  # fmt: skip
    return options, kernel, size


def _weights(g: Grower, shape: Shape, dtype: str, axis: int, fan: int) -> tuple[int, list[float]]:
    count = shape[axis]
    base = 1.0 / (40 * math.sqrt(fan))
    if dtype == "uint8":
        data = g.numbers.integers(0, 256, shape).astype(np.uint8)
        return g.constant(data, base, g.rng.choice((128, 117))), [base] * count
    data = g.numbers.integers(-127, 128, shape).astype(np.int8)
    scales = [base * g.rng.uniform(0.3, 1.5) for _ in range(count)]
    if g.rng.random() < 0.3:
        scales = [base]
    index = g.constant(data, scales, axis=axis)
    return index, scales * (count // len(scales))


def _bias(g: Grower, x: Made, scales: list[float]) -> int:
    wide = np.int64 if x.dtype == "int16" else np.int32
    data = np.rint(g.numbers.normal(0, 1.5, len(scales)) / (np.array(scales) * x.scale))
    data = np.clip(data, -(1 << 30), 1 << 30)
    rows = [float(row * x.scale) for row in scales]
    return g.constant(data.astype(wide), rows[0] if len(set(rows)) == 1 else rows)


def convolution(g: Grower, x: Made) -> int:
    """Add a CONV_2D."""
    if x.rank != 4 or (found := _geometry(g, x)) is None:
        return 0
    options, kernel, size = found
    depth = g.rng.choice((1, 2, 3, 5, 8, 16, 17))
    if not _fits((x.shape[0], *size, depth)):
        return 0
    fan = kernel[0] * kernel[1] * x.shape[3]
    weights, scales = _weights(g, (depth, *kernel, x.shape[3]), x.dtype, 0, fan)
    y = g.tensor((x.shape[0], *size, depth), x.dtype)
    inputs = [x.index, weights, _bias(g, x, scales)]
    return g.add("CONV_2D", inputs, [y], "Conv2DOptions", **options)


def depthwise(g: Grower, x: Made) -> int:
    """Add a DEPTHWISE_CONV_2D."""
    if x.rank != 4 or (found := _geometry(g, x)) is None:
        return 0
    options, kernel, size = found
    times = g.rng.choice((1, 1, 2, 3)) if x.shape[3] > 1 else g.rng.choice((1, 2, 8))
    times = 1 if g.square else times
    depth = x.shape[3] * times
    if not _fits((x.shape[0], *size, depth)):
        return 0
    weights, scales = _weights(g, (1, *kernel, depth), x.dtype, 3, kernel[0] * kernel[1])
    y = g.tensor((x.shape[0], *size, depth), x.dtype)
    inputs = [x.index, weights, _bias(g, x, scales)]
    options["depth_multiplier"] = times
    return g.add("DEPTHWISE_CONV_2D", inputs, [y], "DepthwiseConv2DOptions", **options)


def transposed(g: Grower, x: Made) -> int:
    """Add a TRANSPOSE_CONV."""
    if x.rank != 4:
        return 0
    rng = g.rng
    kernel, padding = (rng.randint(1, 4), rng.randint(1, 4)), rng.choice((SAME, VALID))
    stride = rng.choice(((1, 1), (2, 2), (2, 2), (1, 2)))
    if g.square:
        kernel, stride = (rng.choice((1, 2, 3, 5)),) * 2, (2, 2)
    size = [
        x.shape[1 + i] * stride[i] if padding == SAME
        else (x.shape[1 + i] - 1) * stride[i] + max(kernel[i], stride[i])
        for i in (0, 1)
    ]  # fmt: skip
    depth = rng.choice((1, 3, 4, 8))
    shape = (x.shape[0], *size, depth)
    if not _fits(shape):
        return 0
    weights, scales = _weights(g, (depth, *kernel, x.shape[3]), x.dtype, 0, 4 * x.shape[3])
    y = g.tensor(shape, x.dtype)
    inputs = [g.integers(*shape), weights, x.index]
    if rng.random() < 0.6:
        inputs.append(_bias(g, x, scales))
    return g.add("TRANSPOSE_CONV", inputs, [y], "TransposeConvOptions", padding=padding,
                 stride_h=stride[0], stride_w=stride[1])  # fmt: skip


def fully(g: Grower, x: Made) -> int:
    """Add a FULLY_CONNECTED."""
    if x.rank < 2:
        return 0
    fan, depth = x.shape[-1], g.rng.choice((1, 3, 5, 8, 16))
    keep = x.rank > 2 and g.rng.random() < 0.5
    weights, scales = _weights(g, (depth, fan), x.dtype, 0, fan)
    shape = (*x.shape[:-1], depth) if keep else (math.prod(x.shape[:-1]), depth)
    y = g.tensor(shape, x.dtype)
    return g.add("FULLY_CONNECTED", [x.index, weights, _bias(g, x, scales)], [y],
                 "FullyConnectedOptions", keep_num_dims=keep,
                 fused_activation_function=g.activation())  # fmt: skip


def pool(g: Grower, x: Made) -> int:
    """Add a pool."""
    if x.rank != 4 or (found := _geometry(g, x)) is None:
        return 0
    options, kernel, size = found
    kind = g.rng.choice(("AVERAGE_POOL_2D", "MAX_POOL_2D"))
    if g.square and kind == "MAX_POOL_2D":
        kernel, size = (2, 2), (x.shape[1] // 2, x.shape[2] // 2)
        options |= {"padding": VALID, "stride_h": 2, "stride_w": 2}
        if min(size) < 1:
            return 0
    y = g.tensor((x.shape[0], *size, x.shape[3]), x.dtype, x)
    options |= {"filter_height": kernel[0], "filter_width": kernel[1]}
    return g.add(kind, [x.index], [y], "Pool2DOptions", **options)


BINARY = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions",
          "MAXIMUM": "MaximumMinimumOptions", "MINIMUM": "MaximumMinimumOptions",
          "SQUARED_DIFFERENCE": "SquaredDifferenceOptions"}  # fmt: skip


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    try:
        shape = tuple(np.broadcast_shapes(a, b))
    except ValueError:
        return None
    return shape if _fits(shape) and len(shape) <= 4 else None


def binary(g: Grower, x: Made) -> int:
    """Add an elementwise operator of two tensors, or of one and a constant."""
    rng = g.rng
    kind = rng.choice(("ADD", "ADD", "SUB", "MUL", "MUL", "MAXIMUM", "MINIMUM",
                       "SQUARED_DIFFERENCE"))  # fmt: skip
    if x.dtype in ("uint8", "int16") and kind == "SQUARED_DIFFERENCE":
        kind = "ADD"
    select = kind in ("MAXIMUM", "MINIMUM")

    def fits(row: Made) -> bool:
        same = not select or (row.scale, row.zero) == (x.scale, x.zero)
        return same and row.dtype == x.dtype and _broadcast(x.shape, row.shape) is not None

    other = g.pick(lambda row: row is not x and fits(row)) if rng.random() < 0.9 else x
    if other is x or not fits(other):
        other = _flat(g, x)
    shape = _broadcast(x.shape, other.shape)
    if shape is None:
        return 0
    y = g.tensor(shape, x.dtype, x if select else None)
    inputs = [x.index, other.index]
    rng.shuffle(inputs)
    fields: Record = {} if select or kind == "SQUARED_DIFFERENCE" else {
        "fused_activation_function": g.activation()}  # fmt: skip
    if x.dtype == "int16" and kind in ("ADD", "SUB"):
        fields["pot_scale_int16"] = False
    return g.add(kind, inputs, [y], BINARY[kind], **fields)


def _flat(g: Grower, x: Made) -> Made:
    """Return a constant that broadcasts to a tensor, or with it."""
    shape = tuple(size if g.rng.random() < 0.5 else 1 for size in x.shape)
    shape = shape[g.rng.choice((0, 0, 0, x.rank - 1)) :]
    info = np.iinfo(x.dtype)
    data = g.numbers.integers(info.min, info.max, shape, endpoint=True).astype(x.dtype)
    return replace(x, index=g.constant(data, x.scale, x.zero), shape=shape)


def outer(g: Grower, x: Made) -> int:
    """Add views of two tensors, and an operator that broadcasts both: x[:, None] - x[None]."""
    if x.rank not in (2, 3):
        return 0
    other = g.pick(lambda row: row.shape == x.shape and row.dtype == x.dtype)
    if other.shape != x.shape:
        return 0
    places = [g.rng.randint(0, x.rank) for _ in range(2)]
    views: list[Made] = []
    for row, place in zip((x, other), places, strict=True):
        view = g.tensor((*row.shape[:place], 1, *row.shape[place:]), row.dtype, row)
        _view(g, row, view, place)
        views.append(view)
    shape = _broadcast(views[0].shape, views[1].shape)
    if shape is None:
        return 2
    y = g.tensor(shape, x.dtype)
    kind = g.rng.choice(("ADD", "SUB", "MUL"))
    fields: Record = {"pot_scale_int16": False} if x.dtype == "int16" and kind != "MUL" else {}
    return 2 + g.add(kind, [row.index for row in views], [y], BINARY[kind], **fields)


def _view(g: Grower, row: Made, view: Made, place: int) -> None:
    if g.rng.random() < 0.5:
        g.add("EXPAND_DIMS", [row.index, g.integers(place)], [view], "ExpandDimsOptions")
    else:
        _reshape(g, row, view)


def _reshape(g: Grower, x: Made, y: Made) -> int:
    return g.add("RESHAPE", [x.index, g.integers(*y.shape)], [y], "ReshapeOptions",
                 new_shape=np.array(y.shape, np.int32))  # fmt: skip


FUNCTIONS = {"int8": ("RELU", "RELU6", "LEAKY_RELU", "HARD_SWISH", "LOGISTIC", "TANH", "ABS",
                      "PRELU"),
             "uint8": ("RELU", "RELU6", "LOGISTIC", "TANH"),
             "int16": ("LEAKY_RELU", "LOGISTIC", "TANH", "ABS", "RELU")}  # fmt: skip


def function(g: Grower, x: Made) -> int:
    """Add a function of one tensor."""
    kind = g.rng.choice(FUNCTIONS[x.dtype])
    fixed = {("LOGISTIC", "int8"): (1 / 256, -128), ("TANH", "int8"): (1 / 128, 0),
             ("LOGISTIC", "uint8"): (1 / 256, 0), ("TANH", "uint8"): (1 / 128, 128),
             ("LOGISTIC", "int16"): (1 / 32768, 0), ("TANH", "int16"): (1 / 32768, 0)}  # fmt: skip
    found = fixed.get((kind, x.dtype))
    like = None if found is None else replace(x, scale=found[0], zero=found[1])
    inputs = [x.index]
    if kind == "PRELU":
        if x.rank != 4:
            return 0
        alpha = g.numbers.integers(-128, 128, (1, 1, x.shape[3])).astype(np.int8)
        inputs.append(g.constant(alpha, 0.004, -20))
    y = g.tensor(x.shape, x.dtype, like)
    if kind == "LEAKY_RELU":
        return g.add(kind, inputs, [y], "LeakyReluOptions", alpha=g.rng.choice((0.01, 0.2, 0.5)))
    return g.add(kind, inputs, [y])


def softmax(g: Grower, x: Made) -> int:
    """Add a SOFTMAX; that of INT16 has a documented difference of its own."""
    if x.rank < 2 or x.dtype == "int16" or _rarely(g, x):
        return 0
    y = g.tensor(x.shape, x.dtype, replace(x, scale=1 / 256, zero=-128 if x.dtype == "int8" else 0))
    return g.add("SOFTMAX", [x.index], [y], "SoftmaxOptions", beta=1.0)


def reshape(g: Grower, x: Made) -> int:
    """Add a RESHAPE to any shape."""
    left, sizes = math.prod(x.shape), list[int]()
    for _ in range(g.rng.choice((0, 1, 2, 3, 3, 3))):
        divisors = [row for row in range(1, left + 1) if left % row == 0]
        sizes.append(g.rng.choice(divisors))
        left //= sizes[-1]
    sizes.append(left)
    if g.rng.random() < 0.6:
        g.rng.shuffle(sizes)
    if g.rng.random() < 0.7 and len(sizes) == 4:
        sizes = [1, sizes[0] * sizes[1], *sizes[2:]]
    return _reshape(g, x, g.tensor(tuple(sizes), x.dtype, x))


def expand(g: Grower, x: Made) -> int:
    """Add an EXPAND_DIMS or a SQUEEZE."""
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    if x.rank > 2 and ones and g.rng.random() < 0.5:
        axis = g.rng.choice(ones)
        y = g.tensor((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype, x)
        return g.add("SQUEEZE", [x.index], [y], "SqueezeOptions",
                     squeeze_dims=np.array([axis], np.int32))  # fmt: skip
    if x.rank > 3:
        return 0
    place = g.rng.randint(0, x.rank)
    y = g.tensor((*x.shape[:place], 1, *x.shape[place:]), x.dtype, x)
    return g.add("EXPAND_DIMS", [x.index, g.integers(place)], [y], "ExpandDimsOptions")


def transpose(g: Grower, x: Made) -> int:
    """Add a TRANSPOSE."""
    if x.rank < 2 or (x.dtype == "uint8" and _rarely(g, x)):
        return 0
    order = list(range(x.rank))
    g.rng.shuffle(order)
    y = g.tensor(tuple(x.shape[axis] for axis in order), x.dtype, x)
    return g.add("TRANSPOSE", [x.index, g.integers(*order)], [y], "TransposeOptions")


def pad(g: Grower, x: Made) -> int:
    """Add a PAD, PADV2 or MIRROR_PAD."""
    kind = g.rng.choice(("PAD", "PAD", "PADV2", "MIRROR_PAD", "MIRROR_PAD"))
    mode = g.rng.choice((0, 1))
    if kind == "MIRROR_PAD" and _rarely(g, x):
        kind = "PAD"
    mirror = kind == "MIRROR_PAD"
    sides: list[list[int]] = []
    for size in x.shape:
        most = min(2, size - (mode == 0)) if mirror else 3
        some = g.rng.random() < 0.5
        sides.append([g.rng.randint(0, most), g.rng.randint(0, most)] if some else [0, 0])
    if x.rank == 4 and g.rng.random() < 0.8:
        sides[0] = [0, 0]
    if x.rank == 4 and g.rng.random() < 0.6:
        sides[3] = [0, 0]
    shape = tuple(size + sum(row) for size, row in zip(x.shape, sides, strict=True))
    if not _fits(shape) or shape == x.shape:
        return 0
    y = g.tensor(shape, x.dtype, x)
    inputs = [x.index, g.constant(np.array(sides, np.int32))]
    if kind == "PADV2":
        value = g.numbers.integers(np.iinfo(x.dtype).min, np.iinfo(x.dtype).max, ())
        inputs.append(g.constant(np.array([value]).astype(x.dtype), x.scale, x.zero))
        return g.add(kind, inputs, [y], "PadV2Options")
    return g.add(kind, inputs, [y], *(("MirrorPadOptions",) if mirror else ("PadOptions",)),
                 **({"mode": mode} if mirror else {}))  # fmt: skip


def concatenation(g: Grower, x: Made) -> int:
    """Add a CONCATENATION."""
    axis = g.rng.randrange(x.rank)

    def fits(row: Made) -> bool:
        same = (row.dtype, row.scale, row.zero, row.rank) == (x.dtype, x.scale, x.zero, x.rank)
        return same and all(
            a == b or i == axis for i, (a, b) in enumerate(zip(row.shape, x.shape, strict=True))
        )

    rows = [x, *(row for row in g.live if fits(row) and g.rng.random() < 0.6)][:4]
    if len(rows) < 2:
        rows.append(x)
    g.rng.shuffle(rows)
    shape = list(x.shape)
    shape[axis] = sum(row.shape[axis] for row in rows)
    if not _fits(tuple(shape)):
        return 0
    y = g.tensor(tuple(shape), x.dtype, x)
    return g.add("CONCATENATION", [row.index for row in rows], [y], "ConcatenationOptions",
                 axis=g.rng.choice((axis, axis - x.rank)))  # fmt: skip


def split(g: Grower, x: Made) -> int:
    """Add a SPLIT, SPLIT_V or UNPACK."""
    rng = g.rng
    axis = rng.randrange(x.rank)
    size = x.shape[axis]
    if size < 2:
        return 0
    kind = rng.choice(("SPLIT", "SPLIT_V", "UNPACK"))
    if kind == "UNPACK":
        if size > 5 or x.rank < 2:
            return 0
        rest = (*x.shape[:axis], *x.shape[axis + 1 :])
        made = [g.tensor(rest, x.dtype, x) for _ in range(size)]
        return g.add(kind, [x.index], made, "UnpackOptions", num=size, axis=axis)
    counts = [row for row in range(2, min(size, 5) + 1) if size % row == 0]
    if kind == "SPLIT" and not counts:
        return 0
    if kind == "SPLIT":
        count = rng.choice(counts)
        parts = [size // count] * count
        inputs = [g.integers(axis), x.index]
        inputs[0] = g.constant(np.array(axis, np.int32))
    else:
        cut = rng.randint(1, size - 1)
        parts = [cut, size - cut]
        inputs = [x.index, g.integers(*parts), g.constant(np.array(axis, np.int32))]
    made = [g.tensor((*x.shape[:axis], row, *x.shape[axis + 1 :]), x.dtype, x) for row in parts]
    name = "SplitOptions" if kind == "SPLIT" else "SplitVOptions"
    return g.add(kind, inputs, made, name, num_splits=len(parts))


def slice_(g: Grower, x: Made) -> int:
    """Add a SLICE."""
    begin, size = list[int](), list[int]()
    for full in x.shape:
        start = g.rng.randint(0, full - 1) if g.rng.random() < 0.5 else 0
        begin.append(start)
        size.append(g.rng.randint(1, full - start) if g.rng.random() < 0.6 else full - start)
    y = g.tensor(tuple(size), x.dtype, x)
    return g.add("SLICE", [x.index, g.integers(*begin), g.integers(*size)], [y], "SliceOptions")


def strided(g: Grower, x: Made) -> int:
    """Add a STRIDED_SLICE."""
    rng = g.rng
    begin, end, strides, shape = list[int](), list[int](), list[int](), list[int]()
    shrink = 0
    for axis, full in enumerate(x.shape):
        start, stop, step = 0, full, 1
        if rng.random() < 0.5:
            start = rng.randint(0, full - 1)
            stop = rng.randint(start + 1, full)
            step = rng.choice((1, 1, 2, 3))
        if rng.random() < 0.15 and len(x.shape) - bin(shrink).count("1") > 1:
            shrink |= 1 << axis
            begin.append(start)
            end.append(start + 1)
            strides.append(1)
            continue
        if start == 0 and rng.random() < 0.1 and stop == full:
            start, stop, step = full - 1, -full - 1, -1
        begin.append(start)
        end.append(stop)
        strides.append(step)
        shape.append(len(range(start, stop, step)) if step > 0 else full)
    y = g.tensor(tuple(shape), x.dtype, x)
    inputs = [x.index, g.integers(*begin), g.integers(*end), g.integers(*strides)]
    return g.add("STRIDED_SLICE", inputs, [y], "StridedSliceOptions", shrink_axis_mask=shrink)


def pack(g: Grower, x: Made) -> int:
    """Add a PACK."""
    if x.rank > 3:
        return 0
    same = [row for row in g.live
            if (row.shape, row.dtype, row.scale, row.zero)
            == (x.shape, x.dtype, x.scale, x.zero)]  # fmt: skip
    rows = [g.rng.choice(same) for _ in range(g.rng.randint(2, 3))]
    axis = g.rng.randint(0, x.rank)
    y = g.tensor((*x.shape[:axis], len(rows), *x.shape[axis:]), x.dtype, x)
    return g.add("PACK", [row.index for row in rows], [y], "PackOptions", values_count=len(rows),
                 axis=axis)  # fmt: skip


def gather(g: Grower, x: Made) -> int:
    """Add a GATHER of constant places."""
    if _rarely(g, x):
        return 0
    axis = g.rng.randrange(x.rank)
    count = g.rng.randint(1, 4)
    places = [g.rng.randrange(x.shape[axis]) for _ in range(count)]
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    y = g.tensor(shape, x.dtype, x)
    return g.add("GATHER", [x.index, g.integers(*places)], [y], "GatherOptions", axis=axis)


def reduction(g: Grower, x: Made) -> int:
    """Add a reduction."""
    kind = g.rng.choice(("MEAN", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"))
    if x.dtype == "uint8" and kind != "MEAN":
        return 0
    if kind == "REDUCE_MIN" and _rarely(g, x):
        return 0
    return _reduce(g, x, kind)


def _reduce(g: Grower, x: Made, kind: str) -> int:
    axes = [axis for axis in range(x.rank) if g.rng.random() < 0.4] or [x.rank - 1]
    axes = [1, 2] if g.square and x.rank == 4 else axes
    keep = g.rng.random() < 0.5 or len(axes) == x.rank
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    if not keep:
        shape = [size for axis, size in enumerate(x.shape) if axis not in axes]
    like = None if kind == "MEAN" and g.rng.random() < 0.5 else x
    y = g.tensor(tuple(shape), x.dtype, like)
    return g.add(kind, [x.index, g.integers(*axes)], [y], "ReducerOptions", keep_dims=keep)


RESIZES = (
    ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
    ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
)


def resize(g: Grower, x: Made) -> int:
    """Add a RESIZE."""
    if x.rank != 4:
        return 0
    rng = g.rng
    factor = rng.choice((1, 2, 2, 2, 4))
    size = [max(1, side * factor) for side in x.shape[1:3]]
    align = rng.random() < 0.3
    if align and factor > 1:
        size = [(side - 1) * factor + 1 for side in x.shape[1:3]]
    if rng.random() < 0.15:
        size = [rng.randint(1, 12), rng.randint(1, 12)]
    shape = (x.shape[0], *size, x.shape[3])
    if not _fits(shape):
        return 0
    half = not align and rng.random() < 0.5
    kind, name = rng.choice(RESIZES)
    if kind == "RESIZE_BILINEAR" and x.dtype == "int16" and rng.random() < 0.95:
        kind, name = RESIZES[1]
    y = g.tensor(shape, x.dtype, x)
    return g.add(kind, [x.index, g.integers(*size)], [y], name, align_corners=align,
                 half_pixel_centers=half)  # fmt: skip


def requantize(g: Grower, x: Made) -> int:
    """Add a QUANTIZE to another scale."""
    if x.dtype == "uint8":
        return 0
    y = g.tensor(x.shape, x.dtype)
    return g.add("QUANTIZE", [x.index], [y])


def matmul(g: Grower, x: Made) -> int:
    """Add a BATCH_MATMUL of two tensors."""
    if x.rank < 3 or x.dtype == "uint8":
        return 0
    adjoint = g.rng.random() < 0.5

    def fits(row: Made) -> bool:
        inner = row.shape[-1] if adjoint else row.shape[-2] if row.rank > 1 else 0
        return (row.dtype == x.dtype and row.rank == x.rank and inner == x.shape[-1]
                and row.shape[:-2] == x.shape[:-2])  # fmt: skip

    other = g.pick(fits)
    if not fits(other):
        return 0
    shape = (*x.shape[:-1], other.shape[-2 if adjoint else -1])
    if not _fits(shape):
        return 0
    y = g.tensor(shape, x.dtype)
    return g.add("BATCH_MATMUL", [x.index, other.index], [y], "BatchMatMulOptions", adj_x=False,
                 adj_y=adjoint)  # fmt: skip


def blocks(g: Grower, x: Made) -> int:
    """Add a SPACE_TO_DEPTH or a DEPTH_TO_SPACE."""
    if x.rank != 4 or _rarely(g, x):
        return 0
    n, height, width, depth = x.shape
    if height % 2 == 0 and width % 2 == 0:
        y = g.tensor((n, height // 2, width // 2, depth * 4), x.dtype, x)
        return g.add("SPACE_TO_DEPTH", [x.index], [y], "SpaceToDepthOptions", block_size=2)
    if depth % 4 == 0:
        y = g.tensor((n, height * 2, width * 2, depth // 4), x.dtype, x)
        return g.add("DEPTH_TO_SPACE", [x.index], [y], "DepthToSpaceOptions", block_size=2)
    return 0


OPERATORS: dict[str, Grow] = {
    "convolution": convolution, "depthwise": depthwise, "transposed": transposed, "fully": fully,
    "pool": pool, "binary": binary, "outer": outer, "function": function, "softmax": softmax,
    "reshape": reshape, "expand": expand, "transpose": transpose, "pad": pad,
    "concatenation": concatenation, "split": split, "slice": slice_, "strided": strided,
    "pack": pack, "gather": gather, "reduction": reduction, "resize": resize,
    "requantize": requantize, "matmul": matmul, "blocks": blocks,
}  # fmt: skip

TIMES = {"binary": 4, "convolution": 2, "depthwise": 2, "function": 2, "reshape": 2}
EVERY = tuple(row for name, row in OPERATORS.items() for _ in range(TIMES.get(name, 1)))

COMPUTING = ("convolution", "convolution", "depthwise", "depthwise", "transposed", "fully", "pool",
             "binary", "binary", "function", "concatenation", "split", "reduction", "resize",
             "requantize", "reshape")  # fmt: skip
"""Operators of which Ethos-N has forms."""

MANY = ("int8",) * 12 + ("int16",) * 7 + ("uint8",)
DTYPES = {"u55": MANY, "u65": MANY, "u85": MANY, "n78": ("int8",) * 9 + ("uint8",)}


SIZES = ((5, 7), (5, 9), (6, 10), (5, 7), (5, 9), (6, 10), (5, 9), (7, 12), (10, 16), (14, 25))
"""Least and most operators of programs in turn: a defect needs a few, and time goes with them."""


def network(family: str, seed: int, number: int) -> bytes:
    """Return the file of a network of 5 to 25 operators, the same one every time."""
    least, most = SIZES[number % len(SIZES)]
    square = family == "n78" and number % 8 != 0
    some = tuple(OPERATORS[name] for name in COMPUTING) + EVERY[:: len(EVERY) // 4]
    operators = some if square else EVERY
    grower = Grower(f"{family} {seed} {number}", DTYPES[family], square=square)
    return grower.grow(operators, least, most)
