"""Whether the parts of the shared buffer that an operation of U55 or U65 is given suffice it.

From the start of the buffer there lie two banks through which results leave, then the input's
blocks, from AB_START on the accumulators, and lookup tables at the very end. An elementwise
operation has its second input where others have accumulators. Everything is double-buffered and
allocated in granules of banks, so that what an operation needs follows from its registers: block,
kernel, precisions. Hardware takes what it needs whatever the registers say, so that a part that is
too small lies over the next one, and no simulator of whole maps shows it.

Ref: Ethos-U55 and Ethos-U65 technical reference manuals, "Shared buffer"; Vela 5.2.0,
architecture_allocator.py and architecture_features.py (sizes, granules), whose streams have exactly
these needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.targets.ethos_u.judge.hazards.blocks import Shape
from mizzen.targets.ethos_u.judge.hazards.kernels import UNARY, is_part_kernel
from mizzen.targets.ethos_u.judge.hazards.operations import BANK_BYTES, OUTPUT_BANKS, Kernel
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.machine.config import Accelerator

BUFFERS = 2
"""Blocks of an input, and of accumulators, that are in use at once."""
TABLE_BANKS = 2
LARGEST_BLOCK: Shape = (32, 64, 128)
SUBKERNEL = 8
"""Kernels are cut into parts of at most so many elements along each axis."""
DEPTH_FIRST_CHANNELS, PART_KERNEL_CHANNELS = 32, 16
WIDE_INPUT_CHANNELS, WIDE_INPUT_GRANULE = 16, 4
"""Input channels of a job of a convolution with 16-bit input, and what they are rounded up to."""
CHANNEL_GRANULE = 8


@dataclass(frozen=True, slots=True)
class Granules:
    """A row: the shared buffer of one core, and the banks by which its parts are allocated.

    microblock           height, width and depth of what is computed at once
    banks                of 1 KiB
    ifm8, ifm16, ifm32   of an input, by bits of an element
    elementwise          of an input of 8 or 16 bits of an elementwise operation
    acc16, acc32, acc40  of accumulators, by their bits
    """

    microblock: Shape
    banks: int
    ifm8: int
    ifm16: int
    ifm32: int
    elementwise: int
    acc16: int
    acc32: int
    acc40: int


GRANULES: dict[str, Granules] = {
    #                         microblock banks ifm8 16 32 ew acc16 32 40
    "ethos-u55-32": Granules((1, 1, 4), 16, 2, 2, 4, 2, 4, 4, 4),
    "ethos-u55-64": Granules((1, 1, 8), 16, 2, 2, 4, 2, 4, 4, 8),
    "ethos-u55-128": Granules((1, 2, 8), 24, 4, 4, 8, 4, 4, 8, 12),
    "ethos-u55-256": Granules((2, 2, 8), 48, 8, 8, 16, 8, 8, 16, 20),
    "ethos-u65-256": Granules((2, 2, 8), 48, 8, 8, 16, 8, 8, 16, 20),
    "ethos-u65-512": Granules((2, 2, 8), 48, 8, 8, 16, 8, 8, 16, 20),
}
"""Ref: Vela 5.2.0, architecture_features.py; of U65-512 each core has such a buffer."""

ACCUMULATOR_BITS = {"I32": 32, "I40": 40, "F16": 16}
LONGEST_SCALAR_BYTES = 2
"""An elementwise operation keeps a scalar of at most so many bytes in a register."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the shared buffer: the banks that it is given, and those that it needs."""

    what: str
    start: int
    end: int
    needed: int

    @property
    def is_too_small(self) -> bool:
        """Whether it lies over what comes after it."""
        return self.end - self.start < self.needed


@dataclass(frozen=True, slots=True)
class Use:
    """What an operation does with the shared buffer.

    has_second  whether it has a second input, besides a short scalar
    channels    of the input that one job reads
    """

    is_elementwise: bool
    has_second: bool
    has_table: bool
    channels: int


def misfits(kernel: Kernel, registers: Registers, accelerator: Accelerator) -> Iterator[str]:
    """Say which parts of the buffer an operation overflows; `registers` are what it starts with."""
    fault = block_fault(registers, accelerator)
    if fault:
        yield f"a block {fault}"
        return
    is_elementwise = kernel.name == "OP_ELEMENTWISE"
    use = Use(
        is_elementwise,
        is_elementwise and _has_second(kernel, registers),
        bool(kernel.table),
        _job_channels(kernel, registers),
    )
    for part in parts(registers, accelerator, kernel.blocks.shape, use):
        if part.is_too_small:
            yield (
                f"{part.what} must have {part.needed} banks of the shared buffer, and has "
                f"{max(0, part.end - part.start)} from bank {part.start}"
            )
    end, limit = registers.number("SET_IFM_IB_END"), _limit(registers, accelerator, use)
    if end > limit:
        yield f"inputs must end by bank {limit} of the shared buffer, and end at bank {end}"


def _limit(registers: Registers, accelerator: Accelerator, use: Use) -> int:
    """Return the bank at which inputs must end: of accumulators, tables, or nothing at all."""
    end = _end(accelerator, use)
    return end if use.is_elementwise else min(registers.number("SET_AB_START"), end)


