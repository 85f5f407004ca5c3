"""Kernel operations from registers, on each architecture: inputs, output, constants, memory."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.diagnostics import Origin
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.hazards.blocks import (
    Axis,
    Blocks,
    Input,
    Pointwise,
    Result,
    Sampled,
    Samples,
    Shape,
    Sliding,
    Whole,
    Window,
)
from mizzen.targets.ethos_u.judge.hazards.footprint import NOTHING, Footprint, footprint, grid, run
from mizzen.targets.ethos_u.judge.hazards.maps import INTERNAL, Kind, Map, MemoryBlock
from mizzen.targets.ethos_u.judge.hazards.operations import (
    ACCUMULATOR_BUFFERS,
    BANK_BYTES,
    OUTPUT_BANKS,
    TABLE_MEMORY_BYTES,
    Access,
    Kernel,
)
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.machine.config import Accelerator

UNARY = {"LRELU", "ABS", "CLZ", "NOT"}
FIRST_TABLE = 16
"""Activation function number of the first lookup table of U55 and U65."""
SLOT_BYTES = 256
TABLE_BYTES = {1: 256, 2: 2048, 4: 1024}
"""Size of a table of U55 and U65 by the bytes of an output element."""
TABLE_BYTES_U85 = {
    "LUT_U8_U8": 256,
    "LUT_S8_S8": 256,
    "LUT_S8_S16": 512,
    "LUT_S8_S32": 1024,
    "LUT_S16_S16": 2048,
    "LUT_S16_S32": 2048,
    "LUT_TANH": 2048,
    "LUT_SIGMOID": 2048,
}
ACCUMULATOR_BITS = {"I32": 32, "I40": 40, "F16": 16}
AXES = {
    "HWC": (0, 1, 2),
    "WHC": (1, 0, 2),
    "HCW": (0, 2, 1),
    "WCH": (1, 2, 0),
    "CHW": (2, 0, 1),
    "CWH": (2, 1, 0),
}
REVERSED = {"NONE": None, "H": 0, "W": 1, "C": 2}
SCALAR = 8
CHANNEL_GRANULE = 8
PART_KERNEL_SLAB = 16
"""Input channels of one job where the weights come kernel part by kernel part."""
SLAB_BYTES = 32
"""Bytes of input channels of one job of U55 and U65 otherwise."""
SLAB_U85 = 64
SPARSE_SLAB_U85 = 128
"""Input channels of one job of U85, and those of one with sparse weights of 8 bits."""
NARROW_MACS_U85, NARROW_DEPTH_U85 = 256, 16
"""Up to so many MACs, microblocks of this depth have jobs of half as many input channels."""
MICROBLOCK_AREA = {"U1X1": 1, "U1X2": 2, "U1X4": 4, "U2X2": 4, "U2X4": 8, "U4X4": 16}


class KernelsU55:
    """Kernel operations of U55 and U65."""

    def __init__(self, registers: Registers, accelerator: Accelerator) -> None:
        assert accelerator.shram_kib is not None
        self.registers = registers
        self._cores = accelerator.cores
        self._buffer_bytes = accelerator.shram_kib * 1024 // accelerator.cores

    def kernel(self, instruction: Instruction, origin: Origin) -> Kernel:
        """Return the operation that `instruction` starts."""
        name, registers = instruction.name, self.registers
        shape = registers.output_shape()
        result = Result(self._map("OFM", shape))
        inputs = tuple(self._inputs(instruction, shape))
        has_weights = name in ("OP_CONV", "OP_DEPTHWISE")
        constants = list(self._constants(shape)) if has_weights else []
        table, scratch = self._table(result.map), self._scratch(name, shape)
        reads = [Access(item.what, item.map.place, item.map.bytes) for item in inputs]
        if table:
            reads.append(Access("lookup table", INTERNAL, table))
        return Kernel(
            name=name,
            origin=origin,
            reads=(*reads, *constants),
            writes=(Access("OFM", result.map.place, result.map.bytes),),
            blocks=Blocks(shape, registers.block(), inputs, result),
            blockdep=registers.number("SET_BLOCKDEP"),
            table=table,
            scratch=scratch,
            mode=_mode(instruction),
        )

    def _map(self, prefix: str, shape: Shape) -> Map:
        place = self.registers.region(f"SET_{prefix}_REGION")
        return self.registers.map(prefix, place, shape, stacked=False)

    def _inputs(self, instruction: Instruction, shape: Shape) -> Iterator[Input]:
        if instruction.name == "OP_ELEMENTWISE":
            yield Input("IFM", self._map("IFM", shape), Pointwise())
            if mode_of(instruction, "elementwise_mode") not in UNARY:
                yield from self._second(shape)
            return
        sums = (
            instruction.name == "OP_POOL" and mode_of(instruction, "pooling_mode") == "REDUCE_SUM"
        )
        every = instruction.name == "OP_CONV" or sums
        window, size = sliding(self.registers, shape, every_channel=every)
        ifm = self._map("IFM", size)
        yield Input("IFM", ifm, window, self._slab(instruction, ifm) if every else None)

    def _slab(self, instruction: Instruction, ifm: Map) -> int:
        part = instruction.name == "OP_CONV" and is_part_kernel(self.registers)
        return PART_KERNEL_SLAB if part else SLAB_BYTES // ifm.element_bytes

    def _second(self, shape: Shape) -> Iterator[Input]:
        fields = self.registers.fields("SET_IFM2_BROADCAST")
        if fields["broadcast_constant"]:
            return
        sizes = [
            1 if fields[f"broadcast_{axis}"] else size
            for axis, size in zip("hwc", shape, strict=True)
        ]
        yield Input("IFM2", self._map("IFM2", (sizes[0], sizes[1], sizes[2])), Pointwise())

    def _constants(self, shape: Shape) -> Iterator[Access]:
        parallel = (
            self._cores > 1
            and shape[2] > 1
            and self.registers.choice("SET_PARALLEL_MODE", "parallel_mode") == "DUAL_CORE_DEPTH"
        )
        for suffix in ("", "1") if parallel else ("",):
            yield stream(self.registers, "WEIGHT", suffix)
            yield stream(self.registers, "SCALE", suffix)

    def _table(self, ofm: Map) -> Footprint:
        function = int(self.registers.fields("SET_ACTIVATION")["activation_function"])
        if function < FIRST_TABLE:
            return NOTHING
        start = self._buffer_bytes - TABLE_MEMORY_BYTES + SLOT_BYTES * (function - FIRST_TABLE)
        return run(start, TABLE_BYTES[ofm.element_bytes])

    def _scratch(self, name: str, shape: Shape) -> Footprint:
        """Output banks, input banks, and accumulators of a block, as far as the OFM fills it.

        Elementwise operations have no accumulators, and the second input before AB_START.
        """
        registers = self.registers
        start = registers.number("SET_AB_START") * BANK_BYTES
        used = [
            grid(0, OUTPUT_BANKS * BANK_BYTES),
            grid(0, registers.number("SET_IFM_IB_END") * BANK_BYTES),
        ]
        if name == "OP_ELEMENTWISE":
            if registers.has("SET_IFM2_IB_START"):
                second = registers.number("SET_IFM2_IB_START") * BANK_BYTES
                used.append(grid(second, start - second))
            return footprint(used)
        sizes = zip(registers.block(), shape, strict=True)
        height, width, depth = (min(block, whole) for block, whole in sizes)
        bits = ACCUMULATOR_BITS[registers.choice("SET_ACC_FORMAT", "acc_format")]
        depth = -(-depth // CHANNEL_GRANULE) * CHANNEL_GRANULE
        banks = -(-(height * width * depth * bits // 8) // BANK_BYTES)
        used.append(grid(start, ACCUMULATOR_BUFFERS * banks * BANK_BYTES))
        return footprint(used)


class KernelsU85:
    """Kernel operations of U85."""

    def __init__(self, registers: Registers, accelerator: Accelerator) -> None:
        self.registers = registers
        self._macs = accelerator.macs
        self._streams = accelerator.weight_streams

    def kernel(self, instruction: Instruction, origin: Origin) -> Kernel:
        """Return the operation that `instruction` starts."""
        registers = self.registers
        shape = registers.output_shape()
        inputs = tuple(self._inputs(instruction, shape))
        result = self._result(shape)
        table = self._table()
        reads = [Access(item.what, item.map.place, item.map.bytes) for item in inputs]
        if table:
            reads.append(Access("lookup table", INTERNAL, table))
        writes = (Access("OFM", result.map.place, result.map.bytes),) if result else ()
        return Kernel(
            name=instruction.name,
            origin=origin,
            reads=(*reads, *self._constants(instruction)),
            writes=writes,
            blocks=Blocks(shape, registers.block(), inputs, result),
            blockdep=registers.number("SET_BLOCKDEP"),
            table=table,
            goes_on=result is not None and result.map.place.kind is Kind.CHAIN,
            mode=_mode(instruction),
            microblock=registers.choice("SET_ACC_FORMAT", "microblock"),
        )

    def _map(self, prefix: str, shape: Shape) -> Map:
        place = self.registers.region(f"SET_{prefix}_REGION")
        storage = self.registers.choice(f"SET_{prefix}_PRECISION", "activation_storage")
        if storage == "CHAINED":
            return self._chained(prefix, MemoryBlock(Kind.CHAIN, place.index), shape)
        return self.registers.map(prefix, place, shape, stacked=storage == "TILE3X1")

    def _chained(self, prefix: str, place: MemoryBlock, shape: Shape) -> Map:
        """A map in a chain buffer, as if it were dense: which block is where is not seen."""
        height, width, depth = shape
        size = self.registers.element_bytes(prefix)
        row_bytes = width * depth * size
        return Map(
            place=place,
            shape=shape,
            element_bytes=size,
            bases=(0, 0, 0, 0),
            height_0=height,
            height_1=height,
            width_0=width,
            stride_y=row_bytes,
            stride_x=depth * size,
            stride_c=0,
            bricks=False,
            stacked=False,
        )

    def _result(self, shape: Shape) -> Result | None:
        precision = "SET_OFM_PRECISION"
        disabled = self.registers.choice("SET_ACC_FORMAT", "acc_output") == "DISABLE"
        if disabled or self.registers.choice(precision, "activation_storage") == "NONE":
            return None
        axes = AXES[self.registers.choice(precision, "activation_transpose")]
        turned = shape[axes[0]], shape[axes[1]], shape[axes[2]]
        reverse = REVERSED[self.registers.choice(precision, "activation_reverse")]
        return Result(self._map("OFM", turned), axes, reverse)

    def _inputs(self, instruction: Instruction, shape: Shape) -> Iterator[Input]:
        match instruction.name:
            case "OP_ELEMENTWISE":
                yield from self._operand("IFM", shape)
                if mode_of(instruction, "elementwise_mode") not in UNARY:
                    yield from self._operand("IFM2", shape)
            case "OP_RESIZE":
                height = self.registers.number("SET_KERNEL_HEIGHT_M1")
                width = self.registers.number("SET_IFM_WIDTH0_M1")
                window = Sampled(self._samples("Y"), self._samples("X"))
                yield Input("IFM", self._map("IFM", (height, width, shape[2])), window)
            case _:
                yield from self._slid(instruction, shape)
        if self.registers.choice("SET_ACC_FORMAT", "acc_input") == "IFM2":
            yield Input("IFM2", self._map("IFM2", shape), Pointwise())

    def _slid(self, instruction: Instruction, shape: Shape) -> Iterator[Input]:
        mode = mode_of(instruction, "pooling_mode") if instruction.name == "OP_POOL" else ""
        if mode == "NONE":
            return
        convolution = instruction.name == "OP_CONV"
        every = convolution or mode == "REDUCE_SUM"
        window, size = sliding(self.registers, shape, every_channel=every)
        ifm = self._map("IFM", size)
        yield Input("IFM", ifm, window, self._slab(instruction, ifm) if every else None)
        if convolution and instruction.values["weights_ifm2"]:
            yield Input("IFM2", self._map("IFM2", (1, shape[2], size[2])), Whole())

    def _slab(self, instruction: Instruction, ifm: Map) -> int:
        registers, convolution = self.registers, instruction.name == "OP_CONV"
        if convolution and is_part_kernel(registers):
            return PART_KERNEL_SLAB
        if convolution and ifm.element_bytes == 1 and self._is_sparse():
            return SPARSE_SLAB_U85
        area = MICROBLOCK_AREA[registers.choice("SET_ACC_FORMAT", "microblock")]
        narrow = self._macs <= NARROW_MACS_U85 and self._macs // (8 * area) == NARROW_DEPTH_U85
        return SLAB_U85 // 2 if narrow or ifm.element_bytes == 4 else SLAB_U85

    def _is_sparse(self) -> bool:
        return self.registers.choice("SET_WEIGHT_FORMAT", "weight_sparsity") == "SPARSE_2_4"

    def _operand(self, prefix: str, shape: Shape) -> Iterator[Input]:
        mode = int(self.registers.fields(f"SET_{prefix}_BROADCAST")["broadcast_mode"])
        if mode & SCALAR:
            return
        sizes = [1 if mode & bit else size for bit, size in zip((1, 2, 4), shape, strict=True)]
        yield Input(prefix, self._map(prefix, (sizes[0], sizes[1], sizes[2])), Pointwise())

    def _samples(self, axis: str) -> Samples:
        scale = self.registers.number(f"SET_RESIZE_{axis}_SCALE_N_M1")
        fields = self.registers.fields(f"SET_RESIZE_{axis}")
        step = int(fields["one_step_int"]) * scale + int(fields["one_step_mod"])
        return Samples(scale, step, self.registers.number(f"SET_RESIZE_{axis}_OFFSET"))

    def _constants(self, instruction: Instruction) -> Iterator[Access]:
        registers = self.registers
        dynamic = instruction.name == "OP_CONV" and instruction.values["weights_ifm2"]
        if instruction.name in ("OP_CONV", "OP_DEPTHWISE") and not dynamic:
            fast = registers.choice("SET_WEIGHT_FORMAT", "weight_format") == "FWD"
            for number in range(1 if fast else self._streams):
                yield stream(registers, "WEIGHT", str(number or ""))
        if registers.choice("SET_OFM_PRECISION", "scale_mode") == "PER_CHANNEL":
            yield stream(registers, "SCALE", "")

    def _table(self) -> Footprint:
        fields = self.registers.fields("SET_ACTIVATION")
        size = TABLE_BYTES_U85.get(self.registers.choice("SET_ACTIVATION", "activation_function"))
        return NOTHING if size is None else run(size * int(fields["table"]), size)


def is_part_kernel(registers: Registers) -> bool:
    """Say whether jobs are cut for weights that come kernel part by kernel part."""
    return registers.choice("SET_KERNEL_STRIDE", "weight_order") == "PART_KERNEL_FIRST"


def mode_of(instruction: Instruction, field: str) -> str:
    """Return the member of an operation's enumeration by name."""
    name: str = getattr(instruction.values[field], "name", "")
    return name


