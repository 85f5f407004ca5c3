"""Convolutions that two compilers cut into other slices of their depth: none accuses another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.analysis.comparison.constants import constants_beside
from mizzen.artifact.artifact import Artifact
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.comparison import ConstantsComparison

DEPTH = 64
Cut = Sequence[Sequence[int]]
"""Depths of the slices of each convolution."""

Weights = npt.NDArray[np.int8]


def weights(layers: int) -> list[Weights]:
    """Return the weights of convolutions, `[O, 1, 1, I]`."""
    rng = np.random.default_rng(11)
    return [rng.integers(-127, 128, (DEPTH, 1, 1, DEPTH)).astype(np.int8) for _ in range(layers)]


def network(cut: Cut, all_weights: Sequence[Weights]) -> bytes:
    """Return convolutions in a row, each by slices of its channels that are put together."""
    net = NetworkBuilder()
    x = first = net.tensor("x", (1, 4, 4, DEPTH), "int8", 0.5)
    rng = np.random.default_rng(5)
    for layer, (depths, array) in enumerate(zip(cut, all_weights, strict=True)):
        scales = 0.001 * rng.uniform(3, 4.2, DEPTH)  # two shifts, one of them more often
        biases = rng.integers(-999, 1000, DEPTH).astype(np.int32)
        stops = np.cumsum(depths)
        parts: list[int] = []
        for start, stop in zip((0, *stops), stops, strict=False):
            name, chosen = f"{layer}, {start}", slice(start, stop)
            w = net.constant(f"w {name}", array[chosen], list(scales[chosen]))
            b = net.constant(f"b {name}", biases[chosen], list(scales[chosen] * 0.5))
            y = net.tensor(f"y {name}", (1, 4, 4, stop - start), "int8", 0.5)
            net.operator("CONV_2D", [x, w, b], [y],
                         ("Conv2DOptions", {"stride_w": 1, "stride_h": 1}))  # fmt: skip
            parts.append(y)
        x = parts[0]
        if len(parts) > 1:
            x = net.tensor(f"layer {layer}", (1, 4, 4, DEPTH), "int8", 0.5)
            net.operator("CONCATENATION", parts, [x], ("ConcatenationOptions", {"axis": 3}))
    return net.finish([first], [x])


def compiled(cut: Cut, all_weights: Sequence[Weights]) -> Artifact:
    return mizzen.compile(network(cut, all_weights), "ethos-u55-128", prove="off")


def beside(ours: Cut, theirs: Cut, damage: tuple[int, ...] = ()) -> ConstantsComparison:
    """Compare two cuts; `damage` is the place of a weight that is another in the first."""
    right, wrong = weights(len(ours)), weights(len(ours))
    if damage:
        layer, *place = damage
        wrong[layer][tuple(place)] ^= 1
    return constants_beside(compiled(ours, wrong), compiled(theirs, right))


@pytest.mark.usefixtures("velas_code")
def test_slices_of_other_layers_are_not_compared() -> None:
    """In the second place both have 16 channels, and of other layers: their shifts are much alike.

    The last layer is the same on both sides.
    """
    ours, theirs = [(16, 16, 32), (64,), (64,)], [(64,), (16, 16, 32), (64,)]
    assert beside(ours, theirs) == ConstantsComparison(1, 4, ())


@pytest.mark.usefixtures("velas_code")
def test_what_is_the_same_among_others_is_compared() -> None:
    found = beside([(16, 16, 32), (64,), (64,)], [(64,), (16, 16, 32), (64,)], (2, 3, 0, 0, 5))
    assert (found.compared, found.others) == (1, 4)
    (wrong,) = found.wrong
    assert (wrong.what, wrong.differing, wrong.where) == ("weights", 1, (3, 0, 0, 5))


@pytest.mark.usefixtures("velas_code")
def test_slices_of_one_layer_are_compared_together() -> None:
    assert beside([(16, 48), (64,)], [(48, 16), (64,)]) == ConstantsComparison(3, 0, ())
    (wrong,) = beside([(16, 48), (64,)], [(48, 16), (64,)], (0, 17, 0, 0, 5)).wrong
    assert (wrong.what, wrong.differing, wrong.where) == ("weights", 1, (17, 0, 0, 5))
