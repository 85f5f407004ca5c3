"""Orders of elements, against what NumPy does to an array of indices."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from mizzen.passes.layout import order as o

Transposed = tuple[tuple[int, ...], tuple[int, ...]]

Shapes = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)


@st.composite
def transposes(draw: st.DrawFn) -> Transposed:
    shape = draw(Shapes)
    return shape, tuple(draw(st.permutations(range(len(shape)))))


def walk(order: o.Order) -> npt.NDArray[np.int64]:
    """Return the elements that memory holds, in its order."""
    result = np.zeros((1,), np.int64)
    for steps, stride in order:
        result = (result[:, None] + np.arange(steps) * stride).reshape(-1)
    return result


def test_the_order_of_nhwc_memory_of_an_nchw_tensor() -> None:
    assert o.permuted((1, 3, 4, 5), (0, 2, 3, 1)) == ((20, 1), (3, 20))


@given(transposes())
def test_a_transpose_holds_elements_in_the_order_said(case: Transposed) -> None:
    shape, perms = case
    indices = np.arange(prod(shape)).reshape(shape).transpose(perms).reshape(-1)
    assert walk(o.permuted(shape, perms)).tolist() == indices.tolist()


@given(transposes())
def test_orders_are_equal_exactly_if_memory_is(case: Transposed) -> None:
    shape, perms = case
    order = o.permuted(shape, perms)
    assert (order == o.row_major(prod(shape))) == (walk(order).tolist() == list(range(prod(shape))))


@given(transposes(), st.data())
def test_composition_is_one_walk_after_the_other(case: Transposed, data: st.DataObject) -> None:
    shape, perms = case
    view = o.permuted(shape, perms)
    seen = tuple(shape[axis] for axis in perms)
    second = tuple(data.draw(st.permutations(range(len(shape)))))
    order = o.permuted(seen, second)
    composed = o.composed(order, view)
    assert composed is not None
    assert walk(composed).tolist() == walk(view)[walk(order)].tolist()


@given(transposes())
def test_an_order_after_its_inverse_is_row_major(case: Transposed) -> None:
    shape, perms = case
    order = o.permuted(shape, perms)
    assert o.composed(o.inverse(order), order) == o.row_major(prod(shape))
    assert o.composed(order, o.inverse(order)) == o.row_major(prod(shape))


@given(transposes(), st.data())
def test_a_movement_takes_memory_from_one_order_to_another(
    case: Transposed, data: st.DataObject
) -> None:
    shape, perms = case
    second = tuple(data.draw(st.permutations(range(len(shape)))))
    before, after = o.permuted(shape, perms), o.permuted(shape, second)
    held = tuple(shape[axis] for axis in perms)
    wanted = tuple(shape[axis] for axis in second)
    movement = o.movement(before, after, held, wanted)
    assert movement is not None
    moved = walk(before).reshape(movement.shape).transpose(movement.perms)
    assert moved.reshape(-1).tolist() == walk(after).tolist()
    assert moved.shape == movement.result
    assert movement.shape == held
    assert movement.result == wanted


def test_a_movement_between_other_shapes_has_the_fewest_dimensions() -> None:
    nhwc = o.permuted((1, 3, 4, 5), (0, 2, 3, 1))
    movement = o.movement(o.row_major(60), nhwc, (60,), (1, 4, 5, 3))
    assert movement == o.Movement((3, 20), (1, 0))


def test_loops_that_do_not_nest_are_refused() -> None:
    assert o.refined(((2, 1), (3, 2)), (2, 3)) is None
    assert o.refined(((3, 1), (2, 3)), (2, 3)) == (o.Loop(1, 3, 1), o.Loop(0, 2, 1))


def test_a_dimension_of_one_index_says_nothing_about_its_place() -> None:
    assert o.transferred(((4, 1),), (4, 1), (4, 5)) is None


def test_dimensions_keep_their_places_when_their_sizes_change() -> None:
    nhwc = o.permuted((1, 3, 4, 5), (0, 2, 3, 1))
    assert o.transferred(nhwc, (1, 3, 4, 5), (1, 7, 4, 5)) == ((20, 1), (7, 20))
    assert o.transferred(nhwc, (1, 3, 4, 5), (1, 3, 1, 1)) == ((3, 1),)
