"""Rules of what the compiler is given. Mizzen's passes choose the order of axes and fold strides
into channels, so what a network is lowered to may break them and yet be compiled."""

from __future__ import annotations

from math import prod

from mizzen.graph import Operation
from mizzen.targets.ethos_u.commands import U55_U65
from mizzen.targets.ethos_u.legal.rule import extents
from mizzen.targets.ethos_u.legal.tosa.kernels import STRIDE_MAXIMUM, padded_stride
from mizzen.targets.ethos_u.legal.tosa.rule import Rule, kinds

PRODUCT_MAXIMUM = 1 << 16


def _not_last(operation: Operation) -> str | None:
    axis, rank = operation["axis"], operation.operands[0].type.rank
    return None if axis == rank - 1 else f"axis {axis} of {rank}"


def _images(operation: Operation) -> str | None:
    images = prod(operation.operands[0].shape[:-3])
    return None if images == 1 else f"{images} images"


def _last(operation: Operation) -> str | None:
    shape, axis = operation.operands[0].shape, operation["axis"]
    # Of several images the axes are moved, so that the last is another for the compiler.
    return "the last axis" if axis == len(shape) - 1 and _images(operation) is None else None


def _around(operation: Operation) -> str | None:
    shape = operation.operands[0].shape
    axis: int = operation["axis"]
    if axis == len(shape) - 1:
        return None
    found = max(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
    return None if found <= PRODUCT_MAXIMUM else f"{extents(shape)} along axis {axis}"


LAYOUT_RULES: tuple[Rule, ...] = (
    Rule(
        "padded-stride",
        kinds("CONV2D"),
        U55_U65,
        f"strides up to {STRIDE_MAXIMUM}, or no padding",
        padded_stride,
        "use a smaller stride and pooling, or no padding",
    ),
    Rule(
        "arg-max-axis",
        kinds("ARGMAX"),
        U55_U65,
        "the last axis",
        _not_last,
        "transpose its input",
    ),
    Rule(
        "arg-max-images",
        kinds("ARGMAX"),
        U55_U65,
        "one image",
        _images,
        "split the batch",
    ),
    Rule(
        "reverse-axis",
        kinds("REVERSE"),
        U55_U65,
        "another axis than the last",
        _last,
        "transpose its input",
    ),
    Rule(
        "sum-extents",
        kinds("REDUCE_SUM"),
        U55_U65,
        f"up to {PRODUCT_MAXIMUM} elements along, before and behind its axis, or the last axis",
        _around,
        "sum along the last axis, or in parts",
    ),
)
"""Rules that passes see to."""
