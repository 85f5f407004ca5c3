"""Hold the lookup tables of a stream against what the model's operators compute.

A proof's inputs ask for few entries of some tables: most of SOFTMAX's exponentials are too small to
change a rounded result. Here each entry is compared with one that the compiler has no part in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.compiler.proof.difference import Difference, difference
from mizzen.compiler.proof.written import FUSED_BEHIND, SAYS_SOMETHING
from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.lower import Lowered
from mizzen.frontends.tflite.lowering import fixed_point
from mizzen.frontends.tflite.lowering.requantization import multiplier_of
from mizzen.ops.elementwise import Table

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

ENTRIES = 256
UPPER_BIT = np.uint8(0x80)
INTEGER_BITS = 5
"""Of the differences to a row's greatest value that SOFTMAX takes exponentials of.
Ref: TFLite, kernels/internal/reference/softmax.h, kScaledDiffIntegerBits."""

BYTES = (TensorType.INT8, TensorType.UINT8)


def wrong_table(lowered: Lowered, operator: Operator, table: Bytes) -> Difference | None:
    """Return how a table differs from an operator's; None if it does not, or may be another one.

    The table may be of an operator that is computed in the same command, behind this one.
    """
    closest: Difference | None = None
    for expected in _expected(lowered, operator):
        if expected.nbytes != table.nbytes:
            continue
        found = difference(table.view(expected.dtype)[np.newaxis], expected[np.newaxis])
        if found is None:
            return None
        if closest is None or found.share < closest.share:
            closest = found
    return closest if closest is not None and closest.share <= SAYS_SOMETHING else None


def _expected(lowered: Lowered, operator: Operator) -> Iterator[Array]:
    """Return the tables that a command made for an operator may have."""
    main = lowered.model.main
    rows = [operator]
    for _ in range(FUSED_BEHIND):
        for row in rows:
            if row.kind == "SOFTMAX" and main.tensors[row.inputs[0]].type in BYTES:
                yield from _exponentials(lowered.model, row)
            yield from _functions(lowered, row)
        made = {index for row in rows for index in row.outputs}
        rows = [row for row in main.operators if made & set(row.inputs)]


def _functions(lowered: Lowered, operator: Operator) -> Iterator[Bytes]:
    """Return the function of bytes that an operator computes, by entry; as bytes of either sign."""
    for index in operator.outputs:
        value = lowered.value_of.get(index)
        made = None if value is None else value.producer
        if not isinstance(made, Table) or made.group != operator.index:
            continue
        entries = made.table.constant
        if entries is not None and len(entries) == ENTRIES:
            found = entries.astype(np.int8).view(np.uint8)
            yield found
            yield found ^ UPPER_BIT


def _exponentials(model: Model, operator: Operator) -> Iterator[Array]:
    """Return exp of SOFTMAX's differences from -255 to 0, int32 in units of 2^-31.

    Ref: TFLite, kernels/internal/quantization_util.cc, PreprocessSoftmaxScaling and
    CalculateInputRadius.
    """
    quantization = model.main.tensors[operator.inputs[0]].quantization
    if quantization is None or len(quantization.scale) != 1:
        return
    bits = 31 - INTEGER_BITS
    beta = float(np.float32(operator.options.get("beta", 1.0)))
    real = min(beta * quantization.scale[0] * (1 << bits), float((1 << 31) - 1))
    (multiplier,), (exponent,) = multiplier_of(real)
    if exponent < 0:
        return
    radius = math.floor(((1 << INTEGER_BITS) - 1) * (1 << bits) / (1 << int(exponent)))
    steps = np.arange(1 - ENTRIES, 1, dtype=np.int64)
    inside = np.maximum(steps, -radius)
    scaled = fixed_point.scaled(inside, int(multiplier), int(exponent))
    # Numbers of five integer bits are twice those of four with the same bits.
    found = fixed_point.exp_of_negative_doubled(scaled)
    yield np.where(steps >= -radius, found, 0).astype(np.int32)
