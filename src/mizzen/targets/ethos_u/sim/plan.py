"""From a program to kernels: decode, resolve, check every access, decode every constant."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic, MizzenError, Origin, Severity, fail
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.program import Program
from mizzen.targets.ethos_u.sim import activation, codec, convolution, scales, weights
from mizzen.targets.ethos_u.sim.constants import KnownBytes
from mizzen.targets.ethos_u.sim.dma import DmaKernel, transfers
from mizzen.targets.ethos_u.sim.elementwise import ElementwiseKernel
from mizzen.targets.ethos_u.sim.hardware import Hardware
from mizzen.targets.ethos_u.sim.inferred import inferred
from mizzen.targets.ethos_u.sim.memory import Layout, Memory, Run, Workspace
from mizzen.targets.ethos_u.sim.operations import (
    Convolution,
    Dma,
    DmaEnd,
    Elementwise,
    FeatureMap,
    Function,
    Operation,
    Output,
    Pooling,
    Space,
    Stream,
    Where,
)
from mizzen.targets.ethos_u.sim.pooling import PoolingKernel
from mizzen.targets.ethos_u.sim.registers import Registers

Bytes = npt.NDArray[np.uint8]

SHARED_BUFFER = -1
"""Stands for the NPU's own shared buffer among the regions."""
LARGEST_MAP_BYTES = 1 << 30


class Kernel(Protocol):
    """An operation with everything it needs but memory."""

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of the stream and its kernel."""

    operation: Operation
    kernel: Kernel


@dataclass(slots=True, eq=False)
class _PendingKernel:
    """A convolution before its weights are decoded; all streams are decoded together."""

    operation: Convolution
    streams: list[tuple[bytes, weights.WeightOrder]]
    scales: scales.ChannelScales
    table: Bytes | None
    kernel: Kernel | None = None

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Bind the kernel that the weights made."""
        assert self.kernel is not None
        return self.kernel.bind(memory, workspace)


@dataclass(slots=True)
class Plan:
    """A program's steps in order, and what there is to say about it."""

    steps: list[Step] = field(default_factory=list[Step])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])


def plan(program: Program, instructions: list[Instruction], hardware: Hardware) -> Plan:
    """Plan a decoded stream; E6xx for whatever could not be executed exactly."""
    return _Planner(program, hardware).plan(instructions)


