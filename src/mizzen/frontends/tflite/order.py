"""Whether a network computes every tensor before it reads it."""

from __future__ import annotations

from collections.abc import Callable

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.tflite.model import Model, Tensor

MemoryInputs = Callable[[str], int]
"""How many of a custom operator's first inputs are memory that it works in, by its code."""


def no_memory(code: str) -> int:
    """Take every input of a custom operator for a tensor of the network."""
    return 0


def require_order(model: Model, memory_inputs: MemoryInputs) -> None:
    """Refuse a network that reads, or gives, a tensor that nothing has made, with E108.

    A tensor comes from outside, has contents, keeps state, has no elements, or is computed by an
    earlier operator. Memory that an operator works in is not a tensor in this sense.
    """
    main = model.main
    known = set(main.inputs)
    known.update(tensor.index for tensor in main.tensors if _exists_from_the_start(tensor))
    for operator in main.operators:
        memory = memory_inputs(operator.kind) if operator.custom else 0
        for tensor in main.present(operator.inputs[memory:]):
            if tensor.index not in known:
                raise _unknown(tensor, model.origin(operator))
        known.update(operator.outputs)
    for tensor in main.present(main.outputs):
        if tensor.index not in known:
            raise _unknown(tensor, Origin(model.name))


def _exists_from_the_start(tensor: Tensor) -> bool:
    return tensor.data is not None or tensor.variable or not tensor.elements


def _unknown(tensor: Tensor, origin: Origin) -> MizzenError:
    return fail(
        "E108",
        f'tensor {tensor.index} "{tensor.name}" must be an input, a constant, state, or computed '
        "before it is read, and is none of these",
        origin=origin,
        help="get the file again, or convert the network again",
    )
