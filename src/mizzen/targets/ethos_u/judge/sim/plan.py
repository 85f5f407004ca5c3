"""From a program to kernels: decode, resolve, check every access, decode every constant."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic, MizzenError, Origin, Severity, fail
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.codec import decoding
from mizzen.targets.ethos_u.judge.sim import (
    convolution_kernel,
    fast_weights,
    matrix_kernel,
    scales,
)
from mizzen.targets.ethos_u.judge.sim.dma_kernel import DmaKernel, transfers
from mizzen.targets.ethos_u.judge.sim.elementwise_kernel import ElementwiseKernel
from mizzen.targets.ethos_u.judge.sim.hardware import Hardware
from mizzen.targets.ethos_u.judge.sim.inferred import BRANCH, WRITTEN_WEIGHTS, inferred, note
from mizzen.targets.ethos_u.judge.sim.matrix_kernel import MatrixProductKernel
from mizzen.targets.ethos_u.judge.sim.memory import KnownBytes, Layout, Memory, Run, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import (
    FIRST_CHAIN,
    INTERNAL,
    AccumulatorInput,
    Convolution,
    Dma,
    DmaEnd,
    Elementwise,
    FeatureMap,
    MatrixProduct,
    Operation,
    Output,
    Pooling,
    Resize,
    Space,
    Stream,
    Where,
)
from mizzen.targets.ethos_u.judge.sim.pooling_kernel import PoolingKernel
from mizzen.targets.ethos_u.judge.sim.registers import Registers, name_of
from mizzen.targets.ethos_u.judge.sim.registers_u55 import RegistersU55
from mizzen.targets.ethos_u.judge.sim.registers_u85 import RegistersU85
from mizzen.targets.ethos_u.judge.sim.resize_kernel import ResizeKernel
from mizzen.targets.ethos_u.judge.sim.weights import Weights
from mizzen.targets.ethos_u.judge.sim.work import require_sense
from mizzen.targets.ethos_u.judge.sim.written_weights import WrittenWeightsKernel
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.program import Program, StagedRun

Bytes = npt.NDArray[np.uint8]

REGISTERS: dict[Arch, type[Registers]] = {
    Arch.U55: RegistersU55,
    Arch.U65: RegistersU55,
    Arch.U85: RegistersU85,
}
LARGEST_MAP_BYTES = 1 << 30


Computation = Convolution | MatrixProduct | Pooling | Elementwise | Resize


class Executable(Protocol):
    """An operation with everything it needs but memory."""

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of the stream and its kernel."""

    operation: Operation
    kernel: Executable


@dataclass(slots=True, eq=False)
class _PendingKernel:
    """A convolution before its weights are decoded; all streams are decoded together."""

    operation: Convolution
    streams: tuple[bytes, ...]
    scales: scales.ChannelScales
    table: Bytes | None
    kernel: Executable | None = None

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Bind the kernel that the weights made."""
        assert self.kernel is not None
        return self.kernel.bind(memory, workspace)


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """What the constants of a convolution say: weights `[O, H, W, I]`, zero point taken off."""

    weights: Weights
    scales: scales.ChannelScales


@dataclass(slots=True)
class Plan:
    """A program's steps in order, and what there is to say about it."""

    steps: list[Step] = field(default_factory=list[Step])
    loads: list[Dma] = field(default_factory=list[Dma])
    """Transfers into the NPU's own memory, which are no steps: what takes a table has it."""
    encoded: dict[int, Encoded] = field(default_factory=dict[int, Encoded])
    """Constants of convolutions, by the byte offset of their command in the stream."""
    tables: dict[int, Bytes] = field(default_factory=dict[int, Bytes])
    """Tables of activation functions, likewise."""
    chain_bytes: dict[int, int] = field(default_factory=dict[int, int])
    """Size of each chain buffer, by its region."""
    used_bytes: dict[int, int] = field(default_factory=dict[int, int])
    """Up to where commands access each region; a program may declare far more."""
    staged: dict[int, list[StagedRun]] = field(default_factory=dict[int, list[StagedRun]])
    """Constants that lie in memory when all is done, by region."""
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    seconds: float = 0.0
    """About how long a host takes for one inference."""


def plan(program: Program, hardware: Hardware) -> Plan:
    """Plan a program's stream; E6xx for whatever could not be executed exactly."""
    return _Planner(program, hardware).plan(program.instructions)


