"""The command of each kind of pass: what it says of tensors, scales and bounds.

Real factors become the integers that the hardware multiplies and shifts with; float32 where the
library has it.

Ref: Ethos-N driver stack 23.02, command stream 3.1 and how the Support Library fills it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from mizzen.targets.ethos_n import commands_values as values
from mizzen.targets.ethos_n.lower.work_graph import Clamp, Concat, Extract, Node, Requantization
from mizzen.targets.ethos_n.network import TANH_SCALE
from mizzen.targets.ethos_n.schedule.attempt import (
    BRICK_HEIGHT,
    BRICK_WIDTH,
    Attempt,
    ConvertPass,
    McePass,
    PlePass,
    Tile,
    brick_bytes,
    cell_bytes,
    round_up,
    volume,
)
from mizzen.targets.ethos_n.schedule.mce_pass import covered_kernel
from mizzen.targets.ethos_n.tensors import DataType, QuantizationInfo, Shape

MULTIPLIER_BITS = 16
LARGEST_SHIFT = 47
SMALLEST_PLE_EXPONENT = -16
"""A factor below 2 to this is nothing to the programmable layer engine."""


def accumulator_scale(factor: float) -> tuple[int, int]:
    """Return multiplier (16 bits) and shift for a factor of 0 to 65536: factor * 2**shift, rounded.

    Halves are rounded away from zero.
    """
    if factor == 0:
        return 0, 0
    _, exponent = math.frexp(factor)
    shift = min(MULTIPLIER_BITS - exponent, LARGEST_SHIFT)
    multiplier = math.floor(math.ldexp(factor, shift) + 0.5)
    if multiplier == 1 << MULTIPLIER_BITS:
        return (multiplier // 2, shift - 1) if shift else (multiplier - 1, 0)
    return multiplier, shift


def ple_scale(factor: float) -> tuple[int, int]:
    """Return multiplier (16 bits) and shift of the programmable layer engine, rounded down."""
    fraction, exponent = math.frexp(factor)
    if exponent < SMALLEST_PLE_EXPONENT:
        return 0, 0
    precision = max(0, 2 * MULTIPLIER_BITS - max(MULTIPLIER_BITS, exponent))
    return int(fraction * (1 << precision)), max(precision, exponent) - exponent


def scale_ratio(numerator: QuantizationInfo, denominator: QuantizationInfo) -> np.float32:
    """Return a quotient of scales as float32, which the library computes with."""
    return np.float32(numerator.scale) / np.float32(denominator.scale)


def overall_factors(
    source: QuantizationInfo, weights: QuantizationInfo, output: QuantizationInfo
) -> list[float]:
    """Return input scale * weight scale / output scale, in float32, for each scale of weights."""
    products = np.float32(source.scale) * np.asarray(weights.scales, np.float32)
    return (products / np.float32(output.scale)).tolist()


SIGMOID_ONE = 256
"""One in the 8.8 fixed point numbers that the sigmoid kernel raises 2 to."""
SIGMOID_LARGEST_BITS = 15
"""The kernel's fixed point numbers must be less than 2 to this, in magnitude."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the largest result, in quantised numbers."""

    least: int
    largest: int


def activation_bounds(mce: Node, behind: Iterable[Node]) -> Bounds:
    """Return the bounds of the type, narrowed by clamps, in the quantisation that is written.

    behind  the nodes behind the compute engines, in order
    """
    bounds = Bounds(mce.data_type.lowest, mce.data_type.highest)
    quantization = mce.quantization
    for node in behind:
        match node.work:
            case Clamp(lower, upper):
                bounds = Bounds(max(bounds.least, lower), min(bounds.largest, upper))
                quantization = node.quantization
            case Requantization():
                bounds = Bounds(
                    _requantized(bounds.least, quantization, node.quantization, node.data_type),
                    _requantized(bounds.largest, quantization, node.quantization, node.data_type),
                )
                quantization = node.quantization
            case _:
                pass
    return bounds


