"""The command of each kind of pass.

Ref: Ethos-N driver stack 23.02, command stream 3.1 and how the Support Library fills it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mizzen.targets.ethos_n.commands import (
    BlockConfigRecord,
    Convert,
    McePle,
    MceRecord,
    PleOnly,
    PleRecord,
    TensorRecord,
)
from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    Format,
    Location,
    PleOperation,
    Strategy,
    Upsample,
    UpsampleEdge,
)
from mizzen.targets.ethos_n.emit.activation import activation_bounds, narrowed, sigmoid_scale
from mizzen.targets.ethos_n.emit.records import (
    DATA_TYPE_CODES,
    NO_TENSOR,
    ORIGIN,
    tensor_record,
)
from mizzen.targets.ethos_n.emit.scaling import ple_scale, scale_ratio
from mizzen.targets.ethos_n.lower.graph import Node
from mizzen.targets.ethos_n.lower.work import Extract, Join, Requantise
from mizzen.targets.ethos_n.schedule.attempt import Attempt, ConvertPass, McePass, PlePass
from mizzen.targets.ethos_n.schedule.plan import (
    BRICK_HEIGHT,
    BRICK_WIDTH,
    Tile,
    brick_bytes,
    round_up,
)
from mizzen.targets.ethos_n.schedule.winograd import covered_kernel
from mizzen.targets.ethos_n.tensors import QuantizationInfo, Shape


@dataclass(frozen=True, slots=True)
class Ids:
    """The numbers of the buffers of a pass."""

    inputs: tuple[int, ...]
    output: int
    weights: int = 0
    weight_metadata: int = 0


def written_quantization(made: McePass) -> QuantizationInfo:
    """Return the quantisation that the compute engines write: the last requantisation's, if any."""
    found = made.mce.quantization
    for node in made.nodes:
        if isinstance(node.work, Requantise):
            found = node.quantization
    return found


def mce_command(made: McePass, attempt: Attempt, ids: Ids) -> McePle:
    """Return the command of a pass of the compute engines."""
    plan, last = made.plan, made.nodes[-1]
    return McePle(
        input=_mce_input(made, attempt, ids.inputs[0]),
        weights=weight_record(made, ids.weights),
        weight_metadata_buffer_id=ids.weight_metadata,
        output=_in_join(_tile_record(last, attempt, ids.output, plan.output), last),
        strategy=plan.strategy,
        block_config=BlockConfigRecord(plan.block.width, plan.block.height),
        mce=_mce_record(made),
        ple=_ple_record(made),
    )


def _tile_record(node: Node, attempt: Attempt, buffer_id: int, tile: Tile) -> TensorRecord:
    return tensor_record(node, attempt, buffer_id, tile.stripe, tile.bytes, tile.offset_bytes)


def _in_join(record: TensorRecord, node: Node) -> TensorRecord:
    """Return the record of a map that is written to its place in a concatenation, if it is."""
    join = join_of(node)
    if join is None:
        return record
    axis = join.doing(Join).axis
    before = join.inputs[: join.inputs.index(node)]
    begin = sum(part.shape[axis] for part in before)
    n, h, w, c = (begin if at == axis else 0 for at in range(4))
    return replace(record, supertensor_shape=join.shape, supertensor_offset=(n, h, w, c))


def join_of(node: Node) -> Node | None:
    """Return the concatenation that a node's map is a part of."""
    return next((user for user in node.users if isinstance(user.work, Join)), None)


def _mce_input(made: McePass, attempt: Attempt, buffer_id: int) -> TensorRecord:
    source = made.nodes[0].source
    record = _tile_record(source, attempt, buffer_id, made.plan.input)
    if attempt.in_sram(source):
        record = replace(record, sram_offset_bytes=attempt.of(source).sram_offset_bytes)
    offset = next((node.work.offset for node in made.nodes if isinstance(node.work, Extract)), None)
    return replace(record, shape=made.mce.source.shape, supertensor_offset=offset or ORIGIN)


def weight_record(made: McePass, buffer_id: int) -> TensorRecord:
    """Return what the command of a pass says of its weights."""
    weights, tile = made.work.weights, made.plan.weights
    shape = weights.shape
    if made.algorithm is Algorithm.WINOGRAD:
        shape = covered_kernel(shape, made.algorithm)
    return TensorRecord(
        data_type=DATA_TYPE_CODES[weights.data_type],
        format=Format.WEIGHT_STREAM,
        shape=shape,
        supertensor_shape=shape,
        supertensor_offset=ORIGIN,
        stripe_shape=tile.stripe,
        tile_bytes=tile.bytes,
        dram_buffer_id=buffer_id,
        sram_offset_bytes=tile.offset_bytes,
        zero_point=weights.quantization.zero_point,
        location=Location.DRAM,
    )


