"""Hold the constants of a stream against the model's: weights, biases and scales of convolutions.

A weight that is wrong by one may hide in the rounding of every input that is tried; here nothing
hides. The compiler may give an operator other constants with good reason (a transposed convolution
as a plain one); what has little in common with the model's says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.compiler.proof.difference import Difference, difference
from mizzen.compiler.proof.written import SAYS_SOMETHING
from mizzen.frontends.tflite import Model, Operator, Tensor
from mizzen.frontends.tflite.model import ABSENT
from mizzen.targets.ethos_u.judge.sim.plan import Encoded

Array = npt.NDArray[Any]

FILTER, BIAS = 1, 2
"""Inputs of an operator with weights."""

MULTIPLIER_BITS = 31


def wrong_constants(model: Model, operator: Operator, rows: Sequence[Encoded]) -> Difference | None:
    """Return how constants differ from those of an operator; None if they do not, or may be others.

    rows  of the operator's commands, in order: each has some of the output channels, and the next
          one those behind; after the last channel they start again
    """
    expected = _expected(model, operator)
    if expected is None:
        return None
    weights, bias, multiplier = expected
    scaled_here = not _is_rescaled(model, operator)
    start = 0
    for row in rows:
        stop = start + len(row.weights)
        if stop > len(weights) or row.weights.shape[1:] != weights.shape[1:]:
            return None
        scale, single = multiplier[:, start:stop]
        pairs = [
            (row.weights, weights[start:stop]),
            (row.scales.bias, bias[start:stop]),
            (_factors(row, scale, single), scale),
        ]
        equal = [np.array_equal(*pair) for pair in pairs]
        # With the weights and one of the others it is this operator, whatever part differs.
        surely = (False, equal[0] and equal[2], equal[0] and equal[1] and scaled_here)
        for pair, any_part in zip(pairs, surely, strict=True):
            found = _differing(*pair, 1.0 if any_part else SAYS_SOMETHING)
            if found is not None:
                return found
        start = stop % len(weights)
    return None


def _differing(npu: Array, reference: Array, most: float) -> Difference | None:
    """Return how arrays differ; None if they do not, or in more than a part of their elements."""
    if npu.shape != reference.shape:
        return None
    found = difference(npu[np.newaxis], reference[np.newaxis])
    return found if found is not None and found.share <= most else None


RESCALING = frozenset(("QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LEAKY_RELU"))


def _is_rescaled(model: Model, operator: Operator) -> bool:
    """Whether an operator behind gives the results another scale, perhaps in the same command."""
    made = set(operator.outputs)
    return any(row.kind in RESCALING for row in model.main.operators if made & set(row.inputs))


def _expected(model: Model, operator: Operator) -> tuple[Array, Array, Array] | None:
    """Return weights `[O, H, W, I]`, biases and scales of an operator, by output channel."""
    tensors = model.main.tensors
    places = operator.inputs
    if operator.kind not in LAYOUTS or len(places) <= FILTER or places[FILTER] == ABSENT:
        return None
    filter = tensors[places[FILTER]]
    if filter.values is None or filter.quantization is None:
        return None
    weights = filter.values.astype(np.int16) - np.int16(filter.quantization.zero_point[0])
    weights = (
        weights.transpose(LAYOUTS[operator.kind]) if weights.ndim == 4 else weights[:, None, None]
    )
    channels = len(weights)
    bias = np.zeros(channels, np.int64)
    if len(places) > BIAS and places[BIAS] != ABSENT:
        values = tensors[places[BIAS]].values
        if values is None or values.size != channels:
            return None
        bias = values.astype(np.int64).ravel()
    factors = _scales(tensors[places[0]], filter, tensors[operator.outputs[0]], channels)
    return None if factors is None else (weights, bias, factors)


LAYOUTS = {
    "CONV_2D": (0, 1, 2, 3),
    "DEPTHWISE_CONV_2D": (3, 1, 2, 0),
    "FULLY_CONNECTED": (0, 1, 2, 3),
}
"""The axes of a filter that become `[O, H, W, I]`."""


def _scales(source: Tensor, filter: Tensor, result: Tensor, channels: int) -> Array | None:
    """Return what sums are multiplied with, as fractions of 31 bits: `[2, channels]`.

    The second are of scales that are multiplied in single precision, as the compiler does it for
    some operators (`tflite_bounds`). Ref: TFLite, QuantizeMultiplier.
    """
    rows = [row.quantization for row in (source, filter, result)]
    if any(row is None or not row.scale for row in rows):
        return None
    taken, weight, given = (np.asarray(row.scale, np.float64) for row in rows if row is not None)
    if len(taken) != 1 or len(given) != 1 or len(weight) not in (1, channels):
        return None
    single = np.float32(taken) * weight.astype(np.float32)
    factors = taken * weight / given, single.astype(np.float64) / given
    return np.stack([np.broadcast_to(_multipliers(row), (channels,)) for row in factors])


def _multipliers(factors: Array) -> Array:
    """Return fractions of 31 bits; the power of two follows from the value, and is left out."""
    fractions, _ = np.frexp(factors)
    multipliers = np.rint(fractions * (1 << MULTIPLIER_BITS)).astype(np.int64)
    return np.where(multipliers == 1 << MULTIPLIER_BITS, multipliers >> 1, multipliers)


def _factors(row: Encoded, expected: Array, single: Array) -> Array:
    """Return multipliers as fractions of 31 bits; those that may stand for `expected` as that.

    Those may that are of single precision, or of fewer bits.

    Shifts end at 63, and accumulators of 48 bits have multipliers of 15 bits.
    """
    values = row.scales.multiplier
    bits = np.frexp(values.astype(np.float64))[1].astype(np.int64)
    missing = np.clip(MULTIPLIER_BITS - bits, 0, MULTIPLIER_BITS)
    near = (missing > 0) & (np.abs((expected >> missing) - values) <= 1)
    return np.where(near | (values == single), expected, values << missing)
