"""What the operators of a model take and give, in the model's own shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mizzen.frontends.tflite import Operator, Subgraph
from mizzen.graph import Graph, Operation, Value
from mizzen.report.words import layer_shape


def shape_of_operator(subgraph: Subgraph, operator: Operator) -> str:
    """Return what an operator of a TFLite network takes and gives, without its constants."""
    taken = (tensor for tensor in subgraph.present(operator.inputs) if tensor.data is None)
    given = subgraph.present(operator.outputs)
    return layer_shape((each.shape for each in taken), (each.shape for each in given))


def shapes_of_graph(graph: Graph, operator: Callable[[Operation], int | None]) -> Mapping[int, str]:
    """Return what operators take and give, whose operations in a graph are one or several."""
    taken: dict[int, dict[Value, None]] = {}
    given: dict[int, dict[Value, None]] = {}
    for operation in graph.sorted():
        index = operator(operation)
        if index is None or all(value.constant is not None for value in operation.results):
            continue
        for value in operation.operands:
            maker = value.producer
            own = maker is not None and operator(maker) == index
            if not own and value.constant is None:
                taken.setdefault(index, {})[value] = None
        for value in operation.results:
            users = value.uses
            if not users or value in graph.outputs or any(operator(use) != index for use in users):
                given.setdefault(index, {})[value] = None
    return {
        index: layer_shape(
            (value.shape for value in taken.get(index, ())),
            (value.shape for value in given.get(index, ())),
        )
        for index in {**taken, **given}
    }
