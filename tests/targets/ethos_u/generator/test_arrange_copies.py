"""Copies that leave change nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.arrange.copies import without_copy
from mizzen.targets.ethos_u.generator.arrange.widen import without_constant
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    Bytes,
    Convolution,
    Copy,
    Kernel,
    Map,
    Pooling,
    Role,
    Scale,
    Sequence,
    Shape,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode

from .interpreter import is_same
from .sequences import INT8, WHOLE_RANGE, Network

IDENTITY = Kernel()


def moved(source: Map, target: Map) -> Pooling:
    """Return a pool that copies."""
    return Pooling(
        Origin(), PoolingMode.AVERAGE, source, target, IDENTITY, Scale(1, 0), WHOLE_RANGE
    )


def part(tensor: int, shape: Shape, start: Shape = (0, 0, 0)) -> Map:
    return Map(Box(tensor, shape, start), INT8, 3)


def concatenation() -> Sequence:
    """Two maps that are copied into one, which a convolution reads; one has another reader."""
    made = Network()
    given = made.tensor((4, 5, 6), Role.INPUT)
    first = made.convolution(given, 8, Kernel())
    second = made.convolution(given, 4, Kernel())
    both = made.tensor((4, 5, 12), layout=Layout.NHWC)
    made.operations.append(moved(made.whole(first, 3), part(both, (4, 5, 8))))
    made.operations.append(moved(made.whole(second, 3), part(both, (4, 5, 4), (0, 0, 8))))
    last = made.convolution(made.whole(both, 3), 8, Kernel(3, 3))
    other = made.convolution(made.whole(first, 3), 4, Kernel(2, 2))
    return made.sequence((given,), (last, other))


def test_what_is_copied_into_a_concatenation_is_written_there() -> None:
    sequence = concatenation()
    once = without_copy(sequence, 2)
    assert once is not None
    twice = without_copy(once, 2)
    assert twice is not None
    assert [type(row) for row in twice.operations] == [Convolution] * 4
    assert is_same(sequence, twice)
    views = [row.ifm.view for row in twice.operations if isinstance(row, Convolution)]
    assert views[3] == Box(3, (4, 5, 8))


def test_readers_of_a_copy_read_what_it_copied() -> None:
    made = Network()
    given = made.tensor((6, 6, 32), Role.INPUT)
    half = made.tensor((3, 6, 16))
    made.operations.append(
        moved(Map(Box(given, (3, 6, 16), (1, 0, 16), (2, 1)), INT8, 3), made.whole(half, 3))
    )
    last = made.convolution(made.whole(half, 3), 8, Kernel(2, 2))
    sequence = made.sequence((given,), (last,))
    found = without_copy(sequence, 0)
    assert found is not None
    assert is_same(sequence, found)


def test_copies_that_have_to_be_stay() -> None:
    made = Network()
    given = made.tensor((4, 4, 16), Role.INPUT)
    first = made.tensor((4, 4, 16))
    out = made.tensor((4, 4, 16), Role.OUTPUT)
    made.operations += [
        moved(made.whole(given, 3), made.whole(first, 3)),
        moved(made.whole(given, 3), part(first, (2, 4, 16))),
        moved(made.whole(given, 3), made.whole(out, 3)),
    ]
    sequence = made.sequence((given,), (out,))
    assert without_copy(sequence, 0) is None, "another writes what it writes"
    assert without_copy(sequence, 2) is None, "both ends are the caller's"


def test_a_source_that_is_written_again_stays() -> None:
    made = Network()
    given = made.tensor((4, 4, 16), Role.INPUT)
    state = made.tensor((4, 4, 16), Role.STATE)
    kept = made.tensor((4, 4, 16))
    made.operations.append(moved(made.whole(state, 3), made.whole(kept, 3)))
    made.operations.append(moved(made.whole(given, 3), made.whole(state, 3)))
    last = made.add(kept, state)
    sequence = made.sequence((given, state), (last, state))
    assert without_copy(sequence, 0) is None
    assert without_copy(sequence, 1) is None


def test_pools_that_scale_clip_or_shift_are_no_copies() -> None:
    sequence = concatenation()
    row = sequence.operations[2]
    assert isinstance(row, Pooling)
    changed = [
        replace(row, scale=Scale(1 << 30, 31)),
        replace(row, activation=Activation(-128, 100)),
        replace(row, ofm=replace(row.ofm, zero_point=4)),
        replace(row, kernel=Kernel(1, 1, 2, 1)),
    ]
    for other in changed:
        operations = (*sequence.operations[:2], other, *sequence.operations[3:])
        assert without_copy(replace(sequence, operations=operations), 2) is None


def test_transfers_of_whole_tensors_leave_and_bytes_stay_in_order() -> None:
    made = Network()
    given = made.tensor((4, 4, 8), Role.INPUT)
    first = made.convolution(given, 8, Kernel())
    second = made.tensor((4, 4, 8), layout=Layout.NHWC)
    made.tensors[first] = replace(made.tensors[first], layout=Layout.NHWC)
    made.operations.append(Copy(Origin(), first, 0, second, 0, 128))
    flat = Map(Bytes(second, (1, 2, 64), 0, (128, 64, 1)), INT8, 3)
    last = made.convolution(flat, 4, Kernel())
    sequence = made.sequence((given,), (last,))
    found = without_copy(sequence, 1)
    assert found is not None
    assert len(found.operations) == 2
    assert is_same(sequence, found)


def test_half_of_a_tensor_that_is_copied_byte_by_byte_is_not_all_of_it() -> None:
    """Ten numbers of 16 bits, of which ten bytes are the output: writing all there goes beyond."""
    wide = np.dtype(np.int16)
    made = Network()
    given = made.tensor((1, 10, 1), Role.INPUT, dtype=wide)
    first = made.tensor((1, 10, 1), dtype=wide, layout=Layout.NHWC)
    last = made.tensor((1, 1, 5), Role.OUTPUT, dtype=wide, layout=Layout.NHWC)
    limits = Activation(-32768, 100)
    made.operations.append(replace(moved(made.whole(given), made.whole(first)), activation=limits))
    ends = (Map(Bytes(row, (1, 1, 10), 0, (10, 10, 1)), INT8) for row in (first, last))
    made.operations.append(moved(*ends))
    assert without_copy(made.sequence((given,), (last,)), 1) is None


def test_copies_that_give_a_map_another_shape_leave() -> None:
    made = Network()
    given = made.tensor((4, 6, 6), Role.INPUT)
    first = made.convolution(given, 4, Kernel())
    made.tensors[first] = replace(made.tensors[first], layout=Layout.NHWC)
    second = made.tensor((2, 3, 16), layout=Layout.NHWC)
    flat = Bytes(first, (2, 3, 16), 0, (48, 16, 1))
    made.operations.append(moved(Map(flat, INT8, 3), made.whole(second, 3)))
    back = Map(Bytes(second, (4, 6, 4), 0, (24, 4, 1)), INT8, 3)
    last = made.convolution(back, 8, Kernel(3, 3, 1, 1, 1, 1, 1, 1, 1, 1), depthwise=False)
    sequence = made.sequence((given,), (last,))
    found = without_copy(sequence, 1)
    assert found is not None
    assert is_same(sequence, found)
    row = found.operations[1]
    assert isinstance(row, Convolution)
    assert row.ifm.view == Box(first, (4, 6, 4))
    assert found.tensors[first].layout is None, "nothing sees it in bytes any more"


def padded(value: int, activation: Activation = WHOLE_RANGE) -> Sequence:
    """A narrow sum and a narrow convolution, padded with channels, and added to a wide one."""
    made = Network()
    given = made.tensor((4, 5, 6), Role.INPUT)
    one = made.convolution(given, 8, Kernel(), activation=activation)
    narrow = made.add(one, made.convolution(given, 8, Kernel()))
    wide = made.convolution(made.whole(narrow, 3), 12, Kernel())
    both = made.tensor((4, 5, 12), layout=Layout.NHWC)
    data = np.full(80, value, np.int8).view(np.uint8)
    zeros = made.tensor((4, 5, 4), Role.CONSTANT, data=data, layout=Layout.NHWC)
    made.operations.append(moved(made.whole(narrow, 3), part(both, (4, 5, 8))))
    made.operations.append(moved(made.whole(zeros, 3), part(both, (4, 5, 4), (0, 0, 8))))
    return made.sequence((given,), (made.add(both, wide),))


def test_convolutions_write_the_channels_that_constants_padded() -> None:
    sequence = padded(3)
    joined = without_copy(sequence, 4)
    assert joined is not None
    found = without_constant(joined, 4)
    assert found is not None
    assert is_same(sequence, found)
    assert len(found.operations) == 5
    depths = [row.shape[2] for row in found.tensors]
    assert depths[1:4] == [12, 12, 8], "both convolutions write 12, and the sum writes elsewhere"


@pytest.mark.parametrize(
    ("value", "activation"), [(4, WHOLE_RANGE), (3, Activation(4, 127)), (3, Activation(-128, 2))]
)
def test_constants_that_a_sum_or_a_clip_does_not_give_stay(
    value: int, activation: Activation
) -> None:
    joined = without_copy(padded(value, activation), 4)
    assert joined is not None
    assert without_constant(joined, 4) is None


def test_a_convolution_gives_any_constant() -> None:
    made = Network()
    given = made.tensor((4, 5, 6), Role.INPUT)
    both = made.tensor((4, 5, 12))
    made.convolution(given, 8, Kernel())
    row = made.operations[0]
    assert isinstance(row, Convolution)
    made.operations[0] = replace(row, ofm=part(both, (4, 5, 8)))
    zeros = made.tensor((4, 5, 4), Role.CONSTANT, data=np.full(80, 77, np.uint8))
    made.operations.append(moved(made.whole(zeros, 3), part(both, (4, 5, 4), (0, 0, 8))))
    sequence = made.sequence((given,), (both,))
    found = without_constant(sequence, 1)
    assert found is not None
    assert is_same(sequence, found)


def stateful(*, late: bool) -> Sequence:
    """A state that is copied before it is read, and its new numbers, which are copied into it.

    late  whether the state's old numbers are read behind the first of the new ones
    """
    made = Network()
    given = made.tensor((4, 4, 8), Role.INPUT)
    state = made.tensor((4, 4, 8), Role.STATE)
    before = made.tensor((4, 4, 8))
    made.operations.append(moved(made.whole(state, 3), made.whole(before, 3)))
    first = made.convolution(made.whole(before, 3), 8, Kernel())
    after = made.convolution(made.whole(first, 3), 8, Kernel())
    last = made.convolution(made.whole(before if late else first, 3), 4, Kernel())
    made.operations.append(moved(made.whole(after, 3), made.whole(state, 3)))
    return made.sequence((given, state), (last, state))


def test_states_are_read_and_written_where_they_are() -> None:
    sequence = stateful(late=False)
    once = without_copy(sequence, 0)
    assert once is not None
    twice = without_copy(once, len(once.operations) - 1)
    assert twice is not None
    assert [type(row) for row in twice.operations] == [Convolution] * 3
    assert is_same(sequence, twice)


def test_a_state_is_not_written_while_its_old_numbers_are_read() -> None:
    sequence = stateful(late=True)
    once = without_copy(sequence, 0)
    assert once is not None
    assert without_copy(once, len(once.operations) - 1) is None
