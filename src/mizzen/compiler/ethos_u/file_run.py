"""Execute the steps of a compiled TFLite file in its one arena, beside what the reference says.

Each tensor that a step takes must still be what was given, and what NPU operators give must be the
reference's. What the CPU's operators give is what the reference says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.artifact.arena import ArenaValues
from mizzen.artifact.execution import Contents, NoState
from mizzen.artifact.interface import Array, Values
from mizzen.artifact.steps import NpuStep, Step
from mizzen.compiler.proof.accesses import require_order
from mizzen.compiler.tflite_truth import NetworkTruth
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with a file, in words, and the tensor of the network that shows it first."""

    said: str
    tensor: int | None = None


class FileRun:
    """One execution of a file's steps.

    network  the compiled file, read; `contents` is what it holds
    tensors  of the file to those of the network that the reference knows
    """

    def __init__(
        self,
        truth: NetworkTruth,
        network: Model,
        contents: Contents,
        tensors: Mapping[int, int],
    ) -> None:
        self.truth = truth
        self.network = network
        self.contents = contents
        self.tensors = tensors
        self.count = truth.count
        self.values: Values = {}
        if contents.arena is not None:
            self.values = ArenaValues(contents.arena, self.count)

    def mistake(self) -> Mistake | None:
        """Return what is wrong first; None for nothing."""
        self._begin()
        for step in self.contents.steps:
            if (wrong := self._after(step)) is not None:
                return wrong
        return self.differing(self.contents.outputs, "is overwritten before the end")

    def _begin(self) -> None:
        self.give(self.contents.inputs)
        for index, constant in self.contents.constants.items():
            self.values[index] = np.broadcast_to(constant, (self.count, *constant.shape))
        for step in self.contents.steps:
            if isinstance(step, NpuStep):
                self.values.update(self._states(step))
                NoState().provide(step.variables, self.values, self.count)

    def _states(self, step: NpuStep) -> dict[int, Array]:
        """Return what the reference starts from of what an NPU operator keeps."""
        known = (
            (row, self.truth.state.get(self.tensors.get(row.index, -1))) for row in step.variables
        )
        return {
            row.index: array
            for row, array in known
            if array is not None and (array.shape[1:], array.dtype) == (row.shape, row.dtype)
        }

    def _after(self, step: Step) -> Mistake | None:
        """Execute a step, and compare what it takes and gives."""
        if (wrong := self.differing(step.inputs, "is overwritten before it is read")) is not None:
            return wrong
        if not isinstance(step, NpuStep):
            return self.on_cpu(step)
        if not self.has(step.inputs):
            self.unknown(step)
            return None
        try:
            step.run(self.values, self.count)
            require_order(step)
        except MizzenError as error:
            return Mistake(error.diagnostic.message, self.first(step.outputs))
        if len(self._states(step)) < len(step.variables):
            self.give(step.outputs)  # from another state than the reference's
            self.unknown(step)
            return None
        return self._compared(step)

    def _compared(self, step: NpuStep) -> Mistake | None:
        for row in step.variables:
            place = self.tensors[row.index]
            left = self.truth.first.after.get(place)
            if left is not None and not np.array_equal(self.values[row.index], left):
                return Mistake("what it keeps differs from the reference", place)
        outputs = [step.outputs[place] for place in sorted(step.final)]
        wrong = self.differing(outputs, "differs from the reference")
        if wrong is None:
            self.equal(outputs)
        return wrong

    def on_cpu(self, step: Step) -> Mistake | None:
        """Compute what an operator of the CPU gives."""
        self.give(step.outputs)
        return None

    def unknown(self, step: NpuStep) -> None:
        """Note an NPU operator that is not compared: nothing says what it takes."""

    def equal(self, outputs: Sequence[int]) -> None:
        """Note what an NPU operator gives, of which nothing is wrong."""

    def reference(self, index: int) -> Array | None:
        """Return what the reference says of a tensor of the file; None if it says nothing."""
        array = self.truth.first.values.get(self.tensors.get(index, -1))
        if array is None:
            return None
        return array.reshape(self.count, *self.network.main.tensors[index].shape)

    def give(self, indices: Sequence[int]) -> None:
        """Let tensors be what the reference says."""
        for index in indices:
            array = self.reference(index)
            if array is not None:
                self.values[index] = array

    def has(self, indices: Sequence[int]) -> bool:
        """Whether tensors are known, of the reference or of what was executed."""
        return all(index in self.values for index in indices)

    def first(self, indices: Sequence[int]) -> int | None:
        """Return the network's tensor that is the first of some of the file."""
        return next((self.tensors[index] for index in indices if index in self.tensors), None)

    def differing(self, indices: Sequence[int], what: str) -> Mistake | None:
        """Return the first tensor that is not what the reference says, and what that is."""
        for index in indices:
            array = self.reference(index)
            if array is None or index not in self.values:
                continue
            ours, place = self.values[index], self.tensors[index]
            if not np.array_equal(ours, array) and not self.truth.allowed(place, ours, array):
                return Mistake(f'"{self.network.main.tensors[index].name}" {what}', place)
        return None
