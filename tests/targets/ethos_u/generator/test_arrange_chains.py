"""Chains compute the same, and are no more than the machine is known to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.arrange.chains import MOST_LINKS, MOST_MAPS, chained
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    Bytes,
    Chain,
    Elementwise,
    Kernel,
    Map,
    Order,
    Pooling,
    Role,
    Scale,
    Sequence,
    Shape,
    Table,
    links_of,
    maps_read,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ElementwiseMode,
    Layout,
    PoolingMode,
    TransposeU85,
)

from .chained_networks import chainable
from .interpreter import is_same
from .sequences import INT8, WHOLE_RANGE, Network

SHAPE = (4, 5, 24)


@pytest.mark.parametrize("seed", range(60))
def test_sequences_by_chance_compute_the_same(seed: int) -> None:
    alone = chainable(seed)
    together = chained(alone)
    assert is_same(alone, together)
    for operation in together.operations:
        if isinstance(operation, Chain):
            assert 2 <= len(operation.links) <= MOST_LINKS
            assert len(maps_read(operation)) <= MOST_MAPS


def test_most_sequences_by_chance_have_chains() -> None:
    counts = [sum(map(is_chain, chained(chainable(seed)).operations)) for seed in range(60)]
    assert sum(map(bool, counts)) > 40


def is_chain(operation: object) -> bool:
    return isinstance(operation, Chain)


def links(sequence: Sequence) -> list[int]:
    """Return how many links each operation has."""
    return [len(links_of(operation)) for operation in sequence.operations]


def residual() -> Network:
    """A convolution, and the sum of what it gives and of what it reads."""
    net = Network()
    x = net.tensor(SHAPE, Role.INPUT)
    net.as_output(net.add(net.convolution(x, 24, Kernel()), x))
    return net


def test_a_sum_takes_what_a_convolution_gives() -> None:
    alone = residual().sequence((0,), (2,))
    together = chained(alone)
    assert links(together) == [2]
    assert together.lifetimes()[1] == (0, -1)


def test_of_two_operands_the_one_with_more_products_hands_on() -> None:
    """The array is at work on it while the output unit sums; the other one comes before."""
    net = Network()
    x = net.tensor(SHAPE, Role.INPUT)
    same = Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)
    large, small = net.convolution(x, 24, same), net.convolution(x, 24, Kernel())
    net.as_output(net.add(small, large))
    alone = net.sequence((x,), (3,))
    together = chained(alone)
    assert links(together) == [1, 2]
    assert together.operations[1].origin == alone.operations[0].origin
    assert is_same(alone, together)


def test_what_the_caller_sees_is_written() -> None:
    alone = residual().sequence((0,), (1, 2))
    assert chained(alone) is alone


def test_what_two_operations_read_is_written() -> None:
    net = residual()
    net.as_output(net.pool(1, PoolingMode.MAX, Kernel()))
    assert links(chained(net.sequence((0,), (2, 3)))) == [1, 1, 1]


def test_what_an_operation_reads_twice_is_written() -> None:
    net = Network()
    x = net.tensor(SHAPE, Role.INPUT)
    y = net.convolution(x, 24, Kernel())
    net.as_output(net.add(y, y))
    assert links(chained(net.sequence((x,), (2,)))) == [1, 1]


def test_a_part_is_written() -> None:
    net = Network()
    x = net.tensor(SHAPE, Role.INPUT)
    y = net.convolution(x, 24, Kernel())
    half = Map(Box(y, (2, 5, 24)), INT8)
    net.as_output(net.add(half, half))
    assert links(chained(net.sequence((x,), (2,)))) == [1, 1]


def test_a_map_that_is_broadcast_is_written() -> None:
    net = Network()
    x, y = net.tensor(SHAPE, Role.INPUT), net.tensor((1, 1, 24), Role.INPUT)
    net.as_output(net.add(x, net.convolution(y, 24, Kernel())))
    assert links(chained(net.sequence((x, y), (3,)))) == [1, 1]


def test_long_runs_are_several_chains() -> None:
    net = Network()
    x = y = net.tensor(SHAPE, Role.INPUT)
    for _ in range(6):
        y = net.pool(y, PoolingMode.AVERAGE, Kernel(), scale=Scale(1 << 30, 30))
    net.as_output(y)
    alone = net.sequence((x,), (y,))
    assert links(chained(alone)) == [4, 2]
    assert is_same(alone, chained(alone))


def test_few_maps_are_read() -> None:
    net = Network()
    inputs = tuple(net.tensor(SHAPE, Role.INPUT) for _ in range(5))
    y = inputs[0]
    for x in inputs[1:]:
        y = net.add(y, x)
    net.as_output(y)
    assert links(chained(net.sequence(inputs, (y,)))) == [2, 2]


def looked_up(net: Network, ifm: int, entry_bytes: int = 256) -> int:
    activation = Activation(-128, 127, Table(bytes(entry_bytes)))
    return net.pool(
        ifm, PoolingMode.AVERAGE, Kernel(), scale=Scale(1 << 30, 30), activation=activation
    )


def test_no_table_follows_a_table() -> None:
    net = Network()
    x = net.tensor(SHAPE, Role.INPUT)
    y = looked_up(net, looked_up(net, x))
    net.as_output(y)
    assert links(chained(net.sequence((x,), (y,)))) == [1, 1]


def test_results_in_another_order_are_written() -> None:
    alone = residual().sequence((0,), (2,))
    convolution, sum_ = alone.operations
    assert isinstance(sum_, Elementwise)
    turned = replace(sum_, order=Order(TransposeU85.WHC))
    again = replace(alone, operations=(convolution, turned))
    assert chained(again) is again


def test_inputs_that_are_written_meanwhile_are_read_before() -> None:
    """A state that gets new numbers between an operation and the one that takes its result."""
    net = Network()
    x = net.tensor(SHAPE, Role.INPUT)
    state = net.tensor(SHAPE, Role.STATE)
    y = net.convolution(state, 24, Kernel())
    net.operations.append(
        Elementwise(
            Origin(), ElementwiseMode.MAX, net.whole(x), net.whole(x), net.whole(state), WHOLE_RANGE
        )
    )
    net.as_output(net.add(y, x))
    assert links(chained(net.sequence((x, state), (3,)))) == [1, 1, 1]


def test_a_sum_of_maps_in_another_shape() -> None:
    """The sum sees its maps as the convolution does that comes before it."""
    net = Network()
    x = net.tensor((1, 20, 24), Role.INPUT)
    y = net.convolution(bytes_of(net, x, (4, 5, 24)), 24, Kernel())
    seen = bytes_of(net, y, (1, 20, 24))
    row = net.tensor((1, 1, 24), Role.INPUT)
    z = net.add(seen, net.whole(x))
    last = net.add(z, row)
    net.as_output(last)
    alone = net.sequence((x, row), (last,))
    together = chained(alone)
    assert links(together) == [3]
    chain = together.operations[0]
    assert isinstance(chain, Chain)
    assert {map_.shape for map_ in maps_read(chain)} == {(4, 5, 24), (1, 1, 24)}
    assert chain.ofm.shape == (4, 5, 24)
    assert is_same(alone, together)


def bytes_of(net: Network, tensor: int, shape: Shape) -> Map:
    strides = shape[1] * shape[2], shape[2], 1
    return Map(Bytes(tensor, shape, 0, strides), INT8, 3)


def test_a_sum_of_what_is_written_column_by_column() -> None:
    """Rows of the pool are columns of what the sum reads."""
    net = Network()
    x = net.tensor((1, 20, 24), Role.INPUT)
    turned = Map(Bytes(x, (5, 4, 24), 0, (24, 5 * 24, 1)), INT8)
    y = net.tensor((4, 5, 24), layout=Layout.NHWC)
    written = Map(Bytes(y, (5, 4, 24), 0, (24, 5 * 24, 1)), INT8)
    net.operations.append(
        Pooling(
            Origin(),
            PoolingMode.AVERAGE,
            turned,
            written,
            Kernel(),
            Scale(1 << 30, 31),
            WHOLE_RANGE,
        )
    )
    last = net.add(bytes_of(net, y, (1, 20, 24)), net.whole(x))
    net.as_output(last)
    alone = net.sequence((x,), (last,))
    together = chained(alone)
    assert links(together) == [2]
    assert is_same(alone, together)


def test_a_sum_of_what_cannot_be_seen_otherwise() -> None:
    """One operand has a number for each column."""
    net = Network()
    x, column = net.tensor((1, 20, 24), Role.INPUT), net.tensor((4, 1, 24), Role.INPUT)
    y = net.pool(x, PoolingMode.AVERAGE, Kernel(), scale=Scale(1 << 30, 30))
    net.as_output(net.add(bytes_of(net, y, (4, 5, 24)), column))
    assert links(chained(net.sequence((x, column), (3,)))) == [1, 1]


def test_chains_into_parts_of_a_tensor() -> None:
    """Each part is the end of a chain."""
    net = Network()
    x = net.tensor(SHAPE, Role.INPUT)
    joined = net.tensor((4, 10, 24))
    for start in (0, 5):
        y = net.convolution(x, 24, Kernel())
        ofm = Map(Box(joined, SHAPE, (0, start, 0)), INT8)
        net.operations.append(
            Elementwise(Origin(), ElementwiseMode.MAX, net.whole(y), net.whole(x), ofm, WHOLE_RANGE)
        )
    net.as_output(joined)
    alone = net.sequence((x,), (joined,))
    assert links(chained(alone)) == [2, 2]
    assert is_same(alone, chained(alone))


def test_a_sum_of_planes() -> None:
    """Rows of bricks follow each other, so that the sum sees one row as the convolution does."""
    net = Network()
    x = net.tensor((2, 20, 16), Role.INPUT)
    y, z = (net.tensor((2, 20, 16), layout=Layout.NHWC) for _ in range(2))
    origin = Origin()
    net.operations += [
        Pooling(
            origin, PoolingMode.AVERAGE, planes(x, 1, 20), planes(y, 1, 20), Kernel(),
            Scale(1 << 30, 30), WHOLE_RANGE,
        ),
        Elementwise(
            origin, ElementwiseMode.MAX, planes(y, 4, 5), planes(x, 4, 5), planes(z, 4, 5),
            WHOLE_RANGE,
        ),
    ]  # fmt: skip
    net.as_output(z)
    alone = net.sequence((x,), (z,))
    together = chained(alone)
    assert links(together) == [2]
    assert is_same(alone, together)


def planes(tensor: int, height: int, width: int) -> Map:
    """Return 32 channels of a tensor that is seen as two planes of bricks."""
    view = Bytes(tensor, (height, width, 32), 0, (16 * width, 16, 320), Layout.NHCWB16)
    return Map(view, INT8)
