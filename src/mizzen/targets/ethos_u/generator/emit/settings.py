"""Registers that all machines have, group by group, in the user's numbers.

Values stand in the order of the fields of a command's row; fields after them are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mizzen.targets.ethos_u.generator.emit.located import Located
from mizzen.targets.ethos_u.generator.emit.registers import Setting
from mizzen.targets.ethos_u.generator.emit.steps import (
    INTERNAL,
    NamedLines,
    Stream,
    TransferStep,
)
from mizzen.targets.ethos_u.generator.operations import Kernel, Shape
from mizzen.targets.ethos_u.generator.shared_buffer import core_of
from mizzen.targets.ethos_u.machine.commands_values import (
    ActivationType,
    DmaIndexModeU85,
    DmaRegionMode,
    DmaStrideMode,
    Precision,
)
from mizzen.targets.ethos_u.machine.config import Accelerator

EVERY_CORE = 3
"""Region of a transfer to the NPU's own memory: a mask of cores, as Vela 5.2 writes it for one core
too."""
LARGEST_SIGNED = (1 << 15) - 1
PRECISION = {1: Precision.B8, 2: Precision.B16, 4: Precision.B32, 8: Precision.B64}


def of_transfer(step: TransferStep, accelerator: Accelerator) -> Iterator[Setting]:
    """Return the registers of a transfer."""
    if step.named is not None:
        yield from _of_lines(step, step.named)
        return
    yield "SET_DMA0_SRC_REGION", (step.source.region, DmaRegionMode.EXTERNAL)
    yield "SET_DMA0_SRC", (step.source.offset_bytes,)
    target = step.destination
    if target.region == INTERNAL:
        start = core_of(accelerator).table_start_bytes + target.offset_bytes
        yield "SET_DMA0_DST_REGION", (EVERY_CORE, DmaRegionMode.INTERNAL)
        yield "SET_DMA0_DST", (start,)
    else:
        yield "SET_DMA0_DST_REGION", (target.region, DmaRegionMode.EXTERNAL)
        yield "SET_DMA0_DST", (target.offset_bytes,)
    yield "SET_DMA0_LEN", (step.source.length_bytes,)


def _of_lines(step: TransferStep, named: NamedLines) -> Iterator[Setting]:
    """Return the registers of a transfer of lines, of which U85 takes one side by index."""
    lines, by = named.lines, (DmaIndexModeU85.DISABLED, DmaIndexModeU85.ENABLED)
    source, destination = by[not lines.scatters], by[lines.scatters]
    external, strides = DmaRegionMode.EXTERNAL, lines.strides_bytes
    yield "SET_DMA0_SRC_REGION", (step.source.region, external, DmaStrideMode.D2, source)
    yield "SET_DMA0_SRC", (step.source.offset_bytes,)
    yield "SET_DMA0_SRC_STRIDE0", (strides[0],)
    yield "SET_DMA0_DST_REGION", (step.destination.region, external, destination)
    yield "SET_DMA0_DST", (step.destination.offset_bytes,)
    yield "SET_DMA0_DST_STRIDE0", (strides[1],)
    yield "SET_DMA0_LEN", (named.length_bytes,)
    yield "SET_DMA0_SIZE0", (lines.count,)
    yield "SET_DMA0_IDX_REGION", (named.indices.region,)
    yield "SET_DMA0_IDX", (named.indices.offset_bytes,)
    yield "SET_DMA0_IDX_MAX", (lines.greatest,)


def map_settings(prefix: str, map_: Located) -> Iterator[Setting]:
    """Return where a map lies and its zero point."""
    yield f"SET_{prefix}_REGION", (map_.region,)
    for place, base in enumerate(map_.bases):
        yield f"SET_{prefix}_BASE{place}", (base,)
    yield f"SET_{prefix}_HEIGHT0_M1", (map_.height_0,)
    yield f"SET_{prefix}_HEIGHT1_M1", (map_.height_1,)
    yield f"SET_{prefix}_WIDTH0_M1", (map_.width_0,)
    yield f"SET_{prefix}_STRIDE_Y", (map_.stride_y,)
    yield f"SET_{prefix}_STRIDE_X", (map_.stride_x,)
    yield f"SET_{prefix}_STRIDE_C", (map_.stride_c,)
    yield f"SET_{prefix}_ZERO_POINT", (signed(map_.zero_point),)


def shape_settings(shape: Shape) -> Iterator[Setting]:
    """Return the shape of the output."""
    for name, size in zip(("HEIGHT", "WIDTH", "DEPTH"), shape, strict=True):
        yield f"SET_OFM_{name}_M1", (size,)


def block_settings(block: Shape) -> Iterator[Setting]:
    """Return the block of the output."""
    for name, size in zip(("HEIGHT", "WIDTH", "DEPTH"), block, strict=True):
        yield f"SET_OFM_BLK_{name}_M1", (size,)


def type_of(map_: Located) -> tuple[int, ...]:
    """Return sign, precision and layout."""
    return (*signs(map_.dtype), map_.layout)


def signs(dtype: np.dtype[np.integer[Any]]) -> tuple[int, int]:
    """Return sign and precision."""
    is_signed = ActivationType.SIGNED if dtype.kind == "i" else ActivationType.UNSIGNED
    return is_signed, PRECISION[dtype.itemsize]


def signed(value: int) -> int:
    """Return 16 bits of an unsigned number in the signed reading of the rows."""
    return value - (1 << 16) if LARGEST_SIGNED < value < 1 << 16 else value


def pad_settings(kernel: Kernel) -> Iterator[Setting]:
    """Return the padding of each side."""
    yield "SET_IFM_PAD_TOP", (kernel.pad_top,)
    yield "SET_IFM_PAD_LEFT", (kernel.pad_left,)
    yield "SET_IFM_PAD_BOTTOM", (kernel.pad_bottom,)
    yield "SET_IFM_PAD_RIGHT", (kernel.pad_right,)


def kernel_settings(kernel: Kernel, order: int) -> Iterator[Setting]:
    """Return the kernel, and the order of weights."""
    yield "SET_KERNEL_HEIGHT_M1", (kernel.dilated_height,)
    yield "SET_KERNEL_WIDTH_M1", (kernel.dilated_width,)
    yield (
        "SET_KERNEL_STRIDE",
        (
            kernel.stride_x,
            kernel.stride_y,
            order,
            kernel.dilation_x - 1,
            kernel.dilation_y - 1,
        ),
    )


def stream_settings(prefix: str, stream: Stream) -> Iterator[Setting]:
    """Return where a stream of constants lies in its region."""
    yield f"SET_{prefix}_BASE", (stream.offset_bytes,)
    yield f"SET_{prefix}_LENGTH", (stream.length_bytes,)
