"""The step of a compiled region of a PyTorch program, whose network may turn its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mizzen.artifact.interface import Array, Values
from mizzen.artifact.program import CompiledPart
from mizzen.artifact.steps import NpuStep
from mizzen.frontends.tflite import Model, Operator

Shape = tuple[int, ...]
Permutation = tuple[int, ...]
VIEWS = ("RESHAPE", "TRANSPOSE")


@dataclass(frozen=True, slots=True)
class Turn:
    """What a network does to a tensor at its edge: the tensor outside, and how it is moved.

    What goes in is reshaped to `shape`; then axis d of what comes out is its axis `order[d]`.
    """

    outside: int
    shape: Shape = ()
    order: Permutation = ()

    def apply(self, array: Array) -> Array:
        """Turn a batch `[N, *shape]`."""
        if not self.order:
            return array
        batch = array.shape[0]
        return array.reshape(batch, *self.shape).transpose(0, *(axis + 1 for axis in self.order))


@dataclass(frozen=True, slots=True)
class Edge:
    """What a region's network does around its NPU operator, tensor by tensor of the operator."""

    inputs: tuple[Turn, ...]
    outputs: tuple[Turn, ...]


def edge_of(model: Model, step: NpuStep) -> Edge:
    """Find what a network does around its one NPU operator: RESHAPEs, TRANSPOSEs, if anything."""
    views = [row for row in model.main.operators if row.kind in VIEWS]
    before = {row.outputs[0]: row for row in views}
    behind = {row.inputs[0]: row for row in views}
    return Edge(
        tuple(_turn_before(model, before, index) for index in step.inputs),
        tuple(_turn_behind(model, behind, index) for index in step.outputs),
    )


def _turn_before(model: Model, views: Mapping[int, Operator], index: int) -> Turn:
    row = views.get(index)
    if row is None:
        return Turn(index)
    turned = row.inputs[0]
    shape, order = model.main.tensors[turned].shape, _order(model, row)
    outer = views.get(turned)
    return Turn(turned if outer is None else outer.inputs[0], shape, order)


def _turn_behind(model: Model, views: Mapping[int, Operator], index: int) -> Turn:
    row = views.get(index)
    if row is None:
        return Turn(index)
    shape, order = model.main.tensors[index].shape, _order(model, row)
    outer = views.get(row.outputs[0])
    return Turn((row if outer is None else outer).outputs[0], shape, order)


def _order(model: Model, row: Operator) -> Permutation:
    axes = model.main.tensors[row.inputs[1]].values
    assert axes is not None, "the axes of a region's TRANSPOSE are a constant"
    return tuple(axes.tolist())


class RegionStep(NpuStep):
    """An NPU operator whose tensors have the shapes of the program, not the compiler's."""

    def __init__(self, step: NpuStep, inputs: Sequence[int], outputs: Sequence[int],
                 shapes: dict[int, Shape], edge: Edge) -> None:  # fmt: skip
        part = CompiledPart(step.program, tuple(inputs), tuple(outputs))
        super().__init__(step.family, part)
        self.shapes = shapes
        self._edge = edge

    def run(self, values: Values, batch: int) -> None:
        """Compute the outputs from the inputs in `values`."""
        given = [
            turn.apply(values[index]).reshape(batch, *place.shape)
            for index, turn, place in zip(
                self.inputs, self._edge.inputs, self.program.inputs, strict=True
            )
        ]
        outcome = self.simulator.run(given, batch)
        for index, turn, array in zip(
            self.outputs, self._edge.outputs, outcome.outputs, strict=True
        ):
            values[index] = turn.apply(array).reshape(batch, *self.shapes[index])
