"""The step of a compiled region of a PyTorch program."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.artifact import NpuStep, Values, npu_step
from mizzen.frontends.tflite import is_npu
from mizzen.regions import RegionCode

Shape = tuple[int, ...]


class RegionStep(NpuStep):
    """An NPU operator whose tensors have the shapes of the program, not the compiler's."""

    def __init__(self, step: NpuStep, inputs: Sequence[int], outputs: Sequence[int],
                 shapes: dict[int, Shape]) -> None:  # fmt: skip
        super().__init__(step.backend, step.program, tuple(inputs), tuple(outputs), ())
        self.shapes = shapes

    def run(self, values: Values, batch: int) -> None:
        """Compute the outputs from the inputs in `values`."""
        given = [
            values[index].reshape(batch, *place.shape)
            for index, place in zip(self.inputs, self.program.inputs, strict=True)
        ]
        outcome = self.simulator.run(given, batch)
        for index, array in zip(self.outputs, outcome.outputs, strict=True):
            values[index] = array.reshape(batch, *self.shapes[index])


def step_of(region: RegionCode, tensors: dict[object, int]) -> RegionStep:
    """Make the step of a region; `tensors` has the index of each value of the whole graph."""
    model = region.model
    (operator,) = [row for row in model.main.operators if is_npu(row)]
    step = npu_step(model, operator, dict(region.origins))
    part = region.part
    inputs = dict(zip(model.main.inputs, part.inputs, strict=True))
    outputs = dict(zip(model.main.outputs, part.outputs, strict=True))
    shapes = {tensors[value]: value.shape for value in (*part.inputs, *part.outputs)}
    return RegionStep(
        step,
        [tensors[inputs[index]] for index in step.inputs],
        [tensors[outputs[index]] for index in step.outputs],
        shapes,
    )