MODES = {
    "OP_POOL": "pooling_mode",
    "OP_ELEMENTWISE": "elementwise_mode",
    "OP_RESIZE": "resize_mode",
}
"""The field of an operation's command that says what it computes."""


def _mode(instruction: Instruction) -> str:
    field = MODES.get(instruction.name)
    return "" if field is None else mode_of(instruction, field)


def sliding(registers: Registers, shape: Shape, *, every_channel: bool) -> tuple[Window, Shape]:
    """Return the window of a kernel, and the input's shape, which is in no register."""
    stride = registers.fields("SET_KERNEL_STRIDE")
    upscale = 1 if registers.choice("SET_IFM_UPSCALE", "mode") == "NONE" else 2
    axes: list[Axis] = []
    sizes: list[int] = []
    for extent, axis, size, before, after in (
        (shape[0], "y", "HEIGHT", "TOP", "BOTTOM"),
        (shape[1], "x", "WIDTH", "LEFT", "RIGHT"),
    ):
        step, span = int(stride[f"stride_{axis}"]), registers.number(f"SET_KERNEL_{size}_M1")
        pad = registers.number(f"SET_IFM_PAD_{before}")
        needed = (extent - 1) * step + span - pad - registers.number(f"SET_IFM_PAD_{after}")
        axes.append(Axis(step, span, pad, upscale))
        sizes.append(-(-needed // upscale))
    depth = registers.number("SET_IFM_DEPTH_M1") if every_channel else shape[2]
    return Sliding(axes[0], axes[1], every_channel), (sizes[0], sizes[1], depth)


def stream(registers: Registers, kind: str, suffix: str) -> Access:
    """Return the bytes of a stream of weights or scales."""
    start = registers.number(f"SET_{kind}{suffix}_BASE")
    length = registers.number(f"SET_{kind}{suffix}_LENGTH")
    what = {"WEIGHT": "weights", "SCALE": "scales"}[kind]
    return Access(what, registers.region(f"SET_{kind}_REGION"), run(start, length))
