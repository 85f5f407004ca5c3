"""What networks are run on: random values over the whole range of each type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def random_inputs(inputs: Sequence[tuple[Sequence[int], npt.DTypeLike]], count: int) -> list[Array]:
    """Give uniformly random integers for inputs of these shapes and types, `[count, *shape]`.

    The same for the same shapes, types and count.
    """
    rng = np.random.default_rng(count)
    return [_values(rng, (count, *shape), np.dtype(dtype)) for shape, dtype in inputs]


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
