"""From a TFLite network to operations, as Mesa's compiler lowers it.

Whole maps lie in one memory, each in a place of its own; constants in another; weights go through
the SRAM. Maps between operations lie in bricks where both sides read them so.

Ref: Mesa, src/gallium/drivers/ethosu/ethosu_lower.c.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.frontends.tflite import Model, Operator, Tensor, read
from mizzen.targets.ethos_u.machine.commands import Arch

from . import operations as o
from . import tables
from .coefficients import Weights, encoded, is_sparse, part_kernel, quantized, records
from .operations import Map, Operation, Range, Shape
from .stream import Stream, rounded

ALIGNED = 16
SRAM_BYTES = 1 << 17
TABLE_BYTES, TABLES, TABLES_START_U65 = 256, 8, 46 << 10
BETWEEN = {"CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM", "LOGISTIC",
           "TANH", "LEAKY_RELU", "HARD_SWISH", "MAX_POOL_2D", "AVERAGE_POOL_2D"}  # fmt: skip
"""Operators whose maps may lie in bricks."""
MODES = {"ADD": o.ADD, "SUB": o.SUB, "MUL": o.MUL, "MINIMUM": o.MINIMUM, "MAXIMUM": o.MAXIMUM}
RELU = 1
SAME = 0
INTEGER = np.dtype(np.int32)


def shape_of(shape: tuple[int, ...]) -> Shape:
    """Return height, width and channels of a tensor of up to four axes."""
    _, height, width, depth = (1,) * (4 - len(shape)) + shape
    return height, width, depth


@dataclass
class Lowered:
    """A network's operations, and what is in memory."""

    arch: Arch
    model: Model
    stream: Stream
    coefficients: bytearray = field(default_factory=bytearray)
    memory: int = 0
    made: list[Operation] = field(default_factory=list[Operation])
    _maps: dict[int, Map] = field(default_factory=dict[int, Map])
    _slot: int = 0
    _operator: int = 0

    def file(self, words: npt.NDArray[np.uint32]) -> bytes:
        """Return the file that Mesa serialises, with these words."""
        main = self.model.main
        places = [(index, self._maps[index]) for index in (*main.inputs, *main.outputs)]
        table = b"".join(struct.pack("<3I", i, fm.address, fm.span) for i, fm in places)
        sizes = words.nbytes, len(self.coefficients), self.memory, len(table)
        return struct.pack("<4Q", *sizes) + table + words.tobytes() + bytes(self.coefficients)

    def lower(self) -> None:
        """Lower all operators."""
        for operator in self.model.main.operators:
            self._operator = operator.index
            LOWER[operator.kind](self, operator)

    def add(self, command: str, **fields: Any) -> None:
        """Add an operation."""
        op = Operation(command, self._operator, **fields)
        self.made.append(op)
        self.stream.add(op)

    def tensor(self, index: int) -> Tensor:
        """Return a tensor of the network."""
        return self.model.main.tensors[index]

    def place(self, fm: Map) -> Map:
        """Give a map a place."""
        at = self.memory
        self.memory += rounded(fm.span, ALIGNED)
        return replace(fm, address=at)

    def constant(self, data: bytes) -> int:
        """Lay data among the coefficients; return where."""
        at = len(self.coefficients)
        self.coefficients += data.ljust(rounded(len(data), ALIGNED), b"\0")
        return at

    def map(self, index: int) -> Map:
        """Return the map of a tensor."""
        if index not in self._maps:
            tensor = self.tensor(index)
            scale, zero = scale_of(tensor)
            assert tensor.dtype is not None
            fm = Map(shape_of(tensor.shape), tensor.dtype, zero_point=zero, scale=scale)
            if tensor.data is not None:
                at = self.constant(tensor.data.tobytes())
                return replace(fm, region=o.COEFFICIENTS, address=at)
            self._maps[index] = self.place(replace(fm, bricks=self._in_bricks(index)))
        return self._maps[index]

    def _in_bricks(self, index: int) -> bool:
        main = self.model.main
        makers = [each for each in main.operators if index in each.outputs]
        readers = [each for each in main.operators if index in each.inputs]
        around = {each.kind for each in (*makers, *readers)}
        return bool(makers) and index not in main.outputs and around <= BETWEEN

    def alias(self, index: int, fm: Map) -> None:
        """Let a tensor be another one seen otherwise."""
        self._maps[index] = fm

    def table(self, data: bytes) -> dict[str, Any]:
        """Bring a table into the NPU; return what says of an operation that it uses it."""
        slots, u85 = len(data) // TABLE_BYTES, self.arch is Arch.U85
        slot = rounded(self._slot, slots) % TABLES
        self._slot = slot + slots
        at = slot * TABLE_BYTES + (0 if u85 else TABLES_START_U65)
        target = Range(o.INTERNAL, at, len(data))
        source = Range(o.COEFFICIENTS, self.constant(data), len(data))
        self.add("OP_DMA_START", source=source, target=target)
        return {"table": target, "slot": slot // slots}

    def copy(self, ifm: Map, ofm: Map, rounding: int = o.NATURAL) -> None:
        """Add a pooling of one element that only scales."""
        u85 = self.arch is Arch.U85
        scale = quantized(ifm.scale / ofm.scale)
        if not u85 and ifm.scale == ofm.scale:
            scale = mean_scale(1, 32)
        mode = o.SUM if u85 else o.AVERAGE
        self.add("OP_POOL", mode=mode, ifm=ifm, ofm=ofm, rounding=rounding, scale=scale)


def scale_of(tensor: Tensor) -> tuple[float, int]:
    """Return scale and zero point of a tensor, those of no quantisation where it has none."""
    if tensor.quantization is None or not tensor.quantization.scale:
        return 1.0, 0
    return tensor.quantization.scale[0], tensor.quantization.zero_point[0]


def mean_scale(elements: int, bits: int) -> tuple[int, int]:
    """Return number and shift of the mean of so many elements."""
    exponent = math.frexp(elements - 1)[1]
    shift = bits - 1 + exponent
    return ((1 << shift) + (1 << exponent)) // elements, shift


def lowered(data: bytes, arch: Arch) -> Lowered:
    """Lower a TFLite file."""
    made = Lowered(arch, read(data, "net.tflite"), Stream(arch))
    made.lower()
    return made


def _padding(options: Any, size: int, result: int, step: int, taps: int) -> tuple[int, int]:
    if options.get("padding", SAME) != SAME:
        return 0, 0
    total = max(0, (result - 1) * step + taps - size)
    return total // 2, total - total // 2


def _window(op: Operator, ifm: Map, ofm: Map, taps: tuple[int, int]) -> dict[str, Any]:
    """Return kernel, stride and padding of a window."""
    options = op.options
    step = int(options.get("stride_h", 1)), int(options.get("stride_w", 1))
    (top, bottom), (left, right) = (
        _padding(options, ifm.shape[axis], ofm.shape[axis], step[axis], taps[axis])
        for axis in (0, 1)
    )
    return {"kernel": taps, "stride": step, "pad": (top, left, bottom, right)}


def _limits(op: Operator, ofm: Map) -> tuple[int, int]:
    ends = np.iinfo(ofm.dtype)
    relu = int(op.options.get("fused_activation_function", 0)) == RELU
    return (ofm.zero_point if relu else int(ends.min)), int(ends.max)


def _weighted(net: Lowered, op: Operator, ifm: Map, ofm: Map, weights: Weights,
              **window: Any) -> None:  # fmt: skip
    """Add a convolution: its records and weights go through the SRAM."""
    u85, depthwise = net.arch is Arch.U85, op.kind == "DEPTHWISE_CONV_2D"
    kernel = net.tensor(op.inputs[1])
    assert kernel.quantization is not None
    scales = np.broadcast_to(kernel.quantization.scale, ofm.shape[2])
    bias = net.tensor(op.inputs[2]).values if len(op.inputs) > 2 and op.inputs[2] >= 0 else None
    biases = np.zeros(ofm.shape[2], np.int64) if bias is None else bias.ravel()
    told = records([int(each) for each in biases],
                   [ifm.scale * float(each) / ofm.scale for each in scales], u85=u85)  # fmt: skip
    part = not depthwise and part_kernel(weights)
    sparse = u85 and not depthwise and is_sparse(weights)
    deep = 16 if u85 else min(16, rounded(ofm.shape[2], 8))
    data = encoded(weights, deep, 8, u85=u85, depthwise=depthwise, part=part, sparse=sparse,
                   stride=window.get("stride", (1, 1)))  # fmt: skip
    length = rounded(len(data), ALIGNED)
    at = net.constant(told + bytes(-len(told) % ALIGNED) + data)
    size = rounded(len(told), ALIGNED) + length
    region, base = o.COEFFICIENTS, at
    if size <= SRAM_BYTES and op.kind != "FULLY_CONNECTED":
        source, target = Range(o.COEFFICIENTS, at, size), Range(o.SRAM, 0, size)
        net.add("OP_DMA_START", source=source, target=target)
        region, base = o.SRAM, 0
    net.add(
        "OP_DEPTHWISE" if depthwise else "OP_CONV", ifm=ifm, ofm=ofm, part_kernel=part,
        sparse=sparse, records=Range(region, base, len(told)),
        weights=Range(region, base + rounded(len(told), ALIGNED), length),
        limits=_limits(op, ofm), **window,
    )  # fmt: skip


def _convolution(net: Lowered, op: Operator) -> None:
    main = net.model.main
    padded = next((each for each in main.operators if op.inputs[0] in each.outputs), None)
    ifm, ofm = net.map(op.inputs[0] if padded is None or padded.kind != "PAD" else padded.inputs[0]
                       ), net.map(op.outputs[0])  # fmt: skip
    values = net.tensor(op.inputs[1]).values
    assert values is not None
    weights = values.astype(np.int16)
    if op.kind == "DEPTHWISE_CONV_2D":
        weights = np.ascontiguousarray(weights.transpose(3, 1, 2, 0))
    wide = replace(ifm, shape=shape_of(net.tensor(op.inputs[0]).shape))
    window = _window(op, wide, ofm, (weights.shape[1], weights.shape[2]))
    if padded is not None and padded.kind == "PAD":
        _, (top, bottom), (left, right), _ = _amounts(net, padded).tolist()
        more = zip(window["pad"], (top, left, bottom, right), strict=True)
        window["pad"] = tuple(map(sum, more))
    _weighted(net, op, ifm, ofm, weights, **window)


def _fully_connected(net: Lowered, op: Operator) -> None:
    values = net.tensor(op.inputs[1]).values
    assert values is not None
    ifm, ofm = net.map(op.inputs[0]), net.map(op.outputs[0])
    flat = replace(ifm, shape=(1, ofm.shape[1], values.shape[1]))
    _weighted(net, op, flat, ofm, values.astype(np.int16)[:, None, None, :])


def _amounts(net: Lowered, op: Operator) -> npt.NDArray[Any]:
    values = net.tensor(op.inputs[1]).values
    assert values is not None
    return values


def _elementwise(net: Lowered, op: Operator) -> None:
    a, b = (net.tensor(index) for index in op.inputs)
    u85, swapped = net.arch is Arch.U85, False
    shapes = shape_of(a.shape), shape_of(b.shape)
    fits = all(mine <= whole for mine, whole in zip(shapes[1], shapes[0], strict=True))
    if not fits and not (op.kind == "SUB" and u85):
        a, b, swapped = b, a, True
    first, ofm = net.map(a.index), net.map(op.outputs[0])
    scale, zero = scale_of(b)
    if b.data is not None and b.elements == 1 and b.values is not None:
        second = Map((1, 1, 1), b.values.dtype, zero_point=zero, scale=scale,
                     scalar=int(b.values.ravel()[0]))  # fmt: skip
    else:
        second = net.map(b.index)
    net.add("OP_ELEMENTWISE", mode=MODES[op.kind], ifm=first, ifm2=second, ofm=ofm,
            swapped=swapped, limits=_limits(op, ofm),
            **_scales(op.kind, first, second, ofm, u85=u85, swapped=swapped))  # fmt: skip


def _scales(kind: str, a: Map, b: Map, ofm: Map, *, u85: bool, swapped: bool) -> dict[str, Any]:
    if kind in ("MINIMUM", "MAXIMUM"):
        return {"scale": (1, 0)}
    if kind == "MUL":
        product = float(np.float32(a.scale) * np.float32(b.scale))
        return {"scale": quantized(product / ofm.scale)}
    left = 20
    most, least = 2 * max(a.scale, b.scale), min(a.scale, b.scale)
    scale = quantized(most / (ofm.scale * (1 << left)))
    if u85:
        opa, opb = (quantized(each.scale * (1 << left) / most) for each in (a, b))
        return {"scale": scale, "opa": opa, "opb": opb, "doubling": left}
    first = a.scale < b.scale
    return {"scale": scale, "opa": quantized(least * (1 << left) / most),
            "scaled": (2 if first else 1) if swapped else (1 if first else 2)}  # fmt: skip


def _pooling(net: Lowered, op: Operator) -> None:
    ifm, ofm = net.map(op.inputs[0]), net.map(op.outputs[0])
    taps = int(op.options["filter_height"]), int(op.options["filter_width"])
    window = _window(op, ifm, ofm, taps)
    if op.kind == "MAX_POOL_2D":
        net.add("OP_POOL", mode=o.MAX, ifm=ifm, ofm=ofm, **window)
        return
    # U85 divides by itself, so that its scale is one, as in Vela's streams. Mesa's of mid-2026 has
    # the reciprocal there too, which would divide twice; who is right only hardware can say.
    scale = mean_scale(1, 31) if net.arch is Arch.U85 else mean_scale(math.prod(taps), 32)
    plain = replace(ifm, zero_point=0), replace(ofm, zero_point=0)
    net.add("OP_POOL", mode=o.AVERAGE, ifm=plain[0], ofm=plain[1], rounding=o.NATURAL,
            scale=scale, **window)  # fmt: skip


def _table(make: Callable[[tables.Scales, Operator], bytes]) -> Callable[[Lowered, Operator], None]:
    def lower(net: Lowered, op: Operator) -> None:
        ifm, ofm = net.map(op.inputs[0]), net.map(op.outputs[0])
        scales = tables.Scales(ifm.scale, ifm.zero_point, ofm.scale, ofm.zero_point)
        used = net.table(make(scales, op))
        bits = 31 if net.arch is Arch.U85 else 32
        net.add("OP_POOL", mode=o.AVERAGE, ifm=ifm, rounding=o.NATURAL, scale=mean_scale(1, bits),
                ofm=replace(ofm, zero_point=ifm.zero_point, scale=ifm.scale), **used)  # fmt: skip

    return lower


def _inside(whole: Map, start: Shape, shape: Shape) -> Map:
    """Return a part of a map in NHWC."""
    offset = sum(a * b for a, b in zip(start, whole.stride, strict=True))
    return replace(whole, shape=shape, strides=whole.stride, address=whole.address + offset)


def _concatenation(net: Lowered, op: Operator) -> None:
    ofm = net.map(op.outputs[0])
    axis = int(op.options["axis"]) % 4 - 1
    ends = np.cumsum([net.map(index).shape[axis] for index in op.inputs])
    for index, end in reversed(list(zip(op.inputs, ends.tolist(), strict=True))):
        ifm = net.map(index)
        start = [0, 0, 0]
        start[axis] = end - ifm.shape[axis]
        net.copy(ifm, _inside(ofm, (start[0], start[1], start[2]), ifm.shape))


def _slice(net: Lowered, op: Operator) -> None:
    ifm, ofm = net.map(op.inputs[0]), net.map(op.outputs[0])
    begin = net.tensor(op.inputs[1]).values
    assert begin is not None
    _, y, x, c = begin.tolist()
    bits = 31 if net.arch is Arch.U85 else 32
    net.add("OP_POOL", mode=o.AVERAGE, ifm=_inside(ifm, (y, x, c), ofm.shape), ofm=ofm,
            rounding=o.NATURAL, scale=mean_scale(1, bits))  # fmt: skip


def _pad(net: Lowered, op: Operator) -> None:
    readers = [each for each in net.model.main.operators if op.outputs[0] in each.inputs]
    if readers and all(each.kind in ("CONV_2D", "DEPTHWISE_CONV_2D") for each in readers):
        return
    ifm, ofm = net.map(op.inputs[0]), net.map(op.outputs[0])
    _, y, x, c = _amounts(net, op).tolist()
    _height, width, depth = ofm.shape
    tall, wide, deep = ifm.shape
    net.copy(ifm, _inside(ofm, (y[0], x[0], c[0]), ifm.shape))
    strips: list[tuple[Shape, Shape]] = [
        ((0, 0, 0), (y[0], width, depth)), ((y[0] + tall, 0, 0), (y[1], width, depth)),
        ((y[0], 0, 0), (tall, x[0], depth)), ((y[0], x[0] + wide, 0), (tall, x[1], depth)),
        ((y[0], x[0], 0), (tall, wide, c[0])), ((y[0], x[0], c[0] + deep), (tall, wide, c[1])),
    ]  # fmt: skip
    most = max(math.prod(shape) for _, shape in strips)
    at = net.constant(np.full(most, ofm.zero_point, ofm.dtype).tobytes())
    for start, shape in strips:
        if math.prod(shape):
            zeros = replace(ofm, region=o.COEFFICIENTS, address=at, shape=shape)
            net.copy(zeros, _inside(ofm, start, shape))


def _resize(net: Lowered, op: Operator) -> None:
    ifm, ofm = net.map(op.inputs[0]), net.map(op.outputs[0])
    bits = 31 if net.arch is Arch.U85 else 32
    net.add("OP_POOL", mode=o.AVERAGE, ifm=ifm, ofm=ofm, upscale=1, scale=mean_scale(1, bits))


def _quantize(net: Lowered, op: Operator) -> None:
    net.copy(net.map(op.inputs[0]), net.map(op.outputs[0]), o.DOUBLE)


def _reshape(net: Lowered, op: Operator) -> None:
    shape = shape_of(net.tensor(op.outputs[0]).shape)
    net.alias(op.outputs[0], replace(net.map(op.inputs[0]), shape=shape))


@dataclass
class _Softmax:
    """The operations of a softmax over the last axis, each row at a place of the width."""

    net: Lowered
    rows: int
    depth: int

    def number(self, value: int) -> Map:
        """Return a constant of 32 bits: on U65 in memory."""
        if self.net.arch is Arch.U85:
            return Map((1, 1, 1), INTEGER, scalar=value)
        at = self.net.constant(value.to_bytes(4, "little", signed=True))
        return Map((1, 1, 1), INTEGER, region=o.COEFFICIENTS, address=at)

    def vector(self, depth: int = 1, chain: int | None = None) -> Map:
        """Return a map of 32 bits: a number for each row, or for each element."""
        fm = Map((1, self.rows, depth), INTEGER, bricks=True)
        if chain is not None and self.net.arch is Arch.U85:
            return replace(fm, chain=chain)
        return self.net.place(fm)

    def binary(self, mode: int, a: Map, b: Map | None, ofm: Map, rounding: int = o.DOUBLE,
               scale: tuple[int, int] = (1, 0), **more: Any) -> Map:  # fmt: skip
        """Add an elementwise operation; return its result."""
        u85 = self.net.arch is Arch.U85
        sums = mode in (o.ADD, o.SUB)
        ones = {"opa": (1, 0), "opb": (1, 0), "doubling": 15 if sums else 0} if sums or u85 else {}
        shifts = mode in (o.CLZ, o.SHR, o.SHL) and not u85
        self.net.add("OP_ELEMENTWISE", mode=mode, ifm=a, ifm2=b, ofm=ofm, rounding=rounding,
                     scale=scale, per_channel=shifts, **ones, **more)  # fmt: skip
        return ofm

    def minus(self, value: int, a: Map, ofm: Map) -> Map:
        """Add a number minus a map."""
        constant = self.number(value)
        if self.net.arch is Arch.U85:
            return self.binary(o.SUB, constant, a, ofm)
        return self.binary(o.SUB, a, constant, ofm, swapped=True)

    def product(self, a: Map, b: Map, ofm: Map, shift: int = 31) -> Map:
        """Add a product of fractions."""
        return self.binary(o.MUL, a, b, ofm, scale=(1 << 30, shift))


def _softmax(net: Lowered, op: Operator) -> None:
    ifm, ofm = net.map(op.inputs[0]), net.map(op.outputs[0])
    rows, depth = ifm.shape[0] * ifm.shape[1], ifm.shape[2]
    soft = _Softmax(net, rows, depth)
    row = replace(ifm, shape=(1, rows, depth))
    most = net.place(replace(ifm, shape=(rows, 1, 1), bricks=True))
    net.add("OP_POOL", mode=o.MAX, ifm=replace(ifm, shape=(rows, depth, 1)), ofm=most,
            kernel=(1, depth))  # fmt: skip
    used = net.table(tables.exponential(ifm.scale, float(op.options.get("beta", 1.0))))
    power = soft.vector(depth)
    soft.binary(o.SUB, row, replace(most, shape=(1, rows, 1)), replace(power, zero_point=127),
                **used)  # fmt: skip
    fine = soft.binary(o.SHR, power, soft.number(12), soft.vector(depth), o.NATURAL)
    total = soft.vector()
    net.add("OP_POOL", mode=o.REDUCE_SUM, ifm=fine, ofm=total, rounding=o.NATURAL,
            scale=quantized(1.0))  # fmt: skip
    headroom = soft.binary(o.CLZ, total, None, soft.vector())
    shift = soft.minus(12 + 31 - 8, headroom, soft.vector())
    less = soft.binary(o.SUB, headroom, soft.number(1), soft.vector(chain=0))
    half = soft.binary(o.SHL, total, less, soft.vector())
    x = soft.product(half, soft.number(-((32 << 29) // 17)), soft.vector(chain=0))
    x = soft.binary(o.ADD, x, soft.number((48 << 29) // 17), soft.vector())
    for _ in range(3):
        part = soft.product(x, half, soft.vector(chain=0))
        rest = soft.minus(1 << 29, part, soft.vector(chain=1))
        step = soft.product(x, rest, soft.vector(chain=2))
        step = soft.binary(o.MUL, step, soft.number(4), soft.vector())
        x = soft.binary(o.ADD, x, step, soft.vector())
    scaled = soft.product(power, x, soft.vector(depth, chain=0), 30)
    soft.binary(o.SHR, scaled, shift, replace(ofm, shape=(1, rows, depth)), o.NATURAL)


def _sigmoid(scales: tables.Scales, _: Operator) -> bytes:
    return tables.real(scales, tables.sigmoid)


def _tanh(scales: tables.Scales, _: Operator) -> bytes:
    return tables.real(scales, math.tanh)


def _leaky(scales: tables.Scales, op: Operator) -> bytes:
    return tables.leaky(scales, float(op.options["alpha"]))


def _hard_swish(scales: tables.Scales, _: Operator) -> bytes:
    return tables.hard_swish(scales)


LOWER: dict[str, Callable[[Lowered, Operator], None]] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "FULLY_CONNECTED": _fully_connected,
    **dict.fromkeys(MODES, _elementwise),
    "MAX_POOL_2D": _pooling,
    "AVERAGE_POOL_2D": _pooling,
    "LOGISTIC": _table(_sigmoid),
    "TANH": _table(_tanh),
    "LEAKY_RELU": _table(_leaky),
    "HARD_SWISH": _table(_hard_swish),
    "CONCATENATION": _concatenation,
    "STRIDED_SLICE": _slice,
    "SLICE": _slice,
    "PAD": _pad,
    "RESIZE_NEAREST_NEIGHBOR": _resize,
    "QUANTIZE": _quantize,
    "RESHAPE": _reshape,
    "SOFTMAX": _softmax,
}
