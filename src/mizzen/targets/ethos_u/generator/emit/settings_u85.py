"""The registers of operations of U85."""

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
    Activation,
    Convolution,
    Elementwise,
    Kernel,
    MatrixProduct,
    OperandScale,
    Pooling,
    Resize,
    Rounding,
    Scalar,
    Scale,
    Shape,
    Steps,
)
from mizzen.targets.ethos_u.generator.shared_buffer import SLOT_BYTES
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    AccFormatU85,
    ActivationFunctionU85,
    BroadcastU85,
    ClipRange,
    ClipRangeU85,
    ElementwiseMode,
    Layout,
    MicroblockU85,
    OfmScaleMode,
    RoundMode,
    RoundModeIfmU85,
    RoundModeOfmU85,
    Storage,
    UpscaleMode,
    WeightFormatU85,
    WeightSparsityU85,
)

OUTPUT_ROUNDINGS = {
    RoundMode.DBL: RoundModeOfmU85.DOUBLE_SYMMETRIC,
    RoundMode.TRUNCATE: RoundModeOfmU85.TRUNCATE_TO_ZERO,
    RoundMode.NATURAL: RoundModeOfmU85.NATURAL,
}
ACCUMULATORS = {AccFormat.I32: AccFormatU85.I32, AccFormat.I40: AccFormatU85.I48}
MICROBLOCKS = {
    (1, 1): MicroblockU85.U1X1,
    (1, 2): MicroblockU85.U1X2,
    (1, 4): MicroblockU85.U1X4,
    (2, 2): MicroblockU85.U2X2,
    (2, 4): MicroblockU85.U2X4,
    (4, 4): MicroblockU85.U4X4,
}
AXES = (BroadcastU85.H, BroadcastU85.W, BroadcastU85.C)
TABLES = {512: ActivationFunctionU85.LUT_S8_S16, 1024: ActivationFunctionU85.LUT_S8_S32}
"""Kinds of tables that their size says."""
SEGMENTS_BYTES = 2048
"""Of a table of lines, whose kind its function says, or the bytes of an element of the output."""
CURVES = {
    "TANH": ActivationFunctionU85.LUT_TANH,
    "SIGMOID": ActivationFunctionU85.LUT_SIGMOID,
}
SEGMENTS = {2: ActivationFunctionU85.LUT_S16_S16, 4: ActivationFunctionU85.LUT_S16_S32}
FORCED: dict[ClipRange | ClipRangeU85, tuple[int, int]] = {
    ClipRange.FORCE_UINT8: (0, (1 << 8) - 1),
    ClipRange.FORCE_INT8: (-(1 << 7), (1 << 7) - 1),
    ClipRange.FORCE_INT16: (-(1 << 15), (1 << 15) - 1),
}
NO_SCALE = Scale(1, 0)
WEIGHT_SUFFIXES = ("", "1", "2", "3")


def of_kernel(step: KernelStep) -> Iterator[Setting]:
    """Return all registers that an operation reads but BLOCKDEP."""
    operation = step.operation
    yield from _ofm(step)
    match operation:
        case Convolution():
            yield from _window(step, operation.kernel, operation.upscale)
            yield from _constants(step)
            yield _output_scale(NO_SCALE, operation.rounding)
        case Pooling():
            yield from _window(step, operation.kernel, operation.upscale)
            yield _output_scale(operation.scale, operation.rounding)
        case MatrixProduct():
            yield from _window(step, Kernel(), UpscaleMode.NONE)
            assert isinstance(step.ifm2, Located)
            yield from _map("IFM2", step.ifm2)
            yield "SET_WEIGHT_FORMAT", (WeightFormatU85.SWD, WeightSparsityU85.NONE)
            yield _output_scale(operation.scale, operation.rounding)
        case Resize():
            yield from _resize(operation, step)
            yield _output_scale(operation.scale, operation.rounding)
        case Elementwise():
            yield from _operands(operation, step)
            yield _output_scale(operation.scale or NO_SCALE, operation.rounding)
    yield from _activation(step)
    yield from block_settings(step.blocking.block)
    accumulators = getattr(operation, "accumulators", AccFormat.I32)
    yield "SET_ACC_FORMAT", (ACCUMULATORS[accumulators], 0, 0, MICROBLOCKS[step.microblock[:2]])


