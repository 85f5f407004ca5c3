"""Inputs of the proof: four kinds in turn, within what a tensor may be."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.compiler.proof.stimuli import WIDE_LIMIT, Stimulus, stimuli, stimulus

SHAPE = (2, 3, 5)


def test_kinds_take_turns() -> None:
    (made,) = stimuli([stimulus(SHAPE, np.int8, 7)], 8, seed=1)
    assert made.shape == (8, *SHAPE)
    for first in (0, 4):
        anything, small, ends, impulse = made[first : first + 4]
        assert len(np.unique(anything)) > 10
        assert set(np.unique(ends)) == {-128, 127}
        assert sorted(np.unique(impulse)) == [7, 127]
        assert int((impulse == 127).sum()) == 1
        assert abs(float(small.mean()) - 7) < 16
        assert 2 < float(small.std()) < 40


def test_only_the_first_input_of_an_inference_is_an_impulse() -> None:
    _, second = stimuli([stimulus(SHAPE, np.int8)] * 2, 4, seed=1)
    assert len(np.unique(second[3])) > 10


def test_the_same_seed_gives_the_same_inputs() -> None:
    rows = [stimulus(SHAPE, np.int16), stimulus(SHAPE, np.uint8, 128)]
    first, second, other = (stimuli(rows, 4, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize(
    "dtype",
    [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float32,
     np.complex64],
)  # fmt: skip
def test_values_are_of_the_type(dtype: type[np.generic]) -> None:
    (made,) = stimuli([stimulus(SHAPE, dtype)], 8, seed=3)
    assert made.dtype == dtype
    if np.dtype(dtype).itemsize > 2:
        assert int(np.abs(made).max()) <= WIDE_LIMIT


def test_indices_keep_to_their_range() -> None:
    (made,) = stimuli([Stimulus(SHAPE, np.dtype(np.int32), 0, 4)], 16, seed=3)
    assert (int(made.min()), int(made.max())) == (0, 4)


def test_an_empty_tensor_has_no_values() -> None:
    (made,) = stimuli([stimulus((0, 3), np.int8)], 4, seed=3)
    assert made.shape == (4, 0, 3)
