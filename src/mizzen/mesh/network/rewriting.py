"""Equal forms of a graph in which more of it can be split."""

from __future__ import annotations

from math import prod

from mizzen.graph import Graph, Operation
from mizzen.mesh.network.network import HEIGHT, WIDTH
from mizzen.ops.data_layout import Reshape
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d
from mizzen.passes.standard import plain
from mizzen.reference import apply


def prepare(graph: Graph) -> None:
    """Bring a graph into the form that layers are made of; what it computes stays.

    Inputs and outputs get the shapes that the operations beside a RESHAPE use; the order of their
    elements stays.
    """
    plain().run(graph)
    _fold_all(graph)
    for operation in graph.sorted():
        match operation:
            case DepthwiseConv2d():
                _multiply_one_channel(graph, operation)
            case Conv2d():
                _take_unflattened(graph, operation)
            case _:
                pass
    for operation in graph.sorted():
        if isinstance(operation, Reshape):
            _open_edge(graph, operation)
    graph.erase_dead()


def _fold_all(graph: Graph) -> None:
    """Compute what depends on constants alone, however wide it is: a tile has it in its memory."""
    for operation in graph.sorted():
        if operation.operands and all(value.constant is not None for value in operation.operands):
            arrays = [value.constant for value in operation.operands if value.constant is not None]
            (array,) = apply(operation, arrays)
            graph.supersede(operation.result, graph.constant(array, operation.result.dtype))


def _multiply_one_channel(graph: Graph, operation: DepthwiseConv2d) -> None:
    """Make a depthwise convolution of one channel the convolution that it is."""
    weights = operation.operands[1].constant
    if operation.operand.shape[-1] != 1 or weights is None:
        return
    turned = graph.constant_like(operation.operands[1], weights.transpose(3, 0, 1, 2))
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
    """Make a layer that takes all of a flattened feature map a convolution with its window."""
    flat = operation.operand.producer
    weights = operation.operands[1].constant
    if not isinstance(flat, Reshape) or weights is None:
        return
    shape = flat.operand.shape
    whole = len(shape) == len(weights.shape) and shape[0] == 1
    if not whole or flat.result.shape != (1, 1, 1, prod(shape)) or any(operation["pad"]):
        return
    if weights.shape[1:3] != (1, 1) or (shape[HEIGHT], shape[WIDTH]) == (1, 1):
        return
    windows = weights.reshape(weights.shape[0], *shape[1:])
    graph.set_operand(operation, 1, graph.constant_like(operation.operands[1], windows))
    graph.set_operand(operation, 0, flat.operand)


def _open_edge(graph: Graph, operation: Operation) -> None:
    given, result = operation.operand, operation.result
    if given in graph.inputs and len(given.uses) == 1 and given not in graph.outputs:
        if result in graph.outputs:
            return
        made = graph.add_input(result.type, given.name)
        graph.set_inputs([made if value is given else value for value in graph.inputs[:-1]])
        graph.replace(result, made)
        graph.erase(operation)
    elif (
        result in graph.outputs
        and not result.uses
        and given.producer is not None
        and given not in graph.outputs
    ):
        graph.supersede(result, given)
        graph.erase(operation)
