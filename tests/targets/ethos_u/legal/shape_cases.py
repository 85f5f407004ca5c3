"""Cases of operators that resize, reduce, permute, cut and join, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .networks import (
    MAP,
    Constant,
    Map,
    Options,
    arg_max,
    computed,
    lstm,
    network,
    numbers,
    pairs,
    reduction,
    resize,
    softmax,
    strided_slice,
    transpose,
)

Cases = dict[str, Callable[[], bytes]]

SIZES: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "by-2": ((4, 4), (8, 8)),
    "by-3": ((4, 4), (12, 12)),
    "by-4": ((4, 4), (16, 16)),
    "by-8": ((4, 4), (32, 32)),
    "by-16": ((4, 4), (64, 64)),
    "by-half": ((8, 8), (4, 4)),
    "by-7/5": ((5, 5), (7, 7)),
    "same": ((4, 4), (4, 4)),
    "from-one": ((1, 1), (7, 9)),
    "by-2x4": ((4, 4), (8, 16)),
    "height-by-2": ((4, 1), (8, 1)),
    "height-by-3": ((4, 1), (12, 1)),
    "height-by-half": ((4, 1), (2, 1)),
    "width-by-2": ((1, 4), (1, 8)),
    "width-by-1025": ((1, 2), (1, 2050)),
    "width-by-4096": ((1, 2), (1, 8192)),
    "both-from-one-row": ((1, 4), (2, 8)),
    "column-to-two": ((4, 1), (4, 2)),
    "width-to-one": ((4, 4), (4, 1)),
}
ALIGNED_SIZES: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "by-2": ((4, 4), (7, 7)),
    "by-8": ((4, 4), (25, 25)),
    "by-3": ((4, 4), (10, 10)),
    "by-7/3": ((4, 4), (8, 8)),
    "height-by-2": ((4, 1), (7, 1)),
    "one-to-two": ((4, 1), (7, 2)),
    "from-one": ((1, 1), (4, 4)),
    "same": ((4, 4), (4, 4)),
    "width-by-2048": ((1, 2), (1, 2049)),
    "width-by-2049": ((1, 2), (1, 2050)),
}
KINDS = {"bilinear": "RESIZE_BILINEAR", "nearest": "RESIZE_NEAREST_NEIGHBOR"}


def resizing() -> Cases:
    cases: Cases = {}
    for name, kind in KINDS.items():
        for size, (before, after) in SIZES.items():
            cases[f"{name}-{size}"] = lambda k=kind, b=before, a=after: resize(k, b, a)
            cases[f"{name}-{size}-centred"] = lambda k=kind, b=before, a=after: resize(
                k, b, a, centred=True
            )
        for size, (before, after) in ALIGNED_SIZES.items():
            cases[f"{name}-{size}-aligned"] = lambda k=kind, b=before, a=after: resize(
                k, b, a, aligned=True
            )
        cases[f"{name}-aligned-and-centred"] = lambda k=kind: resize(
            k, (4, 4), (13, 13), aligned=True, centred=True
        )
        cases[f"{name}-int16"] = lambda k=kind: resize(k, (4, 4), (8, 8), dtype="int16")
        cases[f"{name}-int32"] = lambda k=kind: resize(k, (4, 4), (8, 8), dtype="int32")
    return cases


REDUCED: dict[str, tuple[Sequence[int], Sequence[int]]] = {
    "height-width": (MAP, (1, 2)),
    "height": (MAP, (1,)),
    "depth": (MAP, (3,)),
    "depth-of-height-1": ((1, 1, 8, 8), (3,)),
    "depth-of-width-1": ((1, 8, 1, 8), (-1,)),
    "depth-of-depth-1": ((1, 8, 8, 1), (3,)),
    "all": (MAP, (1, 2, 3)),
    "batch-of-1": (MAP, (0,)),
    "batch-of-2": ((2, 8, 8, 8), (1, 2)),
    "rank-3-last": ((8, 8, 8), (2,)),
    "rank-3-first": ((8, 8, 8), (0,)),
    "rank-2": ((4, 8), (1,)),
    "rank-5": ((1, 3, 4, 5, 6), (2, 3)),
}


def reductions() -> Cases:
    cases: Cases = {}
    for kind in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
        name = kind.lower().replace("_", "-")
        for axes, row in REDUCED.items():
            cases[f"{name}-{axes}"] = lambda k=kind, r=row: reduction(k, *r)
        cases[f"{name}-dropped"] = lambda k=kind: reduction(k, MAP, (1, 2), keep=False)
        cases[f"{name}-computed"] = lambda k=kind: reduction(k, MAP, (1, 2), constant=False)
        for dtype in ("int16", "uint8", "int32"):
            cases[f"{name}-{dtype}"] = lambda k=kind, d=dtype: reduction(k, MAP, (1, 2), d)
    return cases | REDUCTION_LIMITS


REDUCTION_LIMITS: Cases = {
    "mean-height-4096": lambda: reduction("MEAN", (1, 4096, 1, 2), (1, 2)),
    "mean-height-4097": lambda: reduction("MEAN", (1, 4097, 1, 2), (1, 2)),
    "mean-depth-4097": lambda: reduction("MEAN", (1, 1, 1, 4097), (3,)),
    "mean-int16-65536": lambda: reduction("MEAN", (1, 256, 256, 1), (1, 2), "int16"),
    "mean-int16-65792": lambda: reduction("MEAN", (1, 256, 257, 1), (1, 2), "int16"),
    "mean-uint8-8390655": lambda: reduction("MEAN", (1, 2049, 4095, 1), (1, 2), "uint8"),
    "sum-height-65536": lambda: reduction("SUM", (1, 65536, 1, 2), (1,)),
    "sum-height-65537": lambda: reduction("SUM", (1, 65537, 1, 2), (1,)),
    "sum-depth-65537": lambda: reduction("SUM", (1, 1, 1, 65537), (3,)),
    "arg-max": lambda: arg_max(MAP),
    "arg-max-int64": lambda: arg_max(MAP, output="int64"),
    "arg-max-uint8": lambda: arg_max(MAP, dtype="uint8"),
    "arg-max-int16": lambda: arg_max(MAP, dtype="int16"),
    "arg-max-height": lambda: arg_max(MAP, 1),
    "arg-max-127": lambda: arg_max((1, 4, 4, 127)),
    "arg-max-128": lambda: arg_max((1, 4, 4, 128)),
    "arg-max-batch": lambda: arg_max((2, 4, 4, 10)),
    "arg-max-rank-2": lambda: arg_max((8, 10)),
    "arg-max-computed": lambda: arg_max(MAP, constant=False),
    "softmax": lambda: softmax((1, 10)),
    "softmax-int16": lambda: softmax((1, 10), "int16"),
    "softmax-int32": lambda: softmax((1, 10), "int32"),
    "softmax-65536-rows": lambda: softmax((65536, 4)),
    "softmax-65537-rows": lambda: softmax((65537, 4)),
    "softmax-256x256-rows": lambda: softmax((1, 256, 256, 4)),
    "softmax-2x32769-rows": lambda: softmax((2, 32769, 4)),
    "softmax-batch": lambda: softmax((2, 200, 200, 4)),
    "softmax-65537-deep": lambda: softmax((1, 65537)),
}

PERMUTATIONS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2), (0, 3, 2, 1), (0, 2, 3, 1), (3, 2, 1, 0))


def transpositions() -> Cases:
    cases: Cases = {}
    for order in PERMUTATIONS:
        name = "transpose-" + "".join(map(str, order))
        for dtype in ("int8", "int16", "int32"):
            cases[f"{name}-{dtype}"] = lambda o=order, d=dtype: transpose((1, 4, 5, 6), o, d)
        cases[f"{name}-int32-batch"] = lambda o=order: transpose((2, 4, 5, 6), o, "int32")
    return cases | TRANSPOSE_LIMITS


TRANSPOSE_LIMITS: Cases = {
    "transpose-computed": lambda: transpose(MAP, (0, 2, 1, 3), constant=False),
    "transpose-rank-5": lambda: transpose((2, 3, 4, 5, 6), (4, 3, 2, 1, 0)),
    "transpose-rank-5-int32": lambda: transpose((2, 3, 4, 5, 6), (0, 1, 2, 4, 3), "int32"),
    "transpose-rank-8": lambda: transpose((2,) * 8, (7, 6, 5, 4, 3, 2, 1, 0)),
    "transpose-rank-2-int32": lambda: transpose((4, 5), (1, 0), "int32"),
    "transpose-rank-3-int32": lambda: transpose((4, 5, 6), (1, 0, 2), "int32"),
    "transpose-rank-3-int32-reversed": lambda: transpose((4, 5, 6), (2, 1, 0), "int32"),
    "transpose-int32-depth-2^14": lambda: transpose((1, 2, 2, 1 << 14), (0, 2, 1, 3), "int32"),
    "transpose-int32-depth-2^14+1": lambda: transpose((1, 2, 2, 16385), (0, 2, 1, 3), "int32"),
    "transpose-int32-kept-2^15+1": lambda: transpose((1, 1, 2, 32769), (0, 1, 2, 3), "int32"),
    "transpose-int32-rows-2^16": lambda: transpose((2, 32768, 1, 2), (0, 1, 3, 2), "int32"),
    "transpose-int32-rows-2^16+1": lambda: transpose((1, 65537, 1, 2), (0, 1, 3, 2), "int32"),
    "transpose-height-2^16": lambda: transpose((1, 65536, 2, 2), (0, 2, 1, 3)),
    "transpose-height-2^16+1": lambda: transpose((1, 65537, 2, 2), (0, 2, 1, 3)),
    "transpose-depth-2^16+1": lambda: transpose((1, 2, 2, 65537), (0, 1, 3, 2)),
    "transpose-batch-40000": lambda: transpose((2, 200, 200, 2), (3, 1, 2, 0)),
    "transpose-batch-90000": lambda: transpose((2, 300, 300, 2), (3, 1, 2, 0)),
}


def padding(kind: str, options: str, paddings: Constant | Map, *more: Constant | Map) -> bytes:
    return network(kind, [Map(MAP), paddings, *more], [Map((1, 10, 10, 8))], (options, {}))


AROUND = (0, 0, 1, 1, 1, 1, 0, 0)


def cut(begin: Constant | Map, size: Constant | Map, result: Sequence[int]) -> bytes:
    return network("SLICE", [Map(MAP), begin, size], [Map(result)], ("SliceOptions", {}))


def split(splits: int) -> bytes:
    parts = [Map((1, 8, 8, 4)), Map((1, 8, 8, 4))]
    options: Options = ("SplitOptions", {"num_splits": splits})
    return network("SPLIT", [numbers(3), Map(MAP)], parts, options)


def gather(axis: int, batch: int = 0) -> bytes:
    result = (2, 8, 8, 8) if axis == 0 else (1, 2, 8, 8)
    options: Options = ("GatherOptions", {"axis": axis, "batch_dims": batch})
    return network("GATHER", [Map(MAP), numbers(0, 0)], [Map(result)], options)


def scatter(indices: Constant | Map, updates: Map | None = None) -> bytes:
    inputs = [indices, updates or Map([2, 4]), numbers(8, 4)]
    return network("SCATTER_ND", inputs, [Map([8, 4])], ("ScatterNdOptions", {}))


def reverse(axes: Constant | Map) -> bytes:
    return network("REVERSE_V2", [Map(MAP), axes], [Map(MAP)], ("ReverseV2Options", {}))


MOVED: Cases = {
    "pad": lambda: padding("PAD", "PadOptions", pairs(*AROUND)),
    "pad-int64": lambda: padding("PAD", "PadOptions", pairs(*AROUND, dtype="int64")),
    "pad-computed": lambda: padding("PAD", "PadOptions", Map([4, 2], "int32", None)),
    "padv2": lambda: padding(
        "PADV2", "PadV2Options", pairs(*AROUND), Constant(np.array([3], np.int8), 0.05)
    ),
    "padv2-computed": lambda: padding("PADV2", "PadV2Options", pairs(*AROUND), Map([1])),
    "mirror-pad": lambda: padding("MIRROR_PAD", "MirrorPadOptions", pairs(*AROUND)),
    "slice": lambda: cut(numbers(0, 1, 1, 0), numbers(1, 4, 4, 8), (1, 4, 4, 8)),
    "slice-computed": lambda: cut(computed(4), numbers(1, 8, 8, 8), MAP),
    "strided-by-2": lambda: strided_slice(MAP, MAP, (1, 2, 2, 1), (1, 4, 4, 8)),
    "strided-depth": lambda: strided_slice(MAP, MAP, (1, 1, 1, 2), (1, 8, 8, 4)),
    "strided-batch": lambda: strided_slice((2, 8, 8, 8), (2, 8, 8, 8), (2, 1, 1, 1), MAP),
    "strided-backwards": lambda: strided_slice(
        MAP, (1, -9, 8, 8), (1, -1, 1, 1), MAP, (0, 7, 0, 0)
    ),
    "strided-rank-2-rows": lambda: strided_slice((8, 8), (8, 8), (2, 1), (4, 8)),
    "strided-rank-2-columns": lambda: strided_slice((8, 8), (8, 8), (1, 2), (8, 4)),
    "strided-rank-1": lambda: strided_slice((8,), (8,), (2,), (4,)),
    "strided-shrinking": lambda: strided_slice(
        MAP, (1, 4, 8, 8), (1, 1, 1, 1), (1, 8, 8), (0, 3, 0, 0), shrink_axis_mask=2
    ),
    "strided-empty": lambda: strided_slice(
        MAP, (1, 4, 8, 8), (1, 1, 1, 1), (1, 0, 8, 8), (0, 4, 0, 0)
    ),
    "reverse": lambda: reverse(numbers(1)),
    "reverse-depth": lambda: reverse(numbers(-1)),
    "split": lambda: split(2),
    "split-miscounted": lambda: split(4),
    "gather-first": lambda: gather(0),
    "gather-second": lambda: gather(1),
    "scatter": lambda: scatter(Constant(np.array([[1], [3]], np.int32))),
    "scatter-twice": lambda: scatter(Constant(np.array([[1], [1]], np.int32))),
    "scatter-pairs": lambda: scatter(Constant(np.array([[1, 2], [3, 1]], np.int32)), Map([2])),
    "scatter-computed": lambda: scatter(Map([2, 1], "int32", None)),
    "lstm": lstm,
    "lstm-peephole": lambda: lstm(peephole=True),
    "lstm-projection": lambda: lstm(projection=True),
    "lstm-norm": lambda: lstm(norm=True),
    "lstm-coupled": lambda: lstm(coupled=True),
}

SHAPE_CASES: Cases = {**resizing(), **reductions(), **transpositions(), **MOVED}