class _Planner:
    def __init__(self, program: Program, hardware: Hardware) -> None:
        self._program = program
        self._hardware = hardware
        sizes = dict(program.region_bytes)
        for region, data in program.constants.items():
            sizes[region] = len(data)
        self._layout = Layout(sizes, frozenset(program.constants))
        shared = {**sizes, SHARED_BUFFER: hardware.shared_buffer_bytes}
        self._known = KnownBytes(shared, program.constants)
        self._shared = Layout(shared, frozenset())
        self._convolutions: list[_PendingKernel] = []

    def plan(self, instructions: list[Instruction]) -> Plan:
        result = Plan()
        registers = Registers(self._hardware.cores)
        seen: set[str] = set()
        for instruction in instructions:
            if instruction.name == "OP_STOP":
                self._decode_weights()
                return result
            if not instruction.name.startswith("OP_"):
                registers.write(instruction)
                continue
            operation = registers.operation(instruction, self._where(instruction))
            if operation is None:
                continue
            if kernel := self._kernel(operation):
                result.steps.append(Step(operation, kernel))
            for note in inferred(operation):
                if note.code not in seen:
                    seen.add(note.code)
                    result.diagnostics.append(note)
        raise fail(
            "E612",
            "a command stream must end with OP_STOP, and this one does not",
            help="the command stream is damaged; compile it again",
        )

    def _where(self, instruction: Instruction) -> Where:
        offset = instruction.offset_words
        origin = self._program.origins.get(4 * offset, Origin())
        return Where(instruction.name, replace(origin, command=offset))

    def _kernel(self, operation: Operation) -> Kernel | None:
        try:
            match operation:
                case Convolution():
                    return self._convolution(operation)
                case Pooling():
                    self._check_maps(operation.output, operation.ifm, where=operation.where)
                    return PoolingKernel(operation, self._finish(operation))
                case Elementwise():
                    second = [operation.b] if isinstance(operation.b, FeatureMap) else []
                    self._check_maps(operation.output, operation.a, *second, where=operation.where)
                    return ElementwiseKernel(operation, self._finish(operation))
                case Dma():
                    return self._dma(operation)
        except MizzenError as error:
            raise _at(error, operation.where) from None

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
            self._layout.check_map(fm, where)
        self._layout.check_map(output.fm, where, written=True)

    def _finish(self, operation: Convolution | Pooling | Elementwise) -> Bytes | None:
        """Note what the operation writes, and fetch its table if it has one."""
        table = self._table(operation)
        self._known.forget_map(operation.output.fm)
        return table

    def _table(self, operation: Convolution | Pooling | Elementwise) -> Bytes | None:
        act = operation.output.activation
        if act.function is not Function.TABLE:
            return None
        offset = activation.table_offset(self._hardware.shared_buffer_bytes, act.table)
        length = activation.TABLE_BYTES[operation.output.fm.dtype.itemsize]
        stream = Stream(SHARED_BUFFER, offset, length)
        return self._constant(stream, "lookup table", operation.where, self._shared)

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

    def _convolution(self, op: Convolution) -> Kernel:
        self._check_maps(op.output, op.ifm, where=op.where)
        depth = op.output.fm.depth
        cores = len(op.weights)
        channels = [len(range(core, depth, cores)) for core in range(cores)]
        records = [
            scales.decode(self._constant(stream, "scales", op.where, self._layout), count)
            for stream, count in zip(op.scales, channels, strict=True)
        ]
        streams = [
            self._weights(op, stream, count, core)
            for core, (stream, count) in enumerate(zip(op.weights, channels, strict=True))
        ]
        joined = scales.interleave(records, depth)
        pending = _PendingKernel(op, streams, joined, self._finish(op))
        self._convolutions.append(pending)
        return pending

    def _weights(
        self, op: Convolution, stream: Stream, channels: int, core: int
    ) -> tuple[bytes, weights.WeightOrder]:
        cores = len(op.weights)
        order = weights.WeightOrder(
            ofm_depth=channels,
            ifm_depth=op.ifm.depth,
            kernel_height=op.kernel.height,
            kernel_width=op.kernel.width,
            dilation_y=op.kernel.dilation_y,
            dilation_x=op.kernel.dilation_x,
            ofm_block_depth=max(1, -(-(op.ofm_block_depth - core) // cores)),
            ofm_ublock_depth=self._hardware.ofm_ublock_depth,
            ifm_bits=8 * op.ifm.dtype.itemsize,
            depthwise=op.depthwise,
            part_kernel=op.part_kernel,
        )
        return self._constant(stream, "weights", op.where, self._layout).tobytes(), order

    def _decode_weights(self) -> None:
        """Decode every distinct stream once, and give each convolution its weights."""
        needed = dict.fromkeys(data for op in self._convolutions for data, _ in op.streams)
        decoded = dict(zip(needed, codec.decode(list(needed)), strict=True))
        arranged: dict[tuple[bytes, weights.WeightOrder], npt.NDArray[np.int16]] = {}
        for pending in self._convolutions:
            op = pending.operation
            try:
                for key in pending.streams:
                    if key not in arranged:
                        arranged[key] = weights.arrange(decoded[key[0]], key[1])
            except MizzenError as error:
                raise _at(error, op.where) from None
            whole = _joined([arranged[key] for key in pending.streams], op.output.fm.depth)
            pending.kernel = convolution.prepare(op, whole, pending.scales, pending.table)

    def _dma(self, op: Dma) -> Kernel | None:
        runs = op.rows * op.planes
        if runs > 1 << 20:
            raise fail(
                "E613",
                f"{op.where.name}: a transfer must have at most {1 << 20} runs, not {runs}",
                origin=op.where.origin,
            )
        source, destination = _place(op.source), _place(op.destination)
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
        if destination == SHARED_BUFFER:
            return None
        if source == SHARED_BUFFER:
            raise fail(
                "E614",
                f"{op.where.name}: a transfer out of the shared buffer is not modelled",
                origin=op.where.origin,
            )
        return DmaKernel(op)

    def _layout_of(self, region: int) -> Layout:
        return self._shared if region == SHARED_BUFFER else self._layout


def _joined(parts: list[npt.NDArray[np.int16]], depth: int) -> npt.NDArray[np.int16]:
    """Join the cores' weights: core k computes channels k, k + cores, ..."""
    if len(parts) == 1:
        return parts[0]
    whole = np.empty((depth, *parts[0].shape[1:]), np.int16)
    for core, part in enumerate(parts):
        whole[core :: len(parts)] = part
    return whole


def _place(end: DmaEnd) -> int:
    return SHARED_BUFFER if end.space is Space.INTERNAL else end.region


def _region(region: int) -> str:
    return "the shared buffer" if region == SHARED_BUFFER else f"region {region}"


def _at(error: MizzenError, where: Where) -> MizzenError:
    """Say where, if the part that failed did not know."""
    if error.diagnostic.origin is not None:
        return error
    message = f"{where.name}: {error.diagnostic.message}"
    located = replace(error.diagnostic, origin=where.origin, message=message)
    assert located.severity is Severity.ERROR
    return MizzenError(located)
