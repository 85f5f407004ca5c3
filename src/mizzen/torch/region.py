"""Compile one region of a PyTorch program for the NPU, and make a step of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.artifact import NpuStep, Values, npu_step
from mizzen.diagnostics import Origin
from mizzen.frontends.tflite import Model, is_npu, read
from mizzen.graph import Operation
from mizzen.package import tosa
from mizzen.partition import Extracted
from mizzen.passes import standard
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.compiled import Compiled, Stopped
from mizzen.targets.ethos_u.config import Configuration
from mizzen.targets.ethos_u.generate import NetworkForm, Waiting, generate
from mizzen.targets.ethos_u.generate_defects import avoid_defects
from mizzen.targets.ethos_u.legal.tosa import defects

Shape = tuple[int, ...]

STANDARD = standard()


@dataclass(frozen=True, eq=False)
class CompiledRegion:
    """A region's code.

    part        the region as it was lowered
    operations  those that the compiler was given, in the order of its file
    tosa        that file
    compiled    what the compiler made of it
    """

    part: Extracted
    operations: tuple[Operation, ...]
    tosa: bytes
    compiled: Compiled

    @property
    def network(self) -> Model:
        """The compiled TFLite network."""
        return read(self.compiled.network, self.part.graph.name)

    @property
    def origins(self) -> dict[int, Origin]:
        """Byte offset of a command in the region's stream to the user's operator."""
        found: dict[int, Origin] = {}
        for command in self.compiled.commands:
            if command.operator is not None and command.operator < len(self.operations):
                origin = self.operations[command.operator].origin
                if origin is not None:
                    found[command.offset_bytes] = origin
        return found

    def cycles(self) -> dict[int, int]:
        """Give the estimated cycles of each group."""
        found: dict[int, int] = {}
        for work in self.compiled.work:
            if work.operator is not None and work.operator < len(self.operations):
                group = self.operations[work.operator].group
                if group is not None:
                    found[group] = found.get(group, 0) + work.cycles
        return found


@dataclass(frozen=True, eq=False)
class Miscompiled:
    """Operations that the compiler would compile wrongly, whatever form they are given."""

    operations: tuple[Operation, ...]


def lower_region(part: Extracted, arch: Arch) -> tuple[Operation, ...]:
    """Bring a region into the form that the compiler takes.

    Gives the operations of which the compiler would make something wrong even so.
    """
    STANDARD.run(part.graph)
    wrong = avoid_defects(part.graph, arch)
    return wrong or tuple(row for row in part.graph if defects(row, arch))


def compile_region(
    part: Extracted, configuration: Configuration, waiting: Waiting | None = None
) -> CompiledRegion | Stopped | Miscompiled:
    """Compile a region's graph, which is changed to the form that the compiler takes."""
    wrong = lower_region(part, configuration.accelerator.arch)
    if wrong:
        return Miscompiled(wrong)
    data, operations = tosa.write(part.graph), tuple(part.graph.sorted())
    compiled = generate(data, configuration, NetworkForm.TOSA, waiting=waiting)
    if isinstance(compiled, Stopped):
        return compiled
    return CompiledRegion(part, operations, data, compiled)


class RegionStep(NpuStep):
    """An NPU operator whose tensors have the shapes of the program, not the compiler's."""

    def __init__(self, step: NpuStep, inputs: Sequence[int], outputs: Sequence[int],
                 shapes: dict[int, Shape]) -> None:  # fmt: skip
        super().__init__(step.program, tuple(inputs), tuple(outputs), ())
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


def step_of(region: CompiledRegion, tensors: dict[object, int]) -> RegionStep:
    """Make the step of a region; `tensors` has the index of each value of the whole graph."""
    network = region.network
    (operator,) = [row for row in network.main.operators if is_npu(row)]
    step = npu_step(network, operator, region.origins)
    part = region.part
    inputs = dict(zip(network.main.inputs, part.inputs, strict=True))
    outputs = dict(zip(network.main.outputs, part.outputs, strict=True))
    shapes = {tensors[value]: value.shape for value in (*part.inputs, *part.outputs)}
    return RegionStep(
        step,
        [tensors[inputs[index]] for index in step.inputs],
        [tensors[outputs[index]] for index in step.outputs],
        shapes,
    )
