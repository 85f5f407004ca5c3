"""Lower a quantised TFLite network to one graph of TOSA operations.

Each operator becomes operations of one group, its index, that compute the integers of TFLite
Micro's kernels bit for bit. What has no such form becomes a CUSTOM operation, with the reason; so
the graph is whole whatever the network is.
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import Origin
from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite import lowering
from mizzen.frontends.tflite.context import Context
from mizzen.frontends.tflite.model import Model, Operator
from mizzen.frontends.tflite.reading import require_quantized
from mizzen.frontends.tflite.state import StateContext, variables_of
from mizzen.frontends.tflite.variables import VARIABLE_KINDS
from mizzen.graph import Graph, Operation, Value
from mizzen.ops import Builder

assert lowering.__all__, "importing the lowerings registers them"


@dataclass(frozen=True, eq=False)
class Lowered:
    """A network as a graph, and how the two belong together.

    graph      inputs and outputs are the network's, in its order; an operation's group is the
               index of the operator that it is part of
    value_of   tensor index to value; constants only where an operation takes them as they are
    tensor_of  value to tensor index
    """

    model: Model
    graph: Graph
    value_of: dict[int, Value]
    tensor_of: dict[Value, int]

    def operator_of(self, operation: Operation) -> Operator | None:
        """Return the operator that an operation is part of."""
        group = operation.group
        return None if group is None else self.model.main.operators[group]

    def is_unsigned(self, value: Value) -> bool:
        """Whether a value is an unsigned 8-bit tensor, whose integers are less by 128 here.

        What passes the bytes of such a tensor on must add 128, which is to flip the upper bit.
        """
        index = self.tensor_of.get(value)
        return index is not None and self.model.main.tensors[index].type is FileType.UINT8


def lower(model: Model) -> Lowered:
    """Lower a network. E107 for one that is not quantised, E132 for tensors of no numbers."""
    return _lowered(Context(model), model)


def lower_with_state(model: Model) -> Lowered:
    """Lower a network with its state as variables of the graph. Raises as `lower`.

    State is resource variables and variable tensors. VAR_HANDLE and CALL_ONCE give no operations:
    what variables hold at first is VARIABLE's. Networks whose resource variables TOSA has no form
    of are lowered as by `lower`.
    """
    variables = variables_of(model)
    if variables is None and any(row.kind in VARIABLE_KINDS for row in model.main.operators):
        return lower(model)
    return _lowered(StateContext(model, variables or {}), model)


def _lowered(context: Context, model: Model) -> Lowered:
    require_quantized(model)
    context.add_inputs()
    for operator in model.main.operators:
        context.lower(operator)
    outside = Builder(context.graph, Origin(model.name))
    context.graph.set_outputs(context.value(index, outside) for index in model.main.outputs)
    tensor_of = {value: index for index, value in context.value_of.items()}
    return Lowered(model, context.graph, context.value_of, tensor_of)
