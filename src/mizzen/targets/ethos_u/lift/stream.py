"""The walk over a command stream: operations over regions, and what each of them reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin, fail
from mizzen.isa import Instruction
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    ChannelScales,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Map,
    Operation,
    Pooling,
    Scale,
    Table,
    maps_read,
)
from mizzen.targets.ethos_u.generator.weights import StreamOrder, orders_of, restore
from mizzen.targets.ethos_u.generator.weights.records import decode_scales
from mizzen.targets.ethos_u.judge.codec import decoding
from mizzen.targets.ethos_u.lift.registers import Range, Registers, TableRange, Transfer
from mizzen.targets.ethos_u.lift.values import NOBODY, Data, Held, Values
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ElementwiseMode,
    IfmScaleMode,
    PoolingMode,
    RoundMode,
)
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import Program, TensorAddress, accelerator_of

IGNORED = ("OP_STOP", "OP_KERNEL_WAIT", "OP_DMA_WAIT", "OP_PMU_MASK")
"""Commands that order work or count it, and compute nothing."""


@dataclass(slots=True)
class Step:
    """An operation over regions.

    reads    for each map that it reads, a piece of the tensor; None of constants
    written  the piece that it writes
    constant of a transfer, whether it brings constants
    """

    operation: Operation
    reads: tuple[int | None, ...]
    written: int
    constant: bool = False


def maps_of(step: Step) -> list[tuple[int | None, Map]]:
    """Return the maps of a step with the pieces that they are of, the output last."""
    operation = step.operation
    if isinstance(operation, Copy):
        return []
    return [
        *zip(step.reads, maps_read(operation), strict=True),
        (step.written, operation.ofm),
    ]


def with_maps(step: Step, maps: list[tuple[int | None, Map]]) -> Step:
    """Return a step over other maps, in the order of `maps_of`."""
    operation = step.operation
    assert not isinstance(operation, Copy)
    reads = tuple(piece for piece, _ in maps[:-1])
    written, ofm = maps[-1]
    assert written is not None
    if isinstance(operation, Elementwise) and isinstance(operation.ifm2, Map):
        made = replace(operation, ifm=maps[0][1], ifm2=maps[1][1], ofm=ofm)
    else:
        made = replace(operation, ifm=maps[0][1], ofm=ofm)
    return Step(made, reads, written, step.constant)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Constants of a convolution as the stream has them, a part for each core."""

    streams: tuple[bytes, ...]
    orders: tuple[StreamOrder, ...]
    records: tuple[bytes, ...]


