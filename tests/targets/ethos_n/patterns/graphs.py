"""Quantised networks as front-ends write them, built operator by operator, each a group."""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.graph import DType, Graph, Quantization, ResizeMode, RoundingMode, TensorType, Value
from mizzen.ops import Builder
from mizzen.partition import Partition, extract, partition
from mizzen.reference import evaluate
from mizzen.targets.ethos_n.config import VARIANTS, VariantConfiguration
from mizzen.targets.ethos_n.patterns import Covering, Generated, generate, legality
from mizzen.targets.ethos_n.reference import evaluate as evaluate_network

Array = npt.NDArray[Any]
I8, I32 = DType.INT8, DType.INT32
FOUR_TOPS = VariantConfiguration(VARIANTS["ethos-n78-4tops-4ple"])


class Net:
    """A graph in the making. Scales and zero points are (scale, zero point)."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.rng = np.random.default_rng(7)
        self.groups = 0
        self.b = Builder(self.graph)

    def input(self, *shape: int, q: tuple[float, int] = (0.05, 3), dtype: DType = I8) -> Value:
        return self.graph.add_input(TensorType(shape, dtype, of(q)))

    def begin(self, kind: str) -> Builder:
        """Start an operator: a group of its own."""
        origin = Origin("net", self.groups, kind)
        self.b = Builder(self.graph, origin, self.groups)
        self.groups += 1
        return self.b

    def outputs(self, *values: Value) -> Net:
        self.graph.set_outputs(values)
        return self

    def zero(self, value: int = 0, dtype: DType = I8) -> Value:
        return self.b.constant([value], dtype)

    def rescale(
        self,
        x: Value,
        ratios: float | Sequence[float] | Array,
        zeros: tuple[int, int] = (0, 0),
        to: DType = I8,
        q: tuple[float, int] | None = None,
    ) -> Value:
        pairs = [multiplier(float(ratio)) for ratio in np.atleast_1d(np.asarray(ratios))]
        return self.b(
            "RESCALE",
            x,
            self.b.constant([pair[0] for pair in pairs], I32),
            self.b.constant([pair[1] for pair in pairs], I8),
            self.zero(zeros[0], x.dtype),
            self.zero(zeros[1], to),
            scale32=True,
            rounding_mode=RoundingMode.DOUBLE_ROUND,
            per_channel=len(pairs) > 1,
            quantization=None if q is None else of(q),
        )

    def integers(self, *shape: int, low: int = -127, high: int = 128) -> Array:
        return self.rng.integers(low, high, shape, np.int8)

    def conv(
        self,
        x: Value,
        outputs: int,
        kernel: tuple[int, int] = (3, 3),
        *,
        stride: tuple[int, int] = (1, 1),
        pad: tuple[int, int, int, int] = (1, 1, 1, 1),
        dilation: tuple[int, int] = (1, 1),
        scales: Sequence[float] = (0.004,),
        q: tuple[float, int] = (0.3, -5),
        depthwise: bool = False,
        weights_zero: int = 0,
        dtype: DType = I8,
        recorded: bool = True,
    ) -> Value:
        b, channels = self.begin("CONV_2D"), x.shape[3]
        shape = (*kernel, channels, outputs) if depthwise else (outputs, *kernel, channels)
        axis = None if len(scales) == 1 else 2 if depthwise else 0
        quantization = Quantization(tuple(scales), (weights_zero,) * len(scales), axis)
        count = channels * outputs if depthwise else outputs
        sums = b(
            "DEPTHWISE_CONV2D" if depthwise else "CONV2D",
            x,
            b.constant(self.integers(*shape), I8, quantization if recorded else None),
            b.constant(self.rng.integers(-900, 900, count), I32),
            self.zero(zero_of(x), x.dtype),
            self.zero(weights_zero),
            pad=pad,
            stride=stride,
            dilation=dilation,
        )
        ratios = np.array(scales) * scale_of(x) / q[0]
        return self.rescale(sums, ratios, (0, q[1]), dtype, q=q)

    def transposed(
        self,
        x: Value,
        outputs: int,
        kernel: int = 3,
        *,
        pads: tuple[int, int, int, int] = (0, -1, 0, -1),
        q: tuple[float, int] = (0.3, -5),
    ) -> Value:
        b = self.begin("TRANSPOSE_CONV")
        sums = b(
            "TRANSPOSE_CONV2D",
            x,
            b.constant(self.integers(outputs, kernel, kernel, x.shape[3]), I8),
            b.constant(np.zeros(outputs), I32),
            self.zero(zero_of(x)),
            self.zero(),
            out_pad=pads,
            stride=(2, 2),
        )
        return self.rescale(sums, 0.004 * scale_of(x) / q[0], (0, q[1]), q=q)

    def dense(
        self, x: Value, outputs: int, *, scales: Sequence[float] = (0.004,),
        q: tuple[float, int] = (0.2, 4), weights_zero: int = 0,
    ) -> Value:  # fmt: skip
        b = self.begin("FULLY_CONNECTED")
        inputs = prod(x.shape[1:])
        source = b("RESHAPE", x, b.shape([x.shape[0], 1, 1, inputs]), quantization=x.quantization)
        sums = b(
            "CONV2D",
            source,
            b.constant(self.integers(outputs, 1, 1, inputs), I8),
            b.constant(self.rng.integers(-900, 900, outputs), I32),
            self.zero(zero_of(x)),
            self.zero(weights_zero),
            pad=(0, 0, 0, 0),
            stride=(1, 1),
        )
        ratios = np.array(scales) * scale_of(x) / q[0]
        value = self.rescale(sums, ratios, (0, q[1]))
        return b("RESHAPE", value, b.shape([x.shape[0], outputs]), quantization=of(q))

    def combined(
        self, kind: str, x: Value, y: Value, q: tuple[float, int], *, bits: int = 20
    ) -> Value:
        """ADD or SUB in twice the greater scale, as TFLite's kernels have it."""
        self.begin(kind)
        twice = 2 * max(scale_of(x), scale_of(y))
        left, right = (
            self.rescale(
                self.rescale(value, 2.0**bits, (zero_of(value), 0), I32),
                scale_of(value) / twice,
                to=I32,
            )
            for value in (x, y)
        )
        total = self.b(kind, left, right)
        return self.rescale(total, twice / (2**bits * q[0]), (0, q[1]), q=q)

    def multiplied(self, x: Value, y: Value, q: tuple[float, int]) -> Value:
        self.begin("MUL")
        left, right = (self.rescale(v, 1.0, (zero_of(v), 0), I32) for v in (x, y))
        product = self.b("MUL", left, right, self.zero())
        return self.rescale(product, scale_of(x) * scale_of(y) / q[0], (0, q[1]), q=q)

    def constant(self, data: Sequence[int] | Array, shape: Sequence[int],
                 q: tuple[float, int]) -> Value:  # fmt: skip
        array = np.asarray(data, np.int8).reshape(tuple(shape))
        return self.b.constant(array, I8, of(q))

    def pool(
        self, kind: str, x: Value, kernel: tuple[int, int], stride: tuple[int, int],
        pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    ) -> Value:  # fmt: skip
        b = self.begin(kind)
        zeros = (self.zero(), self.zero()) if kind == "AVG_POOL2D" else ()
        more: dict[str, Any] = {"acc_type": I32} if zeros else {}
        return b(
            kind, x, *zeros, kernel=kernel, stride=stride, pad=pad, quantization=x.quantization,
            **more,
        )  # fmt: skip

    def mean(self, x: Value, q: tuple[float, int]) -> Value:
        b = self.begin("MEAN")
        value = self.rescale(x, 1.0, (zero_of(x), 0), I32)
        for axis in (1, 2):
            value = b("REDUCE_SUM", value, axis=axis)
        count = x.shape[1] * x.shape[2]
        value = self.rescale(value, scale_of(x) / (q[0] * count), (0, q[1]), q=q)
        return b("RESHAPE", value, b.shape([1, x.shape[3]]), quantization=of(q))

    def table(self, x: Value, reals: Array, q: tuple[float, int], kind: str = "LOGISTIC") -> Value:
        b = self.begin(kind)
        entries = np.clip(np.rint(reals / q[0]) + q[1], -128, 127)
        return b("TABLE", x, b.constant(entries, I8), quantization=of(q))

    def clamp(self, x: Value, low: int, high: int) -> Value:
        b = self.begin("RELU")
        return b("CLAMP", x, min_val=low, max_val=high, quantization=x.quantization)

    def requantize(self, x: Value, q: tuple[float, int]) -> Value:
        self.begin("QUANTIZE")
        return self.rescale(x, scale_of(x) / q[0], (zero_of(x), q[1]), q=q)

    def reshape(self, x: Value, *shape: int) -> Value:
        b = self.begin("RESHAPE")
        return b("RESHAPE", x, b.shape(shape), quantization=x.quantization)

    def concat(self, *values: Value, axis: int = 3) -> Value:
        b = self.begin("CONCATENATION")
        return b("CONCAT", *values, axis=axis, quantization=values[0].quantization)

    def split(self, x: Value, sizes: Sequence[int], axis: int = 3) -> list[Value]:
        self.begin("SPLIT")
        starts = [0, *np.cumsum(sizes)[:-1].tolist()]
        return [self.part(x, axis, start, size) for start, size in zip(starts, sizes, strict=True)]

    def part(self, x: Value, axis: int, start: int, size: int) -> Value:
        starts, sizes = [0] * x.type.rank, list(x.shape)
        starts[axis], sizes[axis] = start, size
        shapes = self.b.shape(starts), self.b.shape(sizes)
        return self.b("SLICE", x, *shapes, quantization=x.quantization)

    def pad(self, x: Value, amounts: Sequence[int], number: int | None = None) -> Value:
        b = self.begin("PAD")
        filling = self.zero(zero_of(x) if number is None else number)
        return b("PAD", x, b.shape(amounts), filling, quantization=x.quantization)

    def doubled(self, x: Value, mode: ResizeMode = ResizeMode.NEAREST, offset: int = -1) -> Value:
        b = self.begin("RESIZE_NEAREST_NEIGHBOR")
        value = b(
            "RESIZE", x, b.shape([4, 2, 4, 2]), b.shape([offset, offset]),
            b.shape([2 + offset, 2 + offset]), mode=mode,
        )  # fmt: skip
        value.type = value.type.quantized(x.quantization)
        return value

    def spread(self, x: Value, block: int = 2, crd: bool = False) -> Value:
        b = self.begin("DEPTH_TO_SPACE")
        n, h, w, c = x.shape
        rest = c // block**2
        inner = (rest, block, block) if crd else (block, block, rest)
        perms = (0, 1, 4, 2, 5, 3) if crd else (0, 1, 3, 2, 4, 5)
        value = b("RESHAPE", x, b.shape((n, h, w, *inner)), quantization=x.quantization)
        value = b("TRANSPOSE", value, perms=perms, quantization=x.quantization)
        shape = b.shape((n, h * block, w * block, rest))
        return b("RESHAPE", value, shape, quantization=x.quantization)

    def inputs(self) -> list[Array]:
        return [self.integers(*value.shape, low=-128) for value in self.graph.inputs]