def _requantized(
    number: int, before: QuantizationInfo, after: QuantizationInfo, data_type: DataType
) -> int:
    """Return a quantised number in another quantisation; halves are rounded away from zero."""
    real = np.float32(number - before.zero_point) * np.float32(before.scale)
    steps = float(real / np.float32(after.scale))
    rounded = math.copysign(math.floor(abs(steps) + 0.5), steps) + after.zero_point
    return int(min(max(rounded, data_type.lowest), data_type.highest))


def sigmoid_scale(
    quantization: QuantizationInfo, output: QuantizationInfo
) -> tuple[tuple[int, int], int]:
    """Return multiplier and shift of a sigmoid's input, and how far it may be from the zero point.

    A tanh is a sigmoid of twice the input; the output's scale tells it.
    """
    twice = 2.0 if output.scale == TANH_SCALE else 1.0
    factor = quantization.scale * (math.log2(math.e) * SIGMOID_ONE) * twice
    multiplier, shift = ple_scale(factor)
    farthest = math.ceil(math.ldexp(1.0, SIGMOID_LARGEST_BITS + shift) / max(multiplier, 1)) - 1
    if farthest == 0:
        return ((1 << SIGMOID_LARGEST_BITS) - 1, 0), 1
    return (multiplier, shift), farthest


def narrowed(bounds: Bounds, centre: int, farthest: int) -> Bounds:
    """Return bounds within a distance of a number; at least one number remains."""
    least = max(bounds.least, centre - farthest)
    return Bounds(least, max(least, min(bounds.largest, centre + farthest)))


ORIGIN: Shape = (0, 0, 0, 0)
DATA_TYPE_CODES = {DataType.U8: values.DataTypeCode.U8, DataType.S8: values.DataTypeCode.S8}
NO_TENSOR = values.TensorRecord(
    values.DataTypeCode.U8,
    values.Format.NHWCB_COMPRESSED,
    ORIGIN,
    ORIGIN,
    ORIGIN,
    ORIGIN,
    0,
    0,
    0,
    0,
    values.Location.DRAM,
)
"""What stands for the second input where there is one only: zeros."""


def buffer_bytes(shape: Shape, format: values.Format) -> int:
    """Return the size of a map in DRAM."""
    match format:
        case values.Format.FCAF_DEEP | values.Format.FCAF_WIDE:
            return cell_bytes(shape, format)
        case values.Format.NHWCB:
            return brick_bytes(shape)
        case _:
            return volume(shape)


def tensor_record(
    node: Node,
    attempt: Attempt,
    buffer_id: int,
    stripe: Shape,
    tile_bytes: int,
    sram_offset_bytes: int,
) -> values.TensorRecord:
    """Return the record of a node's whole map in a command."""
    return values.TensorRecord(
        data_type=DATA_TYPE_CODES[node.data_type],
        format=attempt.format(node),
        shape=node.shape,
        supertensor_shape=node.shape,
        supertensor_offset=ORIGIN,
        stripe_shape=stripe,
        tile_bytes=tile_bytes,
        dram_buffer_id=buffer_id,
        sram_offset_bytes=sram_offset_bytes,
        zero_point=node.quantization.zero_point,
        location=attempt.of(node).location or values.Location.DRAM,
    )


@dataclass(frozen=True, slots=True)
class Ids:
    """The numbers of the buffers of a pass."""

    inputs: tuple[int, ...]
    output: int
    weights: int = 0
    weight_metadata: int = 0


def written_quantization(made: McePass) -> QuantizationInfo:
    """Return the quantisation that the compute engines write: the last requantisation's, if any."""
    quantization = made.mce.quantization
    for node in made.nodes:
        if isinstance(node.work, Requantization):
            quantization = node.quantization
    return quantization


