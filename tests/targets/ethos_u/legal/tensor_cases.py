"""Cases of element types, quantisation and open shapes, by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .networks import (
    MAP,
    Constant,
    Map,
    Options,
    Tensor,
    binary,
    conv,
    network,
    numbers,
    pairs,
    unary,
    with_signature,
)

Cases = dict[str, Callable[[], bytes]]

BINARY = {
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "DIV": "DivOptions",
}
UNARY = {
    "ABS": "AbsOptions",
    "CEIL": None,
    "ELU": None,
    "EXP": "ExpOptions",
    "GELU": "GeluOptions",
    "HARD_SWISH": "HardSwishOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "LEAKY_RELU": "LeakyReluOptions",
    "LOG": None,
    "LOGISTIC": None,
    "LOG_SOFTMAX": "LogSoftmaxOptions",
    "NEG": "NegOptions",
    "RELU": None,
    "RELU6": None,
    "RELU_0_TO_1": None,
    "RELU_N1_TO_1": None,
    "RSQRT": None,
    "SQRT": None,
    "SQUARE": "SquareOptions",
    "TANH": None,
}
OPTIONS = {"LEAKY_RELU": {"alpha": 0.1}}
TYPES = ("int8", "int16", "int32", "uint8")


def elementwise() -> Cases:
    cases: Cases = {}
    for kind, name in BINARY.items():
        for dtype in (*TYPES, "int64"):
            if (kind, dtype) != ("SQUARED_DIFFERENCE", "int64"):  # U85 takes it by accident
                cases[f"{kind.lower()}-{dtype}"] = lambda k=kind, d=dtype, n=name: binary(
                    k, dtype=d, options=(n, {})
                )
    for kind, name in UNARY.items():
        for dtype in TYPES:
            cases[f"{kind.lower()}-{dtype}"] = lambda k=kind, d=dtype, n=name: unary(
                k, d, options=None if n is None else (n, OPTIONS.get(k, {}))
            )
    return cases


def moved(dtype: str) -> Cases:
    """Operators that only move data."""
    double = (1, 8, 8, 16)

    def one(kind: str, result: tuple[int, ...], options: str, *more: Tensor) -> bytes:
        return network(kind, [Map(MAP, dtype), *more], [Map(result, dtype)], (options, {}))

    return {
        f"reshape-{dtype}": lambda: one("RESHAPE", (1, 512), "ReshapeOptions", numbers(1, 512)),
        f"squeeze-{dtype}": lambda: one("SQUEEZE", (8, 8, 8), "SqueezeOptions"),
        f"expand-dims-{dtype}": lambda: one(
            "EXPAND_DIMS", (1, 1, 8, 8, 8), "ExpandDimsOptions", numbers(0)
        ),
        f"concatenation-{dtype}": lambda: network(
            "CONCATENATION",
            [Map(MAP, dtype), Map(MAP, dtype)],
            [Map(double, dtype)],
            ("ConcatenationOptions", {"axis": 3}),
        ),
        f"pad-{dtype}": lambda: one(
            "PAD", (1, 9, 8, 8), "PadOptions", pairs(0, 0, 1, 0, 0, 0, 0, 0)
        ),
        f"tile-{dtype}": lambda: one("TILE", double, "TileOptions", numbers(1, 1, 1, 2)),
        f"pack-{dtype}": lambda: network(
            "PACK",
            [Map((8, 8), dtype), Map((8, 8), dtype)],
            [Map((2, 8, 8), dtype)],
            ("PackOptions", {"values_count": 2, "axis": 0}),
        ),
        f"unpack-{dtype}": lambda: network(
            "UNPACK",
            [Map((2, 8, 8), dtype)],
            [Map((8, 8), dtype), Map((8, 8), dtype)],
            ("UnpackOptions", {"num": 2, "axis": 0}),
        ),
        f"space-to-depth-{dtype}": lambda: one(
            "SPACE_TO_DEPTH", (1, 4, 4, 32), "SpaceToDepthOptions"
        ),
    }


def add(first: Map, second: Tensor = None, output: Map | None = None) -> bytes:
    return binary("ADD", first, second, output, options=("AddOptions", {}))


def maximum(first: Map, output: Map | None = None) -> bytes:
    return binary("MAXIMUM", first, None, output, options=("MaximumMinimumOptions", {}))


def quantize(before: str, after: str) -> bytes:
    scale = None if before == "float32" else 0.05
    options: Options = ("QuantizeOptions", {})
    return network("QUANTIZE", [Map(MAP, before, scale)], [Map(MAP, after)], options)


PER_AXIS = Map(MAP, "int8", [0.01 * (i + 1) for i in range(8)], [0] * 8, axis=3)
LIKE_16 = Map(MAP, "int16")

QUANTIZED: Cases = {
    "quantize-float32": lambda: quantize("float32", "int8"),
    "quantize-int16-int8": lambda: quantize("int16", "int8"),
    "quantize-int8-uint8": lambda: quantize("int8", "uint8"),
    "quantize-int32-int8": lambda: quantize("int32", "int8"),
    "dequantize": lambda: unary("DEQUANTIZE", "int8", "float32", options=("DequantizeOptions", {})),
    "add-uint16": lambda: binary("ADD", dtype="uint16", options=("AddOptions", {})),
    "add-unquantised": lambda: add(Map(MAP, scale=None)),
    "add-unquantised-int32": lambda: add(
        Map(MAP, "int32", None), Map(MAP, "int32", None), Map(MAP, "int32", None)
    ),
    "add-unquantised-constant": lambda: add(Map(MAP), Constant(np.ones(8, np.int8))),
    "add-per-axis": lambda: add(PER_AXIS),
    "add-zero-point-uint8": lambda: add(
        Map(MAP, "uint8", 0.1, -1), Map(MAP, "uint8"), Map(MAP, "uint8")
    ),
    "add-zero-point-int16": lambda: add(Map(MAP, "int16", 0.1, 5), LIKE_16, LIKE_16),
    "add-zero-point-int32": lambda: add(
        Map(MAP, "int32", 0.1, 3), Map(MAP, "int32"), Map(MAP, "int32")
    ),
    "add-zero-point-500": lambda: add(Map(MAP, "int8", 0.1, 500)),
    "add-into-int32": lambda: add(Map(MAP), None, Map(MAP, "int32")),
    "add-rank-5": lambda: add(*[Map((2, 1, 8, 8, 8))] * 3),
    "add-broadcast": lambda: add(Map(MAP), Map((1, 1, 1, 8)), Map(MAP)),
    "add-rank-0": lambda: add(Map([]), Map([]), Map([])),
    "add-constant-rank-0": lambda: add(Map(MAP), Constant(np.array(3, np.int8), 0.05)),
    "maximum-other-scale": lambda: maximum(Map(MAP, scale=0.04)),
    "maximum-other-zero-point": lambda: maximum(Map(MAP), Map(MAP, zero_point=1)),
    "elu-into-int16": lambda: unary("LOG", "int8", "int16"),
    "prelu": lambda: network("PRELU", [Map(MAP), Map([1, 1, 8])], [Map(MAP)]),
    "transpose-unquantised": lambda: network(
        "TRANSPOSE",
        [Map(MAP, scale=None), numbers(0, 2, 1, 3)],
        [Map(MAP, scale=None)],
        ("TransposeOptions", {}),
    ),
    "reshape-unquantised": lambda: network(
        "RESHAPE",
        [Map(MAP, scale=None), numbers(1, 512)],
        [Map([1, 512], scale=None)],
        ("ReshapeOptions", {}),
    ),
    "relu-open-batch": lambda: with_signature(unary("RELU"), 0, (-1, 8, 8, 8)),
    "relu-open-height": lambda: with_signature(unary("RELU"), 0, (1, -1, 8, 8)),
    "relu-open-output": lambda: with_signature(unary("RELU"), 1, (1, -1, 8, 8)),
    "conv-open-weights": lambda: with_signature(conv(), 1, (4, -1, 3, 4)),
    "equal": lambda: network(
        "EQUAL", [Map(MAP), Map(MAP)], [Map(MAP, "bool", None)], ("EqualOptions", {})
    ),
    "cast-int8-int32": lambda: unary("CAST", "int8", "int32", options=("CastOptions", {})),
    "select": lambda: network(
        "SELECT_V2",
        [Map(MAP, "bool", None), Map(MAP), Map(MAP)],
        [Map(MAP)],
        ("SelectV2Options", {}),
    ),
}

TENSOR_CASES: Cases = {
    **elementwise(),
    **{name: case for dtype in (*TYPES, "int64", "bool") for name, case in moved(dtype).items()},
    **QUANTIZED,
}
