"""Networks and support queries as text, a line for each operation.

A tensor is `N H W C type format zero_point n_scales scale... axis` (axis -1: one scale of the whole
tensor), a quantisation the part from the zero point on; padding is `top bottom left right`, a
stride `x y`. A network's lines are `input ID tensor`, `const ID tensor`, `op ID OP inputs...
parameters...` and `output ID format`; the constants' numbers are kept apart, by their ID. An
output of a split is `ID.index`. A query is `q OP` with tensors in place of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from mizzen.diagnostics import MizzenError, fail
from mizzen.targets.ethos_n.network import (
    Addition,
    Array,
    Concatenation,
    Convolution,
    DepthToSpace,
    DepthwiseConvolution,
    FullyConnected,
    Input,
    LeakyRelu,
    MeanXy,
    Multiplication,
    Network,
    Operand,
    Operation,
    Pooling,
    PoolingType,
    Query,
    ReinterpretQuantization,
    Relu,
    Requantize,
    Reshape,
    Resize,
    ResizeAlgorithm,
    Sigmoid,
    SpaceToDepth,
    Split,
    StandalonePadding,
    Tanh,
    Transpose,
    TransposeConvolution,
)
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    Padding,
    QuantizationInfo,
    Shape,
    Stride,
    TensorInfo,
)

T = TypeVar("T")

RESIZES = {"NN": ResizeAlgorithm.NEAREST_NEIGHBOUR, "BIL": ResizeAlgorithm.BILINEAR}
WINDOWED = {
    "conv": Convolution, "dw": DepthwiseConvolution, "tconv": TransposeConvolution,
}  # fmt: skip
PLAIN = {"sigmoid": Sigmoid, "tanh": Tanh, "mean": MeanXy}
OF_QUANTIZATION = {
    "fc": FullyConnected, "add": Addition, "mul": Multiplication,
    "reinterp": ReinterpretQuantization,
}  # fmt: skip
OF_BLOCK = {"d2s": DepthToSpace, "s2d": SpaceToDepth}
OF_TWO = ("add", "mul")


class _Words:
    """The words of a line, read from left to right."""

    def __init__(self, line: str, number: int) -> None:
        self._words = line.split()
        self._at = 0
        self._where = f"line {number}"

    def word(self, what: str) -> str:
        if self._at >= len(self._words):
            raise fail("E902", f"{self._where} must have {what} at its end, and ends before it")
        self._at += 1
        return self._words[self._at - 1]

    def read(self, what: str, convert: Callable[[str], T]) -> T:
        word = self.word(what)
        try:
            return convert(word)
        except (ValueError, KeyError):
            raise self.wrong(what, word) from None

    def wrong(self, what: str, word: str) -> MizzenError:
        return fail("E902", f"{self._where} must have {what} where {word!r} stands")

    def end(self) -> None:
        if self._at != len(self._words):
            raise fail("E902", f"{self._where} must end before {self._words[self._at]!r}")

    def int(self, what: str = "an integer") -> int:
        return self.read(what, int)

    def float(self) -> float:
        return self.read("a number", float)

    def shape(self) -> Shape:
        return self.int(), self.int(), self.int(), self.int()

    def quantization(self) -> QuantizationInfo:
        zero_point = self.int("a zero point")
        scales = tuple(self.float() for _ in range(self.int("a number of scales")))
        axis = self.int("an axis")
        return QuantizationInfo(zero_point, scales, None if axis < 0 else axis)

    def data_type(self) -> DataType:
        return self.read("a type", lambda word: DataType[word.upper()])

    def format(self) -> DataFormat:
        return self.read("a format", DataFormat)

    def tensor(self) -> TensorInfo:
        return TensorInfo(self.shape(), self.data_type(), self.format(), self.quantization())

    def padding(self) -> Padding:
        return Padding(self.int(), self.int(), self.int(), self.int())

    def stride(self) -> Stride:
        return Stride(self.int(), self.int())


def parse_query(line: str, number: int = 1) -> Query:
    """Read a query; E902 for a line that is none."""
    words = _Words(line, number)
    words.read("`q`", {"q": "q"}.__getitem__)
    kind = words.word("an operation")
    query = _query(kind, words)
    words.end()
    return query


def _query(kind: str, words: _Words) -> Query:
    if kind == "input":
        return Query(Input(words.tensor()), ())
    if kind in WINDOWED or kind == "fc":
        bias, weights = words.tensor(), words.tensor()
        operation = _operation(kind, words)
        return Query(operation, (words.tensor(), bias, weights))
    if kind in OF_TWO or kind == "concat":
        inputs = tuple(words.tensor() for _ in range(_count(kind, words)))
        return Query(_operation(kind, words), inputs)
    operation = _operation(kind, words)
    return Query(operation, (words.tensor(),))


def _count(kind: str, words: _Words) -> int:
    """Return the number of inputs; that of a concatenation is a word."""
    if kind == "concat":
        return words.int("a number of inputs")
    if kind in WINDOWED or kind == "fc":
        return 3
    return 2 if kind in OF_TWO else 1


def _operation(kind: str, words: _Words) -> Operation:
    """Read the parameters of an operation."""
    if kind in WINDOWED:
        return WINDOWED[kind](words.padding(), words.stride(), words.quantization())
    if kind in OF_QUANTIZATION:
        return OF_QUANTIZATION[kind](words.quantization())
    if kind in OF_BLOCK:
        return OF_BLOCK[kind](words.int())
    if kind in PLAIN:
        return PLAIN[kind]()
    match kind:
        case "concat":
            return Concatenation(words.int("an axis"), words.quantization())
        case "split":
            axis, count = words.int("an axis"), words.int("a number of parts")
            return Split(axis, tuple(words.int() for _ in range(count)))
        case "pool":
            width, height, stride, padding = (
                words.int(),
                words.int(),
                words.stride(),
                words.padding(),
            )
            return Pooling((height, width), stride, padding, words.read("MAX or AVG", PoolingType))
        case "leaky":
            return LeakyRelu(words.float(), words.quantization())
        case "resize":
            algorithm = words.read("NN or BIL", RESIZES.__getitem__)
            return Resize(algorithm, words.int(), words.int(), words.quantization())
        case _:
            return _movement(kind, words)


def _movement(kind: str, words: _Words) -> Operation:
    """Read the parameters of an operation that gives its input's numbers, moved or bounded."""
    match kind:
        case "requant":
            quantization = words.quantization()
            return Requantize(quantization, words.read("a type or `-`", _optional_type))
        case "relu":
            return Relu(words.int(), words.int())
        case "reshape":
            return Reshape(words.shape())
        case "transpose":
            return Transpose(words.shape())
        case "pad":
            return StandalonePadding(words.padding())
        case _:
            raise words.wrong("an operation", kind)


