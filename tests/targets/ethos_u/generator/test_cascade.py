"""Runs in stripes compute what whole operations do, with less alive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mizzen.targets.ethos_u.generator.arrange import chained
from mizzen.targets.ethos_u.generator.cascade import (
    Run,
    cascaded,
    cascades,
    peak_bytes,
    within,
)
from mizzen.targets.ethos_u.generator.operations import (
    Bytes,
    Copy,
    Kernel,
    Role,
    Scale,
    Sequence,
    links_of,
    maps_read,
)
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode

from .interpreter import is_same
from .sequences import Network

SAME_3X3 = Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)
HALVED = Kernel(3, 3, 2, 2, pad_bottom=1, pad_right=1)
DILATED = Kernel(3, 3, dilation_y=2, pad_top=2, pad_bottom=2, pad_left=1, pad_right=1)


def chain(height: int) -> Sequence:
    network = Network()
    source = last = network.tensor((height, 9, 4), Role.INPUT)
    last = network.convolution(last, 24, SAME_3X3)
    last = network.convolution(last, 24, HALVED, depthwise=True)
    last = network.convolution(last, 8, Kernel())
    last = network.pool(last, PoolingMode.MAX, Kernel(2, 2))
    last = network.convolution(last, 20, DILATED)
    return network.sequence((source,), (last,))


def branches() -> Sequence:
    network = Network()
    source = network.tensor((20, 8, 16), Role.INPUT)
    first = network.convolution(source, 16, SAME_3X3)
    second = network.convolution(first, 16, SAME_3X3)
    third = network.convolution(second, 16, Kernel())
    summed = network.add(first, third)
    last = network.convolution(summed, 16, HALVED)
    return network.sequence((source,), (last, second))


def handing_on() -> Sequence:
    """Two chains of U85, between them a window."""
    network = Network()
    source = network.tensor((20, 8, 16), Role.INPUT)
    first = network.add(network.convolution(source, 16, SAME_3X3), source)
    second = network.convolution(first, 16, SAME_3X3)
    third = network.pool(second, PoolingMode.AVERAGE, Kernel(), scale=Scale(1 << 30, 31))
    last = network.add(third, first)
    return chained(network.sequence((source,), (last,)))


def kept_bytes(sequence: Sequence) -> int:
    scratch = (row for row in sequence.tensors if row.role is Role.SCRATCH)
    return sum(row.shape[0] * row.shape[1] * row.shape[2] for row in scratch)


def wraps(sequence: Sequence) -> Iterator[Bytes]:
    for operation in sequence.operations:
        assert not isinstance(operation, Copy)
        for row in (*maps_read(operation), operation.ofm):
            if isinstance(row.view, Bytes) and row.view.tiles is not None:
                yield row.view


@pytest.mark.parametrize("stripes", [2, 3, 5, 13])
@pytest.mark.parametrize("height", [27, 32])
def test_a_run_in_stripes_computes_the_same(height: int, stripes: int) -> None:
    whole = chain(height)
    for first, last in [(0, 4), (1, 3), (0, 1), (3, 4)]:
        found = cascaded(whole, Run(first, last, stripes))
        assert found is not None
        assert len(found.operations) > len(whole.operations)
        assert is_same(whole, found, range(2))


def test_less_is_kept_and_maps_wrap() -> None:
    whole = chain(32)
    found = cascaded(whole, Run(0, 4, 7))
    assert found is not None
    assert kept_bytes(found) < kept_bytes(whole) / 2
    assert list(wraps(found))
    rows = [tensor.shape[0] for tensor in found.tensors]
    assert rows[0] == 32, "the input stays whole"
    assert rows[1:5] == [13, 6, 6, 6]


@pytest.mark.parametrize("stripes", [2, 3, 7])
def test_branches_are_kept_as_long_as_they_are_read(stripes: int) -> None:
    whole = branches()
    found = cascaded(whole, Run(0, 4, stripes))
    assert found is not None
    assert found.tensors[2].shape == whole.tensors[2].shape, "an output stays whole"
    assert found.tensors[1].shape[0] < whole.tensors[1].shape[0]
    assert is_same(whole, found, range(2))


def test_what_sees_bytes_is_not_divided() -> None:
    network = Network()
    source = network.tensor((8, 8, 16), Role.INPUT)
    first = network.convolution(source, 16, SAME_3X3)
    view = network.whole(first, 3)
    flat = Bytes(first, (1, 1, 1024), 0, (1024, 1024, 1))
    network.convolution(type(view)(flat, view.dtype, 3), 10, Kernel())
    sequence = network.sequence((source,), (2,))
    assert cascaded(sequence, Run(0, 1, 2)) is None


def test_the_search_comes_to_goals_and_computes_the_same() -> None:
    network = Network()
    source = last = network.tensor((32, 16, 4), Role.INPUT)
    last = network.convolution(last, 16, SAME_3X3)
    for channels in (48, 16, 48, 16):
        last = network.convolution(last, channels, Kernel() if channels == 48 else SAME_3X3)
    last = network.convolution(last, 16, Kernel(32, 16))
    whole = network.sequence((source,), (last,))
    found = cascades(whole)
    assert [row.live_bytes for row in found] == sorted(
        (row.live_bytes for row in found), reverse=True
    )
    assert found[-1].live_bytes < 32 * 16 * (48 + 16) * 0.6
    for row in found:
        assert is_same(whole, row.sequence, range(1))


def test_what_lies_elsewhere_does_not_count() -> None:
    network = Network()
    source = last = network.tensor((64, 16, 16), Role.INPUT)
    for channels in (64, 16, 16):
        last = network.convolution(last, channels, SAME_3X3)
    network.tensors[last] = replace(network.tensors[last], role=Role.OUTPUT)
    whole = network.sequence((source,), (last,))
    map_bytes = 64 * 16 * 16
    (found,) = within(whole, [map_bytes], (Role.INPUT, Role.OUTPUT))
    assert found.live_bytes <= map_bytes
    assert is_same(whole, found.sequence, range(1))
    assert within(whole, [7 * map_bytes], ()) == ()


def test_a_sequence_without_operations_keeps_nothing_alive() -> None:
    """Moves that vanish may leave none."""
    made = Network()
    given = made.tensor((4, 4, 8), Role.INPUT)
    assert peak_bytes(made.sequence((given,), (given,))) == 0


@pytest.mark.parametrize("stripes", [2, 3, 7])
def test_a_run_of_chains_computes_the_same(stripes: int) -> None:
    """What a chain hands on stays inside the NPU in each stripe."""
    whole = handing_on()
    assert [len(links_of(operation)) for operation in whole.operations] == [2, 3]
    found = cascaded(whole, Run(0, 1, stripes))
    assert found is not None
    assert len(found.operations) == 2 * stripes
    assert is_same(whole, found, range(2))
    nowhere = [tensor for tensor, span in enumerate(found.lifetimes()) if span == (0, -1)]
    assert len(nowhere) == 3