# Feature maps


def _map(prefix: str, map_: Located) -> Iterator[Setting]:
    yield from _where(prefix, map_)
    yield f"SET_{prefix}_PRECISION", (*type_of(map_), _storage(map_))


def _where(prefix: str, map_: Located) -> Iterator[Setting]:
    if map_.chain is None:
        yield from map_settings(prefix, map_)
    else:
        yield f"SET_{prefix}_REGION", (map_.chain,)
        yield f"SET_{prefix}_ZERO_POINT", (signed(map_.zero_point),)


def _storage(map_: Located) -> Storage:
    return Storage.TILE2X2 if map_.chain is None else Storage.CHAINED


def _ofm(step: KernelStep) -> Iterator[Setting]:
    operation = step.operation
    yield from shape_settings(step.shape)
    yield from _where("OFM", step.ofm)
    is_global = not isinstance(operation, Convolution)
    mode = OfmScaleMode.GLOBAL if is_global else OfmScaleMode.PER_CHANNEL
    order = operation.order
    storage = order.reverse, order.transpose, _storage(step.ofm)
    yield "SET_OFM_PRECISION", (*type_of(step.ofm), mode, *storage)


def _operands(operation: Elementwise, step: KernelStep) -> Iterator[Setting]:
    inputs, scales = [step.ifm, step.ifm2], operation.operand_scales
    assert scales is not None
    if operation.reversed and step.ifm2 is not None:
        inputs, scales = inputs[::-1], scales[::-1]
    yield "SET_IFM_UPSCALE", (UpscaleMode.NONE,)
    for prefix, operand, scale in zip(("IFM", "IFM2"), inputs, scales, strict=True):
        if operand is not None or operation.mode == ElementwiseMode.LRELU:
            yield _operand_scale(prefix, scale or OperandScale(1, 0))
        match operand:
            case Scalar():
                yield "SET_OP_SCALAR", (operand.value,)
                yield f"SET_{prefix}_ZERO_POINT", (signed(operand.zero_point),)
                kind = *signs(operand.dtype), Layout.NHWC, Storage.NONE
                yield f"SET_{prefix}_PRECISION", kind
                yield f"SET_{prefix}_BROADCAST", (BroadcastU85.SCALAR,)
            case Located():
                yield from _map(prefix, operand)
                yield f"SET_{prefix}_BROADCAST", (_broadcast(operand.shape, step.shape),)
                if prefix == "IFM":  # the NPU needs it of windows alone, Linux's driver of all
                    yield "SET_IFM_DEPTH_M1", (operand.shape[2],)
            case None:
                pass


def _broadcast(shape: Shape, whole: Shape) -> int:
    axes = zip(AXES, shape, whole, strict=True)
    return sum(axis for axis, size, extent in axes if size == 1 < extent)


# Windows, constants, scales


def _window(step: KernelStep, kernel: Kernel, upscale: UpscaleMode) -> Iterator[Setting]:
    yield from _map("IFM", step.ifm)
    yield "SET_IFM_DEPTH_M1", (step.ifm.shape[2],)
    yield "SET_IFM_UPSCALE", (upscale,)
    yield from pad_settings(kernel)
    yield from kernel_settings(kernel, int(step.blocking.part_kernel))


def _constants(step: KernelStep) -> Iterator[Setting]:
    first = step.constants[0]
    yield "SET_WEIGHT_FORMAT", (int(step.fast), int(step.sparse))
    yield "SET_WEIGHT_REGION", (first.weights.region,)
    yield "SET_SCALE_REGION", (first.scales.region,)
    yield from stream_settings("SCALE", first.scales)
    for streams, suffix in zip(step.constants, WEIGHT_SUFFIXES, strict=False):
        yield from stream_settings(f"WEIGHT{suffix}", streams.weights)


