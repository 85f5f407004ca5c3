"""Rules of TRANSPOSE. Which axes move decides between strides, 32-bit copies and block copies."""

from __future__ import annotations

import itertools
import math

from mizzen.targets.ethos_u.commands import U55_U65, Arch
from mizzen.targets.ethos_u.legal.facts import OperatorFacts
from mizzen.targets.ethos_u.legal.rule import Rule, data_input, extents, operators

RANK_MAXIMUM_32_BIT = 4
EXTENT_MAXIMUM = 1 << 16

KEPT, NWHC, NHCW = (0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)
"""Permutations of batch, height, width and depth, by the order that they give."""

DEPTH_MAXIMUM_32_BIT: dict[tuple[int, ...], int] = {KEPT: 1 << 15, NWHC: 1 << 14, NHCW: 1 << 16}
"""Largest depth of 32-bit elements, whose halves are moved as 16-bit depth."""


def _permutation(operator: OperatorFacts) -> tuple[int, ...] | None:
    parameter = operator.input(1)
    if parameter is None or parameter.values is None:
        return None
    rank = max(1, parameter.values.size)
    return tuple(int(axis) % rank for axis in parameter.values.reshape(-1))


def _wide(operator: OperatorFacts, _: Arch) -> str | None:
    """Measure a permutation of 32-bit elements."""
    data, permutation = data_input(operator), _permutation(operator)
    if data is None or permutation is None or data.dtype != "INT32":
        return None
    told = f"{extents(permutation)} of {extents(data.shape)}"
    if len(data.shape) > RANK_MAXIMUM_32_BIT:
        return told
    missing = RANK_MAXIMUM_32_BIT - len(permutation)
    full = (*range(missing), *(axis + missing for axis in permutation))
    if full not in DEPTH_MAXIMUM_32_BIT or data.nhwc[3] > DEPTH_MAXIMUM_32_BIT[full]:
        return told
    batch, height, width, _depth = data.nhwc
    fits = (
        full == KEPT
        or (full == NWHC and batch == 1 and max(height, width) <= EXTENT_MAXIMUM)
        or (full == NHCW and batch * height <= EXTENT_MAXIMUM and width <= EXTENT_MAXIMUM)
    )
    return None if fits else told


def _narrow(operator: OperatorFacts, _: Arch) -> str | None:
    """Measure a permutation of 8-bit or 16-bit elements."""
    data, permutation = data_input(operator), _permutation(operator)
    if data is None or permutation is None or data.dtype == "INT32" or not data.shape:
        return None
    rank = len(permutation)
    if permutation == tuple(range(rank)):
        return None
    told = f"{extents(permutation)} of {extents(data.shape)}"
    outer = rank - 3
    kept_outside = permutation[: max(0, outer)] == tuple(range(max(0, outer)))
    if kept_outside and math.prod(data.shape[: max(0, outer)]) == 1:
        return None if max(data.shape) <= EXTENT_MAXIMUM else told
    products = (math.prod(axes) for axes in itertools.combinations(data.shape, rank - 2))
    return None if max(products) <= EXTENT_MAXIMUM else told


_TRANSPOSE = operators("TRANSPOSE")

TRANSPOSE_RULES: tuple[Rule, ...] = (
    Rule(
        "transpose-32-bit",
        _TRANSPOSE,
        U55_U65,
        "for INT32, at most 4 dimensions, and height and width (with a batch of 1 and a depth up "
        "to 2^14) or width and depth exchanged, of extents up to 2^16",
        _wide,
        "quantise it to 16 bits or less, or move the TRANSPOSE to where it is so",
    ),
    Rule(
        "transpose-extents",
        _TRANSPOSE,
        U55_U65,
        f"extents of height, width and depth up to {EXTENT_MAXIMUM}; if other axes move too, such "
        "products of all axes but two",
        _narrow,
        "RESHAPE dimensions that stay together, or split it",
    ),
)
