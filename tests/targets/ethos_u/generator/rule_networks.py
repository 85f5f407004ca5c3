"""Random networks of one operator that our rules make of several operations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.package.tflite.builder import NetworkBuilder

Shape = tuple[int, ...]


def _shape(rng: np.random.Generator, rank: int, most: int = 7) -> Shape:
    return tuple(int(extent) for extent in rng.integers(1, most, rank, endpoint=True))


def _tensor(net: NetworkBuilder, rng: np.random.Generator, shape: Shape, dtype: str) -> int:
    info = np.iinfo(dtype)
    zero = 0 if info.bits > 8 else int(rng.integers(info.min, info.max, endpoint=True))
    return net.tensor("t", shape, dtype, float(rng.uniform(0.01, 0.1)), zero)


def place_of_greatest(seed: int) -> bytes:
    """ARG_MAX along any axis, of up to 300 places, to 32 bits or 64."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("places")
    rank = int(rng.integers(1, 5))
    axis = int(rng.integers(rank))
    shape = list(_shape(rng, rank))
    shape[axis] = int(rng.integers(1, (6, 40, 300)[seed % 3], endpoint=True))
    x = net.tensor("x", tuple(shape), ("int8", "uint8")[seed % 2], 0.1, 3)
    along = net.constant("axis", np.array([axis - rank if seed % 2 else axis], np.int32))
    dtype, number = (("int32", 2), ("int64", 4))[seed // 3 % 2]
    y = net.tensor("y", (*shape[:axis], *shape[axis + 1 :]), dtype)
    net.operator("ARG_MAX", [x, along], [y], ("ArgMaxOptions", {"output_type": number}))
    return net.finish([x], [y])


def products(seed: int) -> bytes:
    """BATCH_MATMUL of matrices as they are or adjoint, with batches that broadcast."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("products")
    height, depth, width = _shape(rng, 3, 9)
    batches = _shape(rng, int(rng.integers(0, 3)), 3)
    own = [tuple(1 if rng.integers(3) == 0 else extent for extent in batches) for _ in "xy"]
    whole = tuple(max(pair) for pair in zip(*own, strict=True))
    adjoint = [bool(rng.integers(2)) for _ in "xy"]
    sides = [(height, depth), (depth, width)]
    shapes = [
        batch + (side[::-1] if turned else side)
        for batch, side, turned in zip(own, sides, adjoint, strict=True)
    ]
    x, y = (_tensor(net, rng, shape, "int8") for shape in shapes)
    scale = 0.003 * float(rng.uniform(0.5, 2)) * np.sqrt(depth)
    z = net.tensor("z", (*whole, height, width), "int8", scale * 20, -5)
    options = {"adj_x": adjoint[0], "adj_y": adjoint[1]}
    net.operator("BATCH_MATMUL", [x, y], [z], ("BatchMatMulOptions", options))
    return net.finish([x, y], [z])


def mirrored(seed: int) -> bytes:
    """MIRROR_PAD along any axes, of 8 bits."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("mirrored")
    shape = _shape(rng, int(rng.integers(2, 5)))
    mode = int(rng.integers(2))
    most = [extent - 1 + mode for extent in shape]
    sides = np.array([rng.integers(0, end, 2, endpoint=True) for end in most], np.int32)
    x = net.tensor("x", shape, "int8", 0.1, 3)
    amounts = net.constant("sides", sides)
    made = tuple(int(extent + pair.sum()) for extent, pair in zip(shape, sides, strict=True))
    y = net.tensor("y", made, "int8", 0.1, 3)
    net.operator("MIRROR_PAD", [x, amounts], [y], ("MirrorPadOptions", {"mode": mode}))
    return net.finish([x], [y])


def repeated(seed: int) -> bytes:
    """TILE along any axes."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("repeated")
    shape = _shape(rng, int(rng.integers(1, 5)), 5)
    counts = np.array([rng.integers(1, 4) for _ in shape], np.int32)
    dtype = ("int8", "int16", "int32", "uint8")[seed % 4]
    x = net.tensor("x", shape, dtype, 0.1)
    times = net.constant("times", counts)
    y = net.tensor("y", tuple(int(n) for n in counts * shape), dtype, 0.1)
    net.operator("TILE", [x, times], [y])
    return net.finish([x], [y])


def joined_of_scales(seed: int) -> bytes:
    """CONCATENATION of unsigned bytes of several scales."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("joined")
    shape = list(_shape(rng, 3))
    axis = int(rng.integers(3))
    counts = [int(rng.integers(1, 5)) for _ in range(3)]
    parts = [(*shape[:axis], count, *shape[axis + 1 :]) for count in counts]
    inputs = [_tensor(net, rng, part, "uint8") for part in parts]
    y = _tensor(net, rng, (*shape[:axis], sum(counts), *shape[axis + 1 :]), "uint8")
    net.operator("CONCATENATION", inputs, [y], ("ConcatenationOptions", {"axis": axis}))
    return net.finish(inputs, [y])


def enlarged(seed: int) -> bytes:
    """RESIZE_BILINEAR to powers of two of the size, of 16 bits or of unsigned bytes."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("enlarged")
    height, width, depth = _shape(rng, 3, 5)
    factors = [int(2 ** rng.integers(0, 3)) for _ in "hw"]
    size = height * factors[0], width * factors[1]
    dtype = ("int16", "uint8")[seed % 2]
    x = net.tensor("x", (1, height, width, depth), dtype, 0.1)
    to = net.constant("size", np.array(size, np.int32))
    y = net.tensor("y", (1, *size, depth), dtype, 0.1)
    options = {"half_pixel_centers": bool(rng.integers(2))}
    net.operator("RESIZE_BILINEAR", [x, to], [y], ("ResizeBilinearOptions", options))
    return net.finish([x], [y])


def curve(seed: int) -> bytes:
    """LOGISTIC or TANH of 16 bits, of a scale that is a power of two or of any."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("curve")
    shape = _shape(rng, int(rng.integers(1, 5)))
    exact = 2.0 ** -int(rng.integers(9, 14))
    scale = exact if seed % 2 else float(rng.uniform(0.00002, 0.002))
    x = net.tensor("x", shape, "int16", scale)
    y = net.tensor("y", shape, "int16", 2.0**-15)
    net.operator(("LOGISTIC", "TANH")[seed // 2 % 2], [x], [y])
    return net.finish([x], [y])


def softmax_of_lines(seed: int) -> bytes:
    """SOFTMAX of 16 bits, of rows of up to 200 elements."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("softmax")
    shape = *_shape(rng, int(rng.integers(0, 3))), int(rng.integers(1, 200))
    x = net.tensor("x", shape, "int16", float(10 ** rng.uniform(-4.5, -2.5)))
    y = net.tensor("y", shape, "int16", 2.0**-15)
    options = {"beta": float(rng.uniform(0.3, 2))}
    net.operator("SOFTMAX", [x], [y], ("SoftmaxOptions", options))
    return net.finish([x], [y])


def dense_of_computed(seed: int) -> bytes:
    """FULLY_CONNECTED whose weights are an input, with a bias or without."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("dense")
    rows, inputs, outputs = _shape(rng, 3, 20)
    x = net.tensor("x", (rows, inputs), "int8", 0.05, 3)
    weights = net.tensor("w", (outputs, inputs), "int8", 0.01, -2)
    given = [x, weights]
    if seed % 2:
        bias = rng.integers(-5000, 5000, outputs).astype(np.int32)
        given.append(net.constant("b", bias, 0.0005))
    y = net.tensor("y", (rows, outputs), "int8", 0.05 * float(np.sqrt(inputs)), -5)
    options = {"fused_activation_function": seed // 2 % 2}
    net.operator("FULLY_CONNECTED", given, [y], ("FullyConnectedOptions", options))
    return net.finish([x, weights], [y])


def mean_of_three_axes(seed: int) -> bytes:
    """MEAN of all but the channels."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("mean")
    shape = int(rng.integers(2, 4)), *_shape(rng, 3)
    dtype = ("int8", "int16", "uint8")[seed % 3]
    x = net.tensor("x", shape, dtype, 0.1)
    axes = net.constant("axes", np.array([0, 1, 2], np.int32))
    y = net.tensor("y", (1, 1, 1, shape[3]), dtype, 0.03)
    net.operator("MEAN", [x, axes], [y], ("ReducerOptions", {"keep_dims": True}))
    return net.finish([x], [y])


def reshaped_as_computed(seed: int) -> bytes:
    """RESHAPE to what SHAPE, STRIDED_SLICE and PACK make of the input's own extents."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("reshaped")
    shape = _shape(rng, 4)
    x = net.tensor("x", shape, "int8", 0.1)
    extents, first, made = (
        net.tensor(name, size, "int32")
        for name, size in (("extents", (4,)), ("first", ()), ("made", (2,)))
    )
    net.operator("SHAPE", [x], [extents], ("ShapeOptions", {"out_type": 2}))
    cut = [net.constant(f"cut{place}", np.array([place], np.int32)) for place in (0, 1)]
    options = ("StridedSliceOptions", {"shrink_axis_mask": 1})
    net.operator("STRIDED_SLICE", [extents, *cut, cut[1]], [first], options)
    rest = int(np.prod(shape[1:]))
    second = net.constant("rest", np.array(rest, np.int32))
    net.operator("PACK", [first, second], [made], ("PackOptions", {"values_count": 2, "axis": 0}))
    y = net.tensor("y", (shape[0], rest), "int8", 0.1)
    net.operator("RESHAPE", [x, made], [y])
    return net.finish([x], [y])


def broadcast(seed: int) -> bytes:
    """MAXIMUM, MUL, ADD or SQUARED_DIFFERENCE of operands that broadcast to each other."""
    rng, net = np.random.default_rng(seed), NetworkBuilder("broadcast")
    shape = _shape(rng, int(rng.integers(1, 5)))
    dtype = ("int8", "int16")[seed % 2]
    own = [tuple(1 if rng.integers(3) == 0 else extent for extent in shape) for _ in "xy"]
    kind, table = (
        ("MAXIMUM", "MaximumMinimumOptions"),
        ("MUL", "MulOptions"),
        ("ADD", "AddOptions"),
        ("SQUARED_DIFFERENCE", "SquaredDifferenceOptions"),
    )[seed // 2 % 4]
    scale = {"int8": 0.05, "int16": 0.0004}[dtype]
    x, y = (net.tensor("t", part, dtype, scale) for part in own)
    wide = scale if kind == "MAXIMUM" else 13 * scale
    z = net.tensor("z", tuple(max(pair) for pair in zip(*own, strict=True)), dtype, wide)
    net.operator(kind, [x, y], [z], (table, {}))
    return net.finish([x, y], [z])


NETWORKS: dict[str, Callable[[int], bytes]] = {
    "broadcast": broadcast,
    "curve": curve,
    "dense_of_computed": dense_of_computed,
    "enlarged": enlarged,
    "joined_of_scales": joined_of_scales,
    "mean_of_three_axes": mean_of_three_axes,
    "mirrored": mirrored,
    "place_of_greatest": place_of_greatest,
    "products": products,
    "repeated": repeated,
    "reshaped_as_computed": reshaped_as_computed,
    "softmax_of_lines": softmax_of_lines,
}
