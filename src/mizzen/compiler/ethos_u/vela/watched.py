"""What the stream of an NPU operator writes for single operators of the model.

The compiler's debug database says whose command is whose; the last map of an operator may be the
tensor of one behind it that was fused. A map that may be none of these says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.compiler.proof.difference import Difference, difference
from mizzen.compiler.proof.written import FUSED_BEHIND, SAYS_SOMETHING, Written
from mizzen.frontends.tflite import Model

Array = npt.NDArray[Any]

CUT = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"))
"""Operators whose several maps are parts of the tensor side by side; of others, some are steps."""


def judge(
    row: Written, model: Model, reference: Mapping[int, Array], count: int
) -> Difference | bool:
    """Say how maps differ from the tensor that they are; True if not, False if that is not known.

    reference  tensors by index
    """
    closest: Difference | None = None
    for index in _candidates(model, row.operator):
        if index not in reference:
            continue
        tensor = model.main.tensors[index]
        for array in row.as_tensor(tensor.shape, tensor.dtype, count):
            found = difference(array, reference[index])
            if found is None:
                return True
            if array.dtype != np.bool_ and (closest is None or found.share < closest.share):
                closest = found
    whole = len(row.maps) == 1 or model.main.operators[row.operator].kind in CUT
    if closest is None or closest.share > SAYS_SOMETHING or not whole:
        return False
    return closest


def _candidates(model: Model, operator: int) -> Iterator[int]:
    """Return the tensors that commands of an operator may write, its own first."""
    main = model.main
    tensors = {row.index for row in main.present(main.operators[operator].outputs)}
    for _ in range(FUSED_BEHIND):
        yield from sorted(tensors)
        tensors = {
            row.index
            for user in main.operators
            if tensors & set(user.inputs)
            for row in main.present(user.outputs)
        }
