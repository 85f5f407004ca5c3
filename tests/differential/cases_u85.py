"""The suite of single operators that Vela places on Ethos-U85 alone, or in other types there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mizzen.conformance.networks import (
    SCALE,
    ZERO,
    Case,
    Q,
    Shape,
    Window,
    i32,
    one,
    pool,
    quantization,
    reduce,
    unary,
)
from mizzen.package.tflite.builder import NetworkBuilder

FULL: Shape = (1, 5, 6, 7)
Tensor = tuple[Shape, str]
"""Shape and type of an input or output."""
ROUND = ("int8", "int16", "int32")


def typed(
    name: str,
    kind: str,
    inputs: Sequence[Tensor],
    output: Tensor,
    options: tuple[str, dict[str, Any]] | None = None,
    *,
    constants: Sequence[np.ndarray[Any, Any]] = (),
    plain: bool = False,
    in_q: Sequence[Q | None] | None = None,
    out_q: Q | None = None,
) -> Case:
    """Describe a network of one operator whose inputs have types of their own.

    Booleans, and everything if `plain`, have no quantisation.
    """

    def build() -> bytes:
        net = NetworkBuilder(name)

        def tensor(label: str, of: Tensor, given: Q | None) -> int:
            if of[1] == "bool" or plain:
                return net.tensor(label, *of)
            q = given or quantization(of[1])
            return net.tensor(label, *of, q.scale, q.zero_point)

        given = in_q or [None] * len(inputs)
        made = [
            tensor(f"x{index}", of, q)
            for index, (of, q) in enumerate(zip(inputs, given, strict=True))
        ]
        fixed = [net.constant(f"c{index}", data) for index, data in enumerate(constants)]
        result = tensor("y", output, out_q)
        net.operator(kind, [*made, *fixed], [result], options)
        return net.finish(made, [result])

    return Case(name, kind, inputs[-1][1], build)


COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def comparisons() -> Iterator[Case]:
    """Comparisons, selections and logic."""
    for kind in COMPARISONS:
        table = f"{kind.title().replace('_', '')}Options"
        # Comparisons of int16 are among the exceptions.
        for dtype in ("int8", "int32"):
            small = (1, 1, 6, 7)
            yield typed(f"{kind.lower()}_{dtype}", kind, [(FULL, dtype), (small, dtype)],
                        (FULL, "bool"), (table, {}), plain=dtype == "int32")  # fmt: skip
    for dtype in ROUND:
        for kind, table in (("SELECT", "SelectOptions"), ("SELECT_V2", "SelectV2Options")):
            yield typed(f"{kind.lower()}_{dtype}", kind,
                        [(FULL, "bool"), (FULL, dtype), (FULL, dtype)], (FULL, dtype),
                        (table, {}), plain=dtype == "int32")  # fmt: skip
    yield typed("select_v2_broadcast", "SELECT_V2",
                [((1, 5, 6, 1), "bool"), (FULL, "int8"), ((1, 1, 1, 7), "int8")], (FULL, "int8"),
                ("SelectV2Options", {}))  # fmt: skip
    for kind, table in (("LOGICAL_AND", "LogicalAndOptions"), ("LOGICAL_OR", "LogicalOrOptions")):
        yield typed(kind.lower(), kind, [(FULL, "bool"), (FULL, "bool")], (FULL, "bool"),
                    (table, {}))  # fmt: skip
    yield typed("logical_not", "LOGICAL_NOT", [(FULL, "bool")], (FULL, "bool"),
                ("LogicalNotOptions", {}))  # fmt: skip
    for kind in ("REDUCE_ALL", "REDUCE_ANY"):
        for axis in (1, 2, 3):
            out = tuple(1 if index == axis else size for index, size in enumerate((1, 3, 2, 3)))
            yield typed(f"{kind.lower()}_{axis}", kind, [((1, 3, 2, 3), "bool")], (out, "bool"),
                        ("ReducerOptions", {"keep_dims": True}), constants=[i32(axis)])  # fmt: skip


def numbers() -> Iterator[Case]:
    """Whole numbers without quantisation, and casts."""
    for kind in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"):
        table = "MaximumMinimumOptions" if kind.startswith("M") else f"{kind.title()}Options"
        table = "MulOptions" if kind == "MUL" else table
        yield typed(f"{kind.lower()}_int32", kind, [(FULL, "int32")] * 2, (FULL, "int32"),
                    (table, {}), plain=True)  # fmt: skip
    yield typed("div_int32", "DIV", [(FULL, "int32")] * 2, (FULL, "int32"), ("DivOptions", {}),
                plain=True)  # fmt: skip
    for source, target in (("int8", "int16"), ("int16", "int32"), ("int32", "int8"),
                           ("int32", "int16"), ("int8", "int32")):  # fmt: skip
        yield typed(f"cast_{source}_{target}", "CAST", [(FULL, source)], (FULL, target),
                    ("CastOptions", {}), in_q=[Q(1.0)], out_q=Q(1.0))  # fmt: skip
    yield typed("abs_int32", "ABS", [(FULL, "int32")], (FULL, "int32"), ("AbsOptions", {}),
                plain=True)  # fmt: skip


def products() -> Iterator[Case]:
    """Products of two matrices that are both inputs."""
    for left, right, options in (
        ((1, 5, 6), (1, 6, 7), {}),
        ((3, 4, 20), (3, 20, 33), {}),
        ((1, 2, 9, 16), (1, 2, 16, 5), {}),
        ((2, 7, 8), (2, 5, 8), {"adj_y": True}),
        ((2, 8, 7), (2, 8, 5), {"adj_x": True}),
        ((1, 1, 40), (1, 40, 17), {}),
    ):
        rows = left[-1] if options.get("adj_x") else left[-2]
        columns = right[-2] if options.get("adj_y") else right[-1]
        out = (*left[:-2], rows, columns)
        for dtype in ("int8", "int16"):
            s, z = SCALE[dtype], ZERO[dtype]
            spread = 300 if dtype == "int8" else 60000
            name = f"batch_matmul_{'x'.join(map(str, left))}_{'x'.join(map(str, right))}_{dtype}"
            yield one(f"{name}{''.join(f'_{key}' for key in options)}", "BATCH_MATMUL",
                      [left, right], [out], dtype, ("BatchMatMulOptions", options),
                      in_q=[Q(s, z), Q(s * 0.75, -z)], out_q=Q(s * s * spread, z))  # fmt: skip


def choices() -> Iterator[Case]:
    """Places of the greatest, extremes, sums."""
    for axis in (1, 2, 3):
        for dtype in ("int8", "uint8"):
            shape = (1, 5, 6, 7)
            out = tuple(size for index, size in enumerate(shape) if index != axis)
            yield one(f"argmax_{axis}_{dtype}", "ARG_MAX", [shape], [out], dtype,
                      ("ArgMaxOptions", {"output_type": 2}), constants=[i32(axis)[0]],
                      out_dtype="int32")  # fmt: skip
    for dtype in ("int8", "int16"):
        for kind in ("REDUCE_MAX", "REDUCE_MIN"):
            for axes in ((1,), (2,), (3,), (1, 2)):
                yield reduce(kind, (1, 6, 5, 7), axes, dtype)
        yield reduce("MEAN", (1, 12, 11, 20), (1, 2), dtype)
    for window in (Window((8, 8), (1, 1)), Window((3, 1), (3, 2)), Window((2, 2), (1, 1))):
        yield pool("AVERAGE_POOL_2D", (1, 17, 13, 21), window, "int16")
        yield pool("MAX_POOL_2D", (1, 17, 13, 21), window, "uint8")


TRANSPOSES = (
    ((1, 6, 5, 20), (0, 2, 1, 3)),
    ((1, 6, 5, 20), (0, 3, 2, 1)),
    ((1, 6, 5, 20), (0, 3, 1, 2)),
    ((1, 6, 5, 20), (0, 2, 3, 1)),
    ((1, 6, 5, 20), (0, 1, 3, 2)),
    ((33, 18), (1, 0)),
    ((3, 4, 17), (2, 0, 1)),
    ((2, 3, 4, 5), (3, 2, 1, 0)),
    ((2, 3, 4, 5, 2), (0, 2, 1, 4, 3)),
)


def movements() -> Iterator[Case]:
    """Permutations, reversals, gathers and scatters."""
    for dtype in ROUND:
        for shape, perm in TRANSPOSES:
            out = tuple(shape[axis] for axis in perm)
            label = f"{'x'.join(map(str, shape))}_{''.join(map(str, perm))}"
            yield typed(f"transpose_{label}_{dtype}", "TRANSPOSE", [(shape, dtype)], (out, dtype),
                        ("TransposeOptions", {}), constants=[i32(*perm)])  # fmt: skip
        for axis in (1, 2, 3):
            yield typed(f"reverse_{axis}_{dtype}", "REVERSE_V2", [(FULL, dtype)], (FULL, dtype),
                        ("ReverseV2Options", {}), constants=[i32(axis)])  # fmt: skip
        for shape, indices, out in (
            ((9, 7), i32(3, 0, 8, 8, 2), (5, 7)),
            ((20, 3, 5), i32([1, 19], [4, 0]), (2, 2, 3, 5)),
        ):
            label = "x".join(map(str, shape))
            yield typed(f"gather_{label}_{dtype}", "GATHER", [(shape, dtype)], (out, dtype),
                        ("GatherOptions", {"axis": 0}), constants=[indices])  # fmt: skip
    for dtype in ("int8", "int32"):
        yield scatter_nd(dtype)


def scatter_nd(dtype: str) -> Case:
    """Describe a SCATTER_ND of rows."""
    name = f"scatter_nd_{dtype}"

    def build() -> bytes:
        net = NetworkBuilder(name)
        q = quantization(dtype)
        places = net.constant("places", i32([4], [0], [7]))
        rows = net.tensor("x", (3, 6), dtype, q.scale, 0)
        shape = net.constant("shape", i32(9, 6))
        y = net.tensor("y", (9, 6), dtype, q.scale, 0)
        net.operator("SCATTER_ND", [places, rows, shape], [y], ("ScatterNdOptions", {}))
        return net.finish([rows], [y])

    return Case(name, "SCATTER_ND", dtype, build)


RESIZES = (
    ((5, 7), (9, 13), "align"),
    ((5, 7), (20, 28), "half"),
    ((5, 7), (40, 14), "plain"),
    ((4, 4), (8, 32), "half"),
    ((3, 5), (9, 17), "align"),
)
NEAREST = (
    ((5, 7), (9, 13), "align"),
    ((5, 7), (15, 21), "plain"),
    ((5, 7), (15, 21), "half"),
    ((5, 7), (13, 10), "align"),
    ((10, 9), (4, 5), "align"),
)


def resizes() -> Iterator[Case]:
    """Resizes by more factors than doubling."""
    for kind, table, rows in (("RESIZE_BILINEAR", "ResizeBilinearOptions", RESIZES),
                              ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions",
                               NEAREST)):  # fmt: skip
        for size, out, mode in rows:
            for dtype in ("int8", "int16"):
                label = f"{size[0]}x{size[1]}_{out[0]}x{out[1]}_{mode}_{dtype}"
                yield one(f"{kind.lower()}_{label}", kind, [(1, *size, 9)], [(1, *out, 9)], dtype,
                          (table, {"align_corners": mode == "align",
                                   "half_pixel_centers": mode == "half"}),
                          constants=[i32(*out)])  # fmt: skip


def functions() -> Iterator[Case]:
    """Functions by tables."""
    yield unary("EXP", "int16", in_q=Q(0.0002), out_q=Q(0.0002))
    yield unary("LEAKY_RELU", options=("LeakyReluOptions", {"alpha": 0.3}), shape=(1, 4, 5, 18))
    yield unary("LEAKY_RELU", "int16", options=("LeakyReluOptions", {"alpha": 0.3}),
                in_q=Q(0.0004), out_q=Q(0.0003), label="_rescaled")  # fmt: skip
    yield unary("QUANTIZE", "uint8", out_q=Q(0.09, 100), label="_rescaled")


def cases_u85() -> list[Case]:
    """Return every network of the suite that is for U85."""
    return [
        *comparisons(),
        *numbers(),
        *products(),
        *choices(),
        *movements(),
        *resizes(),
        *functions(),
    ]