def _optional_type(word: str) -> DataType | None:
    return None if word == "-" else DataType[word.upper()]


def parse_network(text: str, constants: Mapping[str, Array]) -> Network:
    """Read a network, whose constants' numbers are given by ID; E902 for a line that is wrong."""
    network = Network()
    named: dict[str, Operand] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            words = _Words(line, number)
            _parse_line(words, network, named, constants)
            words.end()
    return network


def _parse_line(
    words: _Words, network: Network, named: dict[str, Operand], constants: Mapping[str, Array]
) -> None:
    kind, name = words.word("a kind of line"), words.word("an ID")
    match kind:
        case "input":
            named[name] = network.add_input(words.tensor())
        case "const":
            info = words.tensor()
            if name not in constants:
                raise words.wrong("a constant whose numbers are given", name)
            named[name] = network.add_constant(info, constants[name].reshape(info.shape))
        case "op":
            operator = words.word("an operation")
            inputs = [
                words.read("an operand", named.__getitem__) for _ in range(_count(operator, words))
            ]
            outputs = network.add(_operation(operator, words), *inputs).outputs
            several = operator == "split"
            named.update(
                {f"{name}.{row.output_index}" if several else name: row for row in outputs}
            )
        case "output":
            if name not in named:
                raise words.wrong("an operand", name)
            network.add_output(named[name], words.format())
        case _:
            raise words.wrong("`input`, `const`, `op` or `output`", kind)
