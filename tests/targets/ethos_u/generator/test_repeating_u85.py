"""TILE on U85 of more times than there may be copies."""

from __future__ import annotations

import numpy as np
import pytest

import mizzen
from mizzen.package.tflite.builder import NetworkBuilder


@pytest.mark.parametrize("accelerator", ["ethos-u85-128", "ethos-u85-2048"])
@pytest.mark.parametrize("counts", [(1, 33, 20, 1), (1, 5, 17, 5), (1, 20, 1, 20)])
def test_values_are_repeated_axis_by_axis(counts: tuple[int, ...], accelerator: str) -> None:
    net = NetworkBuilder("repeated")
    shape = (1, 1, 2, 8)
    x = net.tensor("x", shape, "int8", 0.1, 7)
    half = net.tensor("half", shape, "int8", 0.1, 7)
    net.operator("ADD", [x, x], [half], ("AddOptions", {}))
    multiples = net.constant("multiples", np.array(counts, np.int32))
    whole = tuple(a * b for a, b in zip(shape, counts, strict=True))
    made = net.tensor("made", whole, "int8", 0.1, 7)
    net.operator("TILE", [half, multiples], [made], ("TileOptions", {}))
    report = mizzen.compile(net.finish([x], [made]), accelerator).report
    assert report is not None
    assert not report.on_cpu
    assert (report.proof.equal, report.proof.differing) == (1, ())


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("size", [(33, 33), (5, 1)])
def test_one_pixel_whose_corners_are_aligned_is_everywhere(
    size: tuple[int, int], dtype: str
) -> None:
    net = NetworkBuilder("pixel")
    zero = {"int8": -7, "uint8": 121, "int16": 0}[dtype]
    x = net.tensor("x", (1, 1, 1, 24), dtype, 0.1, zero)
    made = net.tensor("made", (1, *size, 24), dtype, 0.1, zero)
    wanted = net.constant("wanted", np.array(size, np.int32))
    net.operator("RESIZE_BILINEAR", [x, wanted], [made],
                 ("ResizeBilinearOptions", {"align_corners": True}))  # fmt: skip
    report = mizzen.compile(net.finish([x], [made]), "ethos-u85-256").report
    assert report is not None
    assert not report.on_cpu
    assert (report.proof.equal, report.proof.differing) == (1, ())