def _mce_record(made: McePass) -> MceRecord:
    work, mce, last = made.work, made.mce, made.nodes[-1]
    written = written_quantization(made)
    bounds = activation_bounds(mce, made.nodes)
    if made.kernel is not None and made.kernel.kernel is PleOperation.SIGMOID:
        _, farthest = sigmoid_scale(written, last.quantization)
        bounds = narrowed(bounds, written.zero_point, farthest)
    row, column = (_edge(work.upsample, extent) for extent in mce.shape[1:3])
    return MceRecord(
        stride_x=work.stride.x,
        stride_y=work.stride.y,
        pad_top=work.pad_top,
        pad_left=work.pad_left,
        uninterleaved_input_shape=work.uninterleaved_input_shape,
        output_shape=mce.shape,
        output_stripe_shape=_made_stripe(made),
        output_zero_point=written.zero_point,
        upsample=work.upsample,
        upsample_edge_row=row,
        upsample_edge_column=column,
        operation=work.operation,
        algorithm=made.algorithm,
        activation_min=bounds.least,
        activation_max=bounds.largest,
    )


def _edge(upsample: Upsample, extent: int) -> UpsampleEdge:
    """Return whether the last row or column is made: not of an odd extent, which is one less."""
    dropped = upsample is Upsample.BILINEAR and extent % 2 == 1
    return UpsampleEdge.DROP if dropped else UpsampleEdge.GENERATE


def _made_stripe(made: McePass) -> Shape:
    """Return the stripe that the compute engines make of an input stripe."""
    plan, whole, source = made.plan, made.mce.shape, made.mce.source.shape
    stripe = plan.input.stripe
    channels = plan.output.stripe[3]
    if plan.strategy is Strategy.STRATEGY_X:
        channels = plan.weights.stripe[3]
    elif made.kernel is not None:
        channels = made.kernel.ratio.channels.under(channels)
    return (
        stripe[0],
        round_up(stripe[1] * whole[1] // source[1], BRICK_HEIGHT),
        round_up(stripe[2] * whole[2] // source[2], BRICK_WIDTH),
        channels,
    )


def _ple_record(made: McePass) -> PleRecord:
    kernel, ple = made.kernel, made.ple
    at = made.plan.ple_offset_bytes
    if kernel is None or ple is None:
        return PleRecord(at, 0, PleOperation.PASSTHROUGH)
    match kernel.kernel:
        case PleOperation.SIGMOID:
            written = written_quantization(made)
            scale, _ = sigmoid_scale(written, made.nodes[-1].quantization)
            return PleRecord(at, 0, kernel.kernel, *scale)
        case PleOperation.LEAKY_RELU:
            ratio = scale_ratio(ple.source.quantization, ple.quantization)
            slope = type(ratio)(kernel.alpha) * ratio
            return PleRecord(
                at, 0, kernel.kernel, *ple_scale(float(ratio)), *ple_scale(float(slope))
            )
        case _:
            return PleRecord(at, 0, kernel.kernel)


def ple_command(made: PlePass, attempt: Attempt, ids: Ids) -> PleOnly:
    """Return the command of a pass of the programmable layer engine alone."""
    plan, first, last = made.plan, made.nodes[0], made.nodes[-1]
    inputs = [
        _tile_record(source, attempt, buffer_id, tile)
        for source, buffer_id, tile in zip(first.inputs, ids.inputs, plan.inputs, strict=True)
    ]
    output = _in_join(_tile_record(last, attempt, ids.output, plan.output), last)
    in_sram = any(record.location is Location.SRAM for record in (*inputs, output))
    scales: list[int] = []
    if made.work.kernel is PleOperation.ADDITION_RESCALE:
        for source in first.inputs:
            ratio = scale_ratio(source.quantization, last.quantization)
            scales.extend(ple_scale(float(ratio)))
    return PleOnly(
        input_count=len(inputs),
        input0=inputs[0],
        input1=inputs[1] if len(inputs) > 1 else NO_TENSOR,
        output=output,
        # The firmware knows tensors in SRAM with strategy 3 only.
        strategy=Strategy.STRATEGY_3 if in_sram else Strategy.STRATEGY_X,
        ple=PleRecord(plan.ple_offset_bytes, 0, made.work.kernel, *scales),
    )


def convert_command(made: ConvertPass, attempt: Attempt, ids: Ids) -> Convert:
    """Return the command of a pass that changes a layout or copies."""
    source, last = made.nodes[0].source, made.nodes[-1]
    tile_bytes = brick_bytes(made.stripe)
    at = made.offset_bytes
    if attempt.in_sram(source):
        at = attempt.of(source).sram_offset_bytes
    output = tensor_record(last, attempt, ids.output, made.stripe, tile_bytes, made.offset_bytes)
    return Convert(
        input=tensor_record(source, attempt, ids.inputs[0], made.stripe, tile_bytes, at),
        output=_in_join(output, last),
    )
