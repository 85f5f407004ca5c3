"""TOSA graphs on both sides of each rule's limit, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mizzen.graph import DType, Graph, ResizeMode

from .tosa_networks import (
    BOOL,
    I4,
    I8,
    I16,
    I32,
    MAP,
    Net,
    Pair,
    conv,
    conv3d,
    looked_up,
    matmul,
    one,
    padded,
    picked,
    pool,
    put,
    resize,
    selected,
    shaped,
    shifted,
    shifted_by,
    summed_twice,
    transposed_conv,
)

Case = Callable[[], Graph]

DEEP = 1 << 16
DEPTHWISE = "DEPTHWISE_CONV2D"
NEAREST, BILINEAR = ResizeMode.NEAREST, ResizeMode.BILINEAR
AROUND = (1, 1, 1, 1)
BLOCK = (1, 4, 5, 6)


def padded_conv3d(stride: int) -> Graph:
    """A CONV3D of one row and column of padding."""
    net = Net()
    b, side = net.b, 3 * stride + 2
    weights = b.constant(np.ones((4, 1, 3, 3, 4)), I8)
    zero = b.constant([0], I8)
    value = b(
        "CONV3D",
        net.input((1, 4, side, side, 4)),
        weights,
        b.constant(np.zeros(4), I32),
        zero,
        zero,
        pad=(0, 0, 1, 0, 1, 0),
        stride=(1, stride, stride),
    )
    return net.give(net.rescale(value, I8))


def rescaled_image() -> Graph:
    """A bilinear RESIZE of 16 bits, whose 48-bit result is rescaled."""
    return resize(BILINEAR, (1, 1), dtype=I16)


def biased(bias: int) -> Graph:
    """A CONV2D of 16 bits with a bias, whose result keeps something of it."""
    return conv(dtype=I16, gives=I32, bias=(bias,) * 4, shift=25)


def converted(gives: DType, dtype: DType = I8) -> Graph:
    """A CAST."""
    net = Net()
    return net.give(net.b("CAST", net.input(MAP, dtype), dtype=gives))


def number(dtype: DType) -> Graph:
    """An ADD, or a CLAMP where the type has no ADD, of numbers of a type."""
    if dtype is I8:
        return one("CLAMP", dtype=dtype, min_val=0, max_val=3)
    return one("ADD", MAP, MAP, dtype=dtype)


def _strides() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for stride in ((3, 3), (4, 4), (4, 1), (1, 5)):
        name = "x".join(map(str, stride))
        cases |= {
            f"conv-stride-{name}": lambda s=stride: conv(stride=s),
            f"conv-stride-{name}-padded": lambda s=stride: conv(stride=s, pad=AROUND),
            f"conv-stride-{name}-dilated": lambda s=stride: conv(stride=s, dilation=(2, 2)),
            f"depthwise-stride-{name}": lambda s=stride: conv(stride=s, kind=DEPTHWISE),
            f"max-stride-{name}": lambda s=stride: pool("MAX_POOL2D", stride=s),
            f"average-stride-{name}": lambda s=stride: pool("AVG_POOL2D", stride=s),
            f"max-stride-{name}-padded": lambda s=stride: pool("MAX_POOL2D", (3, 3), s, AROUND),
            f"average-stride-{name}-padded": lambda s=stride: pool("AVG_POOL2D", (3, 3), s, AROUND),
        }
    return cases


def _pools() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for kernel in ((8, 8), (9, 8), (8, 9), (257, 2)):
        name = "x".join(map(str, kernel))

        def case(kind: str, pad: tuple[int, int, int, int], kernel: Pair = kernel) -> Graph:
            return pool(kind, kernel, (1, 1), pad, out=(2, 2))

        cases[f"average-{name}"] = lambda f=case: f("AVG_POOL2D", (0, 0, 0, 0))
        cases[f"average-{name}-padded"] = lambda f=case: f("AVG_POOL2D", AROUND)
        cases[f"max-{name}-padded"] = lambda f=case: f("MAX_POOL2D", AROUND)
    for kind in ("AVG_POOL2D", "MAX_POOL2D"):
        cases[f"{kind}-batch"] = lambda kind=kind: pool(kind, batch=2)
        cases[f"{kind}-i16"] = lambda kind=kind: pool(kind, dtype=I16)
        for depth in (DEEP, DEEP + 1):
            cases[f"{kind}-depth-{depth}"] = lambda kind=kind, depth=depth: pool(
                kind, depth=depth, out=(1, 1)
            )
    return cases


def _computed() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    sides: tuple[Sequence[str], ...] = ((), ("weights",), ("bias",), ("weights", "bias"))
    for inputs in sides:
        name = "-".join(("computed", *inputs)) if inputs else "constant"
        cases |= {
            f"conv-{name}": lambda i=inputs: conv(inputs=i),
            f"depthwise-{name}": lambda i=inputs: conv(inputs=i, kind=DEPTHWISE),
            f"conv3d-{name}": lambda i=inputs: conv3d(inputs=i),
            f"transposed-{name}": lambda i=inputs: transposed_conv(inputs=i),
        }
    return cases


CONVOLUTIONS: dict[str, Case] = {
    **_strides(),
    **_pools(),
    **_computed(),
    "conv-kernel-65x1": lambda: conv((65, 1), out=(2, 2)),
    "conv-kernel-1x4097": lambda: conv((1, 4097), out=(2, 2)),
    "conv-dilation-33": lambda: conv(dilation=(33, 33)),
    "conv-batch": lambda: conv(batch=2),
    "conv-i16": lambda: conv(dtype=I16, gives=I16),
    "conv-i16-to-i32": lambda: conv(dtype=I16, gives=I32),
    "conv-i16-sum": lambda: conv(dtype=I16, gives=None),
    "conv-i16-summed-twice": summed_twice,
    "conv-i16-bias": lambda: biased((1 << 39) - 1),
    "conv-i16-bias-over": lambda: biased(1 << 39),
    "conv-i16-bias-under": lambda: biased(-(1 << 39) - 1),
    "conv-i16-bias-near": lambda: biased(1 << 38),
    "conv-i16-bias-far": lambda: biased(1 << 40),
    "conv-i8-sum": lambda: conv(gives=None),
    "conv-i4-weights": lambda: conv(weight_dtype=I4),
    "depthwise-i16": lambda: conv(dtype=I16, gives=I16, kind=DEPTHWISE),
    "depthwise-i16-sum": lambda: conv(dtype=I16, gives=None, kind=DEPTHWISE),
    "conv-depth": lambda: conv((1, 1), depth=DEEP, out=(1, 1)),
    "conv-depth-over": lambda: conv((1, 1), depth=DEEP + 1, out=(1, 1)),
    "conv3d-depth-2": lambda: conv3d((2, 3, 3)),
    "conv3d-i16": lambda: conv3d(dtype=I16),
    "conv3d-stride-4": lambda: conv3d(stride=(1, 4, 1)),
    "conv3d-stride-4-deep": lambda: conv3d(stride=(4, 1, 1)),
    "conv3d-stride-3-padded": lambda: padded_conv3d(3),
    "conv3d-stride-5-padded": lambda: padded_conv3d(5),
    "transposed-i16": lambda: transposed_conv(dtype=I16),
    "transposed-1x1": lambda: transposed_conv(stride=(1, 1)),
    "transposed-1x2": lambda: transposed_conv(stride=(1, 2)),
    "transposed-2x1": lambda: transposed_conv(stride=(2, 1)),
    "transposed-1x2-flat": lambda: transposed_conv((1, 3), (1, 2), shape=(1, 1, 4, 4)),
    "transposed-2x1-narrow": lambda: transposed_conv((3, 1), (2, 1), shape=(1, 4, 1, 4)),
    "transposed-3x3": lambda: transposed_conv(stride=(3, 3)),
    "transposed-cut": lambda: transposed_conv(out_pad=(-1, -1, -1, -1)),
    "transposed-padded-after": lambda: transposed_conv(out_pad=(0, 1, 0, 1)),
    "transposed-padded-before": lambda: transposed_conv(out_pad=(1, 0, 1, 0)),
    "matmul": matmul,
    "matmul-i16": lambda: matmul(dtype=I16),
    "matmul-constant": lambda: matmul(constant=True),
    "matmul-batch": lambda: matmul(batch=3),
    "matmul-inner": lambda: matmul(2, DEEP, 2),
    "matmul-inner-over": lambda: matmul(2, DEEP + 1, 2),
    "matmul-columns": lambda: matmul(2, 2, DEEP),
    "matmul-columns-over": lambda: matmul(2, 2, DEEP + 1),
    "matmul-rows": lambda: matmul(DEEP, 2, 2),
    "matmul-rows-over": lambda: matmul(DEEP + 1, 2, 2),
}
"""Convolution, pooling, products."""


def _images() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for factor in ((1, 1), (2, 2), (3, 3), (8, 8), (16, 16), (2, 1), (2, 4)):
        name = "x".join(map(str, factor))
        for halves in (False, True):
            where = "halves" if halves else "corners"
            cases[f"nearest-{name}-{where}"] = lambda f=factor, h=halves: resize(
                NEAREST, f, halves=h
            )
    for halves in (False, True):
        cases[f"bilinear-2x2-{halves}"] = lambda h=halves: resize(BILINEAR, (2, 2), halves=h)
    return cases


def _of_types() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for dtype in (I8, I16, I32):
        name = dtype.value
        cases |= {
            f"shift-right-{name}": lambda d=dtype: shifted("ARITHMETIC_RIGHT_SHIFT", d, round=True),
            f"shift-left-{name}": lambda d=dtype: shifted("LOGICAL_LEFT_SHIFT", d),
            f"largest-{name}": lambda d=dtype: one("REDUCE_MAX", BLOCK, axis=1, dtype=d),
            f"smallest-{name}": lambda d=dtype: one("REDUCE_MIN", BLOCK, axis=3, dtype=d),
            f"select-{name}": lambda d=dtype: selected(d),
            f"gather-{name}": lambda d=dtype: picked(dtype=d),
            f"scatter-{name}": lambda d=dtype: put(dtype=d),
        }
    for dtype in (I8, I32, BOOL):
        name = dtype.value
        cases |= {
            f"concatenation-{name}": lambda d=dtype: one("CONCAT", MAP, MAP, axis=3, dtype=d),
            f"slice-{name}": lambda d=dtype: shaped("SLICE", MAP, (0,) * 4, (1, 4, 4, 4), dtype=d),
            f"reverse-{name}": lambda d=dtype: one("REVERSE", BLOCK, axis=1, dtype=d),
            f"pad-{name}": lambda d=dtype: padded(MAP, (0, 0, 1, 1, 1, 1, 0, 0), d),
            f"transpose-{name}": lambda d=dtype: one(
                "TRANSPOSE", BLOCK, perms=(0, 3, 1, 2), dtype=d
            ),
            f"identity-{name}": lambda d=dtype: one("IDENTITY", BLOCK, dtype=d),
        }
    return cases


def _broadcast(first: Sequence[int], second: Sequence[int], kind: str = "ADD") -> Case:
    return lambda: one(kind, first, second, dtype=I32)


OTHERS: dict[str, Case] = {
    **_images(),
    **_of_types(),
    "bilinear-i16": rescaled_image,
    "shift-right-rounding": lambda: shifted_by(3, round=True),
    "shift-right-truncating": lambda: shifted_by(3, round=False),
    "add-i32": lambda: number(I32),
    "clamp-i8": lambda: number(I8),
    "compare": lambda: one("GREATER", MAP, MAP, dtype=I32),
    "divide": lambda: one("INTDIV", MAP, MAP, dtype=I32),
    "and": lambda: one("LOGICAL_AND", MAP, MAP, dtype=BOOL),
    "any": lambda: one("REDUCE_ANY", MAP, axis=1, dtype=BOOL),
    "cast-to-i32": lambda: converted(I32),
    "cast-to-bool": lambda: converted(BOOL),
    "cast-down": lambda: converted(I8, I32),
    "table-i8": lambda: looked_up(I8),
    "table-i16": lambda: looked_up(I16),
    "argmax": lambda: one("ARGMAX", BLOCK, axis=3),
    "argmax-rows": lambda: one("ARGMAX", BLOCK, axis=1),
    "argmax-127": lambda: one("ARGMAX", (1, 4, 5, 127), axis=3),
    "argmax-128": lambda: one("ARGMAX", (1, 4, 5, 128), axis=3),
    "argmax-i16": lambda: one("ARGMAX", BLOCK, axis=3, dtype=I16),
    "argmax-batch": lambda: one("ARGMAX", (2, 4, 5, 6), axis=3),
    "argmax-rank-3": lambda: one("ARGMAX", (2, 5, 6), axis=2),
    "argmax-rank-5": lambda: one("ARGMAX", (1, 2, 4, 5, 6), axis=4),
    "argmax-rank-5-single": lambda: one("ARGMAX", (1, 1, 4, 5, 6), axis=4),
    "reverse-batch": lambda: one("REVERSE", (2, 4, 5, 6), axis=0),
    "reverse-columns": lambda: one("REVERSE", BLOCK, axis=2),
    "reverse-channels": lambda: one("REVERSE", BLOCK, axis=3),
    "reverse-rank-1": lambda: one("REVERSE", (6,), axis=0),
    "sum-channels": lambda: one("REDUCE_SUM", (1, 2, DEEP + 1), axis=2, dtype=I32),
    "sum-rows": lambda: one("REDUCE_SUM", (1, DEEP, 2), axis=1, dtype=I32),
    "sum-rows-over": lambda: one("REDUCE_SUM", (1, DEEP + 1, 2), axis=1, dtype=I32),
    "sum-before-over": lambda: one("REDUCE_SUM", (DEEP + 1, 2, 2), axis=1, dtype=I32),
    "sum-after-over": lambda: one("REDUCE_SUM", (2, 2, DEEP + 1), axis=1, dtype=I32),
    "first-of-one-rank-4": _broadcast((1,) * 4, (2,) * 4),
    "first-of-one-rank-5": _broadcast((1,) * 5, (2,) * 5),
    "first-of-one-product": _broadcast((1,) * 5, (2,) * 5, "MAXIMUM"),
    "second-of-one-rank-5": _broadcast((2,) * 5, (1,) * 5),
    "first-of-one-single-image": _broadcast((1,) * 5, (1, 1, 2, 2, 2)),
}
"""Everything else."""

CASES: dict[str, Case] = {**CONVOLUTIONS, **OTHERS}
