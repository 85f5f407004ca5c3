"""Whether a block fits into the shared buffer, and the registers that say how.

All sizes are integers; `banks`, `rounded` and what is made of them take arrays too, so that a
search can ask for all its blocks at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import (
    Computation,
    Convolution,
    Elementwise,
    Kernel,
    MatrixProduct,
    Pooling,
    Resize,
    Scalar,
    Shape,
)
from mizzen.targets.ethos_u.generator.shared_buffer.cores import (
    BANK_BYTES,
    BUFFERS,
    LARGEST_BLOCK,
    OUTPUT_BANKS,
    TABLE_BANKS,
    Core,
)
from mizzen.targets.ethos_u.machine.commands_values import AccFormat, PoolingMode, UpscaleMode

Ints = npt.NDArray[np.int64]
N = TypeVar("N", int, Ints)

CHANNEL_GRANULE = 8
DEPTH_FIRST_CHANNELS, PART_KERNEL_CHANNELS = 32, 16
WIDE_CHANNELS, WIDE_GRANULE = 16, 4
"""Input channels of a job with 16-bit input, and what fewer are rounded up to."""
LONGEST_SCALAR_BYTES = 2
"""A scalar of at most so many bytes is in a register and takes no room."""


def subkernel_side(dilated: int) -> int:
    """Return how many elements of a kernel, with dilation, are under way at once along an axis."""
    return min(dilated, 8)


@dataclass(frozen=True, slots=True)
class Demand:
    """What of an operation decides how much room a block takes; equal ones have the same blocks.

    kernel_height, kernel_width  of the part of the kernel that is under way at once, dilated
    upscale, replicates  factor by which the input is enlarged; whether by its nearest element
    ifm_bytes            of an element
    ifm_depth            channels of which each output channel needs all; None where it needs its
                         own alone
    has_traversal        whether the channels may come kernel part by kernel part
    accumulators         None of an elementwise operation
    inputs               blocks of inputs side by side: 2 where there is a second one
    one_row              whether the output has one row, and the kernel too
    """

    kernel_height: int
    kernel_width: int
    stride_y: int
    stride_x: int
    upscale: int
    replicates: bool
    ifm_bytes: int
    ifm_depth: int | None
    has_traversal: bool
    has_table: bool
    accumulators: AccFormat | None
    inputs: int
    one_row: bool

    def ifm_depth_of_job(self, part_kernel: bool) -> int | None:
        """Return the channels that one job reads; None for those of the output's block."""
        if self.ifm_depth is None:
            return None
        if self.ifm_bytes == 2:
            return rounded(min(self.ifm_depth, WIDE_CHANNELS), WIDE_GRANULE)
        part = part_kernel and self.has_traversal
        most = PART_KERNEL_CHANNELS if part else DEPTH_FIRST_CHANNELS
        return rounded(min(self.ifm_depth, most), CHANNEL_GRANULE)


def demand_of(operation: Computation) -> Demand:
    """Return the demand of an operation on the buffer, whatever its block."""
    assert not isinstance(operation, (MatrixProduct, Resize)), "U85 alone has these"
    table = operation.activation.table is not None
    ifm_bytes = operation.ifm.dtype.itemsize
    if isinstance(operation, Elementwise):
        short = (
            isinstance(operation.ifm2, Scalar)
            and operation.ifm2.dtype.itemsize <= LONGEST_SCALAR_BYTES
        )
        return Demand(
            1, 1, 1, 1, 1, False, ifm_bytes, None, False, table, None, 1 if short else 2, False
        )
    return _demand_of_array(operation, operation.kernel, ifm_bytes, table)


def _demand_of_array(
    operation: Convolution | Pooling, kernel: Kernel, ifm_bytes: int, table: bool
) -> Demand:
    is_full = isinstance(operation, Convolution) and not operation.depthwise
    sums = isinstance(operation, Pooling) and operation.mode is PoolingMode.REDUCE_SUM
    return Demand(
        kernel_height=subkernel_side(kernel.dilated_height),
        kernel_width=subkernel_side(kernel.dilated_width),
        stride_y=kernel.stride_y,
        stride_x=kernel.stride_x,
        upscale=1 if operation.upscale is UpscaleMode.NONE else 2,
        replicates=operation.upscale is UpscaleMode.NEAREST,
        ifm_bytes=ifm_bytes,
        ifm_depth=operation.ifm.shape[2] if is_full or sums else None,
        has_traversal=is_full,
        has_table=table,
        accumulators=operation.accumulators,
        inputs=1,
        one_row=operation.ofm.shape[0] == 1 and kernel.dilated_height == 1,
    )


