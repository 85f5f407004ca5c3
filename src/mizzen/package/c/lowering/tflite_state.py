"""TFLite's operators that keep a tensor from one inference to the next.

Ref: TFLite Micro, kernels/svdf_common.cc (EvalIntegerSvdfReference, and which factors it has).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mizzen.package.c.lowering.context import Given, Rule, elements
from mizzen.package.c.lowering.quantized import scale_of
from mizzen.package.c.lowering.reduction import quantized_multiplier
from mizzen.package.c.lowering.strides import View, move, whole
from mizzen.package.c.lowering.windows import POINT, Integers, Weights, Window, convolve, point_of


def filtered(given: Given) -> None:
    """SVDF of quantised numbers: features of the last inputs, each weighted by its age."""
    source, features, times, bias, state = given.tensors()
    places = [index for index in (source, features, times, state) if index is not None]
    given.must(len(places) == 4, "input, weights and state must be given")
    source, features, times, state = places
    tensor, held = given.row(source), given.row(state)
    known = tensor.dtype == np.int8 and held.dtype.name in ("int8", "int16")
    given.must(known and point_of(held) == 0, "numbers must be quantised, states around 0")
    batches, width = tensor.shape
    count, memory = given.row(times).shape
    _shift(given, state)
    newest = given.lowering.temporary((batches, count), held.dtype)
    window = Window(batches, count, width, POINT, POINT, (width, 0, 0, 1), (count, 0, 0, 1))
    weights = Weights(features, width, count, (0, width, 0, 0, 1))
    how = _integers(given, (source, features, state), count, np.iinfo(held.dtype))
    convolve(given, source, weights, None, window, how, newest)
    at = View((batches, count), (count * memory, memory), memory - 1)
    move(given, newest, state, whole((batches, count)), at)
    _weigh(given, state, times, bias, given.whole("rank") * memory)


def _shift(given: Given, state: int) -> None:
    """Forget the oldest feature: all move one place to the front."""
    tensor = given.row(state)
    kept = elements(tensor.shape) - 1
    target = given.lowering.temporary((kept,), tensor.dtype)
    later, front = View((kept,), (1,), 1), View((kept,), (1,))
    move(given, state, target, later, front)
    move(given, target, state, front, front)


def _weigh(given: Given, state: int, times: int, bias: int | None, depth: int) -> None:
    """Add up the features of each unit over ranks and time."""
    batches, units = given.row(given.output()).shape
    total = units * depth
    window = Window(batches, units, total, POINT, POINT, (total, 0, 0, 1), (units, 0, 0, 1))
    weights = Weights(times, depth, 1, (0, depth, 0, 0, 1))
    limits = np.iinfo(given.row(given.output()).dtype)
    how = _integers(given, (state, times, given.output()), units, limits)
    convolve(given, state, weights, bias, window, how)


def _integers(
    given: Given, indices: tuple[int, int, int], count: int, limits: np.iinfo[np.signedinteger]
) -> Integers:
    """Return how products become a third tensor; factors are computed in float32."""
    one, other, result = (scale_of(given, index) for index in indices)
    factor = quantized_multiplier(float(one * other / result))
    point = point_of(given.row(indices[2]))
    points = (point_of(given.row(indices[0])), 0, point)
    return Integers((factor,) * count, points, (int(limits.min), int(limits.max)), is_wide=False)


RULES: Mapping[str, Rule] = {"tflite::SVDF": filtered}
