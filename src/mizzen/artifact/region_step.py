"""The step of a compiled region of a PyTorch program, whose tensors the CPU may move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mizzen.artifact.interface import Array, Values
from mizzen.artifact.program import CompiledPart
from mizzen.artifact.steps import NpuStep
from mizzen.frontends.tflite import Model, Operator

Shape = tuple[int, ...]
Permutation = tuple[int, ...]
VIEWS = ("RESHAPE", "TRANSPOSE")


@dataclass(frozen=True, slots=True)
class EdgeMove:
    """How the CPU moves a tensor at a region's edge; nothing without an order.

    It is reshaped to `shape`; then axis d of what comes out is its axis `order[d]`.
    """

    shape: Shape = ()
    order: Permutation = ()

    def apply(self, array: Array) -> Array:
        """Move a batch `[N, *shape]`."""
        if not self.order:
            return array
        batch = array.shape[0]
        return array.reshape(batch, *self.shape).transpose(0, *(axis + 1 for axis in self.order))


@dataclass(frozen=True, slots=True)
class Edge:
    """How the tensors of a region's NPU operator are moved, in its order."""

    inputs: tuple[EdgeMove, ...]
    outputs: tuple[EdgeMove, ...]


def edge_of(model: Model, step: NpuStep) -> Edge:
    """Read what a region's network does around its NPU operator: RESHAPEs, TRANSPOSEs, or nothing.

    For networks that come from a file; who compiles one knows it.
    """
    views = [view for view in model.main.operators if view.kind in VIEWS]
    before = {view.outputs[0]: view for view in views}
    behind = {view.inputs[0]: view for view in views}
    return Edge(
        tuple(_move(model, before.get(index)) for index in step.inputs),
        tuple(_move(model, behind.get(index)) for index in step.outputs),
    )


def _move(model: Model, view: Operator | None) -> EdgeMove:
    if view is None:
        return EdgeMove()
    moved, permutation = (model.main.tensors[index] for index in view.inputs)
    axes = permutation.values
    assert axes is not None, "the axes of a region's TRANSPOSE are a constant"
    return EdgeMove(moved.shape, tuple(axes.tolist()))


class RegionStep(NpuStep):
    """An NPU operator whose tensors have the shapes of the program, not the compiler's.

    shapes  of these tensors
    taken   the shapes in which the operator takes its inputs
    """

    def __init__(self, step: NpuStep, inputs: Sequence[int], outputs: Sequence[int],
                 shapes: dict[int, Shape], edge: Edge, taken: Sequence[Shape]) -> None:  # fmt: skip
        part = CompiledPart(step.program, tuple(inputs), tuple(outputs))
        super().__init__(step.family, part)
        self.shapes = shapes
        self._edge = edge
        self._taken = tuple(taken)

    @property
    def moves(self) -> bool:
        """Whether the CPU moves any tensor at the region's edge."""
        return any(move.order for move in (*self._edge.inputs, *self._edge.outputs))

    def run_on(self, simulator: Any, values: Values, batch: int) -> None:
        """Compute the outputs from the inputs in `values`, with a simulator of the program."""
        given = [
            move.apply(values[index]).reshape(batch, *shape)
            for index, move, shape in zip(self.inputs, self._edge.inputs, self._taken, strict=True)
        ]
        outcome = simulator.run(given, batch)
        for index, move, array in zip(
            self.outputs, self._edge.outputs, outcome.outputs, strict=True
        ):
            values[index] = move.apply(array).reshape(batch, *self.shapes[index])
