"""Elementwise operators of two inputs, and functions of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mizzen.conformance.networks import (
    RELU,
    RELU6,
    RELU_N1_TO_1,
    SCALE,
    Case,
    Q,
    binary,
    one,
    prelu,
    quantization,
    unary,
)


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
    full, row, channel, single = (1, 5, 6, 7), (1, 1, 6, 7), (1, 1, 1, 7), (1, 1, 1, 1)
    for dtype in ("int8", "int16"):
        for kind in ("ADD", "SUB", "MUL"):
            yield binary(kind, full, full, dtype)
            yield binary(kind, full, channel, dtype)
            yield binary(kind, row, full, dtype)
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
