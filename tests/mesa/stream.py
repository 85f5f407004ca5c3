"""Encode operations in the manner of Mesa: its order of registers, its waits, nothing set twice.

Blocks are not those that Mesa's search would find, but small ones that always fit.

Ref: Mesa, src/gallium/drivers/ethosu/ethosu_cmd.c; `ethosu_sched.c` for the shared buffer of U65.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mizzen.isa import Instruction
from mizzen.targets.ethos_u.machine.commands import Arch, encode, instruction_set

from .operations import (
    INTERNAL,
    NATURAL,
    REDUCE_SUM,
    Map,
    Operation,
    Range,
    Shape,
)

BANKS, OUTPUT_BANKS, TABLE_BANKS, BANK = 48, 2, 2, 1024
MOST_TRANSFERS = 2
INDEPENDENT = {Arch.U65: 3, Arch.U85: 7}
NATURAL_U85 = 1
NO_MAP, CHAINED = 3, 2
SMALL_UNIT, SQUARE_UNIT = 1, 3
"""Microblocks of U85-256, 1 x 2 x 16 and 2 x 2 x 8."""
SCALAR_U85 = 8


def rounded(value: int, unit: int) -> int:
    """Round up."""
    return -(-value // unit) * unit


@dataclass
class Stream:
    """Collects commands; a register is set only where its value changes."""

    arch: Arch
    made: list[Instruction] = field(default_factory=list[Instruction])
    owners: dict[int, int] = field(default_factory=dict[int, int])
    """Of the command of each operation, its place in words and the operator that it is for."""
    _held: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    _kernels: list[Operation] = field(default_factory=list[Operation])
    _transfers: list[Operation] = field(default_factory=list[Operation])
    _before: Operation | None = None

    def set(self, name: str, value: int | None = None, **more: int) -> None:
        """Set a register: its only field, or several; those that are not named to nothing."""
        command = instruction_set(self.arch)[name]
        values = {each.name: max(0, each.minimum) for each in command.fields} | more
        if value is not None:
            values[command.fields[0].name] = value
        made = command(**values)
        if command.kind.name != "SETTING" or self._held.get(name) != made:
            self._held[name] = made
            self.made.append(made)

    def forget(self) -> None:
        """Set registers of maps anew after an operation that was chained."""
        for name in list(self._held):
            if name.startswith(("SET_IFM", "SET_OFM_PRECISION")):
                del self._held[name]

    def words(self) -> npt.NDArray[np.uint32]:
        """End the stream."""
        self.set("OP_STOP", 0xFFFF)
        return encode(self.made, self.arch)

    def add(self, op: Operation) -> None:
        """Encode an operation."""
        waits = self._waits(op)
        if op.command == "OP_DMA_START":
            self._transfer(op)
        else:
            self._kernel(op)
        for name, count in waits.items():
            (number,) = instruction_set(self.arch)[name].fields
            self.set(name, min(count, number.maximum))
        self.owners[sum(each.command.words for each in self.made)] = op.operator
        match op.command:
            case "OP_POOL" | "OP_ELEMENTWISE":
                self.set(op.command, op.mode)
            case _:
                self.set(op.command)

    def _waits(self, op: Operation) -> dict[str, int]:
        waits: dict[str, int] = {}
        if op.command == "OP_DMA_START":
            self._transfers = [*self._transfers, op][-MOST_TRANSFERS:]
            others, name = self._kernels, "OP_KERNEL_WAIT"
        else:
            last = self._kernels[-1] if self._kernels else None
            direct = last is not None and last.ofm in (op.ifm, op.ifm2)
            _wait(self._kernels, op, waits, "OP_KERNEL_WAIT", but=last if direct else None)
            self._kernels.append(op)
            others, name = self._transfers, "OP_DMA_WAIT"
        _wait(others, op, waits, name, but=op)
        return waits

    def _transfer(self, op: Operation) -> None:
        assert op.source is not None
        assert op.target is not None
        self.set("SET_DMA0_SRC_REGION", op.source.region)
        self.set("SET_DMA0_SRC", op.source.address)
        inside = op.target.region == INTERNAL
        self.set("SET_DMA0_DST_REGION", op.target.region, region_mode=int(inside))
        self.set("SET_DMA0_DST", op.target.address)
        self.set("SET_DMA0_LEN", op.source.size)

    def _kernel(self, op: Operation) -> None:
        assert op.ifm is not None
        assert op.ofm is not None
        elementwise, weighted = op.command == "OP_ELEMENTWISE", op.weights is not None
        if any(each is not None and each.chain is not None for each in (op.ifm, op.ifm2, op.ofm)):
            self.forget()
        if elementwise:
            self._operand_scales(op)
        if elementwise or (weighted and self.arch is Arch.U85):
            self._result_scale(op)
        self._maps(op, op.ifm, op.ofm)
        if not elementwise:
            self._window(op)
        if weighted:
            self._coefficients(op)
        self._activation(op)
        if op.command == "OP_POOL":
            self._result_scale(op)
        if elementwise:
            self._second(op)
        self._block(op)
        self.set("SET_BLOCKDEP", self._blockdep(op))
        self._before = op

    def _maps(self, op: Operation, ifm: Map, ofm: Map) -> None:
        """Set the maps: U85 has their precisions first."""
        shared = int(op.weights is None and not op.per_channel)
        if self.arch is Arch.U85:
            self._precision("IFM", ifm)
        self._map("IFM", ifm)
        if self.arch is Arch.U65:
            self._precision("IFM", ifm, scale_mode=op.scaled)
        self.set("SET_IFM_UPSCALE", op.upscale)
        if op.command != "OP_ELEMENTWISE":
            for side, pad in zip(("TOP", "LEFT", "BOTTOM", "RIGHT"), op.pad, strict=True):
                self.set(f"SET_IFM_PAD_{side}", pad)
        if self.arch is Arch.U85:
            self._precision("OFM", ofm, scale_mode=shared)
        self._result(ofm)
        if self.arch is Arch.U65:
            self._precision("OFM", ofm, scale_mode=shared, round_mode=op.rounding)

    def _operand_scales(self, op: Operation) -> None:
        if self.arch is Arch.U65:
            if op.opa is not None:
                self.set("SET_OPA_SCALE", scale=op.opa[0], shift=op.opa[1])
                self.set("SET_OPB_SCALE", op.opb[0] if op.opb else 0)
            return
        for name, scale in (("SET_IFM_SCALE", op.opa), ("SET_IFM2_SCALE", op.opb)):
            number, shift = scale or (1, 0)
            self.set(name, scale=number, shift=shift, dbl_rnd=op.doubling)

    def _result_scale(self, op: Operation) -> None:
        number, shift = op.scale
        natural = {"round_mode": NATURAL_U85} if op.rounding == NATURAL else {}
        self.set("SET_OFM_SCALE", scale=number, shift=shift,
                 **(natural if self.arch is Arch.U85 else {}))  # fmt: skip

    def _precision(self, prefix: str, fm: Map, **more: int) -> None:
        if self.arch is Arch.U85:
            more["activation_storage"] = NO_MAP if fm.scalar is not None else 0
            if fm.chain is not None:
                more["activation_storage"] = CHAINED
        self.set(
            f"SET_{prefix}_PRECISION",
            activation_type=int(fm.dtype.kind == "i"),
            activation_precision={1: 0, 2: 1, 4: 2}[fm.size],
            activation_format=int(fm.bricks),
            **more,
        )

    def _map(self, prefix: str, fm: Map) -> None:
        if fm.scalar is not None:
            self.set("SET_OP_SCALAR", fm.scalar)
        elif fm.chain is not None:
            self.set(f"SET_{prefix}_REGION", fm.chain)
        else:
            self._addresses(prefix, fm)
            self._tiles(prefix, fm)
            if prefix == "IFM":
                self.set("SET_IFM_DEPTH_M1", fm.shape[2])
            self._strides(prefix, fm)
        self.set(f"SET_{prefix}_ZERO_POINT", fm.zero_point)

    def _addresses(self, prefix: str, fm: Map) -> None:
        self.set(f"SET_{prefix}_REGION", fm.region)
        for tile in range(4):
            self.set(f"SET_{prefix}_BASE{tile}", 0 if tile else fm.address)

    def _tiles(self, prefix: str, fm: Map) -> None:
        self.set(f"SET_{prefix}_HEIGHT0_M1", fm.shape[0])
        self.set(f"SET_{prefix}_HEIGHT1_M1", fm.shape[0])
        self.set(f"SET_{prefix}_WIDTH0_M1", fm.shape[1])

    def _strides(self, prefix: str, fm: Map) -> None:
        for axis, step in zip("YXC", fm.stride, strict=True):
            self.set(f"SET_{prefix}_STRIDE_{axis}", step)

    def _result(self, fm: Map) -> None:
        sizes = [("HEIGHT", fm.shape[0]), ("WIDTH", fm.shape[1]), ("DEPTH", fm.shape[2])]
        if fm.chain is not None:
            self.set("SET_OFM_REGION", fm.chain)
            for name, size in sizes:
                self.set(f"SET_OFM_{name}_M1", size)
            self.set("SET_OFM_ZERO_POINT", fm.zero_point)
            return
        self._addresses("OFM", fm)
        deep = sizes if self.arch is Arch.U85 else sizes[:2]
        for name, size in deep:
            self.set(f"SET_OFM_{name}_M1", size)
        self._tiles("OFM", fm)
        self.set("SET_OFM_DEPTH_M1", fm.shape[2])
        self._strides("OFM", fm)
        self.set("SET_OFM_ZERO_POINT", fm.zero_point)

    def _window(self, op: Operation) -> None:
        self.set("SET_KERNEL_HEIGHT_M1", op.kernel[0])
        self.set("SET_KERNEL_WIDTH_M1", op.kernel[1])
        self.set("SET_KERNEL_STRIDE", stride_x=op.stride[1], stride_y=op.stride[0],
                 weight_order=int(op.part_kernel))  # fmt: skip

    def _coefficients(self, op: Operation) -> None:
        assert op.weights is not None
        assert op.records is not None
        if self.arch is Arch.U85:
            self.set("SET_WEIGHT_FORMAT", weight_sparsity=int(op.sparse))
        for name, part in (("WEIGHT", op.weights), ("SCALE", op.records)):
            self.set(f"SET_{name}_REGION", part.region)
            self.set(f"SET_{name}_BASE", part.address)
            self.set(f"SET_{name}_LENGTH", part.size)

    def _activation(self, op: Operation) -> None:
        assert op.ifm is not None
        assert op.ofm is not None
        u85, size = self.arch is Arch.U85, op.ofm.size
        limits = np.iinfo(op.ofm.dtype if size < 4 else np.int16)
        low, high = op.limits or (int(limits.min), int(limits.max))
        if op.table is not None:
            low, high = (-128, 127) if op.ofm.dtype.kind == "i" else (0, 255)
            clip = 3 if size == 4 else 0
            if u85:
                self.set("SET_ACTIVATION", 7 if size == 4 else 4, table=op.slot)
            else:
                self.set("SET_ACTIVATION", 16 + op.slot, activation_clip_range=clip)
        elif u85 and size == 4:
            self.set("SET_ACTIVATION", 0, activation_clip_range=1)
            low, high = -(1 << 15), -1
        else:
            self.set("SET_ACTIVATION", 0)
        self.set("SET_ACTIVATION_MIN", _signed(low))
        self.set("SET_ACTIVATION_MAX", _signed(high))

    def _second(self, op: Operation) -> None:
        assert op.ifm is not None
        assert op.ofm is not None
        fm, u85 = op.ifm2, self.arch is Arch.U85
        if fm is None:
            if u85:
                self.set("SET_IFM_BROADCAST", 0)
                self.set("SET_IFM2_BROADCAST", 0)
            return
        if u85:
            self._precision("IFM2", fm)
        if fm.scalar is not None and not u85:
            self.set("SET_IFM2_SCALAR", fm.scalar)
            self.set("SET_IFM2_ZERO_POINT", fm.zero_point)
        else:
            self._map("IFM2", fm)
        if u85:
            self.set("SET_IFM_BROADCAST", _broadcast(op.ifm, op.ofm))
            self.set("SET_IFM2_BROADCAST", _broadcast(fm, op.ofm))
            return
        self._precision("IFM2", fm)
        axes = {"broadcast_constant": 1} if fm.scalar is not None else {
            f"broadcast_{axis}": int(mine != whole)
            for axis, mine, whole in zip("hwc", fm.shape, op.ofm.shape, strict=True)
        }  # fmt: skip
        self.set("SET_IFM2_BROADCAST", operand_order=int(op.swapped), **axes)

    def _block(self, op: Operation) -> None:
        block = self._block_of(op)
        for name, size in zip(("HEIGHT", "WIDTH", "DEPTH"), block, strict=True):
            self.set(f"SET_OFM_BLK_{name}_M1", size)
        if self.arch is Arch.U85:
            self.set("SET_ACC_FORMAT", microblock=_microblock(op))
            return
        end = BANKS - TABLE_BANKS
        banks = _input_banks(op, block)
        if op.command == "OP_ELEMENTWISE":
            self.set("SET_IFM_IB_END", end)
            self.set("SET_AB_START", end)
            if op.ifm2 is not None:
                self.set("SET_IFM2_IB_START", OUTPUT_BANKS + banks)
        else:
            height, width, depth = block
            sums = _banks(height * width * rounded(depth, 8) * 4, 16)
            self.set("SET_IFM_IB_END", OUTPUT_BANKS + banks)
            self.set("SET_AB_START", end - sums)
        self.set("SET_ACC_FORMAT")

    def _block_of(self, op: Operation) -> Shape:
        assert op.ofm is not None
        if self.arch is Arch.U85:
            return 4, 4, 16
        height, width, depth = op.ofm.shape
        most = 4 if op.command == "OP_ELEMENTWISE" else 8
        tall, wide = (min(most, rounded(size, 2)) for size in (height, width))
        return tall, wide, min(16, rounded(depth, 8))

    def _blockdep(self, op: Operation) -> int:
        """Return 0 where the operation reads what the one before it wrote, or is chained."""
        before = self._before
        if before is None or before.ofm is None or before.ofm.range is None:
            return 0
        if op.ofm is None or op.ofm.range is None:
            return 0
        maps = [each for each in (op.ifm, op.ifm2) if each is not None]
        if any(each.chain is not None for each in maps):
            return 0
        ranges = [each.range for each in maps if each.range is not None]
        if any(each.meets(before.ofm.range) for each in ranges):
            return 0
        return INDEPENDENT[self.arch]


def _wait(
    queue: list[Operation], op: Operation, waits: dict[str, int], name: str, but: Operation | None
) -> None:
    for later, other in enumerate(reversed(queue)):
        if other is op or other is but or not _conflict(other, op):
            continue
        waits[name] = later
        del queue[: len(queue) - later]
        return


def _conflict(one: Operation, other: Operation) -> bool:
    pairs: Sequence[tuple[list[Range], list[Range]]] = (
        (one.writes, other.reads), (one.reads, other.writes), (one.writes, other.writes),
    )  # fmt: skip
    return any(a.meets(b) for ones, others in pairs for a in ones for b in others)


def _signed(value: int) -> int:
    return value - (1 << 16) if value >= 1 << 15 else value


def _broadcast(fm: Map, result: Map) -> int:
    if fm.scalar is not None:
        return SCALAR_U85
    pairs = zip(fm.shape, result.shape, strict=True)
    return sum(1 << bit for bit, (mine, whole) in enumerate(pairs) if mine == 1 < whole)


def _microblock(op: Operation) -> int:
    assert op.ifm is not None
    thin = op.command == "OP_DEPTHWISE" or (op.command == "OP_POOL" and op.mode != REDUCE_SUM)
    if op.command == "OP_ELEMENTWISE" or (thin and op.ifm.size == 1):
        return SMALL_UNIT
    return SQUARE_UNIT


def _input_banks(op: Operation, block: Shape) -> int:
    assert op.ifm is not None
    size = max(each.size for each in (op.ifm, op.ifm2) if each is not None)
    depth = block[2]
    if op.command == "OP_CONV":
        depth = min(rounded(op.ifm.shape[2], 8), 16 if op.part_kernel else 32)
    elif op.command == "OP_POOL" and op.mode == REDUCE_SUM:
        depth = min(rounded(op.ifm.shape[2], 8), 32)
    lines, columns = (
        rounded((extent - 1) * step + min(8, taps), 2)
        for extent, step, taps in zip(block[:2], op.stride, op.kernel, strict=True)
    )
    return _banks(lines * columns * rounded(depth * size, 8), 16 if size == 4 else 8)


def _banks(size: int, granule: int) -> int:
    return rounded(2 * -(-size // BANK), granule)
