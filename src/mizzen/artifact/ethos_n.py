"""Compiled parts as an artifact holds them: a container, and the tensors around it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import le
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.interface import Array, Origins
from mizzen.artifact.program import (
    CompiledPart,
    HazardReport,
    MappedTensor,
    MemoryRegion,
    NpuFamily,
    ProgramView,
    RunOutcome,
    Surroundings,
)
from mizzen.diagnostics import Diagnostic, MizzenError, Origin, fail
from mizzen.frontends.tflite import Model, Operator, Tensor
from mizzen.targets.ethos_n.config import (
    VARIANTS,
    Capabilities,
    Variant,
    capabilities_of,
    decode_capabilities,
)
from mizzen.targets.ethos_n.listing import list_stream
from mizzen.targets.ethos_n.program import (
    COMMAND_STREAM_ID,
    BufferKind,
    Program,
    read_container,
    read_program,
)


@dataclass(frozen=True, slots=True)
class ProgramTensor:
    """A tensor that a program takes or gives: its shape for one inference, and its type."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, densely packed."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class NpuProgram:
    """A compiled part; inputs and outputs are in the order of the container's buffers.

    origins  byte offset of a command in the stream to the model's operator
    """

    program: Program
    inputs: tuple[ProgramTensor, ...]
    outputs: tuple[ProgramTensor, ...]
    name: str
    origins: Mapping[int, Origin]

    def require_interface(self) -> None:
        """Check that tensors and buffers belong together. E122 if they do not."""
        sides = ((self.inputs, BufferKind.INPUT), (self.outputs, BufferKind.OUTPUT))
        for places, kind in sides:
            sizes = [buffer.size for buffer in self.program.of_kind(kind)]
            came = [place.size_bytes for place in places]
            # A buffer may be longer than its tensor: a dense layer reads whole bricks.
            fit = len(sizes) == len(came) and all(map(le, came, sizes))
            if not fit:
                raise fail(
                    "E122",
                    f"{kind.value} of {self.name}'s NPU operator must fit {sizes} bytes, as its "
                    f"container says, and have {came}",
                    help="the artifact is damaged; compile it again",
                )


class NpuSimulator:
    """Executes a program on arrays in the tensors' shapes."""

    def __init__(self, program: NpuProgram) -> None:
        from mizzen.targets.ethos_n.sim import Simulator

        program.require_interface()
        self._program = program
        self._simulator = Simulator(program.program)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What of it is executed by formulas that Arm does not publish in full."""
        return tuple(self._simulator.plan.diagnostics)

    @property
    def constants(self) -> dict[int, dict[str, Array]]:
        """What passes compute with, by the byte offset of their command."""
        from mizzen.targets.ethos_n.sim.constants import constants_of

        return constants_of(self._simulator.program, self._simulator.plan)

    def run(self, arrays: Sequence[Array], batch: int) -> RunOutcome:
        """Infer a batch of arrays `[batch, *shape]`. Raises E95x for faults of the NPU."""
        buffers = self._program.program.of_kind(BufferKind.INPUT)
        raw = [
            _filled(array, batch, buffer.size)
            for array, buffer in zip(arrays, buffers, strict=True)
        ]
        outcome = self._simulator.run(raw, batch)
        return RunOutcome(
            tuple(
                _contents(array, batch, place)
                for array, place in zip(outcome.outputs, self._program.outputs, strict=True)
            )
        )


def _filled(array: Array, batch: int, size_bytes: int) -> Array:
    """Return tensors as bytes of their buffer, zeros after them: uint8 `[batch, size_bytes]`."""
    raw = np.ascontiguousarray(array).view(np.uint8).reshape(batch, -1)
    return np.pad(raw, ((0, 0), (0, size_bytes - raw.shape[1])))


def _contents(raw: Array, batch: int, place: ProgramTensor) -> Array:
    """Return the tensors at the start of a buffer's bytes."""
    array = np.ascontiguousarray(raw[:, : place.size_bytes])
    return array.view(place.dtype).reshape(batch, *place.shape)


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong with accesses to memory; passes run one after the other, so orders are not."""

    accelerator: str
    operations: int
    diagnostics: tuple[Diagnostic, ...]

    @property
    def written(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        """No bytes: a program has its memory for itself."""
        return {}

    @property
    def own(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        """Likewise."""
        return {}

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready data."""
        return {
            "accelerator": self.accelerator,
            "operations": self.operations,
            "findings": [finding.as_dict() for finding in self.diagnostics],
        }


def check_memory(program: NpuProgram) -> Findings:
    """Look for the first pass that reads what no pass wrote or what was overwritten since, whose
    tiles overlap, or that reaches beyond a buffer or a bank."""
    findings: tuple[Diagnostic, ...] = ()
    try:
        NpuSimulator(program)
    except MizzenError as error:
        findings = (error.diagnostic,)
    name = variant_of(program.program.capabilities).name
    return Findings(name, len(program.program.commands), findings)


def variant_of(capabilities: Capabilities) -> Variant:
    """Find the variant that has capabilities, whatever its SRAM. E123 if there is not one."""
    for variant in VARIANTS.values():
        if capabilities_of(variant, 0) == _with_sram(capabilities, variant):
            return variant
    raise fail(
        "E123",
        f"the NPU operator must be for a variant of Ethos-N78, and is for {capabilities}",
        help="the artifact is damaged; compile it again",
    )