def of(q: tuple[float, int]) -> Quantization:
    return Quantization((q[0],), (q[1],))


def scale_of(value: Value) -> float:
    assert value.quantization is not None
    return value.quantization.scale


def zero_of(value: Value) -> int:
    assert value.quantization is not None
    return value.quantization.zero_point


def multiplier(scale: float) -> tuple[int, int]:
    fraction, exponent = frexp(scale)
    number = round(fraction * (1 << 31))
    if number == 1 << 31:
        number, exponent = number >> 1, exponent + 1
    return number, 31 - exponent


def names(graph: Graph, configuration: VariantConfiguration = FOUR_TOPS) -> list[str]:
    """Return the names of a graph's composites, without their prefix."""
    found = Covering(graph, configuration).composites
    return [composite.name.removeprefix("ethos-n.") for composite in found]


def becoming(graph: Graph, configuration: VariantConfiguration = FOUR_TOPS) -> list[str]:
    """Return what a graph's composites are converted to."""
    found = Covering(graph, configuration).composites
    return [composite.becomes.removeprefix("ethos-n.") for composite in found]


def refusals(graph: Graph, configuration: VariantConfiguration = FOUR_TOPS) -> list[str]:
    """Return the messages of all reasons, each once."""
    covering = Covering(graph, configuration)
    legal = legality(covering)
    return list(dict.fromkeys(reason.message for row in graph for reason in legal(row)))


