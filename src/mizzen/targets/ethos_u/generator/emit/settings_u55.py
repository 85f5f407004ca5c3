"""The registers of operations of U55 and U65."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.targets.ethos_u.generator.emit.located import Located
from mizzen.targets.ethos_u.generator.emit.registers import Setting
from mizzen.targets.ethos_u.generator.emit.settings import (
    block_settings,
    kernel_settings,
    map_settings,
    pad_settings,
    shape_settings,
    signed,
    signs,
    stream_settings,
    type_of,
)
from mizzen.targets.ethos_u.generator.emit.steps import KernelStep
from mizzen.targets.ethos_u.generator.operations import (
    Convolution,
    Elementwise,
    MatrixProduct,
    Pooling,
    Resize,
    Scalar,
    Scale,
    Shape,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ActivationFunction,
    IfmScaleMode,
    OfmScaleMode,
    RoundMode,
    UpscaleMode,
)

CLIP_LOW, CLIP_HIGH = -(1 << 15), (1 << 15) - 1
ONLY_U85 = "U85 alone has this operation"


def of_kernel(step: KernelStep) -> Iterator[Setting]:
    """Return all registers that an operation reads but BLOCKDEP."""
    operation = step.operation
    yield from _ifm(step)
    yield from _ofm(step)
    accumulators = AccFormat.I32
    match operation:
        case Convolution():
            yield from pad_settings(operation.kernel)
            yield from kernel_settings(operation.kernel, int(step.blocking.part_kernel))
            yield from _constants(step)
            accumulators = operation.accumulators
        case Pooling():
            yield from pad_settings(operation.kernel)
            yield from kernel_settings(operation.kernel, 0)
            yield _scale("SET_OFM_SCALE", operation.scale)
            accumulators = operation.accumulators
        case Elementwise():
            yield from _second(operation, step.ifm2, step.ofm.shape)
            yield from _operand_scales(operation)
        case MatrixProduct() | Resize():
            raise AssertionError(ONLY_U85)
    yield from _activation(step)
    yield from _block(step)
    yield "SET_ACC_FORMAT", (accumulators,)


def _ifm(step: KernelStep) -> Iterator[Setting]:
    operation = step.operation
    yield from map_settings("IFM", step.ifm)
    mode, rounding, upscale = IfmScaleMode.OPA_OPB_16, RoundMode.DBL, UpscaleMode.NONE
    if isinstance(operation, Elementwise):
        mode, rounding = operation.scale_mode, operation.ifm_rounding
    elif isinstance(operation, Convolution | Pooling):
        upscale = operation.upscale
    yield "SET_IFM_DEPTH_M1", (step.ifm.shape[2],)
    yield "SET_IFM_PRECISION", (*type_of(step.ifm), mode, rounding)
    yield "SET_IFM_UPSCALE", (upscale,)


def _ofm(step: KernelStep) -> Iterator[Setting]:
    operation = step.operation
    yield from shape_settings(step.ofm.shape)
    yield from map_settings("OFM", step.ofm)
    is_global = isinstance(operation, Pooling) or (
        isinstance(operation, Elementwise) and operation.scale is not None
    )
    mode = OfmScaleMode.GLOBAL if is_global else OfmScaleMode.PER_CHANNEL
    yield "SET_OFM_PRECISION", (*type_of(step.ofm), mode, operation.rounding)


def _second(
    operation: Elementwise, second: Located | Scalar | None, shape: Shape
) -> Iterator[Setting]:
    order = int(operation.reversed)
    match second:
        case None:
            return
        case Scalar():
            yield "SET_IFM2_SCALAR", (signed(second.value),)
            yield "SET_IFM2_ZERO_POINT", (signed(second.zero_point),)
            yield "SET_IFM2_PRECISION", signs(second.dtype)
            yield "SET_IFM2_BROADCAST", (0, 0, 0, order, 1)
        case Located():
            yield from map_settings("IFM2", second)
            yield "SET_IFM2_PRECISION", type_of(second)
            axes = (
                int(size == 1 and extent > 1)
                for size, extent in zip(second.shape, shape, strict=True)
            )
            yield "SET_IFM2_BROADCAST", (*axes, order, 0)


def _constants(step: KernelStep) -> Iterator[Setting]:
    first = step.constants[0]
    yield "SET_WEIGHT_REGION", (first.weights.region,)
    yield "SET_SCALE_REGION", (first.scales.region,)
    for core, suffix in zip(step.constants, ("", "1"), strict=False):
        yield from stream_settings(f"WEIGHT{suffix}", core.weights)
        yield from stream_settings(f"SCALE{suffix}", core.scales)


def _scale(name: str, scale: Scale) -> Setting:
    return name, (scale.shift, scale.multiplier)


def _operand_scales(operation: Elementwise) -> Iterator[Setting]:
    if operation.scale_a is not None:
        yield _scale("SET_OPA_SCALE", operation.scale_a)
    if operation.scale_b is not None:
        yield "SET_OPB_SCALE", (operation.scale_b.multiplier,)
    if operation.scale is not None:
        yield _scale("SET_OFM_SCALE", operation.scale)


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
    yield "SET_ACTIVATION_MIN", (signed(low),)
    yield "SET_ACTIVATION_MAX", (signed(high),)


def _block(step: KernelStep) -> Iterator[Setting]:
    parts = step.parts
    assert parts is not None
    yield from block_settings(step.blocking.block)
    yield "SET_IFM_IB_END", (parts.ib_end,)
    yield "SET_AB_START", (parts.ab_start,)
    if parts.ifm2_ib_start is not None and step.ifm2 is not None:
        yield "SET_IFM2_IB_START", (parts.ifm2_ib_start,)


def operation_command(step: KernelStep) -> Setting:
    """Return the command that starts an operation."""
    match step.operation:
        case Convolution(depthwise=depthwise):
            return "OP_DEPTHWISE" if depthwise else "OP_CONV", ()
        case Pooling(mode=mode):
            return "OP_POOL", (mode,)
        case Elementwise(mode=mode):
            return "OP_ELEMENTWISE", (mode,)
        case MatrixProduct() | Resize():
            raise AssertionError(ONLY_U85)
