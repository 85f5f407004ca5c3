from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.calibration.ranges import STILL, Ranges
from mizzen.calibration.seen import FEWEST_SAMPLES, Seen, findings
from mizzen.diagnostics import Severity

from .networks import floats

Array = npt.NDArray[Any]


def seen_of(inputs: list[Array], computed: list[Array] | None = None) -> Seen:
    seen = Seen(("x",))
    for place, array in enumerate(inputs):
        tensors = {"x": array, "y": array * 2 if computed is None else computed[place]}
        seen.add((array,), tensors)
    return seen


def said(seen: Seen) -> list[tuple[str, str]]:
    told = list(findings(seen, "sample {}".format))
    assert all(each.severity is Severity.WARNING and each.help for each in told)
    return [(each.code, each.message) for each in told]


def noise(count: int) -> list[Array]:
    return list(np.random.default_rng(1).normal(size=(count, 64)).astype(np.float32))


def test_real_data_is_not_remarked_on() -> None:
    assert not said(seen_of(noise(FEWEST_SAMPLES)))


@pytest.mark.parametrize("number", [0.0, 1.0])
def test_inputs_of_one_number(number: float) -> None:
    """What is computed of them is constant too, and is not named besides."""
    array = np.full(64, number, np.float32)
    assert said(seen_of([array] * FEWEST_SAMPLES)) == [
        (
            "W197",
            f'calibration must see different inputs, and "x" {number:g} is all that came: the '
            "ranges say nothing of others",
        )
    ]


def test_the_same_input_again_and_again() -> None:
    ((code, message),) = said(seen_of(noise(1) * 20))
    assert code == "W197"
    assert "all 20 that came are the same" in message


def test_few_inputs() -> None:
    ((code, message),) = said(seen_of(noise(FEWEST_SAMPLES - 1)))
    assert code == "W198"
    assert f"at least {FEWEST_SAMPLES} inputs, and saw {FEWEST_SAMPLES - 1}" in message
    assert "with a chance of 20%" in message


def test_a_tensor_that_does_not_change() -> None:
    still = [np.zeros(4, np.float32)] * FEWEST_SAMPLES
    ((code, message),) = said(seen_of(noise(FEWEST_SAMPLES), still))
    assert code == "W199"
    assert '"y" (0) did not' in message


def test_a_range_that_one_input_makes() -> None:
    inputs = noise(FEWEST_SAMPLES)
    inputs[4] = inputs[4] * 30
    ((code, message),) = said(seen_of(inputs))
    assert code == "W199"
    assert '"x" (' in message
    assert "by sample 4" in message


def test_an_input_that_is_somewhat_larger_is_none() -> None:
    inputs = [floats([-1, 1])] * (FEWEST_SAMPLES - 1) + [floats([-1.9, 1.9])]
    assert not said(seen_of(inputs))


def test_ranges_have_zero_in_them() -> None:
    seen = seen_of([floats([2, 3]), floats([4, 5])], [np.zeros(2, np.float32)] * 2)
    assert Ranges(seen).chosen() == {"x": (0.0, 5.0), "y": STILL}


def test_a_percentile_leaves_out_what_is_rare() -> None:
    numbers = np.random.default_rng(2).uniform(-1, 1, 1 << 20).astype(np.float32)
    numbers[0] = 50
    seen = seen_of([numbers])
    ranges = Ranges(seen)
    ranges.add({"x": numbers})
    low, high = ranges.chosen()["x"]
    assert -1.03 < low < -0.97
    assert 0.97 < high < 1.03
    assert Ranges(seen).chosen()["x"][1] == 50
