"""Which accesses of a stream may happen in either order: every event of it in one partial order.

An oracle for small streams, from the words alone. Each operation becomes events: its start, for a
kernel operation the reading of each job and the writing of each block, its end. What the queues,
the waits and BLOCKDEP guarantee are arrows between events; the closure of the arrows says for any
two events whether one is always before the other. Bytes are bits of integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from mizzen.targets.ethos_u.machine.commands import Arch, Instruction
from mizzen.targets.ethos_u.machine.config import Accelerator

Bytes = dict[tuple[str, int], int]
"""Memory to a bit for each of its bytes."""
Race = tuple[int, int, str]
"""Word offsets of two operations, and RAW, WAR or WAW."""

LIMITS = {Arch.U55: (2, 1), Arch.U65: (2, 2), Arch.U85: (2, 4)}
KERNELS = ("OP_CONV", "OP_DEPTHWISE", "OP_POOL", "OP_ELEMENTWISE", "OP_RESIZE")
ORDER = {"HWC": "yxc", "WHC": "xyc", "HCW": "ycx", "WCH": "xcy", "CHW": "cyx", "CWH": "cxy"}
TABLES = {"U8_U8": 256, "S8_S8": 256, "S8_S16": 512, "S8_S32": 1024}


def bits(addresses: np.ndarray[Any, Any]) -> int:
    """Set a bit for every address."""
    if addresses.size == 0:
        return 0
    flags = np.zeros(int(addresses.max()) + 1, np.uint8)
    flags[addresses] = 1
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def run(start: int, length: int) -> int:
    """Set the bits of a run of bytes."""
    return ((1 << length) - 1) << start


def bits_of(mask: int) -> Iterator[int]:
    """Return the numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def member(value: Any) -> str:
    """Return the name of an enumeration's member."""
    return str(value.name)


def joined(parts: Iterator[tuple[tuple[str, int], int]]) -> Bytes:
    found: Bytes = {}
    for place, mask in parts:
        found[place] = found.get(place, 0) | mask
    return found


@dataclass(eq=False)
class Event:
    """What is read and written at once, by which operation or chain, at which word."""

    group: int
    offset: int
    reads: Bytes = field(default_factory=dict[tuple[str, int], int])
    writes: Bytes = field(default_factory=dict[tuple[str, int], int])


@dataclass(eq=False)
class Entry:
    """A kernel operation, or a chain of them: numbers of its events."""

    jobs: list[list[int]] = field(default_factory=list[list[int]])
    blocks: list[list[int]] = field(default_factory=list[list[int]])
    chain: bool = False
    blockdep: int = 0


