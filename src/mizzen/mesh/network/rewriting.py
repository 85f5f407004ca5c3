"""Equal forms of a graph in which more of it can be split."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from mizzen.graph import DType, Graph, Operation, Value
from mizzen.mesh.network.edges import Edges, edge_of
from mizzen.mesh.network.network import HEIGHT, WIDTH
from mizzen.ops.data_layout import Reshape, Slice, Transpose
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d
from mizzen.passes.standard import plain
from mizzen.reference import apply


def prepare(graph: Graph) -> Edges:
    """Bring a graph into the form that layers are made of; what it computes stays.

    Inputs and outputs get the shapes and orders that the operations use beside what only moves
    them; the edges say how these come from the user's.
    """
    plain().run(graph)
    _fold_all(graph)
    for operation in graph.sorted():
        match operation:
            case DepthwiseConv2d():
                _multiply_one_channel(graph, operation)
            case Conv2d():
                _take_unflattened(graph, operation)
            case Transpose():
                _turn_before_cropping(graph, operation)
            case _:
                pass
    graph.erase_dead()
    edges = Edges(
        [edge_of(value) for value in graph.inputs],
        [edge_of(value) for value in graph.outputs],
    )
    for operations in (graph.sorted(), reversed(graph.sorted())):
        for operation in operations:
            if operation in graph and isinstance(operation, Reshape | Transpose):
                _open_edge(graph, operation, edges)
    graph.erase_dead()
    return edges


def _fold_all(graph: Graph) -> None:
    """Compute what depends on constants alone, however wide it is: a tile has it in its memory."""
    for operation in graph.sorted():
        if operation.operands and all(value.constant is not None for value in operation.operands):
            arrays = [value.constant for value in operation.operands if value.constant is not None]
            (array,) = apply(operation, arrays)
            graph.supersede(operation.result, graph.constant(array, operation.result.dtype))


def _multiply_one_channel(graph: Graph, operation: DepthwiseConv2d) -> None:
    """Make a depthwise convolution of one channel the convolution that it is."""
    weights = operation.weight.constant
    if operation.operand.shape[-1] != 1 or weights is None:
        return
    turned = graph.constant(weights.transpose(3, 0, 1, 2), operation.weight.dtype)
    operands = [operation.operand, turned, *operation.operands[2:]]
    made = graph.add(
        "CONV2D",
        operands,
        [operation.result.type],
        dict(operation.attributes),
        origin=operation.origin,
        group=operation.group,
    )
    graph.supersede(operation.result, made.result)
    graph.erase(operation)


def _take_unflattened(graph: Graph, operation: Conv2d) -> None:
    """Make a layer that takes all of a flattened feature map a convolution with its window.

    The map may have been turned before, as PyTorch flattens channels first: the weights are turned
    back.
    """
    flat, weights = operation.operand.producer, operation.weight.constant
    if not isinstance(flat, Reshape) or weights is None:
        return
    taken, order = _unturned(flat.operand)
    shape = taken.shape
    if len(shape) != len(weights.shape) or shape[0] != 1 or order[0] != 0:
        return
    if flat.result.shape != (1, 1, 1, prod(shape)) or any(operation.pad):
        return
    if weights.shape[1:3] != (1, 1) or (shape[HEIGHT], shape[WIDTH]) == (1, 1):
        return
    turned = weights.reshape(weights.shape[0], *(shape[axis] for axis in order[1:]))
    windows = turned.transpose([order.index(axis) for axis in range(len(order))])
    graph.set_operand(operation, 1, graph.constant(windows, operation.weight.dtype))
    graph.set_operand(operation, 0, taken)


def _turn_before_cropping(graph: Graph, operation: Transpose) -> None:
    """Turn a tensor before a part of it is taken: the turning may then be an input's own."""
    crop = operation.operand.producer
    if not isinstance(crop, Slice) or len(crop.result.uses) != 1 or crop.result in graph.outputs:
        return
    start, size = (value.constant for value in crop.operands[1:])
    if start is None or size is None:
        return
    order: list[int] = list(operation.perms)
    taken = crop.operand
    shape = tuple(taken.shape[axis] for axis in order)
    type = replace(operation.result.type, shape=shape)
    turned = graph.add_beside(operation, "TRANSPOSE", [taken], type, {"perms": tuple(order)})
    bounds = [graph.constant(array[order], DType.SHAPE) for array in (start, size)]
    part = graph.add_beside(operation, "SLICE", [turned, *bounds], operation.result.type)
    graph.supersede(operation.result, part)
    graph.erase(operation)


def _unturned(value: Value) -> tuple[Value, tuple[int, ...]]:
    """Return the operand of a TRANSPOSE, and its order; any other value as it is."""
    if isinstance(value.producer, Transpose):
        return value.producer.operand, tuple(value.producer["perms"])
    return value, tuple(range(len(value.shape)))


def _open_edge(graph: Graph, operation: Operation, edges: Edges) -> None:
    """Take an input, or give an output, on the other side of an operation that only moves it."""
    given, result = operation.operand, operation.result
    alone = len(given.uses) == 1 and given not in graph.outputs
    if given in graph.inputs and alone and result not in graph.outputs:
        place = graph.inputs.index(given)
        made = graph.add_input(result.type, given.name)
        graph.set_inputs([made if value is given else value for value in graph.inputs[:-1]])
        graph.replace(result, made)
        graph.erase(operation)
        edges.inputs[place] = edges.inputs[place].then(operation)
    elif result in graph.outputs and not result.uses and _is_free(graph, given):
        place = graph.outputs.index(result)
        graph.supersede(result, given)
        graph.erase(operation)
        edges.outputs[place] = edges.outputs[place].before(operation)


def _is_free(graph: Graph, value: Value) -> bool:
    return value.producer is not None and value not in graph.outputs
