"""Reads the text of a graph; see `mizzen.graph.text` for its form."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable
from enum import Enum
from math import prod
from typing import TypeVar

import numpy as np

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.graph.graph import Array, Graph, Value
from mizzen.graph.types import DType, NanMode, Quantization, ResizeMode, RoundingMode, TensorType

T = TypeVar("T")

TOKEN = re.compile(
    r"""(?P<space>[ \n]+)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<extent>(?:\d+x)+[a-z]\w*)
    |(?P<number>-?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|inf\b|nan\b)(?![\w.]))
    |(?P<word>[A-Za-z_][\w.]*)
    |(?P<hash>\#[0-9a-f]+)
    |(?P<mark>[%@=:,(){}\[\]<>])""",
    re.VERBOSE,
)
EXTENT = re.compile(r"(?P<sizes>(?:\d{1,18}x)*)(?P<element>\w+)")
ENUMS: dict[str, type[Enum]] = {kind.__name__: kind for kind in (NanMode, ResizeMode, RoundingMode)}
DEEPEST = 64
MOST_ELEMENTS = 1 << 31
DTYPES = {dtype.value: dtype for dtype in DType}
ARRAY_TYPES = {dtype.numpy.name: dtype.numpy for dtype in DType}
WORDS = {"none": None, "true": True, "false": False}


def parse(text: str, file: str = "text") -> Graph:
    """Read a graph with its blobs.

    Raises E810 for text that is not a graph, E811 for names that do not fit together, E812 for
    blobs that are missing or damaged; the origin has the line.
    """
    reader = _Reader(text, file)
    reader.skip_graph()
    reader.read_blobs()
    reader.position = 0
    return reader.graph()


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.blobs: dict[str, bytes] = {}
        self.position = 0
        self.depth = 0
        self.tokens: list[tuple[str, str, int]] = []
        line, at = 1, 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                raise self._error(
                    "E810", f"no part of a graph's text: {text[at : at + 10]!r}", line
                )
            if match.lastgroup != "space":
                self.tokens.append((str(match.lastgroup), match[0], line))
            line += match[0].count("\n")
            at = match.end()
        self.tokens.append(("end", "the end", line))

    def _error(self, code: str, message: str, line: int | None = None) -> MizzenError:
        """Return an error in a line; in that of the token taken last, if it is None."""
        line = self.tokens[max(self.position - 1, 0)][2] if line is None else line
        return fail(code, message, origin=Origin(source=f"{self.file}:{line}"))

    def expected(self, what: str) -> MizzenError:
        """Return the error that something else than `what` comes next."""
        _, came, line = self.tokens[self.position]
        return self._error("E810", f"{what} must come, and {came} came", line)

    @property
    def next(self) -> str:
        """The text of the token that comes."""
        return self.tokens[self.position][1]

    @property
    def kind(self) -> str:
        """The kind of the token that comes."""
        return self.tokens[self.position][0]

    def take(self, kind: str, what: str) -> str:
        """Take a token of a kind."""
        if self.kind != kind:
            raise self.expected(what)
        self.position += 1
        return self.tokens[self.position - 1][1]

    def accept(self, text: str) -> bool:
        """Take the token if it is `text`; say whether."""
        if self.next != text or self.kind == "string":
            return False
        self.position += 1
        return True

    def need(self, text: str) -> None:
        """Take `text`."""
        if not self.accept(text):
            raise self.expected(f'"{text}"')

    def many(self, end: str, read: Callable[[], T]) -> list[T]:
        """Read parts that commas separate, and `end`."""
        parts: list[T] = []
        if self.accept(end):
            return parts
        while True:
            parts.append(read())
            if self.accept(end):
                return parts
            self.need(",")

    def skip_graph(self) -> None:
        """Go to the end of the graph: braces that match."""
        depth = 0
        while self.kind != "end":
            kind, text, _ = self.tokens[self.position]
            self.position += 1
            if kind == "mark" and text in "{}":
                depth += 1 if text == "{" else -1
                if depth == 0:
                    return

    def read_blobs(self) -> None:
        """Read the blobs after the graph."""
        while self.kind != "end":
            self.need("blob")
            key = self.take("hash", "a hash")
            self.blobs[key] = self.bytes()

    def string(self) -> str:
        """Read text in quotes."""
        text = self.take("string", "text in quotes")
        try:
            return str(json.loads(text, strict=False))
        except ValueError:
            raise self._error("E810", f"no text in quotes: {text}") from None

    def bytes(self) -> bytes:
        """Read base64 in quotes."""
        try:
            return b64decode(self.string(), validate=True)
        except ValueError:
            raise self._error("E812", "bytes must be base64, and are not") from None

    def integer(self) -> int:
        """Read a whole number."""
        text = self.take("number", "a whole number")
        try:
            return int(text)
        except ValueError:
            self.position -= 1
            raise self.expected("a whole number") from None

    def number(self) -> float:
        """Read a number."""
        return float(self.take("number", "a number"))

    def name(self) -> str:
        """Read a name, in quotes or not."""
        return self.string() if self.kind == "string" else self.take("word", "a name")

    def reference(self) -> tuple[str, str]:
        """Read a value's name: the key within the text, and the name it has in the graph."""
        self.need("%")
        if self.kind == "number":
            return str(self.integer()), ""
        name = self.name()
        return f"%{name}", name

    def graph(self) -> Graph:
        """Read a graph."""
        self.need("graph")
        self.need("@")
        graph = Graph(self.name())
        values: dict[str, Value] = {}
        self.need("(")
        self.many(")", lambda: self._input(graph, values))
        self.need("{")
        while not self.accept("return"):
            self._operation(graph, values)
        outputs = [] if self.accept("}") else self.many("}", lambda: self._use(values))
        graph.set_outputs(outputs)
        return graph

    def _input(self, graph: Graph, values: dict[str, Value]) -> None:
        key, name = self.reference()
        self.need(":")
        self._define(values, key, graph.add_input(self.type(), name))

    def _define(self, values: dict[str, Value], key: str, value: Value) -> None:
        if key in values:
            raise self._error("E811", f"%{key.lstrip('%')} must be given once, and is given twice")
        values[key] = value

    def _use(self, values: dict[str, Value]) -> Value:
        key, _ = self.reference()
        if key not in values:
            raise self._error("E811", f"%{key.lstrip('%')} must be given before it is taken")
        return values[key]

    def _operation(self, graph: Graph, values: dict[str, Value]) -> None:
        names: list[tuple[str, str]] = []
        if self.next == "%":
            names = self.many("=", self.reference)
        kind = self.take("word", "an operation")
        operands = self.many(")", lambda: self._use(values)) if self.accept("(") else []
        attributes = self.attributes() if self.next == "{" else {}
        types: list[TensorType] = []
        if self.accept(":"):
            types.append(self.type())
            while self.accept(","):
                types.append(self.type())
        if len(types) != len(names):
            raise self._error(
                "E811", f"{len(names)} results must have as many types, not {len(types)}"
            )
        group = self.integer() if self.accept("group") else None
        origin = self._origin() if self.accept("from") else None
        operation = graph.add(kind, operands, types, attributes, origin=origin, group=group)
        for (key, name), result in zip(names, operation.results, strict=True):
            result.name = name
            self._define(values, key, result)

    def _origin(self) -> Origin:
        parts = self.attributes()
        try:
            return Origin(**parts)  # pyright: ignore[reportArgumentType] names and types are the text's
        except TypeError:
            raise self._error("E810", f"no parts of an origin: {', '.join(parts)}") from None

    def attributes(self) -> dict[str, object]:
        """Read names and values in braces."""
        self.need("{")
        return dict(self.many("}", self._attribute))

    def _attribute(self) -> tuple[str, object]:
        name = self.take("word", "an attribute's name")
        self.need("=")
        return name, self.value()

    def value(self) -> object:
        """Read the value of an attribute."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._error("E810", f"at most {DEEPEST} levels must be within each other")
        value = self._value()
        self.depth -= 1
        return value

    def _value(self) -> object:
        if self.kind == "number":
            text = self.take("number", "a number")
            return float(text) if re.search("[.en]", text) else int(text)
        if self.kind == "string":
            return self.string()
        if self.accept("["):
            return tuple(self.many("]", self.value))
        if self.next == "graph":
            return self.graph()
        if self.next == "tensor":
            return self.type()
        if self.accept("dense"):
            return self.array()
        if self.accept("bytes"):
            return self.bytes()
        return self._word()

    def _word(self) -> object:
        word = self.take("word", "the value of an attribute")
        if word in WORDS:
            return WORDS[word]
        if word in DTYPES:
            return DTYPES[word]
        kind, _, entry = word.partition(".")
        try:
            return ENUMS[kind](entry)
        except (KeyError, ValueError):
            self.position -= 1
            raise self.expected("the value of an attribute") from None

    def array(self) -> Array:
        """Read an array after ``dense``."""
        self.need("<")
        name = self.take("word", "the type of an array's elements")
        if name not in ARRAY_TYPES:
            raise self._error("E810", f"no type of an array's elements: {name}")
        dtype = ARRAY_TYPES[name]
        self.need("[")
        shape = tuple(self.many("]", self.integer))
        if min(shape, default=1) < 0 or prod(shape) >= MOST_ELEMENTS:
            message = f"an array must have less than 2 ** 31 elements, and has shape {shape}"
            raise self._error("E812", message)
        try:
            array = self._elements(shape, dtype)
        except (OverflowError, TypeError, ValueError):
            raise self._error("E812", f"elements must be {name}, and one is not") from None
        if array.size != prod(shape):
            raise self._error("E812", f"{array.size} elements must have shape {shape}")
        return array.reshape(shape)

    def _elements(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
        if self.kind == "hash":
            array = np.frombuffer(self._blob(), dtype.newbyteorder("<")).astype(dtype)
        elif self.accept("splat"):
            array = np.full(shape, self.value(), dtype)
        else:
            return np.array(self.many(">", self.value), dtype)
        self.need(">")
        return array

    def _blob(self) -> bytes:
        key = self.take("hash", "a hash")
        if key not in self.blobs:
            raise self._error("E812", f"blob {key} must follow the graph, and does not")
        return self.blobs[key]

    def type(self) -> TensorType:
        """Read ``tensor<1x8xi8, scale 0.05 zp -128>``."""
        self.need("tensor")
        self.need("<")
        if self.kind not in ("extent", "word"):
            raise self.expected("a shape and an element type")
        extent = EXTENT.fullmatch(self.take(self.kind, ""))
        if extent is None or extent["element"] not in DTYPES:
            raise self._error("E810", f"no element type: {self.tokens[self.position - 1][1]}")
        shape = tuple(map(int, extent["sizes"].split("x")[:-1]))
        quantization = self._quantization() if self.accept(",") else None
        self.need(">")
        return TensorType(shape, DTYPES[extent["element"]], quantization)

    def _quantization(self) -> Quantization:
        if self.accept("scale"):
            scale = self.number()
            self.need("zp")
            return Quantization((scale,), (self.integer(),))
        self.need("axis")
        axis = None if self.accept("none") else self.integer()
        self.need("scales")
        self.need("[")
        scales = self.many("]", self.number)
        self.need("zps")
        self.need("[")
        return Quantization(tuple(scales), tuple(self.many("]", self.integer)), axis)
