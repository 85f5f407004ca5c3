"""Random networks of the kind that front-ends write: NCHW tensors, a TRANSPOSE around each layer.

Every layer gives int8, so that no sum exceeds what TOSA allows whatever the layers are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import Builder
from mizzen.reference import evaluate

I8, I32 = DType.INT8, DType.INT32
NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


class Network:
    """A network being drawn: its graph, its builder, tensors that layers may take."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.graph = Graph()
        self.build = Builder(self.graph)
        self.values: list[Value] = []
        self.rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))

    def integers(self, *shape: int) -> npt.NDArray[np.int8]:
        return self.rng.integers(-128, 128, shape, np.int8)

    def constant(self, *shape: int) -> Value:
        return self.build.constant(self.integers(*shape), I8)

    def zero(self, dtype: DType = I8) -> Value:
        return self.build.constant([0], dtype)

    def rescale(self, value: Value, dtype: DType = I8, shift: int = 30, channels: int = 1) -> Value:
        """Divide by about 2 ** (shift - 30), the last dimension channel by channel if wanted."""
        b = self.build
        multipliers = self.rng.integers(1 << 29, 1 << 30, channels)
        return b(
            "RESCALE",
            value,
            b.constant(multipliers, I32),
            b.constant([shift] * channels, I8),
            self.zero(value.dtype),
            self.zero(dtype),
            scale32=True,
            rounding_mode=RoundingMode.SINGLE_ROUND,
            per_channel=channels > 1,
        )

    def take(self, rank: int | None = None) -> Value:
        """Choose a tensor, of a rank if one is given; a new input where there is none."""
        found = [value for value in self.values if rank in (None, len(value.shape))]
        if not found:
            shape = (1, 1, 1, 1, 3, 4, 5)[-(rank or 4) :]
            value = self.graph.add_input(TensorType(shape, I8), f"in{len(self.graph.inputs)}")
            self.values.append(value)
            found = [value]
        return self.draw(st.sampled_from(found))


Layer = Callable[[Network], Value]


def transpose(net: Network) -> Value:
    value = net.take()
    perms = tuple(net.draw(st.permutations(range(len(value.shape)))))
    return net.build("TRANSPOSE", value, perms=perms)


def reshape(net: Network) -> Value:
    """Merge two dimensions, split one, or add one of one index."""
    value = net.take()
    shape = list(value.shape)
    match net.draw(st.sampled_from(("merge", "split", "add"))):
        case "merge" if len(shape) > 1:
            place = net.draw(st.integers(0, len(shape) - 2))
            shape[place : place + 2] = [shape[place] * shape[place + 1]]
        case "split" if len(shape) < 5:
            place = net.draw(st.integers(0, len(shape) - 1))
            factors = [f for f in range(1, shape[place] + 1) if shape[place] % f == 0]
            factor = net.draw(st.sampled_from(factors))
            shape[place : place + 1] = [shape[place] // factor, factor]
        case _ if len(shape) < 5:
            shape.insert(net.draw(st.integers(0, len(shape))), 1)
        case _:
            pass
    return net.build("RESHAPE", value, net.build.shape(shape))


def convolution(net: Network) -> Value:
    """A CONV2D in NHWC between TRANSPOSEs, with an explicit PAD as PyTorch's causal ones have."""
    value = net.take(4)
    b, kernel = net.build, net.draw(st.sampled_from((1, 2)))
    channels, outputs = value.shape[1], net.draw(st.integers(1, 5))
    if kernel == 2:
        padding = net.draw(st.sampled_from(((1, 0, 1, 0), (0, 1, 1, 1))))
        value = b("PAD", value, b.shape((0, 0, 0, 0, *padding)), net.zero())
    weights = net.constant(outputs, kernel, kernel, channels)
    bias = b.constant(net.rng.integers(-999, 999, outputs), I32)
    inner = b("TRANSPOSE", value, perms=NHWC)
    inner = b(
        "CONV2D", inner, weights, bias, net.zero(), net.zero(),
        pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1), acc_type=I32,
    )  # fmt: skip
    return b("TRANSPOSE", net.rescale(inner, shift=38, channels=outputs), perms=NCHW)


def patches(net: Network) -> Value:
    """A CONV2D with a long stride, with or without padding."""
    value, b = net.take(4), net.build
    inner = b("TRANSPOSE", value, perms=NHWC)
    kernel, strides = net.draw(st.sampled_from(((2, 3), (4, 4), (5, 1)))), [0, 0]
    pad: list[int] = []
    for index, size in enumerate(inner.shape[1:3]):
        strides[index] = net.draw(st.sampled_from((4, 5, 1)))
        least = max(kernel[index] - size, 0)
        slack = -(size + least - kernel[index]) % strides[index]
        pad += [least, slack]
    outputs = 2
    inner = b(
        "CONV2D", inner, net.constant(outputs, *kernel, inner.shape[3]), b.constant([3, 5], I32),
        b.constant([-7], I8), net.zero(),
        pad=tuple(pad), stride=tuple(strides), dilation=(1, 1), acc_type=I32,
    )  # fmt: skip
    return b("TRANSPOSE", net.rescale(inner, shift=38, channels=outputs), perms=NCHW)


