"""Compare what programs compute with what the network says, tensor by tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.graph import Array, Value
from mizzen.mesh.execution.custom import custom_kernel
from mizzen.mesh.execution.engines import Engine
from mizzen.mesh.execution.execution import check_inputs, execute
from mizzen.mesh.network.network import Network
from mizzen.mesh.program import MeshProgram
from mizzen.reference import evaluate_batch


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """How a tensor differs from the reference: `differing` of `elements`, at most by `greatest`."""

    tensor: int
    name: str
    elements: int
    differing: int
    greatest: int

    def __str__(self) -> str:
        if not self.differing:
            return f"{self.name}: {self.elements} elements equal"
        return (
            f"{self.name}: {self.differing} of {self.elements} elements differ, by "
            f"{self.greatest} at most"
        )


def reference(network: Network, inputs: Sequence[Array]) -> dict[int, Array]:
    """Return every tensor, `[images, *shape]`, from the whole network's operations, unsplit.

    Raises E534 for a network of shapes only and for other inputs than it has.
    """
    check_inputs(network, inputs)
    if network.graph is None:
        return _layer_by_layer(network, inputs)
    tensors = {value: index for index, value in enumerate(network.values)}
    known = dict(zip(network.inputs, inputs, strict=True))

    def keep(value: Value, array: Array) -> None:
        if value in tensors:
            known[tensors[value]] = array

    evaluate_batch(network.graph, inputs, len(inputs[0]), trace=keep, custom=custom_kernel())
    return known


def _layer_by_layer(network: Network, inputs: Sequence[Array]) -> dict[int, Array]:
    """Return the same where a program's file has no more of the network than its layers."""
    count, custom = len(inputs[0]), custom_kernel()
    values = dict(zip(network.inputs, inputs, strict=True))
    for layer in network.layers:
        assert layer.chain is not None
        taken = [values[index] for index in layer.inputs]
        (values[layer.output],) = evaluate_batch(layer.chain, taken, count, custom=custom)
    return values


def compare(
    program: MeshProgram, inputs: Sequence[Array], engine: Engine | None = None
) -> tuple[TensorDifference, ...]:
    """Execute a program and return how each tensor differs from the reference; raises what both do.

    inputs  `[images, *shape]` for each of the network's inputs
    """
    expected = reference(program.network, inputs)
    executed = execute(program, inputs, engine, all_tensors=True).tensors
    return tuple(
        _difference(program.network, index, executed[index], expected[index])
        for index in sorted(expected)
    )


def _difference(network: Network, index: int, executed: Array, expected: Array) -> TensorDifference:
    name = network.tensors[index].name
    distance = np.abs(executed.astype(np.int64) - expected.astype(np.int64))
    differing, greatest = int(np.count_nonzero(distance)), int(distance.max(initial=0))
    return TensorDifference(index, name, distance.size, differing, greatest)
