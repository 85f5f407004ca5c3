"""What the stream of an NPU operator writes for single operators of the model.

The compiler's debug database says whose command is whose; the commands of one operator may write
its tensor in one map, or parts of it side by side, and the last map of an operator may be the
tensor of one behind it that was fused. A map that may be none of these says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.compiler.proof.difference import Difference, difference
from mizzen.frontends.tflite import Model, Tensor

Array = npt.NDArray[Any]

FUSED_BEHIND = 3
"""How many operators behind another the compiler may compute in the same command."""

SAYS_SOMETHING = 0.5
"""A map of which more than this part differs from a tensor may be something else."""

CUT = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"))
"""Operators whose several maps are parts of the tensor side by side; of others, some are steps."""

HEIGHT, CHANNELS = 1, 3
"""Axes of maps `[batch, H, W, C]` along which the compiler cuts."""


@dataclass(frozen=True, slots=True)
class Written:
    """The maps that the stream writes for an operator of the model, in order."""

    operator: int
    maps: tuple[Array, ...]

    def as_tensor(self, tensor: Tensor, count: int) -> Iterator[Array]:
        """Return what of the maps may be a tensor, `[count, *shape]`."""
        for form in self._forms():
            array = _as(form, tensor, count)
            if array is not None:
                yield array

    def _forms(self) -> Iterator[Array]:
        yield self.maps[-1]
        if len(self.maps) > 1 and len({row.dtype for row in self.maps}) == 1:
            for axis in (CHANNELS, HEIGHT):
                if len({row.shape[:axis] + row.shape[axis + 1 :] for row in self.maps}) == 1:
                    yield np.concatenate(self.maps, axis)


def written(commands: Sequence[tuple[int, int]], maps: Mapping[int, Array]) -> tuple[Written, ...]:
    """Return what was written, those first that were complete first.

    commands  byte offset in the stream, and operator
    """
    found: dict[int, list[Array]] = {}
    for offset, operator in sorted(commands):
        if offset in maps:
            rows = found.pop(operator, [])
            found[operator] = [*rows, maps[offset]]
    return tuple(Written(operator, tuple(rows)) for operator, rows in found.items())


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
        for array in row.as_tensor(model.main.tensors[index], count):
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


def _as(form: Array, tensor: Tensor, count: int) -> Array | None:
    """Return a feature map as a tensor; None if it cannot be that tensor."""
    if tensor.dtype is None or form.dtype.itemsize != tensor.dtype.itemsize:
        return None
    if form.size != count * tensor.elements:
        return None
    array = np.ascontiguousarray(form).reshape(count, *tensor.shape)
    return array != 0 if tensor.dtype == np.bool_ else array.view(tensor.dtype)
