"""Evaluates graphs on arrays, operation by operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import fail
from mizzen.graph import INTEGER_BITS, Array, Graph, Operation, TensorType, Value, integer_range
from mizzen.ops.control_flow import (
    CondIf,
    Constant,
    Custom,
    Variable,
    VariableRead,
    VariableWrite,
    WhileLoop,
)
from mizzen.reference import (
    control_flow,
    data_layout,
    elementwise,
    image,
    reduction,
    tensor,
    type_conversion,
)
from mizzen.reference.control_flow import CustomKernel, Variables
from mizzen.reference.kernel import Kernels

Trace = Callable[[Value, Array], Array | None]
"""Is told each value and its elements as soon as they are known.

Elements that it returns are taken in place of these.
"""

Shape = tuple[int, ...]

KERNELS: Kernels = {
    **tensor.KERNELS,
    **elementwise.KERNELS,
    **reduction.KERNELS,
    **data_layout.KERNELS,
    **image.KERNELS,
    **type_conversion.KERNELS,
    **control_flow.KERNELS,
}
"""The meaning of all operations that work on numbers alone."""


def evaluate(
    graph: Graph,
    inputs: Sequence[Array],
    *,
    variables: dict[str, Array] | None = None,
    trace: Trace | None = None,
    custom: CustomKernel | None = None,
) -> list[Array]:
    """Return the elements of the graph's outputs.

    inputs     the elements of the graph's inputs, as `DType.numpy` holds them
    variables  what variables have before; written to, and so what they have afterwards
    trace      is told every value, also those in control flow, constants left out
    custom     computes CUSTOM operations: gives an array for each result

    Arrays that are given back may share memory with inputs and constants. Raises E820 for inputs
    that are not what the graph takes, and results of `custom` likewise; E821 for a CUSTOM operation
    that nothing computes; E822 where TOSA leaves the result open; E823 for a variable that is read
    and has no value.
    """
    check_inputs(graph, inputs)
    state = {} if variables is None else variables
    return Evaluation(state, trace, custom).run(graph, inputs)


def apply(operation: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Return the results of one operation that needs nothing but its operands; raises as above."""
    kernel = KERNELS.get(type(operation))
    if kernel is None:
        raise control_flow.unknown(operation)
    results = kernel(operation, *operands)
    # NumPy makes scalars of arrays of rank 0.
    return results if isinstance(results, tuple) else (np.asarray(results),)


def check_inputs(graph: Graph, inputs: Sequence[Array], leading: Shape = ()) -> None:
    """Refuse other inputs than the graph takes, with these dimensions in front."""
    if len(inputs) != len(graph.inputs):
        raise fail(
            "E820", f"{len(graph.inputs)} inputs must be given for {graph.name}, not {len(inputs)}"
        )
    for index, (value, array) in enumerate(zip(graph.inputs, inputs, strict=True)):
        name = f"input {index}" + (f" ({value.name})" if value.name else "")
        _check(name, value.type, array, leading)


def checked(operation: Custom, results: Sequence[Array], leading: Shape = ()) -> Sequence[Array]:
    """Refuse results of a custom operation that have other types than the graph says."""
    name, need = operation.operator_name, operation.results
    if len(results) != len(need):
        raise fail("E820", f"{len(need)} results must be given by {name}, not {len(results)}")
    for index, (value, array) in enumerate(zip(need, results, strict=True)):
        _check(f"result {index} of {name}", value.type, array, leading)
    return results


def _check(name: str, type: TensorType, array: Array, leading: Shape) -> None:
    """Refuse elements of another type or shape, or that the type does not have."""
    if array.shape != (*leading, *type.shape) or array.dtype != type.dtype.numpy:
        shape, dtype = (*leading, *type.shape), type.dtype.numpy
        raise fail("E820", f"{name} must be {dtype} {shape}, and is {array.dtype} {array.shape}")
    if type.dtype not in INTEGER_BITS or not array.size:
        return
    low, high = integer_range(type.dtype)
    if array.min() < low or array.max() > high:
        came = int(array.min() if array.min() < low else array.max())
        raise fail("E820", f"{name} must be {type.dtype.value}, {low} to {high}, and has {came}")


Results = Callable[[Operation, Sequence[Array]], Sequence[Array]]
"""Computes the results of an operation from its operands."""


def walk(
    graph: Graph, inputs: Sequence[Array], results: Results, trace: Trace | None
) -> list[Array]:
    """Evaluate one graph; values are let go when nothing needs them any more."""
    values = dict(zip(graph.inputs, inputs, strict=True))
    _tell(values, trace)
    operations = graph.sorted()
    waiting = Counter(graph.outputs)
    for operation in operations:
        waiting.update(operation.operands)
    for operation in operations:
        made = results(operation, [values[each] for each in operation.operands])
        named = dict(zip(operation.results, made, strict=True))
        if not isinstance(operation, Constant):
            _tell(named, trace)
        values.update(named)
        for value in operation.operands:
            waiting[value] -= 1
        for value in (*operation.operands, *operation.results):
            if not waiting[value]:
                values.pop(value, None)
    return [values[output] for output in graph.outputs]


def _tell(values: dict[Value, Array], trace: Trace | None) -> None:
    if trace is not None:
        for value, array in values.items():
            other = trace(value, array)
            if other is not None:
                values[value] = other


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of one inference."""

    variables: Variables
    trace: Trace | None
    custom: CustomKernel | None

    def run(self, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs of a graph, or of a body in it."""
        return walk(graph, inputs, self.results, self.trace)

    def results(self, operation: Operation, operands: Sequence[Array]) -> Sequence[Array]:
        """Return the results of an operation."""
        match operation:
            case Custom() if self.custom is not None:
                return checked(operation, self.custom(operation, operands))
            case CondIf():
                return control_flow.cond_if(self.run, operation, operands)
            case WhileLoop():
                return control_flow.while_loop(self.run, operation, operands)
            case Variable():
                return control_flow.declare(self.variables, operation)
            case VariableRead():
                return control_flow.read(self.variables, operation)
            case VariableWrite():
                return control_flow.write(self.variables, operation, operands)
            case _:
                return apply(operation, operands)