@dataclass(slots=True)
class Walk:
    """A stream that is being walked, and what came of it.

    taken    of each input, the runs of bytes that hold something at first
    results  a piece of the tensor of each output
    states   of each input that is a state, by its place, a piece of what it is before and after
    """

    program: Program
    accelerator: Accelerator
    values: Values
    steps: list[Step] = field(default_factory=list[Step])
    taken: list[list[tuple[int, int]]] = field(default_factory=list[list[tuple[int, int]]])
    results: list[int] = field(default_factory=list[int])
    states: dict[int, int] = field(default_factory=dict[int, int])
    _encoded: dict[int, Encoded] = field(default_factory=dict[int, Encoded])
    _known_scales: dict[object, ChannelScales] = field(default_factory=dict[object, ChannelScales])
    _tables: dict[bytes, Table] = field(default_factory=dict[bytes, Table])
    _own: Data = field(default_factory=lambda: np.zeros(0, np.uint8))
    _known: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    def __post_init__(self) -> None:
        size = (self.accelerator.shram_kib or 0) * 1024
        self._own, self._known = np.zeros(size, np.uint8), np.zeros(size, np.bool_)

    def go(self) -> None:
        """Take every command in turn, then decode all weights at once."""
        registers = Registers(self.accelerator)
        for instruction in self.program.instructions:
            name = instruction.command.name
            if not name.startswith("OP_"):
                registers.write(instruction)
                continue
            if name == "OP_STOP":
                break
            if name not in IGNORED:
                origin = self._origin(instruction)
                at = replace(origin, command=instruction.offset_words)
                registers.read_for(name, at)
                self.values.where = name, at
                self._take(name, instruction, registers, origin)
        self._decode()
        self.results = [self._result(row) for row in self.program.outputs]
        self.states = {
            place: self.values.join([place + 1, *(set(self._owners(row)) - {NOBODY})])
            for place, row in enumerate(self.program.inputs)
            if row.variable
        }

    def _owners(self, row: TensorAddress) -> list[int]:
        return self.values.owners(row.region, row.offset, row.size_bytes)

    def _result(self, row: TensorAddress) -> int:
        """Make all that an output holds one tensor; return a piece of it."""
        self.values.where = "output", Origin(name=row.name)
        pieces = self._owners(row)
        if NOBODY in pieces:
            raise self.values.unknown(row.region, row.offset, row.offset + row.size_bytes)
        return self.values.join(pieces)

    def _origin(self, instruction: Instruction) -> Origin:
        return self.program.origins.get(4 * instruction.offset_words, Origin())

    def _take(
        self, name: str, instruction: Instruction, registers: Registers, origin: Origin
    ) -> None:
        match name:
            case "OP_CONV" | "OP_DEPTHWISE":
                self._convolution(registers, origin, name == "OP_DEPTHWISE")
            case "OP_POOL":
                mode = PoolingMode(instruction.values["pooling_mode"])
                self._add(self._pooling(registers, origin, mode))
            case "OP_ELEMENTWISE":
                mode = ElementwiseMode(instruction.values["elementwise_mode"])
                self._add(self._elementwise(registers, origin, mode))
            case "OP_DMA_START":
                self._transfer(registers.transfer(), origin)
            case _:
                raise registers.refusal("the command has no operation that stands for it")

    def _add(self, operation: Computation) -> None:
        reads = tuple(self.values.read(row) for row in maps_read(operation))
        self.steps.append(Step(operation, reads, self.values.write(operation.ofm)))

    def _convolution(self, registers: Registers, origin: Origin, depthwise: bool) -> None:
        kernel, ofm = registers.kernel(), registers.ofm()
        depth = ofm.shape[2]
        ifm, upscale = registers.ifm(
            kernel, depth if depthwise else registers.number("SET_IFM_DEPTH_M1")
        )
        part_kernel = registers.is_part_kernel()
        encoded = self._constants(registers, ifm, ofm, depthwise, part_kernel)
        operation = Convolution(
            origin=origin,
            ifm=ifm,
            ofm=ofm,
            kernel=kernel,
            weights=np.zeros((0, 0, 0, 0), np.int16),
            scales=self._scales(registers, encoded, depth),
            activation=self._activation(registers, ofm),
            depthwise=depthwise,
            upscale=upscale,
            rounding=RoundMode(registers.fields("SET_OFM_PRECISION")["round_mode"]),
            accumulators=AccFormat(registers.number("SET_ACC_FORMAT")),
            part_kernel=None if depthwise else part_kernel,
        )
        self._encoded[len(self.steps)] = encoded
        self._add(operation)

    def _constants(
        self, registers: Registers, ifm: Map, ofm: Map, depthwise: bool, part_kernel: bool
    ) -> Encoded:
        kernel, depth = registers.kernel(), ofm.shape[2]
        orders = orders_of(
            (depth, kernel.height, kernel.width, 1 if depthwise else ifm.shape[2]),
            (kernel.dilation_y, kernel.dilation_x),
            registers.number("SET_OFM_BLK_DEPTH_M1"),
            8 * ifm.dtype.itemsize,
            depthwise,
            part_kernel,
            self.accelerator,
        )
        cores = registers.cores()
        if cores < self.accelerator.cores:
            raise registers.refusal("both cores must be in use")
        return Encoded(
            self._bytes(registers.streams("WEIGHT", depth), "weights"),
            orders[: min(cores, depth)],
            self._bytes(registers.streams("SCALE", depth), "scales"),
        )

    def _bytes(self, ranges: Sequence[Range], what: str) -> tuple[bytes, ...]:
        values = self.values
        return tuple(
            values.require_constant(row.region, row.offset, row.length, what).tobytes()
            for row in ranges
        )

    def _scales(self, registers: Registers, encoded: Encoded, depth: int) -> ChannelScales:
        scale = registers.ofm_scale() if registers.is_scaled_globally() else None
        key = encoded.records, depth, scale
        if key not in self._known_scales:
            self._known_scales[key] = self._all_scales(encoded, depth, scale)
        return self._known_scales[key]

    def _all_scales(self, encoded: Encoded, depth: int, scale: Scale | None) -> ChannelScales:
        found = _interleaved(encoded.records, depth)
        if scale is None:
            return found
        multipliers = np.full_like(found.multipliers, scale.multiplier)
        return ChannelScales(found.biases, multipliers, np.full_like(found.shifts, scale.shift))

    def _pooling(self, registers: Registers, origin: Origin, mode: PoolingMode) -> Pooling:
        kernel, ofm = registers.kernel(), registers.ofm()
        depth = ofm.shape[2]
        if mode is PoolingMode.REDUCE_SUM:
            if depth != 1:
                raise registers.refusal(f"a sum over channels must have depth 1, not {depth}")
            depth = registers.number("SET_IFM_DEPTH_M1")
        ifm, upscale = registers.ifm(kernel, depth)
        return Pooling(
            origin=origin,
            mode=mode,
            ifm=ifm,
            ofm=ofm,
            kernel=kernel,
            scale=registers.pooling_scale(mode, kernel),
            activation=self._activation(registers, ofm),
            upscale=upscale,
            rounding=RoundMode(registers.fields("SET_OFM_PRECISION")["round_mode"]),
            accumulators=AccFormat(registers.number("SET_ACC_FORMAT")),
        )

    def _elementwise(
        self, registers: Registers, origin: Origin, mode: ElementwiseMode
    ) -> Elementwise:
        ifm, ifm2, swapped = registers.operands(mode)
        ofm = registers.ofm()
        first, second = registers.operand_scales(mode)
        precision = registers.fields("SET_IFM_PRECISION")
        return Elementwise(
            origin=origin,
            mode=mode,
            ifm=ifm,
            ifm2=ifm2,
            ofm=ofm,
            activation=self._activation(registers, ofm),
            reversed=swapped,
            scale=registers.result_scale(mode),
            scale_a=first,
            scale_b=second,
            scale_mode=IfmScaleMode(precision["scale_mode"]),
            rounding=RoundMode(registers.fields("SET_OFM_PRECISION")["round_mode"]),
            ifm_rounding=RoundMode(precision["round_mode"]),
        )

    def _activation(self, registers: Registers, ofm: Map) -> Activation:
        activation, where = registers.activation(ofm.dtype.itemsize)
        return activation if where is None else replace(activation, table=self._table(where))

    def _table(self, where: TableRange) -> Table:
        part = self._own_bytes(where.offset, where.length)
        if not self._known[part].all():
            name, origin = self.values.where
            raise fail(
                "E274",
                f"{name}: the lookup table must come from constants, and has not been loaded",
                origin=origin,
                help="the compiler's own words for it remain right; keep those",
            )
        data = self._own[part].tobytes()
        return self._tables.setdefault(data, Table(data))

    def _transfer(self, transfer: Transfer, origin: Origin) -> None:
        start, length = transfer.source_offset, transfer.length
        data = self.values.constant(transfer.source, start, length)
        if transfer.destination is None:
            self._load(transfer, data)
            return
        shift = transfer.destination_offset - start
        runs = [(NOBODY, start, length)] if data is not None else []
        if data is None:
            runs = self.values.runs(transfer.source, start, length)
        for tensor, at, count in runs:
            to = transfer.destination, at + shift, count
            if tensor == NOBODY and data is None:
                self.values.forget(*to)
                continue
            reads = (None if data is not None else tensor,)
            copy = Copy(origin, transfer.source, at, *to)
            self.steps.append(Step(copy, reads, self.values.put(*to, data), data is not None))

    def _load(self, transfer: Transfer, data: Data | None) -> None:
        """Keep what is brought into the NPU's own memory: tables."""
        part = self._own_bytes(transfer.destination_offset, transfer.length)
        self._known[part] = data is not None
        if data is not None:
            self._own[part] = data

    def _own_bytes(self, start: int, length: int) -> slice:
        """Return bytes of the NPU's own memory. E273 for what lies beyond it."""
        size, stop = len(self._own), start + length
        if stop > size:
            name, origin = self.values.where
            raise fail(
                "E273",
                f"{name}: bytes {start}..{stop} must lie within the {size} bytes of the NPU's own "
                "memory",
                origin=origin,
                help="the command stream is damaged; compile it again",
            )
        return slice(start, stop)

    def _decode(self) -> None:
        """Set the weights of every convolution: each stream is decoded once."""
        needed = list(dict.fromkeys(data for row in self._encoded.values() for data in row.streams))
        decoded = dict(zip(needed, decoding.decode(needed), strict=True))
        known: dict[Any, npt.NDArray[np.int16]] = {}
        for index, row in self._encoded.items():
            key = row.streams, row.orders
            if key not in known:
                known[key] = restore([decoded[data] for data in row.streams], row.orders)
            step = self.steps[index]
            assert isinstance(step.operation, Convolution)
            step.operation = replace(step.operation, weights=known[key])