class Stream:
    """A stream's events; the arrows come later, since waits can be changed without the bytes."""

    def __init__(self, instructions: list[Instruction], accelerator: Accelerator) -> None:
        self._state: dict[str, Any] = {}
        self._accelerator = accelerator
        self._u85 = accelerator.arch is Arch.U85
        self._group = 0
        self._in_chain = False
        self.events: list[Event] = []
        self.operations: dict[int, Any] = {}
        self.collisions: set[Race] = set()
        """Operations whose own results lie over one another, in whatever order."""
        for instruction in instructions:
            if instruction.name.startswith("SET_"):
                self._state[instruction.name[4:]] = instruction.values
            elif instruction.name in KERNELS:
                self.operations[instruction.offset_words] = self._kernel(instruction)
            elif instruction.name == "OP_DMA_START":
                self.operations[instruction.offset_words] = self._transfer(instruction)

    def conflicts(self, free: Guarantees) -> list[tuple[int, int, str]]:
        """Return all pairs of events that touch the same bytes and that `free` does not order."""
        found: list[tuple[int, int, str]] = []
        for j, second in enumerate(self.events):
            for i in bits_of(free.unordered(j)):
                first = self.events[i]
                if first.group == second.group:
                    found += self._in_place(i, j)
                    continue
                for word, one, other in (
                    ("RAW", first.writes, second.reads),
                    ("WAR", first.reads, second.writes),
                    ("WAW", first.writes, second.writes),
                ):
                    if any(mask & other.get(place, 0) for place, mask in one.items()):
                        found.append((i, j, word))
        return found

    def _in_place(self, i: int, j: int) -> Iterator[tuple[int, int, str]]:
        """Return a later block's reading and an earlier block's writing of the same bytes."""
        for reader, writer in ((i, j), (j, i)):
            writes = self.events[writer].writes
            reads = self.events[reader].reads
            if any(
                mask & reads.get(place, 0) for place, mask in writes.items() if place[0] == "region"
            ):
                yield reader, writer, "WAR"

    def _event(self, offset: int, reads: Bytes, writes: Bytes) -> int:
        self.events.append(Event(self._group, offset, reads, writes))
        return len(self.events) - 1

    # Registers

    def _one(self, name: str) -> int:
        return int(next(iter(self._state[name].values())))

    def _name(self, register: str, fieldname: str) -> str:
        return str(self._state[register][fieldname].name)

    def _place(self, name: str) -> tuple[str, int]:
        return "region", int(self._state[name]["region"])

    def _mask(self, prefix: str, index: dict[str, np.ndarray[Any, Any]]) -> Bytes:
        """The bytes of the elements whose coordinates are given along each axis."""
        precision = self._state[f"{prefix}_PRECISION"]
        storage = precision["activation_storage"].name if self._u85 else "TILE2X2"
        if storage in ("CHAINED", "NONE"):
            return {}
        size = int(precision["activation_precision"].name[1:]) // 8
        y, x, c = (index[axis] for axis in "yxc")
        y, x, c = y[:, None, None], x[None, :, None], c[None, None, :]
        h0, h1 = self._one(f"{prefix}_HEIGHT0_M1"), self._one(f"{prefix}_HEIGHT1_M1")
        w0 = self._one(f"{prefix}_WIDTH0_M1")
        bases = np.array([self._one(f"{prefix}_BASE{tile}") for tile in range(4)])
        if storage == "TILE3X1":
            tile = np.where(y < h0, 0, np.where(y < h1, 1, 2)) + 0 * x
            row, column = y - np.choose(tile, (0, h0, h1)), x
        else:
            right = x >= w0
            low = np.where(right, y >= h1, y >= h0)
            tile = right + 2 * low
            row, column = y - np.where(low, np.where(right, h1, h0), 0), x - np.where(right, w0, 0)
        at = bases[tile] + row * self._one(f"{prefix}_STRIDE_Y")
        if precision["activation_format"].name == "NHWC":
            at = at + column * self._one(f"{prefix}_STRIDE_X") + c * size
        else:
            at = at + column * 16 * size + c % 16 * size
            at = at + c // 16 * self._one(f"{prefix}_STRIDE_C")
        every = at[..., None] + np.arange(size)
        return {self._place(f"{prefix}_REGION"): bits(every.ravel())}

    # Operations

    def _transfer(self, instruction: Instruction) -> tuple[str, int]:
        mode = self._name("DMA0_SRC_REGION", "stride_mode")
        assert mode == "D1" or self._u85, "no compiled stream has it"
        self._group += 1
        length = self._one("DMA0_LEN")
        rows = self._one("DMA0_SIZE0") if mode != "D1" else 1
        planes = self._one("DMA0_SIZE1") if mode == "D3" else 1
        found: list[Bytes] = []
        for end in ("SRC", "DST"):
            fields = self._state[f"DMA0_{end}_REGION"]
            count = rows
            if self._u85 and fields["idx_mode"].name == "ENABLED":
                count = self._one("DMA0_IDX_MAX") + 1
            step = self._one(f"DMA0_{end}_STRIDE0") if mode != "D1" else 0
            plane = self._one(f"DMA0_{end}_STRIDE1") if mode == "D3" else 0
            start = self._one(f"DMA0_{end}")
            mask = 0
            for i, j in product(range(count), range(planes)):
                mask |= run(start + i * step + j * plane, length)
            inside = fields["region_mode"].name == "INTERNAL"
            found.append({("internal", 0) if inside else self._place(f"DMA0_{end}_REGION"): mask})
        if self._u85 and "ENABLED" in {
            self._name(f"DMA0_{end}_REGION", "idx_mode") for end in ("SRC", "DST")
        }:
            place = self._place("DMA0_IDX_REGION")
            row = 4 * rows + (self._one("DMA0_IDX_SKIP1") if planes > 1 else 0)
            for plane in range(planes):
                indices = run(self._one("DMA0_IDX") + plane * row, 4 * rows)
                found[0][place] = found[0].get(place, 0) | indices
        return "transfer", self._event(instruction.offset_words, found[0], found[1])

    def _kernel(self, instruction: Instruction) -> dict[str, Any]:
        shape = {axis: self._one(f"OFM_{name}_M1") for axis, name in AXES.items()}
        block = {axis: self._one(f"OFM_BLK_{name}_M1") for axis, name in AXES.items()}
        chained = [
            self._u85 and self._name(f"{prefix}_PRECISION", "activation_storage") == "CHAINED"
            for prefix in (*self._operands(instruction), "OFM")
        ]
        self._group += not self._in_chain
        self._in_chain = chained[-1]
        table, scratch = self._table(), {} if self._u85 else self._scratch(instruction, block)
        constants = self._constants(instruction)
        jobs: list[tuple[int, int]] = []
        blocks: list[int] = []
        starts = (range(0, shape[axis], block[axis]) for axis in "yxc")
        for corner in product(*starts):  # the last one, depth, runs fastest
            low = dict(zip("yxc", corner, strict=True))
            spans = {a: np.arange(low[a], min(shape[a], low[a] + block[a])) for a in "yxc"}
            for reads in self._jobs(instruction, spans, shape):
                everything = joined(item for part in (reads, constants) for item in part.items())
                jobs.append(
                    (self._event(instruction.offset_words, everything, scratch), len(blocks))
                )
            written = self._written(spans, shape)
            blocks.append(self._event(instruction.offset_words, table, written))
        if self._collides(shape):
            self.collisions.add((instruction.offset_words, instruction.offset_words, "WAW"))
        return {"jobs": jobs, "blocks": blocks, "chained": (any(chained[:-1]), chained[-1])}

    def _collides(self, shape: dict[str, int]) -> bool:
        written = self._written({axis: np.arange(size) for axis, size in shape.items()}, shape)
        size = int(self._name("OFM_PRECISION", "activation_precision")[1:]) // 8
        needed = size * math.prod(shape.values())
        return any(mask.bit_count() < needed for mask in written.values())

    def _operands(self, instruction: Instruction) -> list[str]:
        """The feature maps that an operation reads from memory or a chain."""
        name, values = instruction.name, instruction.values
        if name == "OP_POOL" and member(values["pooling_mode"]) == "NONE":
            return ["IFM2"]
        if name == "OP_ELEMENTWISE":
            unary = member(values["elementwise_mode"]) in ("LRELU", "ABS", "CLZ", "NOT")
            if not self._u85:
                scalar = unary or self._name("IFM2_BROADCAST", "broadcast_constant") == "ENABLE"
                return ["IFM"] if scalar else ["IFM", "IFM2"]
            pair = ["IFM"] if unary else ["IFM", "IFM2"]
            return [p for p in pair if not int(self._state[f"{p}_BROADCAST"]["broadcast_mode"]) & 8]
        if name == "OP_CONV" and self._u85 and values["weights_ifm2"]:
            return ["IFM", "IFM2"]
        return ["IFM"]

    def _jobs(
        self,
        instruction: Instruction,
        spans: dict[str, np.ndarray[Any, Any]],
        shape: dict[str, int],
    ) -> Iterator[Bytes]:
        """What each job of one block reads of feature maps."""
        operands, name = self._operands(instruction), instruction.name
        if operands == ["IFM2"] and name == "OP_POOL":
            yield self._mask("IFM2", spans)
            return
        if name == "OP_ELEMENTWISE":
            parts = (
                self._mask(p, {a: self._broadcast(p, i, a, spans[a]) for i, a in enumerate("yxc")})
                for p in operands
            )
            yield joined(item for part in parts for item in part.items())
            return
        if name == "OP_RESIZE":
            yield self._mask("IFM", {"c": spans["c"]} | {a: self._near(a, spans[a]) for a in "yx"})
            return
        box = {a: self._under(a, spans[a], shape[a]) for a in "yx"}
        summed = name == "OP_POOL" and member(instruction.values["pooling_mode"]) == "REDUCE_SUM"
        if name != "OP_CONV" and not summed:
            yield self._mask("IFM", box | {"c": spans["c"]})
            return
        depth, slab = self._one("IFM_DEPTH_M1"), self._slab(summed)
        for low in range(0, depth, slab):
            found = self._mask("IFM", box | {"c": np.arange(low, min(depth, low + slab))})
            if "IFM2" in operands:
                axes = {"y": np.arange(1), "x": np.arange(shape["c"]), "c": np.arange(depth)}
                parts = (found, self._mask("IFM2", axes))
                found = joined(item for part in parts for item in part.items())
            yield found

    def _broadcast(
        self, prefix: str, number: int, axis: str, span: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        if self._u85:
            same = int(self._state[f"{prefix}_BROADCAST"]["broadcast_mode"]) >> number & 1
        else:
            word = {"y": "h", "x": "w", "c": "c"}[axis]
            same = prefix == "IFM2" and int(self._state["IFM2_BROADCAST"][f"broadcast_{word}"])
        return np.arange(1) if same else span

    def _near(self, axis: str, span: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        upper = axis.upper()
        scale, fields = self._one(f"RESIZE_{upper}_SCALE_N_M1"), self._state[f"RESIZE_{upper}"]
        step = int(fields["one_step_int"]) * scale + int(fields["one_step_mod"])
        size = self._one("KERNEL_HEIGHT_M1" if axis == "y" else "IFM_WIDTH0_M1")
        low = (span * step + self._one(f"RESIZE_{upper}_OFFSET")) // scale
        ends = np.clip([low.min(), low.max() + 1], 0, size - 1)
        return np.arange(ends[0], ends[1] + 1)

    def _under(self, axis: str, span: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
        """Positions of the input under the kernel, padding left out."""
        before, after, extent = (self._one(name) for name in KERNEL[axis])
        step = int(self._state["KERNEL_STRIDE"][f"stride_{axis}"])
        scale = 1 if self._name("IFM_UPSCALE", "mode") == "NONE" else 2
        real = -(-((size - 1) * step + extent - before - after) // scale)
        taps = (span[:, None] * step - before + np.arange(extent)[None, :]) // scale
        return np.unique(taps[(taps >= 0) & (taps < real)])

    def _slab(self, summed: bool) -> int:
        """Input channels of one job, by the order in which weights are stored."""
        bits_ = int(self._name("IFM_PRECISION", "activation_precision")[1:])
        part = self._name("KERNEL_STRIDE", "weight_order") == "PART_KERNEL_FIRST"
        if part and not summed:
            return 16
        if not self._u85:
            return 256 // bits_
        if not summed and bits_ == 8 and self._name("WEIGHT_FORMAT", "weight_sparsity") != "NONE":
            return 128
        height, width = self._name("ACC_FORMAT", "microblock")[1:].split("X")
        macs = self._accelerator.macs
        deep = macs in (128, 256) and macs // 8 // int(height) // int(width) == 16
        return 32 if deep or bits_ == 32 else 64

    def _written(self, spans: dict[str, np.ndarray[Any, Any]], shape: dict[str, int]) -> Bytes:
        order = "yxc"
        if self._u85:
            precision = self._state["OFM_PRECISION"]
            turned = {"H": "y", "W": "x", "C": "c"}.get(precision["activation_reverse"].name)
            if turned:
                spans = spans | {turned: shape[turned] - 1 - spans[turned]}
            order = ORDER[precision["activation_transpose"].name]
        return self._mask("OFM", dict(zip("yxc", (spans[a] for a in order), strict=True)))

    def _constants(self, instruction: Instruction) -> Bytes:
        names: list[tuple[str, str]] = []
        weighted = instruction.name in ("OP_CONV", "OP_DEPTHWISE")
        if not self._u85 and weighted:
            dual = self._accelerator.cores == 2 and self._one("OFM_DEPTH_M1") > 1
            dual = dual and self._name("PARALLEL_MODE", "parallel_mode") != "SINGLE_CORE"
            suffixes = ("", "1") if dual else ("",)
            names = [(kind, suffix) for kind in ("WEIGHT", "SCALE") for suffix in suffixes]
        if self._u85:
            streams = {128: 1, 256: 1, 512: 2, 1024: 4, 2048: 4}[self._accelerator.macs]
            dynamic = instruction.name == "OP_CONV" and instruction.values["weights_ifm2"]
            if weighted and not dynamic:
                if self._name("WEIGHT_FORMAT", "weight_format") == "FWD":
                    streams = 1
                names = [("WEIGHT", str(number or "")) for number in range(streams)]
            if self._name("OFM_PRECISION", "scale_mode") == "PER_CHANNEL":
                names.append(("SCALE", ""))
        return joined(
            (
                self._place(f"{kind}_REGION"),
                run(self._one(f"{kind}{suffix}_BASE"), self._one(f"{kind}{suffix}_LENGTH")),
            )
            for kind, suffix in names
        )

    def _table(self) -> Bytes:
        fields = self._state["ACTIVATION"]
        if self._u85:
            kind = fields["activation_function"].name.removeprefix("LUT_")
            if kind == "NONE":
                return {}
            size = TABLES.get(kind, 2048)
            return {("internal", 0): run(size * int(fields["table"]), size)}
        function = int(fields["activation_function"])
        if function < 16:
            return {}
        size = {8: 256, 16: 2048, 32: 1024}[
            int(self._name("OFM_PRECISION", "activation_precision")[1:])
        ]
        return {("internal", 0): run(self._buffer - 2048 + 256 * (function - 16), size)}

    @property
    def _buffer(self) -> int:
        assert self._accelerator.shram_kib is not None
        return self._accelerator.shram_kib * 1024 // self._accelerator.cores

    def _scratch(self, instruction: Instruction, block: dict[str, int]) -> Bytes:
        start = 1024 * self._one("AB_START")
        mask = run(0, 2048) | run(0, 1024 * self._one("IFM_IB_END"))
        if instruction.name == "OP_ELEMENTWISE":
            if "IFM2_IB_START" in self._state:
                second = 1024 * self._one("IFM2_IB_START")
                mask |= run(second, start - second) if second < start else 0
            return {("internal", 0): mask}
        accumulator = int(self._name("ACC_FORMAT", "acc_format")[1:])
        y, x, c = (min(block[axis], self._one(f"OFM_{AXES[axis]}_M1")) for axis in "yxc")
        size = y * x * (-(-c // 8) * 8) * accumulator // 8
        return {("internal", 0): mask | run(start, 2 * 1024 * -(-size // 1024))}


AXES = {"y": "HEIGHT", "x": "WIDTH", "c": "DEPTH"}
KERNEL = {
    "y": ("IFM_PAD_TOP", "IFM_PAD_BOTTOM", "KERNEL_HEIGHT_M1"),
    "x": ("IFM_PAD_LEFT", "IFM_PAD_RIGHT", "KERNEL_WIDTH_M1"),
}


class Guarantees:
    """The partial order of a stream's events under its waits and block dependencies."""

    def __init__(
        self, stream: Stream, instructions: list[Instruction], accelerator: Accelerator
    ) -> None:
        self._before: dict[int, int] = {}
        self._front = 0
        self._limits = LIMITS[accelerator.arch]
        self._kernels: list[Entry] = []
        self._transfers: list[int] = []
        blockdep = 0
        for instruction in instructions:
            offset = instruction.offset_words
            match instruction.name:
                case "SET_BLOCKDEP":
                    blockdep = int(instruction.values["blockdep"])
                case "OP_KERNEL_WAIT":
                    self._wait_for_kernels(int(instruction.values["n"]))
                case "OP_DMA_WAIT":
                    self._wait_for_transfers(int(instruction.values["k"]))
                case "OP_DMA_START":
                    self._wait_for_transfers(self._limits[1] - 1)
                    _, event = stream.operations[offset]
                    self._add(event, self._front)
                    self._transfers.append(event)
                case name if name in KERNELS:
                    self._kernel(stream.operations[offset], blockdep)
                case _:
                    pass

    def ordered(self, first: int, second: int) -> bool:
        """Whether one of two events is always over before the other."""
        return bool(self._before[second] >> first & 1 or self._before[first] >> second & 1)

    def unordered(self, second: int) -> int:
        """Return the earlier events that may come after `second`."""
        return ~self._before[second] & (1 << second) - 1

    def _add(self, event: int, before: int) -> None:
        for number in list(bits_of(before)):
            before |= self._before[number]
        self._before[event] = before

    def _wait_for_transfers(self, outstanding: int) -> None:
        """Transfers end in order, so those before the last ones have ended."""
        for event in self._transfers[: max(0, len(self._transfers) - outstanding)]:
            self._front |= 1 << event

    def _wait_for_kernels(self, outstanding: int) -> None:
        for entry in self._kernels[: max(0, len(self._kernels) - outstanding)]:
            for events in (*entry.jobs, *entry.blocks):
                for event in events:
                    self._front |= 1 << event

    def _kernel(self, operation: dict[str, Any], blockdep: int) -> None:
        continues, goes_on = operation["chained"]
        if not (self._kernels and self._kernels[-1].chain):
            self._wait_for_kernels(self._limits[0] - 1)
            self._kernels.append(Entry())
            self._kernels[-1].blockdep = blockdep
        entry = self._kernels[-1]
        blockdep = max(blockdep, entry.blockdep)
        handed = entry.blocks[-1] if entry.blocks else []
        entry.chain = goes_on
        previous = self._kernels[-2] if len(self._kernels) > 1 else Entry()
        overtaken = self._mask([events[-1] for events in previous.jobs])
        written = self._mask([events[-1] for events in previous.blocks])
        jobs = [event for event, _ in operation["jobs"]]
        of_block: dict[int, int] = {}
        for number, (event, block) in enumerate(operation["jobs"]):
            before = self._front | overtaken
            if number:
                before |= 1 << jobs[number - 1]
            free = max(0, blockdep - number)
            for events in previous.blocks:
                if free < len(events):
                    before |= 1 << events[len(events) - 1 - free]
            self._add(event, before)
            of_block[block] = event
        last = 0
        for number, event in enumerate(operation["blocks"]):
            # A link may fetch what lies in memory before the block that it goes on with is done.
            read = 1 << of_block[number]
            if continues and number < len(handed):
                read |= 1 << handed[number]
            # Blocks that stay inside a chain overtake those that are still on their way to memory.
            self._add(event, self._front | read | last | (0 if goes_on else written))
            last = 1 << event
        entry.jobs.append(jobs)
        entry.blocks.append(operation["blocks"])

    @staticmethod
    def _mask(events: list[int]) -> int:
        return sum(1 << event for event in events)


def races(
    stream: Stream,
    conflicts: list[tuple[int, int, str]],
    instructions: list[Instruction],
    accelerator: Accelerator,
) -> set[Race]:
    """Return the pairs of operations with accesses that nothing orders."""
    guarantees = Guarantees(stream, instructions, accelerator)
    return stream.collisions | {
        (stream.events[i].offset, stream.events[j].offset, word)
        for i, j, word in conflicts
        if not guarantees.ordered(i, j)
    }
