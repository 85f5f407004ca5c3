"""What networks are run on: random values over the whole range of each type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def random_inputs(
    inputs: Sequence[tuple[Sequence[int], npt.DTypeLike]], count: int, limit: int | None = None
) -> list[Array]:
    """Return uniformly random integers for inputs of these shapes and types, `[count, *shape]`.

    The same for the same shapes, types and count. `limit` is the largest magnitude of wider
    values than bytes.
    """
    rng = np.random.default_rng(count)
    made: list[Array] = []
    for shape, type_ in inputs:
        dtype = np.dtype(type_)
        low, high = _range(dtype, limit)
        values = rng.integers(low, high, (count, *shape), endpoint=True)
        made.append(values.astype(dtype))
    return made


def _range(dtype: np.dtype[Any], limit: int | None) -> tuple[int, int]:
    if dtype == np.bool_:
        return 0, 1
    if dtype.itemsize > 1 and limit is not None:
        return -limit, limit
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)