def _interleaved(records: Sequence[bytes], depth: int) -> ChannelScales:
    """Return the scales of all channels: core k of n has channels k, k + n, ..."""
    cores = len(records)
    whole = ChannelScales(*(np.zeros(depth, np.int64) for _ in range(3)))
    for core, data in enumerate(records):
        part = decode_scales(data, len(range(core, depth, cores)))
        whole.biases[core::cores] = part.biases
        whole.multipliers[core::cores] = part.multipliers
        whole.shifts[core::cores] = part.shifts
    return whole


def walk(program: Program, held: Held | None = None) -> Walk:
    """Return the operations of a stream over its regions, with their constants.

    Raises E270 for a machine other than U55 and U65, E271 for what no operation stands for, E272
    for registers that were not set, E273 for reads of what nobody wrote, E274 for weights and
    tables that do not come from constants.
    """
    accelerator = accelerator_of(program.hardware)
    if accelerator.arch is Arch.U85:
        raise fail(
            "E270",
            f"streams of Ethos-U55 and U65 can be lifted, and this one is of {accelerator.name}",
            help="keep the compiler's own words",
        )
    values = Values(program)
    taken: list[list[tuple[int, int]]] = []
    for row in program.inputs:
        values.where = "input", Origin(name=row.name)
        taken.append(values.give(row, held))
    found = Walk(program, accelerator, values, taken=taken)
    found.go()
    return found