def _has_second(kernel: Kernel, registers: Registers) -> bool:
    """Whether a second input takes room; a short scalar is in a register."""
    if kernel.mode in UNARY:
        return False
    scalar = registers.fields("SET_IFM2_BROADCAST")["broadcast_constant"]
    return not scalar or registers.element_bytes("IFM2") > LONGEST_SCALAR_BYTES


def _job_channels(kernel: Kernel, registers: Registers) -> int:
    """Return how many channels of its input a job reads."""
    is_convolution = kernel.name == "OP_CONV"
    if not (is_convolution or kernel.mode == "REDUCE_SUM"):
        return registers.block()[2]
    depth = registers.number("SET_IFM_DEPTH_M1")
    if registers.element_bytes("IFM") == 2:
        return _rounded(min(depth, WIDE_INPUT_CHANNELS), WIDE_INPUT_GRANULE)
    part = is_convolution and is_part_kernel(registers)
    slab = PART_KERNEL_CHANNELS if part else DEPTH_FIRST_CHANNELS
    return _rounded(min(depth, slab), CHANNEL_GRANULE)


def parts(registers: Registers, accelerator: Accelerator, shape: Shape, use: Use) -> Iterator[Part]:
    """Return the parts of the buffer that an operation uses; `shape` is that of its output."""
    granules, end = GRANULES[accelerator.name], _end(accelerator, use)
    ifm = _banks(_input_bytes(registers, granules, use), _input_granule(registers, granules, use))
    ib_end = registers.number("SET_IFM_IB_END")
    if not use.is_elementwise:
        start = registers.number("SET_AB_START")
        yield Part("the input", OUTPUT_BANKS, min(ib_end, start), ifm)
        yield Part("the accumulators", start, end, _accumulator_banks(registers, granules, shape))
        return
    if not use.has_second:
        yield Part("the input", OUTPUT_BANKS, min(ib_end, end), ifm)
        return
    second = registers.number("SET_IFM2_IB_START")
    yield Part("the first input", OUTPUT_BANKS, second, ifm)
    yield Part("the second input", second, min(ib_end, end), ifm)


def _end(accelerator: Accelerator, use: Use) -> int:
    """Return the bank at which tables begin, or the one after the last."""
    return GRANULES[accelerator.name].banks - (TABLE_BANKS if use.has_table else 0)


def block_fault(registers: Registers, accelerator: Accelerator) -> str:
    """Return the fault of a block's size; empty if there is none."""
    block, unit = registers.block(), GRANULES[accelerator.name].microblock
    for name, size, least, most in zip(
        ("high", "wide", "deep"), block, unit, LARGEST_BLOCK, strict=True
    ):
        if size > most:
            return f"must be at most {most} {name}, not {size}"
        if size % least:
            return f"must be a multiple of {least} {name}, not {size}"
    return ""


def _input_bytes(registers: Registers, granules: Granules, use: Use) -> int:
    """Return the bytes of an input's block."""
    block = registers.block()[:2]
    covered = block if use.is_elementwise else _covered(registers, block)
    height, width = (
        _rounded(extent, unit)
        for extent, unit in zip(covered, granules.microblock[:2], strict=True)
    )
    return height * width * _rounded(use.channels * registers.element_bytes("IFM"), 8)


def _covered(registers: Registers, block: tuple[int, int]) -> tuple[int, int]:
    """Return height and width of what a part of the kernel covers for a block of the output."""
    mode = registers.choice("SET_IFM_UPSCALE", "mode")
    factor, extra = (1 if mode == "NONE" else 2), (1 if mode == "NEAREST" else 0)
    stride = registers.fields("SET_KERNEL_STRIDE")
    kernel = (registers.number(f"SET_KERNEL_{side}_M1") for side in ("HEIGHT", "WIDTH"))
    steps = (int(stride["stride_y"]), int(stride["stride_x"]))
    height, width = (
        -(-((extent - 1) * step + min(elements, SUBKERNEL) + extra) // factor)
        for extent, step, elements in zip(block, steps, kernel, strict=True)
    )
    return height, width


def _input_granule(registers: Registers, granules: Granules, use: Use) -> int:
    size = registers.element_bytes("IFM")
    if size == 4:
        return granules.ifm32
    if use.is_elementwise:
        return granules.elementwise
    return granules.ifm16 if size == 2 else granules.ifm8


def _accumulator_banks(registers: Registers, granules: Granules, shape: Shape) -> int:
    height, width, depth = registers.block()
    bits = ACCUMULATOR_BITS[registers.choice("SET_ACC_FORMAT", "acc_format")]
    granule = {16: granules.acc16, 32: granules.acc32, 40: granules.acc40}[bits]
    if (
        granules.microblock[0] == 2
        and shape[0] == 1
        and registers.number("SET_KERNEL_HEIGHT_M1") == 1
    ):
        height = min(height, 1)  # of a map of one row only that row is accumulated
    return _banks(height * width * _rounded(depth, CHANNEL_GRANULE) * bits // 8, granule)


def _banks(block_bytes: int, granule: int) -> int:
    return _rounded(BUFFERS * -(-block_bytes // BANK_BYTES), granule)


def _rounded(value: int, granule: int) -> int:
    return -(-value // granule) * granule
