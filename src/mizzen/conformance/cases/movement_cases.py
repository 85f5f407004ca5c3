"""Operators that only move data, and resizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.conformance.networks import Case, Q, Shape, i32, one, pad_v2

Options = tuple[str, dict[str, Any]] | None
Constant = npt.NDArray[np.int32]


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


def rows() -> Iterator[Case]:
    """Return the networks."""
    for dtype in ("int8", "int16", "uint8", "int32"):
        for name, kind, inputs, outputs, options, constants in MOVES:
            label = f"{name}_{dtype}"
            yield one(label, kind, inputs, outputs, dtype, options, constants=constants)
        split = ("SplitOptions", {"num_splits": 3})
        yield one(f"split_{dtype}", "SPLIT", [(1, 4, 6, 9)], [(1, 4, 6, 3)] * 3, dtype, split,
                  constants=[i32(3)[0]], constants_first=1)  # fmt: skip
        for perm in ((0, 2, 1, 3), (0, 3, 1, 2), (0, 1, 3, 2), (0, 3, 2, 1)):
            shape = (1, 4, 5, 6)
            out = tuple(shape[axis] for axis in perm)
            label = f"transpose_{''.join(map(str, perm))}_{dtype}"
            yield one(label, "TRANSPOSE", [shape], [out], dtype, constants=[i32(*perm)])
    yield one("tile", "TILE", [(1, 3, 4, 5)], [(1, 6, 4, 10)], constants=[i32(1, 2, 1, 2)])
    sides = i32([0, 0], [1, 1], [2, 1], [0, 0])
    yield one("mirror_pad", "MIRROR_PAD", [(1, 5, 6, 4)], [(1, 7, 9, 4)],
              options=("MirrorPadOptions", {"mode": 0}), constants=[sides])  # fmt: skip
    yield one("mirror_pad_symmetric", "MIRROR_PAD", [(1, 5, 6, 4)], [(1, 7, 9, 4)], "int16",
              ("MirrorPadOptions", {"mode": 1}), constants=[sides])  # fmt: skip
    yield pad_v2()
    yield from _odd()
    yield from resizes()


def _odd() -> Iterator[Case]:
    """Return moves along awkward axes, of awkward sizes."""
    yield one("concatenation_n", "CONCATENATION", [(2, 3, 5), (1, 3, 5)], [(3, 3, 5)],
              options=("ConcatenationOptions", {"axis": 0}))  # fmt: skip
    yield one("concatenation_w3", "CONCATENATION", [(1, 3, n, 5) for n in (1, 4, 2)],
              [(1, 3, 7, 5)], options=("ConcatenationOptions", {"axis": -2}))  # fmt: skip
    yield one("concatenation_of_scales", "CONCATENATION", [(1, 3, 4, 5), (1, 3, 4, 5)],
              [(1, 3, 4, 10)], "uint8", ("ConcatenationOptions", {"axis": 3}),
              in_q=[Q(0.05, 127), Q(0.031, 103)], out_q=Q(0.06, 115))  # fmt: skip
    yield one("strided_slice_c", "STRIDED_SLICE", [(1, 4, 5, 9)], [(1, 4, 5, 3)],
              options=("StridedSliceOptions", {"begin_mask": 7, "end_mask": 7}),
              constants=[i32(0, 0, 0, 2), i32(1, 4, 5, 5), i32(1, 1, 1, 1)])  # fmt: skip
    yield one("strided_slice_shrink", "STRIDED_SLICE", [(1, 4, 5, 9)], [(1, 5, 9)],
              options=("StridedSliceOptions", {"shrink_axis_mask": 2}),
              constants=[i32(0, 2, 0, 0), i32(1, 3, 5, 9), i32(1, 1, 1, 1)])  # fmt: skip
    yield one("pad_n", "PAD", [(2, 3, 4)], [(3, 3, 4)], constants=[i32([1, 0], [0, 0], [0, 0])])
    yield one("transpose_2d", "TRANSPOSE", [(5, 7)], [(7, 5)], constants=[i32(1, 0)])
    yield one("transpose_3d", "TRANSPOSE", [(3, 5, 7)], [(7, 3, 5)], constants=[i32(2, 0, 1)])
    yield one("pack_last", "PACK", [(5, 6), (5, 6), (5, 6)], [(5, 6, 3)],
              options=("PackOptions", {"values_count": 3, "axis": -1}))  # fmt: skip
    yield one("unpack_last", "UNPACK", [(3, 5, 2)], [(3, 5)] * 2,
              options=("UnpackOptions", {"num": 2, "axis": -1}))  # fmt: skip
    yield one("tile_int16", "TILE", [(1, 3, 4, 5)], [(1, 3, 12, 5)], "int16",
              constants=[i32(1, 1, 3, 1)])  # fmt: skip


def resizes() -> Iterator[Case]:
    """Return resizes by 2 and by 4."""
    for kind, table in (("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
                        ("RESIZE_BILINEAR", "ResizeBilinearOptions")):  # fmt: skip
        for dtype in ("int16", "uint8"):
            yield one(f"{kind.lower()}_2_plain_{dtype}", kind, [(1, 4, 5, 7)], [(1, 8, 10, 7)],
                      dtype, (table, {"align_corners": False, "half_pixel_centers": False}),
                      constants=[i32(8, 10)])  # fmt: skip
        yield one(f"{kind.lower()}_odd_ratio", kind, [(1, 4, 5, 7)], [(1, 6, 7, 7)],
                  options=(table, {"align_corners": False, "half_pixel_centers": False}),
                  constants=[i32(6, 7)])  # fmt: skip
        yield one(f"{kind.lower()}_point", kind, [(1, 1, 1, 7)], [(1, 6, 7, 7)],
                  options=(table, {"align_corners": False, "half_pixel_centers": False}),
                  constants=[i32(6, 7)])  # fmt: skip
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
