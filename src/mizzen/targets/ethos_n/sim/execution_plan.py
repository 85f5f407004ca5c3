"""From a program to passes that are ready to run: everything is checked here, once.

Commands execute in stream order; the waits between them order what the hardware overlaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic
from mizzen.isa import Instruction
from mizzen.targets.ethos_n.commands import decode_instructions
from mizzen.targets.ethos_n.commands_values import (
    Cascade,
    Command,
    Convert,
    Delay,
    DumpDram,
    DumpSram,
    Fence,
    Location,
    MceOperation,
    McePle,
    PleOnly,
    PleRecord,
    Section,
    SpaceToDepth,
    TensorRecord,
)
from mizzen.targets.ethos_n.program import Program, StripePlace
from mizzen.targets.ethos_n.sim.dram import DTYPES, DramTracker, Memory, flattened
from mizzen.targets.ethos_n.sim.geometry import Port, Where
from mizzen.targets.ethos_n.sim.inferred import inferred
from mizzen.targets.ethos_n.sim.mce import MceStage, check_weights, geometry_of, prepare
from mizzen.targets.ethos_n.sim.ple import KERNELS, PleKernel, PleSettings
from mizzen.targets.ethos_n.sim.sram import SramTracker
from mizzen.targets.ethos_n.sim.weight_decoding import DecodedWeights, decode
from mizzen.targets.ethos_n.weights.weight_format import WeightLayout

Array = npt.NDArray[Any]
Run = Callable[[Memory], None]
WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """The passes of a program in order, and notes on what of them is inferred.

    needed   bytes of each input buffer, from its start, that the passes may read
    weights  what weight streams say, by the byte offset of their command
    """

    runs: tuple[Run, ...]
    needed: Mapping[int, int]
    weights: Mapping[int, DecodedWeights]
    diagnostics: tuple[Diagnostic, ...]


def plan(program: Program) -> Plan:
    """Check and prepare every command of a program; E950 to E968 with its place for a fault."""
    planner = _Planner(program)
    runs: list[Run] = []
    notes: dict[str, Diagnostic] = {}
    instructions = decode_instructions(program.stream)
    for number, (command, instruction) in enumerate(
        zip(program.commands, instructions, strict=True)
    ):
        where = _where(number, instruction)
        runs += planner.command(where, command)
        for note in inferred(where, command):
            notes.setdefault(note.code, note)
    planner.dram.require_outputs()
    return Plan(tuple(runs), planner.dram.needed, planner.weights, tuple(notes.values()))


def _where(number: int, instruction: Instruction) -> Where:
    return Where(number, instruction.name, instruction.offset_words)


class _Planner:
    """Follows memory through a stream and prepares its commands."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._capabilities = program.capabilities
        self.dram = DramTracker(program)
        self._sram = SramTracker(program.capabilities)
        self.weights: dict[int, DecodedWeights] = {}

    def command(self, where: Where, command: Command) -> list[Run]:
        """Prepare one command; nothing to run for what only orders or dumps."""
        match command:
            case McePle():
                return [self._mce_ple(where, command)]
            case PleOnly():
                return [self._ple_only(where, command)]
            case Convert():
                return [self._convert(where, command)]
            case SpaceToDepth():
                return [self._space_to_depth(where, command)]
            case Fence() | Section() | Delay() | DumpDram() | DumpSram() | Cascade():
                return []

    def _mce_ple(self, where: Where, command: McePle) -> Run:
        source, output = Port(where, "input", command.input), Port(where, "output", command.output)
        stripes = self._program.weight_stripes(command)
        largest = max((stripe.size for stripe in stripes), default=0)
        spans = [
            self._sram.check_source(source),
            self._sram.check_output(output),
            self._sram.check_weights(Port(where, "weights", command.weights), largest),
            self._sram.kernel_span(command.ple),
        ]
        if command.mce.operation is MceOperation.FULLY_CONNECTED and _in_dram(command.input):
            self.dram.read_bytes(source, command.mce.uninterleaved_input_shape[3])
        else:
            self._read(source)
        self._write(output)
        kernel = self._kernel(where, command.ple, from_mce=True)
        self._check_extents(output, kernel, command.mce.output_shape)
        stage, load = self._stage(where, command, stripes), _loader(command)
        self._sram.run(where, [source], output, spans)
        zero_points = (command.mce.output_zero_point,)
        bound = kernel.bind(self._settings(command.ple, zero_points, command.output))

        def run(memory: Memory) -> None:
            memory.store(command.output, bound(stage.run(load(memory))))

        return run

    def _stage(self, where: Where, command: McePle, stripes: tuple[StripePlace, ...]) -> MceStage:
        geometry = geometry_of(where, command, self._capabilities)
        check_weights(where, command)
        data = self._program.constant(command.weights.dram_buffer_id)
        decoded = decode(data, stripes, WeightLayout.of(command), self._capabilities)
        self.weights[WORD_BYTES * where.offset_words] = decoded
        return prepare(where, command, decoded, geometry)

    def _settings(
        self, ple: PleRecord, zero_points: tuple[int, ...], output: TensorRecord
    ) -> PleSettings:
        dtype = DTYPES[output.data_type]
        return PleSettings(ple, zero_points, output.zero_point, dtype, self._capabilities.srams)

    def _ple_only(self, where: Where, command: PleOnly) -> Run:
        kernel = self._kernel(where, command.ple, from_mce=False)
        if command.input_count != kernel.inputs:
            raise where.fault(
                "E964", f"{command.ple.operation.name} must have {kernel.inputs} inputs, not "
                f"{command.input_count}"
            )  # fmt: skip
        records = [command.input0, command.input1][: kernel.inputs]
        sources = [Port(where, f"input {at}", record) for at, record in enumerate(records)]
        output = Port(where, "output", command.output)
        spans = [self._sram.check_source(source) for source in sources]
        spans += [self._sram.check_output(output), self._sram.kernel_span(command.ple)]
        for source in sources:
            self._read(source)
            self._check_like(source, command.output)
        self._write(output)
        self._check_extents(output, kernel, command.input0.shape)
        self._sram.run(where, sources, output, spans)
        zero_points = tuple(record.zero_point for record in records)
        bound = kernel.bind(self._settings(command.ple, zero_points, command.output))

        def run(memory: Memory) -> None:
            memory.store(command.output, bound(*(memory.load(record) for record in records)))

        return run

    def _convert(self, where: Where, command: Convert) -> Run:
        source, output = Port(where, "input", command.input), Port(where, "output", command.output)
        self._move(where, source, output)
        given, made = command.input.shape, command.output.shape
        # Within SRAM, where everything lies in bricks, a new shape moves the elements.
        is_reshaped = _in_sram(command.input) and _in_sram(command.output)
        if math.prod(given) != math.prod(made) if is_reshaped else given != made:
            wanted = "as many elements as" if is_reshaped else "the extents of"
            raise output.fault("E960", f"must have {wanted} the input, {given}, not {made}")

        def run(memory: Memory) -> None:
            values = memory.load(command.input)
            memory.store(command.output, np.array(values).reshape(len(values), *made[1:]))

        return run

    def _space_to_depth(self, where: Where, command: SpaceToDepth) -> Run:
        source, output = Port(where, "input", command.input), Port(where, "output", command.output)
        self._move(where, source, output)
        (_, height, width, depth), shape = command.input.shape, command.output.shape
        block = height // shape[1] if shape[1] else 0
        if block < 1 or shape != (1, height // block, width // block, depth * block * block):
            raise output.fault("E960", f"must be blocks of {command.input.shape}, not {shape}")

        def run(memory: Memory) -> None:
            values = memory.load(command.input)
            cut = values.reshape(len(values), shape[1], block, shape[2], block, depth)
            moved = cut.transpose(0, 1, 3, 2, 4, 5).reshape(len(values), *shape[1:])
            memory.store(command.output, moved)

        return run

    def _move(self, where: Where, source: Port, output: Port) -> None:
        """Check a copy through SRAM; both ends may have the same tile."""
        is_inside = _in_sram(source.record) and _in_sram(output.record)
        check = self._sram.check_moved if is_inside else self._sram.check_source
        spans = [self._sram.check_output(output), check(source)]
        if spans[0].start == spans[1].start and spans[0].stop == spans[1].stop:
            spans = spans[:1]
        self._read(source)
        self._write(output)
        self._check_like(source, output.record)
        self._sram.run(where, [source], output, spans)

    def _read(self, port: Port) -> None:
        if _in_dram(port.record):
            self.dram.read(port)

    def _write(self, port: Port) -> None:
        if _in_dram(port.record):
            self.dram.write(port)

    def _kernel(self, where: Where, ple: PleRecord, *, from_mce: bool) -> PleKernel:
        kernel = KERNELS.get(ple.operation)
        if kernel is None or kernel.from_mce is not from_mce:
            names = [
                operation.name for operation, value in KERNELS.items() if value.from_mce is from_mce
            ]
            raise where.fault(
                "E964", f"the kernel must be one of {', '.join(names)}, not {ple.operation.name}"
            )
        return kernel

    def _check_extents(self, output: Port, kernel: PleKernel, made: Sequence[int]) -> None:
        """E960 unless the output has the extents that the kernel makes."""
        _, height, width, depth = made
        if kernel.sides and (height, width) != kernel.sides * 2:
            raise output.fault(
                "E960", f"must be the mean of planes of {kernel.sides[0]} x {kernel.sides[0]}, not "
                f"of {height} x {width}"
            )  # fmt: skip
        wanted = (1, *kernel.extents((height, width, depth), self._capabilities.srams))
        if output.record.shape != wanted or 0 in wanted:
            raise output.fault(
                "E960", f"must have the extents that the kernel makes, {wanted}, not "
                f"{output.record.shape}"
            )  # fmt: skip

    def _check_like(self, source: Port, output: TensorRecord) -> None:
        if source.record.data_type is not output.data_type:
            raise source.fault(
                "E963", f"must have the output's type, {output.data_type.name}, not "
                f"{source.record.data_type.name}"
            )  # fmt: skip


def _in_dram(record: TensorRecord) -> bool:
    return record.location is Location.DRAM


def _in_sram(record: TensorRecord) -> bool:
    return record.location is Location.SRAM


def _loader(command: McePle) -> Callable[[Memory], Array]:
    """Return the input's loader; for FULLY_CONNECTED of its bytes in order, `[n, 1, 1, C]`."""
    record = command.input
    if command.mce.operation is not MceOperation.FULLY_CONNECTED:
        return lambda memory: memory.load(record)
    count, dtype = command.mce.uninterleaved_input_shape[3], DTYPES[record.data_type]

    def load(memory: Memory) -> Array:
        if _in_dram(record):
            flat = np.ascontiguousarray(memory.bytes(record.dram_buffer_id)[:, :count]).view(dtype)
        else:
            flat = flattened(memory.load(record), count)
        return flat.reshape(memory.batch, 1, 1, count)

    return load
