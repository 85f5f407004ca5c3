"""What a command stream writes into memory for single operators of a network.

The commands of one operator may write its tensor in one map, or parts of it side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

HEIGHT, CHANNELS = 1, 3
"""Axes of maps `[batch, H, W, C]` along which compilers cut."""

FUSED_BEHIND = 3
"""How many operators after another a compiler may compute in the same command."""

SAYS_SOMETHING = 0.5
"""A map of which more than this part differs from a tensor may be something else."""


@dataclass(frozen=True, slots=True)
class Written:
    """The maps that the stream writes for an operator of the model, in order."""

    operator: int
    maps: tuple[Array, ...]

    def as_tensor(
        self, shape: tuple[int, ...], dtype: np.dtype[Any] | None, count: int
    ) -> Iterator[Array]:
        """Return each form of the maps that may be a tensor, `[count, *shape]`."""
        for form in self._forms():
            array = _as(form, shape, dtype, count)
            if array is not None:
                yield array

    def _forms(self) -> Iterator[Array]:
        yield self.maps[-1]
        if len(self.maps) > 1 and len({array.dtype for array in self.maps}) == 1:
            for axis in (CHANNELS, HEIGHT):
                if len({array.shape[:axis] + array.shape[axis + 1 :] for array in self.maps}) == 1:
                    yield np.concatenate(self.maps, axis)


def written(commands: Sequence[tuple[int, int]], maps: Mapping[int, Array]) -> tuple[Written, ...]:
    """Return the maps of each operator, those first that were complete first.

    commands  byte offset in the stream, and operator
    """
    of_operator: dict[int, list[Array]] = {}
    for offset, operator in sorted(commands):
        if offset in maps:
            before = of_operator.pop(operator, [])
            of_operator[operator] = [*before, maps[offset]]
    return tuple(Written(operator, tuple(arrays)) for operator, arrays in of_operator.items())


def _as(
    form: Array, shape: tuple[int, ...], dtype: np.dtype[Any] | None, count: int
) -> Array | None:
    """Return a feature map as a tensor; None if it cannot be that tensor."""
    if dtype is None or form.dtype.itemsize != dtype.itemsize:
        return None
    if form.size != count * int(np.prod(shape, dtype=np.int64)):
        return None
    array = np.ascontiguousarray(form).reshape(count, *shape)
    return array != 0 if dtype == np.bool_ else array.view(dtype)