def mce_command(made: McePass, attempt: Attempt, ids: Ids) -> values.McePle:
    """Return the command of a pass of the compute engines."""
    plan, last = made.plan, made.nodes[-1]
    return values.McePle(
        input=_mce_input(made, attempt, ids.inputs[0]),
        weights=weight_record(made, ids.weights),
        weight_metadata_buffer_id=ids.weight_metadata,
        output=_in_concat(_tile_record(last, attempt, ids.output, plan.output), last),
        strategy=plan.strategy,
        block_config=values.BlockConfigRecord(plan.block.width, plan.block.height),
        mce=_mce_record(made),
        ple=_ple_record(made),
    )


def _tile_record(node: Node, attempt: Attempt, buffer_id: int, tile: Tile) -> values.TensorRecord:
    return tensor_record(node, attempt, buffer_id, tile.stripe, tile.bytes, tile.offset_bytes)


def _in_concat(record: values.TensorRecord, node: Node) -> values.TensorRecord:
    """Return the record of a map that is written to its place in a concatenation, if it is."""
    concat = concat_of(node)
    if concat is None:
        return record
    axis = concat.doing(Concat).axis
    before = concat.inputs[: concat.inputs.index(node)]
    begin = sum(part.shape[axis] for part in before)
    n, h, w, c = (begin if at == axis else 0 for at in range(4))
    return replace(record, supertensor_shape=concat.shape, supertensor_offset=(n, h, w, c))


def concat_of(node: Node) -> Node | None:
    """Return the concatenation that a node's map is a part of."""
    return next((user for user in node.users if isinstance(user.work, Concat)), None)


def _mce_input(made: McePass, attempt: Attempt, buffer_id: int) -> values.TensorRecord:
    source = made.nodes[0].source
    record = _tile_record(source, attempt, buffer_id, made.plan.input)
    if attempt.in_sram(source):
        record = replace(record, sram_offset_bytes=attempt.of(source).sram_offset_bytes)
    offset = next((node.work.offset for node in made.nodes if isinstance(node.work, Extract)), None)
    return replace(record, shape=made.mce.source.shape, supertensor_offset=offset or ORIGIN)


def weight_record(made: McePass, buffer_id: int) -> values.TensorRecord:
    """Return the record of a pass's weights in its command."""
    weights, tile = made.work.weights, made.plan.weights
    shape = weights.shape
    if made.algorithm is values.Algorithm.WINOGRAD:
        shape = covered_kernel(shape, made.algorithm)
    return values.TensorRecord(
        data_type=DATA_TYPE_CODES[weights.data_type],
        format=values.Format.WEIGHT_STREAM,
        shape=shape,
        supertensor_shape=shape,
        supertensor_offset=ORIGIN,
        stripe_shape=tile.stripe,
        tile_bytes=tile.bytes,
        dram_buffer_id=buffer_id,
        sram_offset_bytes=tile.offset_bytes,
        zero_point=weights.quantization.zero_point,
        location=values.Location.DRAM,
    )


def _mce_record(made: McePass) -> values.MceRecord:
    work, mce, last = made.work, made.mce, made.nodes[-1]
    written = written_quantization(made)
    bounds = activation_bounds(mce, made.nodes)
    if made.kernel is not None and made.kernel.kernel is values.PleOperation.SIGMOID:
        _, farthest = sigmoid_scale(written, last.quantization)
        bounds = narrowed(bounds, written.zero_point, farthest)
    line, column = (_edge(work.upsample, extent) for extent in mce.shape[1:3])
    return values.MceRecord(
        stride_x=work.stride.x,
        stride_y=work.stride.y,
        pad_top=work.pad_top,
        pad_left=work.pad_left,
        uninterleaved_input_shape=work.uninterleaved_input_shape,
        output_shape=mce.shape,
        output_stripe_shape=_made_stripe(made),
        output_zero_point=written.zero_point,
        upsample=work.upsample,
        upsample_edge_row=line,
        upsample_edge_column=column,
        operation=work.operation,
        algorithm=made.algorithm,
        activation_min=bounds.least,
        activation_max=bounds.largest,
    )