def _resize(operation: Resize, step: KernelStep) -> Iterator[Setting]:
    height, width, _ = step.ifm.shape
    yield from _map("IFM", step.ifm)
    yield "SET_KERNEL_HEIGHT_M1", (height,)
    yield "SET_KERNEL_WIDTH_M1", (width,)
    tall, wide, _ = step.blocking.block
    for axis, steps, block in (("X", operation.columns, wide), ("Y", operation.rows, tall)):
        yield f"SET_RESIZE_{axis}_SCALE_N_M1", (steps.scale,)
        yield f"SET_RESIZE_{axis}_OFFSET", (steps.offset,)
        yield f"SET_RESIZE_{axis}", _steps(steps, block)


def _steps(steps: Steps, block: int) -> tuple[int, int, int, int]:
    """Return whole input elements and the rest, of an element and from a block's first to last."""
    one, rest = divmod(steps.step, steps.scale)
    last, rest_of_last = divmod((block - 1) * steps.step, steps.scale)
    return one, last, rest, rest_of_last


def _output_scale(scale: Scale, rounding: Rounding) -> Setting:
    if isinstance(rounding, RoundMode):
        rounding = OUTPUT_ROUNDINGS[rounding]
    return "SET_OFM_SCALE", (scale.shift, 0, rounding, scale.multiplier)


def _operand_scale(prefix: str, scale: OperandScale) -> Setting:
    natural = scale.rounding is RoundMode.NATURAL
    rounding = RoundModeIfmU85.NATURAL if natural else RoundModeIfmU85.DOUBLE_SYMMETRIC
    return f"SET_{prefix}_SCALE", (scale.shift, scale.left, rounding, scale.multiplier)


# What follows scaling


def _activation(step: KernelStep) -> Iterator[Setting]:
    activation = step.operation.activation
    low, high = FORCED.get(activation.clip_range, (activation.minimum, activation.maximum))
    is_wide = step.ofm.element_bytes > 2 and activation.clip_range is ClipRange.OFM_PRECISION
    kind, index, clip = ActivationFunctionU85.LUT_NONE, 0, ClipRangeU85.B16
    if activation.table is not None and step.table is not None:
        kind = _table_kind(activation, step.ofm, len(activation.table.data), low)
        index = SLOT_BYTES * step.table // len(activation.table.data)
    elif is_wide or activation.clip_range is ClipRangeU85.NONE:
        clip = ClipRangeU85.NONE
    yield "SET_ACTIVATION", (kind, index, clip)
    if clip is ClipRangeU85.B16:
        yield "SET_ACTIVATION_MIN", (signed(max(low, activation.minimum)),)
        yield "SET_ACTIVATION_MAX", (signed(min(high, activation.maximum)),)


def _table_kind(
    activation: Activation, ofm: Located, size_bytes: int, low: int
) -> ActivationFunctionU85:
    """Return what a table is looked up with, and what it gives."""
    if size_bytes in TABLES:
        return TABLES[size_bytes]
    if size_bytes == SEGMENTS_BYTES:
        return CURVES.get(activation.function, SEGMENTS[ofm.element_bytes])
    is_signed = ofm.dtype.kind == "i" if activation.clip_range not in FORCED else low < 0
    return ActivationFunctionU85.LUT_S8_S8 if is_signed else ActivationFunctionU85.LUT_U8_U8


def operation_command(step: KernelStep) -> Setting:
    """Return the command that starts an operation."""
    match step.operation:
        case Convolution(depthwise=depthwise):
            return ("OP_DEPTHWISE", ()) if depthwise else ("OP_CONV", (0,))
        case MatrixProduct():
            return "OP_CONV", (1,)
        case Pooling(mode=mode):
            return "OP_POOL", (mode,)
        case Resize(mode=mode):
            return "OP_RESIZE", (mode,)
        case Elementwise(mode=mode):
            return "OP_ELEMENTWISE", (mode,)