class _Planner:
    def __init__(self, program: Program, hardware: Hardware) -> None:
        self._program = program
        self._known_origins = sorted(program.origins)
        self._hardware = hardware
        sizes = dict(program.region_bytes)
        for region, data in program.constants.items():
            sizes[region] = len(data)
        self._layout = Layout(sizes, frozenset(program.constants))
        shared = {**sizes, INTERNAL: hardware.internal_bytes}
        self._known = KnownBytes(shared, program.constants)
        self._moved_to = set(program.staged)
        for region, runs in program.staged.items():
            for offset, data in runs:
                self._known.write(region, offset, data)
        self._shared = Layout(shared, frozenset())
        self._convolutions: list[_PendingKernel] = []
        self._chains: dict[int, FeatureMap] = {}
        self._result = Plan()

    def plan(self, instructions: Sequence[Instruction]) -> Plan:
        """Resolve a decoded stream up to its OP_STOP. E612 for a stream without one."""
        registers = REGISTERS[self._hardware.arch](self._hardware)
        places = {item.offset_words: index for index, item in enumerate(instructions)}
        index = 0
        while index < len(instructions):
            instruction = instructions[index]
            index += 1
            if instruction.name == "OP_STOP":
                self._decode_weights()
                self._result.used_bytes = self._layout.used
                self._result.staged = self._staged()
                return self._result
            if instruction.name == "OP_BRANCH":
                index = self._branch(instruction, index, places)
            elif not instruction.name.startswith("OP_"):
                registers.write(instruction)
            elif operation := registers.operation(instruction, self._where(instruction)):
                self._add(operation)
        raise fail(
            "E612",
            "a command stream must end with OP_STOP, and this one does not",
            help="the command stream is damaged; compile it again",
        )

    def _staged(self) -> dict[int, list[StagedRun]]:
        used = {region: self._layout.used.get(region, 0) for region in self._moved_to}
        for region, runs in self._program.staged.items():
            used[region] = max([used[region], *(offset + len(data) for offset, data in runs)])
        return {region: list(self._known.runs(region, end)) for region, end in used.items()}

    def _add(self, operation: Operation) -> None:
        self._result.seconds += require_sense(operation).seconds
        if kernel := self._kernel(operation):
            self._result.steps.append(Step(operation, kernel))
        for diagnostic in inferred(operation, self._hardware.arch):
            self._say(diagnostic)

    def _say(self, diagnostic: Diagnostic) -> None:
        """Say the same only once."""
        if all(known.code != diagnostic.code for known in self._result.diagnostics):
            self._result.diagnostics.append(diagnostic)

    def _branch(self, instruction: Instruction, following: int, places: dict[int, int]) -> int:
        """Return the place of the next command: forward, or the plan would have no end."""
        where = self._where(instruction)
        condition, target = instruction.values["branch_cond"], instruction.values["branch_target"]
        next_ = places.get(int(target) // 4, -1) if int(target) % 4 == 0 else -1
        if name_of(condition) != "ALWAYS" or next_ < following:
            raise fail(
                "E614",
                f"{where.name}: a branch must be taken always and go forward to a command, not "
                f"{name_of(condition)} to byte {int(target)}; what sets conditions is not known",
                origin=where.origin,
            )
        self._say(note(BRANCH, where))
        return next_

    def _where(self, instruction: Instruction) -> Where:
        offset = instruction.offset_words
        return Where(instruction.name, replace(self._origin(4 * offset), command=offset))

    def _origin(self, offset_bytes: int) -> Origin:
        """Return where a command comes from; a transfer without an origin serves what follows."""
        place = bisect_left(self._known_origins, offset_bytes)
        if place == len(self._known_origins):
            return Origin()
        return self._program.origins[self._known_origins[place]]

    def _kernel(self, operation: Operation) -> Executable | None:
        try:
            if isinstance(operation, Convolution | Pooling | MatrixProduct):
                self._check_accumulators(operation)
            match operation:
                case Convolution():
                    return self._convolution(operation)
                case Pooling():
                    self._check_maps(operation.output, operation.ifm, where=operation.where)
                    records = self._scales(operation) if operation.scales else None
                    return PoolingKernel(operation, self._finish(operation), records)
                case Elementwise():
                    self._check_maps(operation.output, *operation.maps, where=operation.where)
                    return ElementwiseKernel(operation, self._finish(operation))
                case MatrixProduct():
                    matrix_kernel.check(operation)
                    maps = operation.ifm, operation.weights
                    self._check_maps(operation.output, *maps, where=operation.where)
                    return MatrixProductKernel(operation, self._finish(operation))
                case Resize():
                    self._check_maps(operation.output, operation.ifm, where=operation.where)
                    return ResizeKernel(operation, self._finish(operation))
                case Dma():
                    return self._dma(operation)
        except MizzenError as error:
            raise _at(error, operation.where) from None

    def _check_accumulators(self, operation: Convolution | Pooling | MatrixProduct) -> None:
        """What accumulators keep is what the operation just before left there."""
        accumulators, where = operation.accumulators, operation.where
        if accumulators.map is not None:
            self._check_maps(operation.output, accumulators.map, where=where)
        last = self._result.steps[-1].operation if self._result.steps else None
        if accumulators.initial is not AccumulatorInput.KEPT:
            return
        if not (
            isinstance(last, Convolution | Pooling)
            and not last.accumulators.written
            and last.output.shape == operation.output.shape
        ):
            raise fail(
                "E615",
                f"{where.name}: accumulators must be left by the operation before, for an output "
                f"of {operation.output.shape}, and are not",
                origin=where.origin,
                help="the command stream is damaged; compile it again",
            )

    def _check_maps(self, output: Output, *inputs: FeatureMap, where: Where) -> None:
        for fm in (*inputs, output.fm):
            size = fm.height * fm.width * fm.depth * fm.dtype.itemsize
            if size > LARGEST_MAP_BYTES:
                raise fail(
                    "E613",
                    f"{where.name}: a feature map must have at most {LARGEST_MAP_BYTES} bytes, "
                    f"not {size}",
                    origin=where.origin,
                    help="the command stream is damaged; compile it again",
                )
        for fm in inputs:
            if fm.region <= FIRST_CHAIN:
                self._check_chain(fm, where)
            else:
                self._layout.check_map(fm, where)
        if output.fm.region > FIRST_CHAIN:
            self._layout.check_map(output.fm, where, written=True)

    def _check_chain(self, fm: FeatureMap, where: Where) -> None:
        written = self._chains.get(fm.region)
        if written is None or (written.shape, written.dtype) != (fm.shape, fm.dtype):
            held = f"{written.shape} of {written.dtype}" if written else "nothing"
            raise fail(
                "E615",
                f"{where.name}: chain buffer {FIRST_CHAIN - fm.region} must hold a map {fm.shape} "
                f"of {fm.dtype}, and holds {held}",
                origin=where.origin,
                help="the command stream is damaged; compile it again",
            )

    def _finish(self, operation: Computation) -> Bytes | None:
        """Note what the operation writes, and fetch its table if it has one."""
        table = self._table(operation)
        fm = operation.output.fm
        if fm.region > FIRST_CHAIN:
            self._known.forget_map(fm)
        else:
            self._chains[fm.region] = fm
            sizes = self._result.chain_bytes
            size = fm.height * fm.stride_y
            sizes[fm.region] = max(sizes.get(fm.region, 0), size)
        return table

    def _table(self, operation: Computation) -> Bytes | None:
        stream = operation.output.activation.table
        if stream is None:
            return None
        table = self._constant(stream, "lookup table", operation.where, self._shared)
        self._result.tables[4 * (operation.where.origin.command or 0)] = table
        return table

    def _constant(self, stream: Stream, what: str, where: Where, layout: Layout) -> Bytes:
        layout.check_range(stream.region, stream.offset, stream.length, where)
        data = self._known.read(stream.region, stream.offset, stream.length)
        if data is None:
            raise fail(
                "E633",
                f"{where.name}: the {what} must come from constants, by DMA or directly; bytes "
                f"{stream.offset}..{stream.offset + stream.length} of {_region(stream.region)} "
                "do not",
                origin=where.origin,
                help="a transfer is missing before this operation, or was overwritten",
            )
        return data.copy()

    def _convolution(self, op: Convolution) -> Executable:
        self._check_maps(op.output, op.ifm, where=op.where)
        if self._has_written_weights(op):
            self._say(note(WRITTEN_WEIGHTS, op.where))
            return WrittenWeightsKernel(op, self._scales(op), self._finish(op))
        streams = tuple(
            self._constant(stream, "weights", op.where, self._layout).tobytes()
            for stream in op.weights
        )
        pending = _PendingKernel(op, streams, self._scales(op), self._finish(op))
        self._convolutions.append(pending)
        return pending

    def _has_written_weights(self, op: Convolution) -> bool:
        """Tell whether the weights were written, and not all of them by transfers of constants."""
        if op.depthwise or self._hardware.arch is Arch.U85:
            return False
        for stream in op.weights:
            self._layout.check_range(stream.region, stream.offset, stream.length, op.where)
        places = [(each.region, each.offset, each.length) for each in op.weights]
        return all(self._known.is_written(*place) for place in places) and any(
            self._known.read(*place) is None for place in places
        )

    def _scales(self, op: Convolution | Pooling) -> scales.ChannelScales:
        """Read the records of all channels: stream k has those of k, k + streams, ..."""
        assert op.record is not None
        depth, parts = op.output.shape[2], len(op.scales)
        records = [
            scales.decode(
                self._constant(stream, "scales", op.where, self._layout),
                len(range(part, depth, parts)),
                op.record,
            )
            for part, stream in enumerate(op.scales)
        ]
        return scales.interleave(records, depth)

    def _decode_weights(self) -> None:
        """Decode every distinct stream once, and give each convolution its weights."""
        standard = [op for op in self._convolutions if not op.operation.layout.is_fast]
        needed = list(dict.fromkeys(data for op in standard for data in op.streams))
        try:
            decoded = dict(zip(needed, decoding.decode(needed), strict=True))
        except MizzenError:
            _locate(standard)
            raise
        arranged: dict[object, Weights] = {}
        for pending in self._convolutions:
            op = pending.operation
            key = pending.streams, op.layout
            try:
                if key not in arranged:
                    values = (
                        [fast_weights.decode(data) for data in pending.streams]
                        if op.layout.is_fast
                        else [decoded[data] for data in pending.streams]
                    )
                    arranged[key] = op.layout.arrange(values)
            except MizzenError as error:
                raise _at(error, op.where) from None
            offset_bytes = 4 * (op.where.origin.command or 0)
            self._result.encoded[offset_bytes] = Encoded(arranged[key], pending.scales)
            pending.kernel = convolution_kernel.prepare(
                op, arranged[key], pending.scales, pending.table
            )

    def _dma(self, op: Dma) -> Executable | None:
        runs = op.rows * op.planes
        if runs > 1 << 20:
            raise fail(
                "E613",
                f"{op.where.name}: a transfer must have at most {1 << 20} runs, not {runs}",
                origin=op.where.origin,
            )
        source, destination = _place(op.source), _place(op.destination)
        if op.indices is not None:
            return self._indexed(op, source, destination)
        for from_, to in transfers(op):
            self._layout_of(source).check_range(source, from_, op.length, op.where)
            self._layout_of(destination).check_range(
                destination, to, op.length, op.where, written=True
            )
            data = self._known.read(source, from_, op.length)
            if data is None:
                self._known.forget(destination, to, op.length)
            else:
                self._known.write(destination, to, data)
        if destination == INTERNAL:
            self._result.loads.append(op)
            return None
        self._moved_to.add(destination)
        if source == INTERNAL:
            raise fail(
                "E614",
                f"{op.where.name}: a transfer out of the NPU's own memory is not modelled",
                origin=op.where.origin,
            )
        return DmaKernel(op)

    def _indexed(self, op: Dma, source: int, destination: int) -> Executable:
        """A transfer of rows by indices: every row that an index may name must be accessible."""
        assert op.indices is not None
        if INTERNAL in (source, destination):
            raise fail(
                "E614",
                f"{op.where.name}: a transfer by indices to or from the NPU's own memory is not "
                "modelled",
                origin=op.where.origin,
            )
        indices = op.indices
        for plane in range(op.planes):
            start = indices.stream.offset + plane * indices.plane_stride
            self._layout.check_range(indices.stream.region, start, 4 * op.rows, op.where)
            for end, named, written in (
                (op.source, not indices.scatters, False),
                (op.destination, indices.scatters, True),
            ):
                lines = indices.greatest + 1 if named else op.rows
                first = end.offset + plane * end.plane_stride
                last = first + (lines - 1) * end.row_stride
                low, high = min(first, last), max(first, last) + op.length
                self._layout.check_range(end.region, low, high - low, op.where, written=written)
                if written:
                    self._known.forget(end.region, low, high - low)
        return DmaKernel(op)

    def _layout_of(self, region: int) -> Layout:
        return self._shared if region == INTERNAL else self._layout


def _locate(convolutions: Sequence[_PendingKernel]) -> None:
    """Raise the error of weights that cannot be decoded where the first convolution has such."""
    for pending in convolutions:
        try:
            decoding.decode(list(pending.streams))
        except MizzenError as error:
            raise _at(error, pending.operation.where) from None


def _place(end: DmaEnd) -> int:
    return INTERNAL if end.space is Space.INTERNAL else end.region


def _region(region: int) -> str:
    return "the NPU's own memory" if region == INTERNAL else f"region {region}"


def _at(error: MizzenError, where: Where) -> MizzenError:
    """Say where, if the part that failed did not know."""
    if error.diagnostic.origin is not None:
        return error
    message = f"{where.name}: {error.diagnostic.message}"
    located = replace(error.diagnostic, origin=where.origin, message=message)
    assert located.severity is Severity.ERROR
    return MizzenError(located)