def pooling(net: Network) -> Value:
    b = net.build
    value = b("PAD", net.take(4), b.shape((0, 0, 0, 0, 1, 0, 0, 1)), b.constant([-128], I8))
    inner = b("TRANSPOSE", value, perms=NHWC)
    inner = b("MAX_POOL2D", inner, kernel=(2, 2), stride=(1, 1), pad=(0, 0, 0, 0))
    return b("TRANSPOSE", inner, perms=NCHW)


def linear(net: Network) -> Value:
    """Flatten all, then a CONV2D of one pixel."""
    value, b = net.take(), net.build
    count, outputs = value.type.elements, net.draw(st.integers(1, 4))
    inner = b("RESHAPE", value, b.shape((1, 1, 1, count)))
    bias = b.constant([7] * outputs, I32)
    inner = b(
        "CONV2D", inner, net.constant(outputs, 1, 1, count), bias, net.zero(), net.zero(),
        pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1), acc_type=I32,
    )  # fmt: skip
    return b("RESHAPE", net.rescale(inner, shift=40), b.shape((1, outputs)))


def binary(net: Network) -> Value:
    """ADD or MUL with a tensor that broadcasts: computed from the same one, or constant."""
    value, b = net.take(), net.build
    other = net.draw(st.sampled_from(("itself", "sum", "constant")))
    if other == "sum":
        axis = net.draw(st.integers(0, len(value.shape) - 1))
        second = net.rescale(b("REDUCE_SUM", net.rescale(value, I32), axis=axis), shift=33)
    elif other == "constant":
        second = net.constant(*(net.draw(st.sampled_from((1, size))) for size in value.shape))
    else:
        second = b("CLAMP", value, min_val=-50, max_val=90)
    if net.draw(st.booleans()):
        return net.rescale(b("MUL", value, second, net.zero()), shift=37)
    return net.rescale(b("ADD", net.rescale(value, I32), net.rescale(second, I32)), shift=31)


def unary(net: Network) -> Value:
    value, b = net.take(), net.build
    match net.draw(st.sampled_from(("table", "rescale", "channels", "clamp", "twice"))):
        case "table":
            return b("TABLE", value, net.constant(256))
        case "channels":
            return net.rescale(value, channels=value.shape[-1])
        case "clamp":
            low = net.draw(st.sampled_from((-128, -20)))
            return b("CLAMP", value, min_val=low, max_val=127)
        case "twice":
            return b("TABLE", b("TABLE", value, net.constant(256)), net.constant(256))
        case _:
            return net.rescale(value)


def along_an_axis(net: Network) -> Value:
    value, b = net.take(), net.build
    axis = net.draw(st.integers(0, len(value.shape) - 1))
    match net.draw(st.sampled_from(("max", "reverse", "argmax", "concat", "slice", "pad", "tile"))):
        case "max":
            return b("REDUCE_MAX", value, axis=axis)
        case "reverse":
            return b("REVERSE", value, axis=axis)
        case "argmax" if len(value.shape) > 1:
            return net.rescale(b("ARGMAX", value, axis=axis))
        case "concat":
            return b("CONCAT", value, b("CLAMP", value, min_val=-9, max_val=9), axis=axis)
        case "slice":
            size = net.draw(st.integers(1, value.shape[axis]))
            start = net.draw(st.integers(0, value.shape[axis] - size))
            starts = [start if dim == axis else 0 for dim in range(len(value.shape))]
            sizes = [size if dim == axis else n for dim, n in enumerate(value.shape)]
            return b("SLICE", value, b.shape(starts), b.shape(sizes))
        case "tile":
            times = [2 if dim == axis else 1 for dim in range(len(value.shape))]
            return b("TILE", value, b.shape(times)) if value.type.elements < 2000 else value
        case _:
            padding = [0, 0] * len(value.shape)
            padding[2 * axis] = 1
            return b("PAD", value, b.shape(padding), b.constant([3], I8))


LAYERS: tuple[Layer, ...] = (
    transpose, transpose, reshape, reshape, convolution, convolution, patches, pooling, linear,
    binary, binary, unary, along_an_axis, along_an_axis,
)  # fmt: skip


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    """Networks of a few layers; some values in the middle are outputs too."""
    net = Network(draw)
    for _ in range(draw(st.integers(1, 10))):
        value = draw(st.sampled_from(LAYERS))(net)
        if value.type.elements <= 4000:
            net.values.append(value)
    outputs = draw(st.lists(st.sampled_from(net.values), min_size=1, max_size=3, unique=True))
    net.graph.set_outputs([*outputs, net.values[-1]] if net.values[-1] not in outputs else outputs)
    net.graph.erase_dead()
    return net.graph


def inputs_of(graph: Graph) -> list[npt.NDArray[np.int8]]:
    """Return numbers for the inputs, always the same."""
    rng = np.random.default_rng(1)
    return [rng.integers(-128, 128, value.shape, np.int8) for value in graph.inputs]


def results(graph: Graph) -> list[tuple[tuple[int, ...], list[int]]]:
    """Return the shape and the elements of each output."""
    given = evaluate(graph, inputs_of(graph))
    return [(array.shape, array.reshape(-1).tolist()) for array in given]
