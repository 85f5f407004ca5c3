"""Whether an operation of U85 is one that its array can do: block, microblock, memories, formats.

Nothing in the registers says where in the NPU an operation's inputs and accumulators lie; hardware
takes what the block needs. What does not fit, or a microblock that the array does not use for an
operation, no simulator of whole maps shows.

Ref: Ethos-U85 technical reference manual, "Microarchitecture"; Vela 5.2.0, the C++ core's choice of
blocks, whose streams hold to all of this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mizzen.targets.ethos_u.judge.hazards.array_u85 import (
    ARRAYS,
    MICROBLOCK_SIDES,
    Array,
    Unit,
    Use,
    covered,
    job_bytes,
    room,
)
from mizzen.targets.ethos_u.judge.hazards.blocks import Shape, Sliding
from mizzen.targets.ethos_u.judge.hazards.kernels import is_part_kernel
from mizzen.targets.ethos_u.judge.hazards.maps import BRICK
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.machine.config import Accelerator

LARGEST_BLOCK: Shape = (128, 128, 1024)
BUFFERS = 2
"""Jobs' inputs, and blocks of accumulators, that are in the memories at once."""
ACCUMULATOR_BYTES = {"I32": 4, "I48": 8}
ACCUMULATOR_CHANNELS = 16
"""What a block's channels are rounded up to in the accumulators, and all blocks but those of the
array are made of."""
INPUT_DEPTH = 8
IN_ARRAY = (Use.CONVOLUTION, Use.PRODUCT, Use.FLAT)
"""Uses with two jobs and two blocks at work at once; others have one, and some rows more."""
AROUND = (Use.ELEMENTWISE, Use.RESIZE)
"""Uses that need no accumulators."""


def misfits_u85(
    kernel: Kernel, first: Kernel | None, registers: Registers, accelerator: Accelerator
) -> Iterator[str]:
    """Say what of an operation does not fit; `first` is that of its chain, if another began it."""
    if first is not None:
        yield from _links(kernel, first)
        return
    use, array = _use(kernel, registers), ARRAYS[accelerator.macs]
    yield from _formats(kernel, use)
    fault = _microblock_fault(kernel, use, array) or _block_fault(kernel, use, accelerator)
    if fault:
        yield fault
    elif use in IN_ARRAY:
        yield from _in_array(kernel, registers, array, accelerator)
    elif use not in AROUND:
        yield from _beside_array(kernel, registers, array)


def _use(kernel: Kernel, registers: Registers) -> Use:
    match kernel.name:
        case "OP_CONV" if any(item.what == "IFM2" for item in kernel.blocks.inputs[1:]):
            return Use.PRODUCT
        case "OP_CONV" if not is_part_kernel(registers) and _kernel_size(registers) == 1:
            return Use.FLAT
        case "OP_CONV":
            return Use.CONVOLUTION
        case "OP_DEPTHWISE":
            return Use.DEPTHWISE
        case "OP_POOL" if kernel.mode == "REDUCE_SUM":
            return Use.REDUCE_SUM
        case "OP_POOL" if kernel.mode != "NONE":
            return Use.POOL
        case "OP_RESIZE":
            return Use.RESIZE
        case _:
            return Use.ELEMENTWISE


def _kernel_size(registers: Registers) -> int:
    return registers.number("SET_KERNEL_HEIGHT_M1") * registers.number("SET_KERNEL_WIDTH_M1")


def _links(kernel: Kernel, first: Kernel) -> Iterator[str]:
    """Say how a link differs from the operation that its chain begins with."""
    if kernel.blocks.block != first.blocks.block:
        yield (
            f"a link must have the block of the operation that its chain begins with, "
            f"{_text(first.blocks.block)}, not {_text(kernel.blocks.block)}"
        )
    if kernel.microblock != first.microblock:
        yield (
            f"a link must have the microblock of the operation that its chain begins with, "
            f"{first.microblock}, not {kernel.microblock}"
        )


def _formats(kernel: Kernel, use: Use) -> Iterator[str]:
    if use is Use.PRODUCT:
        yield from (
            "the second operand of a product must lie in bricks of 16 channels (NHCWB16), not NHWC"
            for item in kernel.blocks.inputs
            if item.what == "IFM2" and not item.map.bricks
        )
    result = kernel.blocks.result
    if result is None or result.axes[2] == 2 or not result.map.bricks:
        return
    size = kernel.blocks.block[result.axes[2]]
    if size % BRICK:
        yield f"a block must have a multiple of {BRICK} of what becomes channels, not {size}"


