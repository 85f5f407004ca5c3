"""Which layers differ, of what was seen inside of NPU operators."""

from __future__ import annotations

import numpy as np

from mizzen.analysis.comparison.layers import Layer, Layers
from mizzen.analysis.comparison.matching import Found
from mizzen.analysis.comparison.tally import Tally
from mizzen.analysis.comparison.verdict import judged
from mizzen.diagnostics import Device
from mizzen.report.comparison import Outcome


def tally(differing: int) -> Tally:
    counted = Tally()
    reference = np.zeros((1, 10), np.int8)
    counted.add(reference + (np.arange(10) < differing).astype(np.int8), reference)
    return counted


def outcomes(last: int) -> list[Outcome]:
    """Judge four layers in a row; what the middle ones wrote may not be their tensors."""
    layers = Layers(
        [
            Layer(index, "Conv", f"conv{index}", Device.NPU, (before,), (after,))
            for index, (before, after) in enumerate(["xa", "ab", "bc", "cd"])
        ]
    )
    maps = {
        (0, index): Found(key, tally(differing), is_certain)
        for index, (key, differing, is_certain) in enumerate(
            [("a", 0, True), ("b", 9, False), ("c", 8, False), ("d", last, True)]
        )
    }
    return [each.outcome for each in judged(layers, {}, maps, {}, {}, inside=True)]


def test_what_is_on_the_way_to_equal_tensors_does_not_differ() -> None:
    """However many such maps are behind each other."""
    assert outcomes(0) == [Outcome.EQUAL, Outcome.FUSED, Outcome.FUSED, Outcome.EQUAL]


def test_what_is_on_the_way_to_another_tensor_may_be_why_it_differs() -> None:
    assert outcomes(3) == [
        Outcome.EQUAL, Outcome.DIFFERS, Outcome.INHERITED, Outcome.INHERITED,
    ]  # fmt: skip
