"""The suite of single operators: which networks there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.conformance.networks import (
    RELU,
    RELU6,
    SCALE,
    VALID,
    ZERO,
    Case,
    Q,
    Shape,
    binary,
    i32,
    one,
    pad_v2,
    prelu,
    reduce,
    unary,
)
from mizzen.conformance.weighted import Window, conv, dense, depthwise, lstm, pool, transpose_conv
from mizzen.diagnostics import fail

Options = tuple[str, dict[str, Any]] | None
Constant = npt.NDArray[np.int32]


def convolutions() -> Iterator[Case]:
    """Give convolutions, dense layers and transposed convolutions."""
    yield conv((1, 7, 9, 5), 11, Window())
    yield conv((1, 8, 8, 3), 8, Window((5, 3), (2, 2)))
    yield conv((1, 9, 9, 16), 16, Window((1, 1)))
    yield conv((1, 6, 5, 40), 33, Window((1, 1), activation=RELU))
    yield conv((1, 11, 7, 20), 24, Window((3, 3), (1, 2), padding=VALID, activation=RELU6))
    yield conv((1, 12, 12, 4), 6, Window((3, 3), dilation=(2, 2)))
    yield conv((1, 12, 10, 17), 5, Window((2, 3), dilation=(1, 2), padding=VALID))
    yield conv((1, 20, 20, 2), 3, Window((11, 9), (3, 3)))
    yield conv((1, 1, 30, 7), 9, Window((1, 5), (1, 3)))
    yield conv((1, 24, 1, 6), 10, Window((7, 1)))
    yield conv((2, 5, 5, 8), 8, Window())
    yield conv((1, 16, 15, 8), 6, Window((3, 3), (4, 5), padding=VALID))
    yield conv((1, 13, 13, 100), 20, Window((3, 3)))
    yield conv((1, 5, 5, 8), 8, Window(), per_channel=False)
    yield conv((1, 7, 7, 6), 9, Window((3, 3)), "int16")
    yield conv((1, 7, 9, 20), 17, Window((3, 2), (2, 1), padding=VALID, activation=RELU), "int16")
    yield conv((1, 4, 4, 33), 8, Window((1, 1)), "int16")
    yield conv((1, 7, 7, 6), 9, Window((3, 3)), "uint8", per_channel=False)
    for shape, multiplier, window in (
        ((1, 9, 7, 11), 1, Window()),
        ((1, 9, 9, 16), 1, Window((3, 3), (2, 2))),
        ((1, 10, 8, 24), 1, Window((5, 3), padding=VALID, activation=RELU6)),
        ((1, 11, 11, 3), 1, Window((3, 3), dilation=(2, 2))),
        ((1, 8, 8, 1), 7, Window((3, 3), (2, 1))),
        ((1, 16, 16, 5), 1, Window((9, 10), (1, 3))),
        ((1, 6, 6, 40), 1, Window((1, 1))),
    ):
        yield depthwise(shape, multiplier, window)
    yield depthwise((1, 7, 8, 9), 1, Window((3, 3)), "int16")
    yield depthwise((1, 8, 8, 18), 1, Window((2, 3), (2, 2), activation=RELU), "int16")
    yield depthwise((1, 8, 8, 18), 1, Window((3, 3)), "uint8", per_channel=False)
    for batch, inputs, outputs in ((1, 17, 9), (1, 100, 40), (3, 12, 20), (16, 33, 8), (1, 1, 1)):
        yield dense(batch, inputs, outputs)
    yield dense(1, 64, 10, activation=RELU)
    yield dense(1, 40, 12, "int16")
    yield dense(4, 20, 12, "int16")
    yield transpose_conv((1, 5, 4, 6), 7, (3, 3), (2, 2))
    yield transpose_conv((1, 4, 5, 3), 8, (4, 4), (2, 2), VALID)
    yield transpose_conv((1, 6, 6, 5), 4, (3, 3), (1, 1))
    yield transpose_conv((1, 5, 5, 4), 6, (2, 2), (2, 2))
    yield transpose_conv((1, 5, 4, 6), 7, (3, 3), (2, 2), dtype="int16")


def poolings() -> Iterator[Case]:
    """Give pools and reductions."""
    for dtype in ("int8", "int16"):
        for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            yield pool(kind, (1, 9, 8, 13), Window((3, 3), (2, 2)), dtype)
            yield pool(kind, (1, 8, 8, 16), Window((2, 2), (2, 2), padding=VALID), dtype)
            yield pool(kind, (1, 7, 5, 6), Window((7, 5), padding=VALID), dtype)
            yield pool(kind, (1, 10, 9, 3), Window((2, 4), (1, 3), activation=RELU6), dtype)
            yield pool(kind, (1, 5, 6, 20), Window((3, 2)), dtype)
        yield reduce("MEAN", (1, 7, 6, 11), (1, 2), dtype)
        yield reduce("MEAN", (1, 5, 9, 8), (1,), dtype, Q(SCALE[dtype] / 2, ZERO[dtype] // 2))
        yield reduce("MEAN", (1, 4, 1, 30), (3,), dtype)
        yield reduce("MEAN", (1, 6, 6, 5), (1, 2), dtype, keep=False)
    yield pool("AVERAGE_POOL_2D", (1, 6, 6, 5), Window((3, 3)), "uint8")
    yield pool("MAX_POOL_2D", (1, 6, 6, 5), Window((3, 3)), "uint8")
    yield pool("AVERAGE_POOL_2D", (1, 20, 20, 2), Window((8, 8), (3, 3)))
    yield pool("MAX_POOL_2D", (1, 17, 16, 3), Window((2, 3), (4, 5), padding=VALID))
    yield pool("AVERAGE_POOL_2D", (1, 16, 16, 3), Window((4, 4), (4, 4), padding=VALID))
    yield pool("AVERAGE_POOL_2D", (1, 30, 3, 2), Window((30, 1), padding=VALID))
    yield reduce("MEAN", (1, 6, 6, 5), (1, 2), "uint8")
    yield reduce("REDUCE_MAX", (1, 6, 5, 7), (1,))
    yield reduce("REDUCE_MAX", (1, 6, 5, 7), (3,))
    yield reduce("REDUCE_MIN", (1, 6, 5, 7), (2,))
    # Equal scales: kernels round a rescaled sum away from zero, the compiler to nearest.
    yield reduce("SUM", (1, 6, 5, 2), (3,))
    yield reduce("SUM", (1, 2, 5, 7), (1,))
    yield reduce("SUM", (1, 6, 2, 7), (2,), "int16")
    for shape in ((1, 4, 5, 9), (1, 1, 1, 100)):
        name = f"argmax_{'x'.join(map(str, shape))}"
        yield one(name, "ARG_MAX", [shape], [shape[:3]], constants=[i32(3)[0]],
                  options=("ArgMaxOptions", {"output_type": 2}), out_dtype="int32")  # fmt: skip


def binaries() -> Iterator[Case]:
    """Give elementwise operators of two inputs."""
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


def unaries() -> Iterator[Case]:
    """Give functions of one input."""
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
    yield unary("ELU", out_q=Q(0.03, -90))
    yield unary("EXP", in_q=Q(0.02, 20), out_q=Q(0.03, -120))
    yield unary("LOG", in_q=Q(0.05, -128), out_q=Q(0.03, -10))
    yield unary("RSQRT", in_q=Q(0.05, -128), out_q=Q(0.01, -128))
    for shape in ((1, 12), (1, 6, 5, 10), (4, 33), (1, 2), (1, 3, 130)):
        yield unary("SOFTMAX", options=("SoftmaxOptions", {"beta": 1.0}), in_q=Q(0.1, 5),
                    out_q=Q(1 / 256, -128), shape=shape)  # fmt: skip
    # int16 SOFTMAX is among the exceptions: kernel and compiler make different tables.
    yield unary("SOFTMAX", "uint8", ("SoftmaxOptions", {"beta": 1.0}), Q(0.1, 130), Q(1 / 256),
                (1, 20))  # fmt: skip
    yield unary("QUANTIZE", out_q=Q(0.08, -3), label="_rescaled")
    yield unary("QUANTIZE", "int16", out_q=Q(0.0007), label="_rescaled")
    for source, target in (("int8", "int16"), ("int16", "int8"), ("uint8", "int8")):
        yield one(f"quantize_{source}_{target}", "QUANTIZE", [(1, 6, 7, 5)], [(1, 6, 7, 5)],
                  source, out_dtype=target)  # fmt: skip
    yield prelu()


# fmt: off
# name, operator, inputs, outputs, options, constants
MOVES: tuple[tuple[str, str, list[Shape], list[Shape], Options, list[Constant]], ...] = (
    ("reshape", "RESHAPE", [(1, 4, 6, 5)], [(1, 8, 15)],
     ("ReshapeOptions", {"new_shape": i32(1, 8, 15)}), [i32(1, 8, 15)]),
    ("concatenation_c", "CONCATENATION", [(1, 5, 4, 3), (1, 5, 4, 17)], [(1, 5, 4, 20)],
     ("ConcatenationOptions", {"axis": 3}), []),
    ("concatenation_h", "CONCATENATION", [(1, 2, 4, 9), (1, 5, 4, 9)], [(1, 7, 4, 9)],
     ("ConcatenationOptions", {"axis": 1}), []),
    ("split_v", "SPLIT_V", [(1, 4, 9, 5)], [(1, 4, 2, 5), (1, 4, 7, 5)],
     ("SplitVOptions", {"num_splits": 2}), [i32(2, 7), i32(2)[0]]),
    ("slice", "SLICE", [(1, 6, 7, 20)], [(1, 3, 5, 4)], None,
     [i32(0, 2, 1, 3), i32(1, 3, 5, 4)]),
    ("strided_slice", "STRIDED_SLICE", [(1, 9, 8, 5)], [(1, 4, 3, 5)],
     ("StridedSliceOptions", {}), [i32(0, 1, 2, 0), i32(1, 9, 8, 5), i32(1, 2, 2, 1)]),
    ("pad", "PAD", [(1, 5, 4, 6)], [(1, 8, 9, 6)], None,
     [i32([0, 0], [1, 2], [3, 2], [0, 0])]),
    ("pad_c", "PAD", [(1, 5, 4, 6)], [(1, 5, 4, 11)], None,
     [i32([0, 0], [0, 0], [0, 0], [2, 3])]),
    ("pack", "PACK", [(5, 6), (5, 6)], [(2, 5, 6)],
     ("PackOptions", {"values_count": 2, "axis": 0}), []),
    ("unpack", "UNPACK", [(3, 5, 6)], [(5, 6)] * 3, ("UnpackOptions", {"num": 3, "axis": 0}), []),
    ("squeeze", "SQUEEZE", [(1, 5, 1, 6)], [(5, 6)],
     ("SqueezeOptions", {"squeeze_dims": i32(0, 2)}), []),
    ("expand_dims", "EXPAND_DIMS", [(5, 6)], [(1, 5, 6)], None, [i32(0)[0]]),
)
# fmt: on


def movements() -> Iterator[Case]:
    """Give operators that only move data."""
    for dtype in ("int8", "int16"):
        for name, kind, inputs, outputs, options, constants in MOVES:
            label = f"{name}_{dtype}"
            yield one(label, kind, inputs, outputs, dtype, options, constants=constants)
        split = ("SplitOptions", {"num_splits": 3})
        yield one(f"split_{dtype}", "SPLIT", [(1, 4, 6, 9)], [(1, 4, 6, 3)] * 3, dtype, split,
                  constants=[i32(3)[0]], constants_first=True)  # fmt: skip
        for perm in ((0, 2, 1, 3), (0, 3, 1, 2), (0, 1, 3, 2), (0, 3, 2, 1)):
            shape = (1, 4, 5, 6)
            out = tuple(shape[axis] for axis in perm)
            label = f"transpose_{''.join(map(str, perm))}_{dtype}"
            yield one(label, "TRANSPOSE", [shape], [out], dtype, constants=[i32(*perm)])
    yield one("tile", "TILE", [(1, 3, 4, 5)], [(1, 6, 4, 10)], constants=[i32(1, 2, 1, 2)])
    sides = i32([0, 0], [1, 1], [2, 1], [0, 0])
    yield one("mirror_pad", "MIRROR_PAD", [(1, 5, 6, 4)], [(1, 7, 9, 4)],
              options=("MirrorPadOptions", {"mode": 0}), constants=[sides])  # fmt: skip
    yield pad_v2()
    yield from resizes()


def resizes() -> Iterator[Case]:
    """Give resizes by 2 and by 4."""
    for kind, table in (("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
                        ("RESIZE_BILINEAR", "ResizeBilinearOptions")):  # fmt: skip
        for factor in (2, 4):
            for align, half in ((False, False), (True, False), (False, True)):
                if half and (factor > 2 or kind == "RESIZE_NEAREST_NEIGHBOR"):
                    continue
                size = [(n - 1) * factor + 1 if align else n * factor for n in (4, 5)]
                label = "align" if align else "half" if half else "plain"
                yield one(f"{kind.lower()}_{factor}_{label}", kind, [(1, 4, 5, 7)],
                          [(1, *size, 7)], options=(table, {"align_corners": align,
                                                            "half_pixel_centers": half}),
                          constants=[i32(*size)])  # fmt: skip


def recurrent() -> Iterator[Case]:
    """Give operators with state, and products of two inputs."""
    yield lstm("int8")
    yield lstm("int16")
    yield lstm("int8", time_major=True)
    yield one("batch_matmul", "BATCH_MATMUL", [(1, 5, 6), (1, 6, 7)], [(1, 5, 7)],
              options=("BatchMatMulOptions", {}), out_q=Q(0.1, -4))  # fmt: skip


def cases() -> list[Case]:
    """Every network of the suite."""
    return [
        *convolutions(),
        *poolings(),
        *binaries(),
        *unaries(),
        *movements(),
        *recurrent(),
    ]


def selected(operators: Sequence[str], types: Sequence[str]) -> list[Case]:
    """Give the cases of these operators and types; none named means every one.

    E720 for an operator or type that the suite does not have.
    """
    every = cases()
    _require("operator", operators, {case.operator for case in every})
    _require("type", types, {case.dtype for case in every})
    return [
        case
        for case in every
        if (not operators or case.operator in operators) and (not types or case.dtype in types)
    ]


def _require(what: str, names: Sequence[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise fail(
                "E720",
                f"the {what} must be one that the suite has networks for, not {name!r}",
                help=f"did you mean {close[0]}?" if close else f"it has {', '.join(sorted(known))}",
            )
