"""Larger and smaller images. Ref: TOSA 1.0, 2.9.1 RESIZE."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mizzen.frontends.torch.context import Call, lowers
from mizzen.frontends.torch.int_lowering.int_convolution import (
    TO_CHANNELS_FIRST,
    TO_CHANNELS_LAST,
    transpose,
)
from mizzen.frontends.torch.int_lowering.rescale import requantize, rescale
from mizzen.frontends.torch.values import Pending, Real, Target
from mizzen.graph import Value
from mizzen.ops.attributes import ResizeMode

LARGEST_SCALE = 2048
"""Greatest numerator of a scale in TOSA's level 8K: 256 times, in sixteenths for 8-bit images."""


@lowers("aten.upsample_nearest2d.vec", "aten.upsample_nearest2d.default")
def nearest(call: Call) -> Pending:
    """The nearest pixel towards the origin."""
    x = _image(call)
    ratios = _ratios(x.value.shape[2:], call.shape[2:], corners=False)

    def emit(target: Target) -> Value:
        """Add the resizing, and what gives the integers of `target`."""
        b = call.b
        scale, offset, border = _integers(x, call, ratios, [_start(ratio) for ratio in ratios])
        value = b(
            "RESIZE",
            transpose(b, x.value, TO_CHANNELS_LAST),
            b.shape(scale),
            b.shape(offset),
            b.shape(border),
            mode=ResizeMode.NEAREST,
            quantization=x.quantization,
        )
        value = requantize(b, value, x.scale, target, x.zero_point)
        return transpose(b, value, TO_CHANNELS_FIRST)

    return Pending(emit, call.shape)


def _start(ratio: Fraction) -> Fraction:
    """Return where output 0 is, so that TOSA's rounding to the nearest input rounds down.

    PyTorch takes input ``floor(i / ratio)``. Where the ratio is whole, that is also the input
    whose centre is nearest, the form that Ethos-U55 has.
    """
    half = Fraction(1, 2)
    return half / ratio - half if ratio.denominator == 1 else -half


@lowers("aten.upsample_bilinear2d.vec", "aten.upsample_bilinear2d.default")
def bilinear(call: Call) -> Pending:
    """The mean of the four pixels around, weighted by distance."""
    x = _image(call)
    corners = bool(call["align_corners"])
    ratios = _ratios(x.value.shape[2:], call.shape[2:], corners)
    # Centres of pixels meet unless corners do: source = (i + 1/2) * in/out - 1/2.
    half = Fraction(1, 2)
    starts = [Fraction(0) if corners else half / ratio - half for ratio in ratios]

    def emit(target: Target) -> Value:
        """Add the resizing, its division, and what gives the integers of `target`."""
        b = call.b
        scale, offset, border = _integers(x, call, ratios, starts)
        value = b(
            "RESIZE",
            transpose(b, x.value, TO_CHANNELS_LAST),
            b.shape(scale),
            b.shape(offset),
            b.shape(border),
            mode=ResizeMode.BILINEAR,
        )
        # The weights of the four add up to the product of the scales, so the quotient is a mean of
        # the integers themselves, zero point and all.
        value = rescale(b, value, 1.0 / (scale[0] * scale[2]), x.value.dtype)
        value.type = value.type.quantized(x.quantization)
        value = requantize(b, value, x.scale, target, x.zero_point)
        return transpose(b, value, TO_CHANNELS_FIRST)

    return Pending(emit, call.shape)


def _image(call: Call) -> Real:
    x = call.real("input" if "input" in call.arguments else "self")
    call.need(x.value.type.rank == 4, "its input is no [N,C,H,W]")
    return x


def _ratios(given: Sequence[int], wanted: Sequence[int], corners: bool) -> list[Fraction]:
    """Return out/in for rows and columns: how many steps of the output make one of the input."""
    if not corners:
        return [Fraction(after, before) for before, after in zip(given, wanted, strict=True)]
    return [
        Fraction(after - 1, before - 1) if before > 1 and after > 1 else Fraction(1)
        for before, after in zip(given, wanted, strict=True)
    ]


def _integers(
    x: Real, call: Call, ratios: Sequence[Fraction], starts: Sequence[Fraction]
) -> tuple[list[int], list[int], list[int]]:
    """Return RESIZE's scale, offset and border, so that it gives exactly the wanted size.

    The output's index i is at ``(i * scale_d + offset) / scale_n`` of the input; the border makes
    ``out = ((in - 1) * scale_n - offset + border) / scale_d + 1`` hold.
    """
    scale: list[int] = []
    offset: list[int] = []
    border: list[int] = []
    for axis, (ratio, start) in enumerate(zip(ratios, starts, strict=True)):
        numerator, denominator = ratio.numerator, ratio.denominator
        factor = (start * numerator).denominator
        numerator, denominator = numerator * factor, denominator * factor
        first = int(start * numerator)
        call.need(numerator <= LARGEST_SCALE, "its scale is too large a fraction")
        before, after = x.value.shape[2 + axis], call.shape[2 + axis]
        scale += [numerator, denominator]
        offset.append(first)
        border.append((after - 1) * denominator - (before - 1) * numerator + first)
    return scale, offset, border