def _edge(upsample: values.Upsample, extent: int) -> values.UpsampleEdge:
    """Return whether the last row or column is made: not of an odd extent, which is one less."""
    dropped = upsample is values.Upsample.BILINEAR and extent % 2 == 1
    return values.UpsampleEdge.DROP if dropped else values.UpsampleEdge.GENERATE


def _made_stripe(made: McePass) -> Shape:
    """Return the stripe that the compute engines make of an input stripe."""
    plan, whole, source = made.plan, made.mce.shape, made.mce.source.shape
    stripe = plan.input.stripe
    channels = plan.output.stripe[3]
    if plan.strategy is values.Strategy.STRATEGY_X:
        channels = plan.weights.stripe[3]
    elif made.kernel is not None:
        channels = made.kernel.ratio.channels.under(channels)
    return (
        stripe[0],
        round_up(stripe[1] * whole[1] // source[1], BRICK_HEIGHT),
        round_up(stripe[2] * whole[2] // source[2], BRICK_WIDTH),
        channels,
    )


def _ple_record(made: McePass) -> values.PleRecord:
    kernel, ple = made.kernel, made.ple
    at = made.plan.ple_offset_bytes
    if kernel is None or ple is None:
        return values.PleRecord(at, 0, values.PleOperation.PASSTHROUGH)
    match kernel.kernel:
        case values.PleOperation.SIGMOID:
            written = written_quantization(made)
            scale, _ = sigmoid_scale(written, made.nodes[-1].quantization)
            return values.PleRecord(at, 0, kernel.kernel, *scale)
        case values.PleOperation.LEAKY_RELU:
            ratio = scale_ratio(ple.source.quantization, ple.quantization)
            slope = type(ratio)(kernel.alpha) * ratio
            return values.PleRecord(
                at, 0, kernel.kernel, *ple_scale(float(ratio)), *ple_scale(float(slope))
            )
        case _:
            return values.PleRecord(at, 0, kernel.kernel)


def ple_command(made: PlePass, attempt: Attempt, ids: Ids) -> values.PleOnly:
    """Return the command of a pass of the programmable layer engine alone."""
    plan, first, last = made.plan, made.nodes[0], made.nodes[-1]
    inputs = [
        _tile_record(source, attempt, buffer_id, tile)
        for source, buffer_id, tile in zip(first.inputs, ids.inputs, plan.inputs, strict=True)
    ]
    output = _in_concat(_tile_record(last, attempt, ids.output, plan.output), last)
    in_sram = any(record.location is values.Location.SRAM for record in (*inputs, output))
    scales: list[int] = []
    if made.work.kernel is values.PleOperation.ADDITION_RESCALE:
        for source in first.inputs:
            ratio = scale_ratio(source.quantization, last.quantization)
            scales.extend(ple_scale(float(ratio)))
    return values.PleOnly(
        input_count=len(inputs),
        input0=inputs[0],
        input1=inputs[1] if len(inputs) > 1 else NO_TENSOR,
        output=output,
        # The firmware knows tensors in SRAM with strategy 3 only.
        strategy=values.Strategy.STRATEGY_3 if in_sram else values.Strategy.STRATEGY_X,
        ple=values.PleRecord(plan.ple_offset_bytes, 0, made.work.kernel, *scales),
    )


def convert_command(made: ConvertPass, attempt: Attempt, ids: Ids) -> values.Convert:
    """Return the command of a pass that changes a layout or copies."""
    source, last = made.nodes[0].source, made.nodes[-1]
    tile_bytes = brick_bytes(made.stripe)
    at = made.offset_bytes
    if attempt.in_sram(source):
        at = attempt.of(source).sram_offset_bytes
    output = tensor_record(last, attempt, ids.output, made.stripe, tile_bytes, made.offset_bytes)
    return values.Convert(
        input=tensor_record(source, attempt, ids.inputs[0], made.stripe, tile_bytes, at),
        output=_in_concat(output, last),
    )
