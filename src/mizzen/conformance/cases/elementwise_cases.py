"""Operators on each number: of two inputs, of one; comparisons, logic, selection, conversions.

Comparisons, logic, selection, indexing and conversions are what Ethos-U85 adds to U55 and U65.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mizzen.conformance.networks import (
    RELU,
    RELU6,
    RELU_N1_TO_1,
    SCALE,
    Case,
    Q,
    Shape,
    binary,
    i32,
    one,
    prelu,
    quantization,
    unary,
)
from mizzen.package.tflite.builder import NetworkBuilder


def rows() -> Iterator[Case]:
    """Return the networks."""
    yield from binaries()
    yield from unaries()


BYTES_ONLY = ("HARD_SWISH", "LOGISTIC", "RSQRT", "TANH")
"""Functions that TFLite has no 16-bit form of, or one of another scale, which is a row below."""

# The operator, its options, and scales of 8-bit data; zero points are at the lowest value, or 0.
# fmt: off
TABLED: tuple[tuple[str, tuple[str, dict[str, Any]] | None, Q, Q], ...] = (
    ("ELU",        None,                                   Q(0.05),       Q(0.03)),
    ("EXP",        None,                                   Q(0.02),       Q(0.05, -1)),
    ("GELU",       ("GeluOptions", {"approximate": False}), Q(0.04),      Q(0.03)),
    ("GELU",       ("GeluOptions", {"approximate": True}), Q(0.037),      Q(0.03)),
    ("HARD_SWISH", None,                                   Q(0.05),       Q(0.03)),
    ("LOG",        None,                                   Q(0.05, -1),   Q(0.03)),
    ("LOGISTIC",   None,                                   Q(0.03),       Q(1 / 256, -1)),
    ("RSQRT",      None,                                   Q(0.05, -1),   Q(0.02, -1)),
    ("TANH",       None,                                   Q(0.03),       Q(1 / 128)),
)
# fmt: on


def binaries() -> Iterator[Case]:
    """Return elementwise operators of two inputs."""
    full, line, channel, single = (1, 5, 6, 7), (1, 1, 6, 7), (1, 1, 1, 7), (1, 1, 1, 1)
    for dtype in ("int8", "int16"):
        for kind in ("ADD", "SUB", "MUL"):
            yield binary(kind, full, full, dtype)
            yield binary(kind, full, channel, dtype)
            yield binary(kind, line, full, dtype)
            yield binary(kind, full, single, dtype)
            yield binary(kind, (1, 5, 1, 7), full, dtype, RELU)
    for kind in ("MAXIMUM", "MINIMUM"):
        yield binary(kind, full, full)
        yield binary(kind, full, channel)
        yield binary(kind, full, full, "int16")
    for kind in ("ADD", "MUL", "SUB"):
        yield binary(kind, full, full, "uint8")
        yield binary(kind, (1, 33), (1, 33))
        yield binary(kind, full, full, activation=RELU6)
    yield binary("SQUARED_DIFFERENCE", full, full)
    yield binary("SQUARED_DIFFERENCE", full, channel)
    yield binary("SQUARED_DIFFERENCE", full, full, "int16")
    for kind in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "DIV", "SQUARED_DIFFERENCE"):
        yield binary(kind, full, full, "int32")
        yield binary(kind, full, channel, "int32")
    for kind in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
        yield binary(kind, full, full, "uint8")
    yield binary("DIV", full, full)
    yield mul_of_scales()
    yield binary("ADD", (3, 4, 5), (3, 4, 5))
    yield binary("ADD", (5, 6, 7), (6, 7))
    yield binary("MUL", (2, 3, 4, 5), (2, 3, 4, 5))
    yield binary("ADD", (1, 3, 1, 5), (1, 1, 4, 5))
    yield binary("SUB", full, (1, 5, 1, 1), "int16")
    for activation in (RELU, RELU_N1_TO_1, RELU6):
        for kind in ("ADD", "SUB", "MUL"):
            if activation != RELU6:
                yield binary(kind, full, full, activation=activation)
            yield binary(kind, full, full, "int16", activation)


def mul_of_scales() -> Case:
    """Describe an int16 MUL with scales whose product does not fit single precision."""
    scale = SCALE["int16"]
    return one("mul_int16_scales", "MUL", [(1, 5, 6, 7), (1, 1, 1, 7)], [(1, 5, 6, 7)], "int16",
               ("MulOptions", {}), in_q=[Q(scale), Q(scale * 0.375)],
               out_q=Q(scale * scale * 8000))  # fmt: skip


def unaries() -> Iterator[Case]:
    """Return functions of one input."""
    for kind in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ABS"):
        yield unary(kind)
    yield unary("RELU", out_q=Q(0.07, -20), label="_rescaled")
    yield unary("RELU", "int16")
    yield unary("ABS", "int16")
    yield unary("LOGISTIC", out_q=Q(1 / 256, -128))
    yield unary("TANH", out_q=Q(1 / 128, 0))
    yield unary("LOGISTIC", "int16", out_q=Q(1 / 32768))
    yield unary("TANH", "int16", out_q=Q(1 / 32768))
    yield unary("LOGISTIC", "int16", in_q=Q(0.0017), out_q=Q(1 / 32768), label="_wide")
    yield unary("TANH", "int16", in_q=Q(0.0017), out_q=Q(1 / 32768), label="_wide")
    yield unary("LOGISTIC", "uint8", out_q=Q(1 / 256, 0))
    yield unary("HARD_SWISH", in_q=Q(0.05, 7), out_q=Q(0.03, -100))
    yield unary("LEAKY_RELU", options=("LeakyReluOptions", {"alpha": 0.1}))
    yield unary("LEAKY_RELU", options=("LeakyReluOptions", {"alpha": 0.1}),
                in_q=Q(0.0487, 3), out_q=Q(0.031, -40), label="_rescaled")  # fmt: skip
    yield unary("LEAKY_RELU", "int16", options=("LeakyReluOptions", {"alpha": 0.1}))
    for kind, options, in_q, out_q in TABLED:
        for dtype, zero in (("int8", -128), ("uint8", 0), ("int16", 0)):
            if dtype == "int16" and kind in BYTES_ONLY:
                continue
            wide = 2.0**-8 if dtype == "int16" else 1.0
            start = Q(in_q.scale * wide, zero if in_q.zero_point else 0)
            end = Q(out_q.scale * wide, zero if out_q.zero_point else 0)
            approximate = "_approximate" if options and options[1]["approximate"] else ""
            yield unary(kind, dtype, options, start, end, label=f"_table{approximate}")
    yield unary("LEAKY_RELU", options=("LeakyReluOptions", {"alpha": 1.7}), label="_steep")
    yield unary("LEAKY_RELU", options=("LeakyReluOptions", {"alpha": -0.3}), label="_negative")
    for kind in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ABS", "NEG"):
        yield unary(kind, "uint8")
        yield unary(kind, "int32")
    for kind in ("RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "NEG"):
        yield unary(kind, "int16")
    yield unary("NEG", in_q=Q(0.05), out_q=Q(0.05))
    yield unary("ELU", out_q=Q(0.03, -90))
    yield unary("EXP", in_q=Q(0.02, 20), out_q=Q(0.03, -120))
    yield unary("LOG", in_q=Q(0.05, -128), out_q=Q(0.03, -10))
    yield unary("RSQRT", in_q=Q(0.05, -128), out_q=Q(0.01, -128))
    yield unary("SOFTMAX", "int16", ("SoftmaxOptions", {"beta": 1.0}), Q(2.0**-11), Q(1 / 32768),
                (1, 20))  # fmt: skip
    yield unary("SOFTMAX", "int8", ("SoftmaxOptions", {"beta": 0.5}), Q(0.1, 5), Q(1 / 256, -128),
                (2, 3, 4, 10), "_half")  # fmt: skip
    for shape in ((1, 12), (1, 6, 5, 10), (4, 33), (1, 2), (1, 3, 130)):
        yield unary("SOFTMAX", options=("SoftmaxOptions", {"beta": 1.0}), in_q=Q(0.1, 5),
                    out_q=Q(1 / 256, -128), shape=shape)  # fmt: skip
    # int16 SOFTMAX is among the exceptions: kernel and compiler make different tables.
    yield unary("SOFTMAX", "uint8", ("SoftmaxOptions", {"beta": 1.0}), Q(0.1, 130), Q(1 / 256),
                (1, 20))  # fmt: skip
    yield unary("QUANTIZE", out_q=Q(0.08, -3), label="_rescaled")
    yield unary("QUANTIZE", "int16", out_q=Q(0.0007), label="_rescaled")
    for source, target in (("int8", "int16"), ("int16", "int8"), ("uint8", "int8"),
                           ("int8", "uint8"), ("int8", "int32"), ("int16", "int32"),
                           ("int32", "int8"), ("int32", "int16")):  # fmt: skip
        yield one(f"quantize_{source}_{target}", "QUANTIZE", [(1, 6, 7, 5)], [(1, 6, 7, 5)],
                  source, out_dtype=target, out_q=quantization(target))  # fmt: skip
    yield prelu()


FULL, ROW, CHANNEL = (1, 5, 6, 7), (1, 1, 6, 7), (1, 1, 1, 7)
COMPARISONS = {
    "EQUAL": "EqualOptions",
    "NOT_EQUAL": "NotEqualOptions",
    "GREATER": "GreaterOptions",
    "GREATER_EQUAL": "GreaterEqualOptions",
    "LESS": "LessOptions",
    "LESS_EQUAL": "LessEqualOptions",
}
BOOLEAN = Q(1.0)


def logic() -> Iterator[Case]:
    """Return the networks of comparisons, logic, selection, indexing and conversions."""
    for kind in COMPARISONS:
        for dtype in ("int8", "int16", "uint8", "int32"):
            # LiteRT's kernel scales int16 down before it compares: unequal values become equal.
            if (kind, dtype) not in (("EQUAL", "int16"), ("NOT_EQUAL", "int16")):
                yield _comparison(kind, FULL, FULL, dtype)
        yield _comparison(kind, FULL, CHANNEL, "int8")
        yield _comparison(kind, ROW, FULL, "int8")
    yield from _logic()
    yield from _selections()
    yield from _indexing()
    yield from _conversions()
    yield _variable("READ_VARIABLE")
    yield _variable("ASSIGN_VARIABLE")


def _label(*shapes: Shape) -> str:
    return "_".join("x".join(map(str, shape)) for shape in shapes)


def _comparison(kind: str, a: Shape, b: Shape, dtype: str) -> Case:
    """Describe a comparison whose inputs have the same quantisation, as converters make it."""
    out = tuple(np.broadcast_shapes(a, b))
    options: tuple[str, dict[str, Any]] = (COMPARISONS[kind], {})
    limit = 3 if "EQUAL" in kind and dtype == "int32" else None  # so that some are
    name = f"{kind.lower()}_{_label(a, b)}_{dtype}"
    return one(
        name, kind, [a, b], [out], dtype, options, out_dtype="bool", out_q=BOOLEAN, limit=limit
    )


def _logic() -> Iterator[Case]:
    for kind, table in (("LOGICAL_AND", "LogicalAndOptions"), ("LOGICAL_OR", "LogicalOrOptions")):
        for a, b in ((FULL, FULL), (FULL, CHANNEL), (ROW, FULL)):
            name = f"{kind.lower()}_{_label(a, b)}"
            yield one(name, kind, [a, b], [FULL], "bool", (table, {}))
    yield one("logical_not", "LOGICAL_NOT", [FULL], [FULL], "bool", ("LogicalNotOptions", {}))
    for kind in ("REDUCE_ANY", "REDUCE_ALL"):
        for axis in (1, 2, 3):
            shape = tuple(3 if i == axis else size for i, size in enumerate(FULL))
            out = tuple(1 if i == axis else size for i, size in enumerate(FULL))
            yield one(f"{kind.lower()}_axis{axis}", kind, [shape], [out], "bool",
                      ("ReducerOptions", {"keep_dims": True}), constants=[i32(axis)])  # fmt: skip


def _selections() -> Iterator[Case]:
    for kind, table in (("SELECT", "SelectOptions"), ("SELECT_V2", "SelectV2Options")):
        for dtype in ("int8", "int16", "int32"):
            yield one(f"{kind.lower()}_{dtype}", kind, [FULL] * 3, [FULL], dtype, (table, {}),
                      in_dtypes=("bool", dtype, dtype), out_q=Q(0.05, 7) if dtype == "int8"
                      else Q(0.0004) if dtype == "int16" else Q(0.0001))  # fmt: skip
    yield one("select_v2_broadcast", "SELECT_V2", [ROW, FULL, CHANNEL], [FULL], "int8",
              ("SelectV2Options", {}), in_dtypes=("bool", "int8", "int8"),
              out_q=Q(0.05, 7))  # fmt: skip


def _indexing() -> Iterator[Case]:
    for dtype in ("int8", "int16", "int32"):
        yield one(f"gather_{dtype}", "GATHER", [(9, 7)], [(5, 7)], dtype,
                  ("GatherOptions", {"axis": 0, "batch_dims": 0}),
                  constants=[i32(8, 0, 3, 3, 5)])  # fmt: skip
        yield one(f"scatter_nd_{dtype}", "SCATTER_ND", [(4, 7)], [(9, 7)], dtype,
                  ("ScatterNdOptions", {}), constants=[i32([8], [0], [3], [5]), i32(9, 7)],
                  constants_first=1)  # fmt: skip
        for axis in (1, 2, 3):
            yield one(f"reverse_v2_axis{axis}_{dtype}", "REVERSE_V2", [FULL], [FULL], dtype,
                      ("ReverseV2Options", {}), constants=[i32(axis)])  # fmt: skip
    yield one("gather_batches", "GATHER", [(2, 9, 7)], [(2, 4, 7)], "int8",
              ("GatherOptions", {"axis": 1, "batch_dims": 1}),
              constants=[i32([8, 0, 3, 3], [1, 1, 7, 2])])  # fmt: skip
    yield one("gather_axis1", "GATHER", [(2, 9, 7)], [(2, 4, 7)], "int8",
              ("GatherOptions", {"axis": 1, "batch_dims": 0}),
              constants=[i32(8, 0, 3, 3)])  # fmt: skip


def _conversions() -> Iterator[Case]:
    for source, target in (("int8", "int16"), ("int8", "int32"), ("int16", "int8"),
                           ("int16", "int32"), ("uint8", "int8"), ("int32", "int8"),
                           ("bool", "int8"), ("int8", "bool")):  # fmt: skip
        yield one(f"cast_{source}_{target}", "CAST", [FULL], [FULL], source, ("CastOptions", {}),
                  out_dtype=target, out_q=Q(1.0))  # fmt: skip


def _variable(kind: str) -> Case:
    """Describe a network whose input goes through a resource variable, or through two."""
    name = kind.lower()
    variables = 1 if kind == "READ_VARIABLE" else 2

    def build() -> bytes:
        net = NetworkBuilder(name)
        passed = [net.tensor(f"x{i}", FULL, "int8", 0.05) for i in range(variables + 1)]
        handles = [net.resource(f"handle{i}") for i in range(variables)]
        for i, handle in enumerate(handles):
            net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": f"v{i}"}))
        for before, handle, after in zip(passed, handles, passed[1:], strict=False):
            net.operator("ASSIGN_VARIABLE", [handle, before], [], ("AssignVariableOptions", {}))
            net.operator("READ_VARIABLE", [handle], [after], ("ReadVariableOptions", {}))
        return net.finish(passed[:1], passed[-1:])

    return Case(name, kind, "int8", build)
