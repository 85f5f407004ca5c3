"""Rules of resizing. A factor is output over input; with aligned corners, of the extents less 1."""

from __future__ import annotations

from fractions import Fraction

from mizzen.targets.ethos_u.commands import U55_U65, U85, Arch
from mizzen.targets.ethos_u.legal.facts import OperatorFacts
from mizzen.targets.ethos_u.legal.rule import Rule, data_input, operators

BILINEAR = "RESIZE_BILINEAR"

FACTORS = (2, 4, 8)
"""Factors that U55 and U65 have: repeated doubling in the input's upscaling."""

LARGEST_FACTOR = 2048
"""Of U85, whose registers hold a numerator of 11 bits."""

LARGEST_CENTRED_FACTOR = 1024
"""Of U85 where pixels are compared at their centres, which doubles the numerator."""


def _extents(operator: OperatorFacts) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return height and width of input and output."""
    data = data_input(operator)
    if data is None or not operator.outputs:
        return None
    (_, height, width, _), (_, out_height, out_width, _) = data.nhwc, operator.outputs[0].nhwc
    return (height, width), (out_height, out_width)


def _ratio(extent: int, output: int, aligned: bool) -> tuple[int, int]:
    """Return output and input as they form the factor; an extent of 1 stays where it is."""
    if not aligned:
        return output, extent
    return output - 1, extent - 1


def _factor(extent: int, output: int, aligned: bool) -> Fraction | None:
    """Return the factor of an axis; None if there is none, as from one aligned pixel to many."""
    top, bottom = _ratio(extent, output, aligned)
    if bottom == 0:
        return Fraction(1) if top == 0 else None
    return Fraction(top, bottom)


def _factors(operator: OperatorFacts) -> tuple[Fraction | None, Fraction | None] | None:
    both = _extents(operator)
    if both is None:
        return None
    aligned = bool(operator.option("align_corners"))
    height, width = (_factor(i, o, aligned) for i, o in zip(*both, strict=True))
    return height, width


def _written(factor: Fraction | None) -> str:
    return "none" if factor is None else f"{float(factor):g}"


def _unlike(operator: OperatorFacts, _: Arch) -> str | None:
    factors, both = _factors(operator), _extents(operator)
    if factors is None or both is None or _trivial(operator) or factors[0] == factors[1]:
        return None
    one_axis = any(
        output == 1 and factor == 1 for output, factor in zip(both[1], factors, strict=True)
    )
    centred = operator.kind == BILINEAR and operator.option("half_pixel_centers")
    if one_axis and not centred:
        return None
    return f"{_written(factors[0])} and {_written(factors[1])}"


def _upscaling(operator: OperatorFacts, _: Arch) -> str | None:
    factors = _factors(operator)
    if factors is None or _trivial(operator):
        return None
    largest = max((factor for factor in factors if factor is not None), default=Fraction(1))
    return None if largest in FACTORS else _written(largest)


def _centred(operator: OperatorFacts, _: Arch) -> str | None:
    factors, both = _factors(operator), _extents(operator)
    if factors is None or both is None or not operator.option("half_pixel_centers"):
        return None
    if both[0] == (1, 1) or None in factors or max(factors, key=_value) == 2:
        return None
    return _written(max(factors, key=_value))


def _value(factor: Fraction | None) -> Fraction:
    return Fraction(0) if factor is None else factor


def _trivial(operator: OperatorFacts) -> bool:
    """Whether one pixel is copied to all, or nothing changes."""
    both = _extents(operator)
    return both is None or both[0] == (1, 1) or both[0] == both[1]


def _both_options(operator: OperatorFacts, _: Arch) -> str | None:
    both = operator.option("align_corners") and operator.option("half_pixel_centers")
    return "both" if both else None


def _no_power_of_two(operator: OperatorFacts, _: Arch) -> str | None:
    factors, both = _factors(operator), _extents(operator)
    if factors is None or both is None or both[0] == (1, 1):
        return None
    for factor in factors:
        if factor is not None and not _is_power_of_two(factor):
            return _written(factor)
    return None


def _is_power_of_two(factor: Fraction) -> bool:
    return factor.denominator == 1 and factor > 0 and factor.numerator.bit_count() == 1


def _too_large(operator: OperatorFacts, _: Arch) -> str | None:
    both = _extents(operator)
    if both is None:
        return None
    aligned = bool(operator.option("align_corners"))
    centred = operator.kind != BILINEAR or operator.option("half_pixel_centers")
    most = LARGEST_CENTRED_FACTOR if centred and not aligned else LARGEST_FACTOR
    for extent, output in zip(*both, strict=True):
        top, bottom = _ratio(extent, output, aligned)
        if top > most * max(1, bottom):
            return f"{top / max(1, bottom):g}, over {most}"
    return None


_BOTH = operators("RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR")
_STEPS = "resize in several steps by 2, 4 or 8"

RESIZE_RULES: tuple[Rule, ...] = (
    Rule(
        "resize-unlike-factors",
        _BOTH,
        U55_U65,
        "one factor for height and width, or one axis of extent 1",
        _unlike,
        "resize both axes alike",
    ),
    Rule(
        "resize-centred-factor",
        operators(BILINEAR),
        U55_U65,
        "a factor of 2 with half_pixel_centers",
        _centred,
        "resize by 2 several times, or without half_pixel_centers",
    ),
    Rule(
        "resize-factor",
        _BOTH,
        U55_U65,
        "a factor of 2, 4 or 8",
        _upscaling,
        _STEPS,
    ),
    Rule(
        "resize-options",
        _BOTH,
        U85,
        "align_corners or half_pixel_centers",
        _both_options,
        "choose one of them",
    ),
    Rule(
        "resize-power-of-two",
        operators(BILINEAR),
        U85,
        "a power of two as factor",
        _no_power_of_two,
        "resize by a power of two, or with RESIZE_NEAREST_NEIGHBOR",
    ),
    Rule(
        "resize-largest-factor",
        _BOTH,
        U85,
        "factors that 11 bits hold",
        _too_large,
        "resize in several steps",
    ),
)
