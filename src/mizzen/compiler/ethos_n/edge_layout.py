"""What moves at the edges of a region: the host does it, the NPU has channels last.

RESHAPEs and TRANSPOSEs between a region's edge and what computes there are taken out of its graph:
RESHAPEs cost nothing outside, and TRANSPOSEs the NPU does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from mizzen.graph import DType, Graph, Value
from mizzen.ops.data_layout import Reshape, Transpose
from mizzen.passes.layout import Movement, Order, composed, movement, permuted, row_major
from mizzen.passes.layout import wanted_orders as orders_wanted

VIEWS = (Reshape, Transpose)
TO_CHANNELS_LAST = (0, 2, 3, 1)
TO_CHANNELS_FIRST = (0, 3, 1, 2)


@dataclass(frozen=True, slots=True)
class EdgeTransposes:
    """How inputs and outputs of a region are moved, in its order; None for those that are not.

    An input is moved to what the NPU takes; what the NPU gives is moved to the output. The shapes
    at both ends may be others of as many elements.
    """

    inputs: tuple[Movement | None, ...]
    outputs: tuple[Movement | None, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A value as a view of another: the order in which it has the other's elements."""

    value: Value
    order: Order


@dataclass(frozen=True, slots=True)
class Outside:
    """An input as it is outside a graph: its shape, and its elements' order in the graph's."""

    shape: tuple[int, ...]
    order: Order


def images_last(graph: Graph) -> tuple[Outside, ...]:
    """Let a graph take images with channels last where that is how all its operations want them.

    What takes an image and something else, a sum for instance, then finds both in one order and
    shape. Returns what each input was.
    """
    wanted = orders_wanted(graph)
    inputs = tuple(graph.inputs)
    return tuple(Outside(value.shape, _image_last(graph, value, wanted)) for value in inputs)


def _image_last(graph: Graph, value: Value, wanted: Mapping[Value, Order]) -> Order:
    own = row_major(prod(value.shape))
    if value.type.rank != 4 or value in graph.outputs:
        return own
    last = permuted(value.shape, TO_CHANNELS_LAST)
    if wanted.get(value) != last or last == own:
        return own
    shape = tuple(value.shape[axis] for axis in TO_CHANNELS_LAST)
    moved = graph.add_input(value.type.with_shape(shape), value.name)
    back = graph.add("TRANSPOSE", [moved], [value.type], {"perms": TO_CHANNELS_FIRST})
    graph.replace(value, back.result)
    rest = [each for each in graph.inputs if each is not moved]
    graph.set_inputs([moved if each is value else each for each in rest])
    return last


def take_out_views(graph: Graph, outside: tuple[Outside, ...]) -> EdgeTransposes:
    """Take views of inputs and outputs out of a region's graph, and say what they did.

    outside  what each input is outside the region
    """
    seen = [_view_of_input(graph, value) for value in tuple(graph.inputs)]
    graph.set_inputs([view.value for view in seen])
    inputs = [_moved(first, view) for first, view in zip(outside, seen, strict=True)]
    ends = [_viewed_by_output(value) for value in graph.outputs]
    outputs = [
        _movement(end.order, end.value.shape, value.shape)
        for end, value in zip(ends, graph.outputs, strict=True)
    ]
    graph.set_outputs([end.value for end in ends])
    graph.erase_dead()
    return EdgeTransposes(tuple(inputs), tuple(outputs))


def _moved(outside: Outside, seen: _Seen) -> Movement | None:
    order = composed(seen.order, outside.order)
    assert order is not None, "what was seen of an input can be seen of what it was"
    return _movement(order, outside.shape, seen.value.shape)


def _movement(order: Order, held: tuple[int, ...], wanted: tuple[int, ...]) -> Movement | None:
    own = row_major(prod(wanted))
    return None if order == own else movement(own, order, held, wanted)


def _view_of_input(graph: Graph, value: Value) -> _Seen:
    """Return an input as all that compute with it want it, if they want one thing."""
    own = _Seen(value, row_major(prod(value.shape)))
    ends = list(_ends(graph, own))
    orders = {end.order for end in ends}
    if len(orders) != 1 or any(end.value is value or end.value in graph.outputs for end in ends):
        return own
    first = ends[0].value
    moved = graph.add_input(first.type, value.name)
    for end in ends:
        graph.replace(end.value, _reshaped(graph, moved, end.value))
    return _Seen(moved, orders.pop())


def _reshaped(graph: Graph, source: Value, wanted: Value) -> Value:
    if source.shape == wanted.shape:
        return source
    shape = graph.constant(wanted.shape, DType.SHAPE)
    return graph.add_beside(next(iter(wanted.uses)), "RESHAPE", [source, shape], wanted.type)


def _ends(graph: Graph, seen: _Seen) -> Iterator[_Seen]:
    """Follow views to the values with which something computes."""
    users = tuple(seen.value.uses)
    views = [user for user in users if isinstance(user, VIEWS)]
    if len(views) < len(users) or not users or seen.value in graph.outputs:
        yield seen
    for user in views:
        order = composed(_order(user), seen.order)
        if order is None:
            yield seen
        else:
            yield from _ends(graph, _Seen(user.result, order))


def _viewed_by_output(value: Value) -> _Seen:
    """Return the computed value of which an output is a view, and the output's order of it."""
    order, source = row_major(prod(value.shape)), value
    while (producer := source.producer) is not None and isinstance(producer, VIEWS):
        before = composed(order, _order(producer))
        if before is None:
            break
        order, source = before, producer.input1
    return _Seen(source, order)


def _order(view: Reshape | Transpose) -> Order:
    """Return the order in which a view has its operand's elements."""
    shape = view.input1.shape
    if isinstance(view, Reshape):
        return row_major(prod(shape))
    return permuted(shape, view.perms)
