"""Transposed convolutions with long strides compute the same as convolutions of blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from mizzen.graph import DType, Graph, RoundingMode, TensorType
from mizzen.ops import Builder
from mizzen.ops.limits import WindowLimits
from mizzen.passes.upscaling import unfold_upscaling
from mizzen.reference import evaluate

UNFOLD = unfold_upscaling(WindowLimits(longest_stride=3, largest_kernel=64, longest_upscale=2))
SIZES = st.tuples(st.integers(2, 5), st.integers(2, 5))
PAIRS = st.tuples(st.integers(1, 5), st.integers(1, 5))


def network(
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    out_pad: tuple[int, int, int, int],
) -> Graph:
    """Return images of 3 channels, spread to 2 that have scales of their own."""
    b, rng = Builder(Graph()), np.random.default_rng(3)
    image = b.graph.add_input(TensorType((2, *size, 3), DType.INT8), "image")
    weights = b.constant(rng.integers(-128, 128, (2, *kernel, 3)), DType.INT8)
    bias = b.constant([900, -700], DType.INT32)
    zeros = b.constant([11], DType.INT8), b.constant([0], DType.INT8)
    sums = b("TRANSPOSE_CONV2D", image, weights, bias, *zeros, out_pad=out_pad, stride=stride)
    scales = b.constant([1 << 30, 3 << 29], DType.INT32), b.constant([37, 38], DType.INT8)
    points = b.constant([0], DType.INT32), b.constant([-5], DType.INT8)
    b.graph.set_outputs([b("RESCALE", sums, *scales, *points, scale32=True, per_channel=True,
                           rounding_mode=RoundingMode.SINGLE_ROUND)])  # fmt: skip
    return b.graph


@given(
    size=SIZES,
    kernel=PAIRS,
    stride=st.tuples(st.integers(1, 4), st.integers(3, 5)),
    pads=st.lists(st.integers(-2, 2), min_size=4, max_size=4),
)
def test_blocks_compute_the_same(
    size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int], pads: list[int]
) -> None:
    top, bottom, left, right = (max(pad, 1 - kernel[index // 2]) for index, pad in enumerate(pads))
    cut = (top + bottom, left + right)
    assume(all((size[axis] - 1) * stride[axis] + kernel[axis] + cut[axis] > 0 for axis in (0, 1)))
    graph = network(size, kernel, stride, (top, bottom, left, right))
    image = np.random.default_rng(4).integers(-128, 128, (2, *size, 3)).astype(np.int8)
    (expected,) = evaluate(graph, [image])
    assert UNFOLD.run(graph)
    assert {"TRANSPOSE_CONV2D"}.isdisjoint(row.kind for row in graph)
    (found,) = evaluate(graph, [image])
    assert np.array_equal(found, expected)


def test_strides_that_the_machine_has_stay() -> None:
    assert not UNFOLD.run(network((3, 3), (4, 4), (2, 2), (0, 0, 0, 0)))