def placed(graph: Graph, configuration: VariantConfiguration = FOUR_TOPS) -> Partition:
    return partition(graph, legality(Covering(graph, configuration)))


def whole(net: Net, configuration: VariantConfiguration = FOUR_TOPS) -> Generated:
    """Make the network of a graph that is one region."""
    (region,) = placed(net.graph, configuration).regions
    return generate(extract(net.graph, region.groups).graph, configuration)


def kinds(generated: Generated) -> list[str]:
    """Return the kinds of a network's operations, constants and edges left out."""
    return [
        node.kind for node in generated.network if node.kind not in ("Input", "Constant", "Output")
    ]


def differences(net: Net, configuration: VariantConfiguration = FOUR_TOPS) -> list[int]:
    """Return by how much the network's outputs differ at most from those of the graph.

    Also sees that fewer than a quarter of the outputs are at their bounds, where all are equal.
    """
    generated = whole(net, configuration)
    inputs = net.inputs()
    wanted = evaluate(net.graph, inputs)
    (region,) = placed(net.graph, configuration).regions
    part = extract(net.graph, region.groups)
    given = dict(zip(net.graph.inputs, inputs, strict=True))
    shaped = {
        operand: given[value].reshape(operand.info.shape)
        for value, operand in zip(part.inputs, generated.inputs, strict=True)
    }
    outputs = evaluate_network(
        generated.network, [shaped[operand] for operand in generated.network.inputs]
    )
    found: list[int] = []
    for value, array in zip(net.graph.outputs, wanted, strict=True):
        place = generated.output_order[part.outputs.index(value)]
        result = outputs[place].reshape(value.shape)
        assert result.dtype == array.dtype
        bounds = (result == np.iinfo(result.dtype).min) | (result == np.iinfo(result.dtype).max)
        assert bounds.mean() < 0.25
        found.append(int(np.abs(result.astype(int) - array.astype(int)).max()))
    return found