def _with_sram(capabilities: Capabilities, variant: Variant) -> Capabilities:
    return replace(capabilities, sram_bytes=capabilities_of(variant).sram_bytes)


HOLDS = {
    BufferKind.CONSTANT_DMA: "weights",
    BufferKind.CONSTANT_CONTROL_UNIT: "command stream, places of weights",
    BufferKind.INTERMEDIATE: "feature maps between passes",
    BufferKind.INPUT: "inputs",
    BufferKind.OUTPUT: "outputs",
}


def view(program: NpuProgram) -> ProgramView:
    """Take a program apart to look at it. E122 where tensors and buffers do not fit."""
    program.require_interface()
    listing = list_stream(program.program.stream)
    names = [type(command).__name__ for command in program.program.commands]
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    regions = list(HOLDS)
    variant = variant_of(program.program.capabilities)
    return ProgramView(
        hardware=f"{variant.name}, {program.program.capabilities.sram_bytes // 1024} KiB SRAM",
        stream_bytes=len(program.program.stream),
        commands=len(names),
        operations=dict(sorted(counts.items(), key=lambda item: -item[1])),
        regions=tuple(
            MemoryRegion(regions.index(kind), holds, _end(program.program, kind))
            for kind, holds in HOLDS.items()
        ),
        tensors=tuple(
            MappedTensor(
                place.name, role, regions.index(kind), buffer.offset, buffer.size, place.shape,
                str(place.dtype),
            )
            for role, kind, places in (
                ("input", BufferKind.INPUT, program.inputs),
                ("output", BufferKind.OUTPUT, program.outputs),
            )
            for buffer, place in zip(program.program.of_kind(kind), places, strict=True)
        ),
        listing=listing,
    )  # fmt: skip


def _end(program: Program, kind: BufferKind) -> int:
    return max((buffer.offset + buffer.size for buffer in program.of_kind(kind)), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class ContainerOperator:
    """An NPU operator's container, the NPU's capabilities, and its real inputs and outputs."""

    container: npt.NDArray[np.uint8]
    capabilities: npt.NDArray[np.uint8]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class EthosNPrograms(NpuFamily):
    """Ethos-N78."""

    def read(self, model: Model, operator: Operator, origins: Origins) -> CompiledPart:
        """Return the program in a custom operator. E12x, E91x, E92x or E93x if it is damaged."""
        parts = container_operator(model, operator)
        capabilities = decode_capabilities(parts.capabilities.tobytes())
        program = read_program(parts.container.tobytes(), capabilities)
        return self.part(model, operator, origins, program)

    def part(
        self, model: Model, operator: Operator, origins: Origins, program: object
    ) -> CompiledPart:
        """Return a program, a `Program`, between the tensors of its operator."""
        assert isinstance(program, Program), "the compiler for Ethos-N hands over such"
        parts = container_operator(model, operator)
        taken, given = (tuple(map(_tensor, side)) for side in (parts.inputs, parts.outputs))
        inputs, outputs = (
            tuple(tensor.index for tensor in side) for side in (parts.inputs, parts.outputs)
        )
        held = NpuProgram(program, taken, given, model.name, origins)
        return CompiledPart(held, inputs, outputs)

    def divided(self, constants: Sequence[bytes]) -> tuple[bytes, bytes]:
        """Divide a container: its command stream, and all the rest. E92x for one that is none."""
        held, *others = constants
        container = read_container(held)
        stream = b"".join(
            container.constant_control_unit[each.offset : each.offset + each.size]
            for each in container.constants_control_unit
            if each.id == COMMAND_STREAM_ID
        )
        rest = held.replace(stream, b"", 1) if stream else held
        return stream, b"".join((rest, *others))

    def accelerator_of(self, program: NpuProgram) -> str:
        """Return the variant that the operator says it is for."""
        return variant_of(program.program.capabilities).name

    def simulator(self, program: NpuProgram) -> NpuSimulator:
        """Plan a program's execution."""
        return NpuSimulator(program)

    def constants(self, simulator: NpuSimulator) -> dict[int, dict[str, Array]]:
        """Return weights, biases and scales, decoded, and settings."""
        return simulator.constants

    def hazards(self, program: NpuProgram, around: Surroundings | None = None) -> HazardReport:
        """Find accesses to memory that cannot be; the order of passes is fixed."""
        return check_memory(program)

    def view(self, program: NpuProgram) -> ProgramView:
        """Take a program apart to look at it."""
        return view(program)


ETHOS_N = EthosNPrograms()


def container_operator(model: Model, operator: Operator) -> ContainerOperator:
    """Take an NPU operator of the main subgraph apart that has a container. E120 if it has none."""
    inputs = model.main.present(operator.inputs)
    container, capabilities = (inputs[0].data, inputs[1].data) if len(inputs) > 1 else (None, None)
    if container is None or capabilities is None:
        message = "an NPU operator's first two inputs must be constants: container, capabilities"
        raise fail(
            "E120",
            message,
            origin=model.origin(operator),
            rule="Vela 5.2, tflite_writer.py",
            help="the artifact is damaged; compile it again",
        )
    outputs = model.main.present(operator.outputs)
    return ContainerOperator(container, capabilities, inputs[2:], outputs)


def _tensor(tensor: Tensor) -> ProgramTensor:
    return ProgramTensor(tensor.name, tensor.shape, tensor.dtype or np.dtype(np.uint8))
