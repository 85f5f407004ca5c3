"""Columns read as channels give the numbers that they gave, and pixels that lie apart."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.targets.ethos_u.generator.arrange import columns_as_channels, swap
from mizzen.targets.ethos_u.generator.arrange.columns import Pixels
from mizzen.targets.ethos_u.generator.arrange.gather import gather_columns
from mizzen.targets.ethos_u.generator.operations import Bytes, Convolution, Kernel, Role, Sequence
from mizzen.targets.ethos_u.machine.commands_values import Layout

from .interpreter import is_same
from .sequences import Network


def network(channels: int, kernel: Kernel, extent: tuple[int, int] = (9, 10)) -> Sequence:
    made = Network()
    given = made.tensor((*extent, channels), Role.INPUT)
    return made.sequence((given,), (made.convolution(given, 8, kernel),))


KERNELS = {
    "keywords": (1, Kernel(10, 4, 2, 2, 1, 1, 4, 1, 5, 1)),
    "image": (3, Kernel(3, 3, 2, 2, 1, 1, 0, 0, 1, 1)),
    "same": (3, Kernel(3, 3, 1, 1, 1, 1, 1, 1, 1, 1)),
    "row": (2, Kernel(1, 5)),
    "wide step": (4, Kernel(2, 2, 1, 3)),
    "tall, dilated": (1, Kernel(3, 2, 1, 1, 2, 1)),
    "both edges": (1, Kernel(1, 9, 1, 2, 1, 1, 0, 4, 0, 5)),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("pixels", Pixels)
def test_columns_as_channels_are_exact(name: str, pixels: Pixels) -> None:
    sequence = network(*KERNELS[name])
    found = columns_as_channels(sequence, 0, pixels=pixels)
    assert found is not None
    assert is_same(sequence, found)


@pytest.mark.parametrize("name", KERNELS)
def test_pixels_lie_apart_and_every_column_is_written_once(name: str) -> None:
    found = columns_as_channels(network(*KERNELS[name]), 0)
    assert found is not None
    written: list[int] = []
    for row in found.operations:
        assert isinstance(row, Convolution)
        assert isinstance(row.ifm.view, Bytes)
        view, box = row.ifm.view, row.ofm.view
        assert view.shape[1] == 1 or view.strides_bytes[1] >= view.shape[2]
        assert not isinstance(box, Bytes)
        written += range(
            box.start[1], box.start[1] + box.steps[1] * (box.shape[1] - 1) + 1, box.steps[1]
        )
    assert sorted(written) == list(range(found.tensors[1].shape[1]))


def test_operations_inside_share_their_weights() -> None:
    found = columns_as_channels(network(*KERNELS["same"]), 0)
    assert found is not None
    inside = [row for row in found.operations if isinstance(row, Convolution)][1:4]
    assert all(row.weights is inside[0].weights for row in inside)
    assert inside[0].weights.shape == (8, 3, 1, 9)


def test_rows_are_read_as_channels_where_they_are_contiguous() -> None:
    sequence = network(*KERNELS["keywords"])
    swapped = swap(sequence, [0])
    assert swapped is not None
    assert columns_as_channels(swapped, 0) is None
    found = columns_as_channels(swapped, 0, axis=0)
    assert found is not None
    assert is_same(sequence, found)
    kernels = {row.kernel.height for row in found.operations if isinstance(row, Convolution)}
    assert kernels == {1}


@pytest.mark.parametrize("name", ["keywords", "row", "both edges", "tall, dilated", "image"])
def test_gathered_columns_are_exact(name: str) -> None:
    sequence = network(*KERNELS[name], (9, 10))
    found = gather_columns(sequence, 0)
    assert found is not None
    assert is_same(sequence, found)
    first, second = found.operations
    row, whole = sequence.operations[0], (Convolution, Convolution)
    assert isinstance(row, Convolution)
    assert (type(first), type(second)) == whole
    assert isinstance(second, Convolution)
    assert second.weights.shape == (8, row.kernel.height, 1, row.kernel.width * row.ifm.shape[2])
    exchanged = swap(found, [1])
    assert exchanged is not None
    assert is_same(sequence, exchanged)


@pytest.mark.parametrize("height", range(7, 12))
@pytest.mark.parametrize("high", range(1, 6))
@pytest.mark.parametrize("bottom", range(3))
def test_several_rows_are_gathered_in_a_pixel(height: int, high: int, bottom: int) -> None:
    top = min(2, (high - 1) // 2 * 2)
    made = (height + top + min(bottom, high - 1) - high) // 2 + 1
    bottom = max(0, (made - 1) * 2 + high - top - height)
    kernel = Kernel(high, 3, 2, 1, 1, 1, top, 1, bottom, 1)
    sequence = network(2, kernel, (height, 5))
    found = gather_columns(sequence, 0, rows=2)
    assert found is not None
    assert len(found.operations) == 2 + height % 2
    assert is_same(sequence, found, range(1))


def test_rows_are_not_gathered_where_windows_do_not_go_down_by_them() -> None:
    assert gather_columns(network(1, Kernel(3, 3)), 0, rows=2) is None
    assert gather_columns(network(1, Kernel(3, 3, 2, 1, pad_top=1)), 0, rows=2) is None


def test_long_rows_are_not_gathered() -> None:
    assert gather_columns(network(3, Kernel(3, 3), (9, 40)), 0) is None
    # A waveform: the weights, made to be counted, were 458 GiB.
    assert gather_columns(network(1, Kernel(1, 256, 1, 2), (1, 43_844)), 0) is None


def test_what_is_not_contiguous_or_has_many_channels_stays() -> None:
    made = Network()
    given = made.tensor((9, 10, 3), layout=Layout.NHCWB16)
    bricks = made.sequence((given,), (made.convolution(given, 8, Kernel(3, 3)),))
    assert columns_as_channels(bricks, 0) is None
    assert columns_as_channels(network(9, Kernel(3, 3)), 0) is None
    assert columns_as_channels(network(3, Kernel(3, 3, 1, 1, 1, 2)), 0) is None
    assert columns_as_channels(network(1, Kernel(3, 1)), 0) is None


def test_a_part_of_a_map_is_read_and_written_at_its_place() -> None:
    made = Network()
    given = made.tensor((6, 12, 4), Role.INPUT)
    first = made.convolution(given, 8, Kernel(1, 3))
    sequence = made.sequence((given,), (first,))
    row = sequence.operations[0]
    assert isinstance(row, Convolution)
    assert is_same(sequence, columns_as_channels(sequence, 0) or sequence)
    np.testing.assert_array_equal(row.weights.shape, (8, 1, 3, 4))
