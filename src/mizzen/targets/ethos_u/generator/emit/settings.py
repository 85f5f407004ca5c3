"""The registers that steps need, group by group, in the user's numbers.

Values stand in the order of the fields of a command's row; fields after them are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mizzen.targets.ethos_u.generator.emit.located import Located
from mizzen.targets.ethos_u.generator.emit.registers import Setting
from mizzen.targets.ethos_u.generator.emit.steps import INTERNAL, KernelStep, Stream, TransferStep
from mizzen.targets.ethos_u.generator.operations import (
    Convolution,
    Elementwise,
    Kernel,
    Pooling,
    Scalar,
    Scale,
    Shape,
)
from mizzen.targets.ethos_u.generator.shared_buffer import core_of
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ActivationFunction,
    ActivationType,
    DmaRegionMode,
    IfmScaleMode,
    OfmScaleMode,
    Precision,
    RoundMode,
    UpscaleMode,
)
from mizzen.targets.ethos_u.machine.config import Accelerator

EVERY_CORE = 3
"""Region of a transfer to the NPU's own memory: a mask of cores, as Vela 5.2 writes it for one core
too."""
CLIP_LOW, CLIP_HIGH = -(1 << 15), (1 << 15) - 1
PRECISION = {1: Precision.B8, 2: Precision.B16, 4: Precision.B32, 8: Precision.B64}


def of_kernel(step: KernelStep, accelerator: Accelerator) -> Iterator[Setting]:
    """Return all registers that an operation reads but BLOCKDEP."""
    operation = step.operation
    yield from _ifm(step)
    yield from _ofm(step)
    match operation:
        case Convolution():
            yield from _pads(operation.kernel)
            yield from _kernel(operation.kernel, int(step.blocking.part_kernel))
            yield from _constants(step, accelerator)
        case Pooling():
            yield from _pads(operation.kernel)
            yield from _kernel(operation.kernel, 0)
            yield _scale("SET_OFM_SCALE", operation.scale)
        case Elementwise():
            yield from _second(operation, step.ifm2, step.ofm.shape)
            yield from _operand_scales(operation)
    yield from _activation(step)
    yield from _block(step)


def of_transfer(step: TransferStep, accelerator: Accelerator) -> Iterator[Setting]:
    """Return the registers of a transfer."""
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


# Feature maps


def _map(prefix: str, map_: Located) -> Iterator[Setting]:
    yield f"SET_{prefix}_REGION", (map_.region,)
    for place, base in enumerate(map_.bases):
        yield f"SET_{prefix}_BASE{place}", (base,)
    yield f"SET_{prefix}_HEIGHT0_M1", (map_.height_0,)
    yield f"SET_{prefix}_HEIGHT1_M1", (map_.height_1,)
    yield f"SET_{prefix}_WIDTH0_M1", (map_.width_0,)
    yield f"SET_{prefix}_STRIDE_Y", (map_.stride_y,)
    yield f"SET_{prefix}_STRIDE_X", (map_.stride_x,)
    yield f"SET_{prefix}_STRIDE_C", (map_.stride_c,)
    yield f"SET_{prefix}_ZERO_POINT", (_signed(map_.zero_point),)


def _ifm(step: KernelStep) -> Iterator[Setting]:
    operation = step.operation
    yield from _map("IFM", step.ifm)
    mode, rounding, upscale = IfmScaleMode.OPA_OPB_16, RoundMode.DBL, UpscaleMode.NONE
    if isinstance(operation, Elementwise):
        mode, rounding = operation.scale_mode, operation.ifm_rounding
    else:
        upscale = operation.upscale
    yield "SET_IFM_DEPTH_M1", (step.ifm.shape[2],)
    yield "SET_IFM_PRECISION", (*_type(step.ifm), mode, rounding)
    yield "SET_IFM_UPSCALE", (upscale,)


def _ofm(step: KernelStep) -> Iterator[Setting]:
    operation, (height, width, depth) = step.operation, step.ofm.shape
    yield "SET_OFM_HEIGHT_M1", (height,)
    yield "SET_OFM_WIDTH_M1", (width,)
    yield "SET_OFM_DEPTH_M1", (depth,)
    yield from _map("OFM", step.ofm)
    is_global = isinstance(operation, Pooling) or (
        isinstance(operation, Elementwise) and operation.scale is not None
    )
    mode = OfmScaleMode.GLOBAL if is_global else OfmScaleMode.PER_CHANNEL
    yield "SET_OFM_PRECISION", (*_type(step.ofm), mode, operation.rounding)


def _second(
    operation: Elementwise, second: Located | Scalar | None, shape: Shape
) -> Iterator[Setting]:
    order = int(operation.reversed)
    match second:
        case None:
            return
        case Scalar():
            yield "SET_IFM2_SCALAR", (_signed(second.value),)
            yield "SET_IFM2_ZERO_POINT", (_signed(second.zero_point),)
            yield "SET_IFM2_PRECISION", _signs(second.dtype)
            yield "SET_IFM2_BROADCAST", (0, 0, 0, order, 1)
        case Located():
            yield from _map("IFM2", second)
            yield "SET_IFM2_PRECISION", _type(second)
            axes = (
                int(size == 1 and extent > 1)
                for size, extent in zip(second.shape, shape, strict=True)
            )
            yield "SET_IFM2_BROADCAST", (*axes, order, 0)


def _type(map_: Located) -> tuple[int, ...]:
    return (*_signs(map_.dtype), map_.layout)


def _signs(dtype: np.dtype[np.integer[Any]]) -> tuple[int, int]:
    signed = ActivationType.SIGNED if dtype.kind == "i" else ActivationType.UNSIGNED
    return signed, PRECISION[dtype.itemsize]


def _signed(value: int) -> int:
    """Return 16 bits of an unsigned number in the signed reading of the rows."""
    return value - (1 << 16) if CLIP_HIGH < value < 1 << 16 else value


# The kernel, constants, scales


def _pads(kernel: Kernel) -> Iterator[Setting]:
    yield "SET_IFM_PAD_TOP", (kernel.pad_top,)
    yield "SET_IFM_PAD_LEFT", (kernel.pad_left,)
    yield "SET_IFM_PAD_BOTTOM", (kernel.pad_bottom,)
    yield "SET_IFM_PAD_RIGHT", (kernel.pad_right,)


def _kernel(kernel: Kernel, order: int) -> Iterator[Setting]:
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


def _constants(step: KernelStep, accelerator: Accelerator) -> Iterator[Setting]:
    first = step.constants[0]
    yield "SET_WEIGHT_REGION", (first.weights.region,)
    yield "SET_SCALE_REGION", (first.scales.region,)
    for core, suffix in zip(step.constants, ("", "1"), strict=False):
        yield from _stream(f"WEIGHT{suffix}", core.weights)
        yield from _stream(f"SCALE{suffix}", core.scales)


def _stream(prefix: str, stream: Stream) -> Iterator[Setting]:
    yield f"SET_{prefix}_BASE", (stream.offset_bytes,)
    yield f"SET_{prefix}_LENGTH", (stream.length_bytes,)


def _scale(name: str, scale: Scale) -> Setting:
    return name, (scale.shift, scale.multiplier)


def _operand_scales(operation: Elementwise) -> Iterator[Setting]:
    if operation.scale_a is not None:
        yield _scale("SET_OPA_SCALE", operation.scale_a)
    if operation.scale_b is not None:
        yield "SET_OPB_SCALE", (operation.scale_b.multiplier,)
    if operation.scale is not None:
        yield _scale("SET_OFM_SCALE", operation.scale)


# What follows scaling, and the block


def _activation(step: KernelStep) -> Iterator[Setting]:
    activation = step.operation.activation
    function = (
        ActivationFunction[activation.function]
        if step.table is None
        else ActivationFunction.TABLE_0 + step.table
    )
    yield "SET_ACTIVATION", (function, activation.clip_range)
    low, high = activation.minimum, activation.maximum
    if step.ofm.element_bytes > 2:
        low, high = max(CLIP_LOW, low), min(CLIP_HIGH, high)
    yield "SET_ACTIVATION_MIN", (_signed(low),)
    yield "SET_ACTIVATION_MAX", (_signed(high),)


def _block(step: KernelStep) -> Iterator[Setting]:
    operation, parts, (height, width, depth) = step.operation, step.parts, step.blocking.block
    yield "SET_OFM_BLK_HEIGHT_M1", (height,)
    yield "SET_OFM_BLK_WIDTH_M1", (width,)
    yield "SET_OFM_BLK_DEPTH_M1", (depth,)
    yield "SET_IFM_IB_END", (parts.ib_end,)
    yield "SET_AB_START", (parts.ab_start,)
    if parts.ifm2_ib_start is not None and step.ifm2 is not None:
        yield "SET_IFM2_IB_START", (parts.ifm2_ib_start,)
    accumulators = AccFormat.I32
    if not isinstance(operation, Elementwise):
        accumulators = operation.accumulators
    yield "SET_ACC_FORMAT", (accumulators,)


def operation_command(step: KernelStep) -> Setting:
    """Return the command that starts an operation."""
    match step.operation:
        case Convolution(depthwise=depthwise):
            return "OP_DEPTHWISE" if depthwise else "OP_CONV", ()
        case Pooling(mode=mode):
            return "OP_POOL", (mode,)
        case Elementwise(mode=mode):
            return "OP_ELEMENTWISE", (mode,)