@dataclass(frozen=True, slots=True)
class Parts:
    """The registers IB_END, AB_START and IFM2_IB_START, in banks; the last None but elementwise."""

    ib_end: int
    ab_start: int
    ifm2_ib_start: int | None = None


@lru_cache(maxsize=1 << 16)
def parts_of(demand: Demand, block: Shape, part_kernel: bool, core: Core) -> Parts | None:
    """Return how the buffer is divided for a block; None if it does not fit or is not one."""
    limits = zip(block, core.microblock, LARGEST_BLOCK, strict=True)
    if any(size % least or not 0 < size <= most for size, least, most in limits):
        return None
    height, width, depth = block
    inputs = _input_banks(demand, core, height, width, _job_depth(demand, part_kernel, depth))
    end = core.banks - _table_banks(demand, core)
    if demand.accumulators is None:
        is_enough = OUTPUT_BANKS + demand.inputs * inputs <= end
        return Parts(end, end, OUTPUT_BANKS + inputs) if is_enough else None
    start = end - _accumulator_banks(demand, demand.accumulators, core, height, width, depth)
    ib_end = OUTPUT_BANKS + inputs
    return Parts(ib_end, start) if ib_end <= start else None


def fits(demand: Demand, blocks: Ints, part_kernel: bool, core: Core) -> npt.NDArray[np.bool_]:
    """Tell of each block, int64 [n, 3] (height, width, depth), whether it is legal: bool [n]."""
    units, most = np.array(core.microblock), np.array(LARGEST_BLOCK)
    legal = ((blocks % units == 0) & (blocks > 0) & (blocks <= most)).all(axis=1)
    height, width, depth = blocks[:, 0], blocks[:, 1], blocks[:, 2]
    inputs = _input_banks(demand, core, height, width, _job_depth(demand, part_kernel, depth))
    end = core.banks - _table_banks(demand, core)
    if demand.accumulators is None:
        return legal & (OUTPUT_BANKS + demand.inputs * inputs <= end)
    sums = _accumulator_banks(demand, demand.accumulators, core, height, width, depth)
    return legal & (OUTPUT_BANKS + inputs + sums <= end)


def _table_banks(demand: Demand, core: Core) -> int:
    return TABLE_BANKS if demand.has_table or core.keeps_tables else 0


def _job_depth(demand: Demand, part_kernel: bool, depth: N) -> N | int:
    job_depth = demand.ifm_depth_of_job(part_kernel)
    return depth if job_depth is None else job_depth


def _input_banks(demand: Demand, core: Core, height: N, width: N, depth: N | int) -> N:
    """Return the banks of one input: `depth` channels of what a block of the output needs."""
    extra = 1 if demand.replicates else 0
    lines = (height - 1) * demand.stride_y + demand.kernel_height + extra
    columns = (width - 1) * demand.stride_x + demand.kernel_width + extra
    unit_height, unit_width, _ = core.microblock
    lines = rounded(-(-lines // demand.upscale), unit_height)
    columns = rounded(-(-columns // demand.upscale), unit_width)
    pixel_bytes = rounded(depth * demand.ifm_bytes, CHANNEL_GRANULE)
    return banks(lines * columns * pixel_bytes, _input_granule(demand, core))


def _input_granule(demand: Demand, core: Core) -> int:
    if demand.ifm_bytes == 4:
        return core.ifm32
    if demand.accumulators is None:
        return core.elementwise
    return core.ifm8 if demand.ifm_bytes == 1 else core.ifm16


def _accumulator_banks(
    demand: Demand, format_: AccFormat, core: Core, height: N, width: N, depth: N
) -> N:
    bits, granule = core.accumulators(format_)
    area = width if demand.one_row and core.microblock[0] > 1 else height * width
    return banks(area * rounded(depth, CHANNEL_GRANULE) * bits // 8, granule)


def banks(size_bytes: N, granule: int) -> N:
    """Return the banks that two blocks of so many bytes are given."""
    return rounded(BUFFERS * -(-size_bytes // BANK_BYTES), granule)


def rounded(value: N, granule: int) -> N:
    """Return the least multiple of `granule` that is not less."""
    return -(-value // granule) * granule
