"""Roundings of ONNX networks that leave little of a tensor: W319."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from mizzen.compiler.onnx.levels import few_levels
from mizzen.frontends.onnx.reading import read

from ...frontends.onnx.lowering.networks import (  # noqa: TID252 tests are no package with a name
    Network,
    Scale,
)


def joined(scores: Scale, boxes: Scale) -> Network:
    """Return scores beside boxes, in the scale of the boxes."""
    network = Network()
    x = network.both(network.input("x", (1, 8)), Scale(0.05))
    one = network.both(network.add("Sigmoid", x), scores)
    other = network.both(network.input("boxes", (1, 8)), boxes)
    network.outputs.append(network.both(network.add("Concat", one, other, axis=1), boxes))
    return network


def said(network: Network) -> list[str]:
    return [each.render() for each in few_levels(read(network.data, "net.onnx"))]


def test_scores_beside_boxes() -> None:
    (warning,) = said(joined(Scale(1 / 256, -128), Scale(5.0, -128)))
    assert warning.startswith("warning[W319]: ")
    assert "must keep at least 16 different numbers" in warning
    assert "and keeps 1: it holds 0 to 1, and a step is 5 there" in warning
    assert "operator 7 Concat" in warning
    assert "each with its own scale" in warning


def test_scores_beside_boxes_from_0_to_1() -> None:
    assert said(joined(Scale(1 / 256, -128), Scale(1 / 256, -128))) == []


def test_a_small_summand() -> None:
    network = Network()
    small = network.both(network.input("small", (1, 8)), Scale(0.001))
    large = network.both(network.input("large", (1, 8)), Scale(1.0))
    network.outputs.append(network.both(network.add("Add", small, large), Scale(1.0)))
    (warning,) = said(network)
    assert "scale it up before" in warning