def _block_fault(kernel: Kernel, use: Use, accelerator: Accelerator) -> str:
    high, wide = MICROBLOCK_SIDES[kernel.microblock]
    deep = accelerator.macs // (INPUT_DEPTH * high * wide)
    unit = (high, wide, min(deep, ACCUMULATOR_CHANNELS) if use in AROUND else deep)
    largest = LARGEST_BLOCK
    if use is Use.RESIZE:
        unit, largest = (1, *unit[1:]), (1, *largest[1:])
    for name, size, least, most in zip(
        ("high", "wide", "deep"), kernel.blocks.block, unit, largest, strict=True
    ):
        if size > most:
            return f"a block must be at most {most} {name}, not {size}"
        if size % least:
            return f"a block must be a multiple of {least} {name}, not {size}"
    return ""


def _microblock_fault(kernel: Kernel, use: Use, array: Array) -> str:
    wide = bool(kernel.blocks.inputs) and kernel.blocks.inputs[0].map.element_bytes > 1
    names = [name for name, unit in array.units.items() if use in _uses(unit, wide=wide)]
    if kernel.microblock in names:
        return ""
    return f"the microblock must be {' or '.join(names)} for it, not {kernel.microblock}"


def _uses(unit: Unit, *, wide: bool) -> frozenset[Use]:
    return unit.wide if wide else unit.narrow


def _in_array(
    kernel: Kernel, registers: Registers, array: Array, accelerator: Accelerator
) -> Iterator[str]:
    """Say what two jobs, and two blocks of results, do not fit into.

    Where not even the smallest block fits twice, one is at work at a time.
    """
    unit, blocks = array.units[kernel.microblock], kernel.blocks
    high, wide = MICROBLOCK_SIDES[kernel.microblock]
    least = high, wide, accelerator.macs // (INPUT_DEPTH * high * wide)
    beyond = _beyond(registers)
    twice = (
        BUFFERS * job_bytes(blocks, least, unit, beyond) <= array.input_bytes
        and BUFFERS * _accumulators(registers, least) <= array.accumulator_bytes
    )
    times = BUFFERS if twice else 1
    needed = times * job_bytes(blocks, blocks.block, unit, beyond)
    if needed > array.input_bytes:
        yield _overflow(f"inputs of {times} jobs", array.input_bytes, needed, blocks.block)
    needed = times * _accumulators(registers, blocks.block)
    if needed > array.accumulator_bytes:
        what = f"accumulators of {times} blocks"
        yield _overflow(what, array.accumulator_bytes, needed, blocks.block)


def _beside_array(kernel: Kernel, registers: Registers, array: Array) -> Iterator[str]:
    """Say what an operation of the array with one block at work does not fit into.

    Of its input the next rows are there too, unless the block is the whole.
    """
    unit, blocks = array.units[kernel.microblock], kernel.blocks
    needed = job_bytes(blocks, blocks.block, unit, _beyond(registers))
    if needed:
        item = blocks.inputs[0]
        assert isinstance(item.window, Sliding)
        high = room(unit, (item.slab or blocks.block[2]) * item.map.element_bytes)[0]
        granules = -(-covered(item.window, blocks.block, _beyond(registers))[0] // high)
        whole = math.prod(item.map.shape) * item.map.element_bytes
        needed = min(needed, whole) if blocks.total == 1 else needed + needed // granules
    if needed > array.input_bytes:
        yield _overflow("the input of a block", array.input_bytes, needed, blocks.block)
    needed = _accumulators(registers, blocks.block)
    if needed > array.accumulator_bytes:
        yield _overflow("accumulators", array.accumulator_bytes, needed, blocks.block)


def _beyond(registers: Registers) -> int:
    return 1 if registers.choice("SET_IFM_UPSCALE", "mode") == "NEAREST" else 0


def _accumulators(registers: Registers, block: Shape) -> int:
    height, width, depth = block
    channels = -(-depth // ACCUMULATOR_CHANNELS) * ACCUMULATOR_CHANNELS
    size = ACCUMULATOR_BYTES[registers.choice("SET_ACC_FORMAT", "acc_format")]
    return height * width * channels * size


def _overflow(what: str, room: int, needed: int, block: Shape) -> str:
    return f"{what} must fit into {room} bytes, and take {needed} in blocks of {_text(block)}"


def _text(block: Shape) -> str:
    return " x ".join(str(extent) for extent in block)
