"""Ethos-U programs: what Vela puts into a custom operator, executed and looked at.

Inputs of an operator are the driver payload, the read-only data, the scratch memory, the fast
scratch memory, then its real inputs and state; the real ones lie inside the scratch memory, where
the network's metadata says. Shapes are inputs too where a network computes or takes them. Commands
hold what they say, as shapes are static, and they lie nowhere.

Where a stream has regions of their own for inputs and outputs, each of the two regions is a memory
of its own here, as for drivers that map regions to buffers. The metadata's offsets then count
within it.

Ref: Vela 5.2, `tflite_writer.py`; TFLite Micro, `ethosu.cc`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.arena import Block, Span
from mizzen.artifact.interface import Origins, variable_of
from mizzen.artifact.program import (
    CompiledPart,
    HazardReport,
    MappedTensor,
    MemoryRegion,
    NpuFamily,
    ProgramView,
    Staged,
    Surroundings,
    TracedOperation,
)
from mizzen.diagnostics import Diagnostic, MizzenError, Severity, fail
from mizzen.flatbuffer.memory_plan import (
    ALLOCATION,
    HEAD_WORDS,
    NOT_IN_ARENA,
    Offsets,
    split_plan,
)
from mizzen.frontends.tflite import Model, Operator, Tensor
from mizzen.frontends.tflite.model import ABSENT
from mizzen.isa import Kind
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.base_pointers import (
    INPUTS_REGION,
    OUTPUTS_REGION,
    addressed_regions,
    base_pointers,
    require_memory,
    with_regions_of,
)
from mizzen.targets.ethos_u.machine.listing import ProgramListing, list_program
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex, TensorAddress
from mizzen.targets.families import ETHOS_U as FAMILY

if TYPE_CHECKING:
    from mizzen.targets.ethos_u.judge.sim import Simulator
    from mizzen.targets.ethos_u.judge.sim.watch import Watch

MEMORY_INPUTS = FAMILY.memory_inputs

STOP_WORD = 0xFFFF0000
"""OP_STOP, whose interrupt has every bit."""

_PAYLOAD, _READ_ONLY, _SCRATCH, _SCRATCH_FAST = range(4)
_RULE = "Vela 5.2, tflite_writer.py"


@dataclass(frozen=True, slots=True, eq=False)
class NpuTensor:
    """A real input or output, and its byte offset from the scratch memory's start."""

    tensor: Tensor
    offset_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class NpuOperator:
    """An NPU operator's parts; `scratch_fast_bytes` is None where it shares the scratch memory.

    scratch_offset_bytes  where the scratch memory starts in the arena
    """

    payload: npt.NDArray[np.uint8]
    read_only: npt.NDArray[np.uint8]
    scratch_offset_bytes: int
    scratch_bytes: int
    scratch_fast_bytes: int | None
    inputs: tuple[NpuTensor, ...]
    outputs: tuple[NpuTensor, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WatchedStream:
    """A simulator, and what watches it."""

    simulator: Simulator
    watch: Watch

    @property
    def maps(self) -> dict[int, npt.NDArray[Any]]:
        """Feature maps ``[batch, H, W, C]`` by byte offset of the command that wrote them."""
        return self.watch.maps


class EthosUPrograms(NpuFamily):
    """Ethos-U."""

    def read(self, model: Model, operator: Operator, origins: Origins) -> CompiledPart:
        """Return the program in Vela's custom operator. E12x, E52x if it is damaged."""
        parts = npu_operator(model, operator)
        together = _program(model, parts, origins)
        apart = has_own_regions(together)
        if apart and any(place.tensor.variable for place in parts.inputs):
            raise _state_apart(model, operator)
        return CompiledPart(
            _with_own_regions(together) if apart else together,
            tuple(place.tensor.index for place in parts.inputs),
            tuple(place.tensor.index for place in parts.outputs),
            tuple(variable_of(place.tensor) for place in parts.inputs if place.tensor.variable),
            {} if apart else dict(_shared(parts)),
            (_own_regions_note(model, operator),) if apart else (),
        )

    def arena_offsets(self, model: Model) -> dict[int, int]:
        """Return the byte offset of each tensor in the arena, as the network's metadata says."""
        operator = next(each for each in model.main.operators if each.kind == FAMILY.code)
        offsets = _offsets(model, operator)
        if min(offsets) < NOT_IN_ARENA:
            message = f"{ALLOCATION} must give offsets of at least {NOT_IN_ARENA}, not"
            raise _wrong(model, operator, "E121", f"{message} {min(offsets)}")
        return {index: offset for index, offset in enumerate(offsets) if offset != NOT_IN_ARENA}

    def accelerator_of(self, program: Program) -> str:
        """Name the accelerator that the driver payload is for."""
        return driver.configuration(program.hardware).accelerator

    def simulator(self, program: Program) -> Simulator:
        """Plan a program's execution."""
        from mizzen.targets.ethos_u.judge.sim import Simulator

        return Simulator(program)

    def seconds(self, simulator: Simulator) -> float:
        """Return about how long a host takes for one inference."""
        return simulator.plan.seconds

    def staged(self, simulator: Simulator) -> Staged:
        """Return the weights that transfers leave in memory."""
        return simulator.plan.staged

    def finding(self, program: Program, staged: Staged) -> Program:
        """Return a program that finds weights in memory."""
        return replace(program, staged=staged)

    def watched(self, simulator: Simulator, offsets_bytes: Collection[int]) -> WatchedStream:
        """Return a simulator of the same plan that shows what some commands write."""
        from mizzen.targets.ethos_u.judge.sim.watch import Watch

        watch = Watch(offsets_bytes)
        return WatchedStream(simulator.watched(watch), watch)

    def constants(self, simulator: Simulator) -> dict[int, dict[str, npt.NDArray[Any]]]:
        """Return weights, biases, scales and tables, decoded, and settings."""
        from mizzen.targets.ethos_u.judge.sim.constants import constants_of

        return constants_of(simulator.program, simulator.plan)

    can_trace = True

    def traced(self, simulator: Simulator) -> Iterator[TracedOperation]:
        """Yield operations with who made what they take, the end of the program last."""
        from mizzen.artifact.ethos_u_trace import traced

        return traced(simulator.program, simulator.plan)

    def constant_regions(self, program: Program) -> dict[int, npt.NDArray[Any]]:
        """Return the bytes of regions that hold constants."""
        return dict(program.constants)

    def before(self, program: Program, offset_bytes: int) -> Program:
        """Return a program that stops where a command was."""
        words = program.words[: offset_bytes // 4]
        return replace(program, words=np.append(words, np.uint32(STOP_WORD)))

    def hazards(self, program: Program, around: Surroundings | None = None) -> HazardReport:
        """Find accesses that no wait and no block dependency orders."""
        from mizzen.targets.ethos_u.judge import hazards

        if around is None:
            return hazards.find_hazards(program)
        surroundings = hazards.Surroundings(around.held, around.final, around.kept)
        return hazards.find_hazards(program, surroundings)

    def view(self, program: Program) -> ProgramView:
        """Take a program apart to look at it."""
        listing = list_program(program)
        return ProgramView(
            hardware=_hardware(program),
            stream_bytes=program.words.nbytes,
            commands=len(listing.lines),
            operations=_operations(listing),
            regions=tuple(_regions(program)),
            tensors=tuple(_tensors(program)),
            listing=listing,
        )


ETHOS_U = EthosUPrograms()


def npu_operator(model: Model, operator: Operator) -> NpuOperator:
    """Take an NPU operator of the main subgraph apart.

    E120 for an operator of another form, E121 where the network does not say, or not correctly,
    where tensors lie.
    """
    if len(operator.inputs) < MEMORY_INPUTS or ABSENT in operator.inputs:
        message = f"an NPU operator must have {MEMORY_INPUTS} inputs and its real ones, not"
        raise _wrong(model, operator, "E120", f"{message} {list(operator.inputs)}")
    inputs = model.main.present(operator.inputs)
    payload = inputs[_PAYLOAD].data
    if payload is None:
        raise _wrong(model, operator, "E120", "an NPU operator's payload must be a constant")
    read_only = inputs[_READ_ONLY].data
    separate = operator.inputs[_SCRATCH_FAST] != operator.inputs[_SCRATCH]
    return NpuOperator(
        payload=payload,
        read_only=np.zeros(0, np.uint8) if read_only is None else read_only,
        scratch_offset_bytes=_offsets(model, operator)[operator.inputs[_SCRATCH]],
        scratch_bytes=inputs[_SCRATCH].size_bytes or 0,
        scratch_fast_bytes=inputs[_SCRATCH_FAST].size_bytes or 0 if separate else None,
        inputs=_places(model, operator, _moved(model, operator, inputs[MEMORY_INPUTS:])),
        outputs=_places(model, operator, model.main.present(operator.outputs)),
    )


def _shared(parts: NpuOperator) -> Iterator[tuple[int, Span]]:
    """Return where the regions lie that the NPU writes to.

    A driver gives all operators the same fast memory.
    """
    start = max(parts.scratch_offset_bytes, 0)
    yield int(RegionIndex.SCRATCH), Span(Block.ARENA, start, parts.scratch_bytes)
    if parts.scratch_fast_bytes is not None:
        yield int(RegionIndex.SCRATCH_FAST), Span(Block.FAST, 0, parts.scratch_fast_bytes)


def _moved(model: Model, operator: Operator, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the inputs that the NPU reads: all but shapes outside the arena."""
    offsets = _offsets(model, operator)
    return tuple(
        tensor
        for tensor in inputs
        if offsets[tensor.index] != NOT_IN_ARENA or not _may_be_shape(tensor)
    )


def _may_be_shape(tensor: Tensor) -> bool:
    return tensor.dtype == np.int32 and len(tensor.shape) == 1


def _places(model: Model, operator: Operator, tensors: tuple[Tensor, ...]) -> tuple[NpuTensor, ...]:
    offsets = _offsets(model, operator)
    start = offsets[operator.inputs[_SCRATCH]]
    places: list[NpuTensor] = []
    for tensor in tensors:
        offset = offsets[tensor.index]
        if NOT_IN_ARENA in (offset, start) or offset < start:
            raise _wrong(
                model,
                operator,
                "E121",
                f'tensor {tensor.index} "{tensor.name}" must lie after the start of the scratch '
                f"memory, but {ALLOCATION} gives {offset} and {start}",
            )
        places.append(NpuTensor(tensor, offset - start))
    return tuple(places)


def _offsets(model: Model, operator: Operator) -> Offsets:
    """Return the offset of each tensor of the main subgraph."""
    contents = model.metadata.get(ALLOCATION)
    if contents is None:
        message = f"an artifact must have metadata {ALLOCATION}, and has none"
        raise _wrong(model, operator, "E121", message)
    counts = [len(subgraph.tensors) for subgraph in model.subgraphs]
    plan = split_plan(contents, counts)
    if plan is None:
        message = f"{ALLOCATION} must have an offset for each of {sum(counts)} tensors"
        there = max(0, contents.nbytes // 4 - HEAD_WORDS)
        raise _wrong(model, operator, "E121", f"{message}, and has {there}")
    return plan[0]


def _wrong(model: Model, operator: Operator, code: str, message: str) -> MizzenError:
    return fail(code, message, origin=model.origin(operator), rule=_RULE,
                help="the artifact is damaged; compile it again")  # fmt: skip


def _program(model: Model, parts: NpuOperator, origins: Origins) -> Program:
    payload = driver.parse(parts.payload)
    sizes = {
        RegionIndex.READ_ONLY: parts.read_only.nbytes,
        RegionIndex.SCRATCH: parts.scratch_bytes,
    }
    if parts.scratch_fast_bytes is not None:
        sizes[RegionIndex.SCRATCH_FAST] = parts.scratch_fast_bytes
    inputs, outputs = (
        tuple(_placement(place.tensor, place.offset_bytes) for place in places)
        for places in (parts.inputs, parts.outputs)
    )
    return Program(
        words=payload.words,
        hardware=payload.hardware,
        region_bytes={int(region): size for region, size in sizes.items()},
        constants={int(RegionIndex.READ_ONLY): parts.read_only},
        inputs=inputs,
        outputs=outputs,
        name=model.name,
        origins=origins,
        form=payload.form,
    )


def has_own_regions(program: Program) -> bool:
    """Whether a stream has regions of their own for inputs and outputs.

    One that cannot be read to its end has none: that is told where it is run.
    """
    try:
        addressed = addressed_regions(program.instructions)
    except MizzenError:
        return False
    return INPUTS_REGION in addressed or OUTPUTS_REGION in addressed


def _with_own_regions(program: Program) -> Program:
    """Return a program whose inputs and outputs lie in regions of their own."""
    inputs, outputs = (
        tuple(replace(each, region=region) for each in places)
        for region, places in (
            (INPUTS_REGION, program.inputs), (OUTPUTS_REGION, program.outputs),
        )
    )  # fmt: skip
    sizes = with_regions_of((*inputs, *outputs), program.region_bytes)
    moved = replace(program, inputs=inputs, outputs=outputs, region_bytes=sizes)
    require_memory(moved)
    return moved


def _state_apart(model: Model, operator: Operator) -> MizzenError:
    return fail(
        "E125",
        f"state must lie in one place, and this stream reads it from region {INPUTS_REGION}, with "
        f"the inputs, and writes it to region {RegionIndex.SCRATCH}: nothing carries it over",
        origin=model.origin(operator),
        rule="Vela 5.2, --separate-io-regions",
        help="compile a network with variables without --separate-io-regions",
    )


def _own_regions_note(model: Model, operator: Operator) -> Diagnostic:
    return Diagnostic(
        "W694",
        f"inputs and outputs have regions of their own, {INPUTS_REGION} and {OUTPUTS_REGION}, and "
        f"a runtime must give each a buffer: in an arena planned by {ALLOCATION}, TensorFlow Lite "
        "Micro's, they share bytes with others",
        Severity.WARNING,
        model.origin(operator),
        help="for TensorFlow Lite Micro compile it without --separate-io-regions",
    )


def _placement(tensor: Tensor, offset_bytes: int) -> TensorAddress:
    dtype = tensor.dtype or np.dtype(np.uint8)
    region = int(RegionIndex.SCRATCH)
    return TensorAddress(tensor.name, tensor.shape, dtype, region, offset_bytes, tensor.variable)


def _operations(listing: ProgramListing) -> dict[str, int]:
    """Count the operation commands by name, those that occur most first."""
    names = [line.name for line in listing.lines if line.kind is Kind.OPERATION]
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _hardware(program: Program) -> str:
    hardware = driver.configuration(program.hardware)
    version = ".".join(str(number) for number in hardware.arch_version)
    buffer = "" if hardware.shram_kib is None else f", {hardware.shram_kib} KiB shared buffer"
    return f"{hardware.accelerator}, architecture {version}{buffer}"


def _regions(program: Program) -> Iterator[MemoryRegion]:
    roles = dict(enumerate(base_pointers(0, 0)))
    roles |= {place.region: "inputs" for place in program.inputs if place.region not in roles}
    roles |= {place.region: "outputs" for place in program.outputs if place.region not in roles}
    for region, held in sorted(program.region_bytes.items()):
        yield MemoryRegion(region, roles.get(region, "-"), held)


def _tensors(program: Program) -> list[MappedTensor]:
    """Return the tensors that the operator takes and gives, by address."""
    inputs = [("state" if place.variable else "input", place) for place in program.inputs]
    places = [*inputs, *(("output", place) for place in program.outputs)]
    return [
        MappedTensor(
            place.name, role, place.region, place.offset, place.size_bytes, place.shape,
            str(place.dtype),
        )
        for role, place in sorted(places, key=lambda pair: (pair[1].region, pair[1].offset))
    ]  # fmt: skip
