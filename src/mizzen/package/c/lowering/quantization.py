"""Real numbers to integers and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mizzen.package.c.lowering.context import Given, Rule, ref
from mizzen.package.c.lowering.elementwise import PYTORCH, TFLITE
from mizzen.package.c.lowering.reduction import quantized_multiplier
from mizzen.package.device import DeviceTensor


def quantize_per_tensor(given: Given) -> None:
    """PyTorch multiplies by the inverse scale, which it rounds to float32."""
    scale, point = given.real("scale"), given.whole("zero_point")
    _quantize(given, given.tensor("input"), [_inverse(scale)], [point], 1)


def quantize_per_channel(given: Given) -> None:
    """PyTorch, along an axis; scales and zero points are tensors that must be constant."""
    source = given.tensor("input")
    scales, points = given.held(given.tensor("scales")), given.held(given.tensor("zero_points"))
    inverses = (np.float32(1) / scales.astype(np.float32)).tolist()
    _quantize(given, source, inverses, points.tolist(), _inner(given, source))


def dequantize_per_tensor(given: Given) -> None:
    """PyTorch takes the zero point away in float32."""
    source = given.tensor("input")
    scales, points = [given.real("scale")], [given.whole("zero_point")]
    _dequantize(given, source, scales, points, 1, PYTORCH)


def dequantize_per_channel(given: Given) -> None:
    """PyTorch, along an axis."""
    source = given.tensor("input")
    scales = given.held(given.tensor("scales"))
    listed = given.arguments.get("zero_points")
    points = (
        np.zeros(scales.size, np.int32)
        if listed is None
        else given.held(given.tensor("zero_points"))
    )
    _dequantize(given, source, scales.tolist(), points.tolist(), _inner(given, source), PYTORCH)


def tflite_dequantize(given: Given) -> None:
    """TFLite: the scale times the whole difference."""
    (source,) = given.present()
    tensor = given.row(source)
    inner = _inner_of(tensor, tensor.axis) if len(tensor.scales) > 1 else 1
    given.must(bool(tensor.scales), "the input must be quantised")
    _dequantize(given, source, tensor.scales, tensor.zero_points, inner, TFLITE)


def tflite_quantize(given: Given) -> None:
    """TFLite's QUANTIZE: reals are divided and rounded half away from zero, integers rescaled."""
    (source,) = given.present()
    if given.row(source).dtype != np.float32:
        _rescale(given, source)
        return
    output = given.row(given.output())
    given.must(len(output.scales) == 1, "the output must have one scale")
    limits = np.iinfo(output.dtype)
    given.emit(
        "quantize",
        (
            ref(source),
            ref(given.lowering.constant(output.scales, np.float32)),
            ref(given.lowering.constant(output.zero_points, np.int32)),
            1,
            int(limits.min),
            int(limits.max),
            TFLITE,
        ),
        (given.output(),),
    )


def _rescale(given: Given, source: int) -> None:
    tensor, output = given.row(source), given.row(given.output())
    given.must(len(tensor.scales) == len(output.scales) == 1, "there must be one scale each")
    factor = float(np.float32(tensor.scales[0])) / float(np.float32(output.scales[0]))
    limits = np.iinfo(output.dtype)
    given.emit(
        "rescale",
        (
            ref(source),
            tensor.zero_points[0],
            *quantized_multiplier(factor),
            output.zero_points[0],
            int(limits.min),
            int(limits.max),
        ),
        (given.output(),),
    )


def _quantize(
    given: Given, source: int, inverses: Sequence[float], points: Sequence[int], inner: int
) -> None:
    low, high = given.whole("quant_min"), given.whole("quant_max")
    given.must(given.row(source).dtype == np.float32, "the input must be float32")
    given.emit(
        "quantize",
        (
            ref(source),
            ref(given.lowering.constant(inverses, np.float32)),
            ref(given.lowering.constant(points, np.int32)),
            inner,
            low,
            high,
            PYTORCH,
        ),
        (given.output(),),
    )


def _dequantize(
    given: Given,
    source: int,
    scales: Sequence[float],
    points: Sequence[int],
    inner: int,
    way: int,
) -> None:
    given.must(given.row(given.output()).dtype == np.float32, "the output must be float32")
    given.emit(
        "dequantize",
        (
            ref(source),
            ref(given.lowering.constant(scales, np.float32)),
            ref(given.lowering.constant(points, np.int32)),
            inner,
            way,
        ),
        (given.output(),),
    )


def _inverse(scale: float) -> float:
    return float(np.float32(1.0 / scale))


def _inner(given: Given, source: int) -> int:
    tensor = given.row(source)
    return _inner_of(tensor, given.whole("axis") % max(1, len(tensor.shape)))


def _inner_of(tensor: DeviceTensor, axis: int) -> int:
    return math.prod(tensor.shape[axis + 1 :])


RULES: Mapping[str, Rule] = {
    "quantized_decomposed::quantize_per_tensor": quantize_per_tensor,
    "quantized_decomposed::quantize_per_channel": quantize_per_channel,
    "quantized_decomposed::dequantize_per_tensor": dequantize_per_tensor,
    "quantized_decomposed::dequantize_per_channel": dequantize_per_channel,
    "tflite::DEQUANTIZE": tflite_dequantize,
    "tflite::QUANTIZE": tflite_quantize,
}
