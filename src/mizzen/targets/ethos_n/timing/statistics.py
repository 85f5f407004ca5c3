"""What a pass moves between DRAM and SRAM, in bytes and in stripes, and what the engines do in it.

Figures are named and ordered as the library prints them.

Ref: Ethos-N driver stack 23.02, `Support.hpp` (`PassStats` and its parts), `EstimationUtils.cpp`
(`GetInputStatsLegacy`, `GetOutputStatsLegacy`, `GetConversionStats`, `GetPleStats`) and
`MceEstimationUtils.cpp` (`GetWeightsStats`, `GetMceStats`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    Cascade,
    Convert,
    Format,
    Location,
    MceOperation,
    McePle,
    MceRecord,
    PleOnly,
    PleOperation,
    SpaceToDepth,
    TensorRecord,
)
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.program import Program
from mizzen.targets.ethos_n.tensors import Shape


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a pass moves of its inputs or outputs; bytes are those of all times that it does so.

    dram_parallel_bytes      moved while the engines work
    dram_non_parallel_bytes  moved while they wait
    sram_bytes               that need not be moved
    central_stripes          stripes without those at boundaries
    boundary_stripes         parts of stripes above and below, kept apart
    reloads                  how often everything is moved once more
    """

    dram_parallel_bytes: int = 0
    dram_non_parallel_bytes: int = 0
    sram_bytes: int = 0
    central_stripes: int = 0
    boundary_stripes: int = 0
    reloads: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.dram_parallel_bytes + other.dram_parallel_bytes,
            self.dram_non_parallel_bytes + other.dram_non_parallel_bytes,
            self.sram_bytes + other.sram_bytes,
            self.central_stripes + other.central_stripes,
            self.boundary_stripes + other.boundary_stripes,
            self.reloads + other.reloads,
        )


@dataclass(frozen=True, slots=True)
class WeightTraffic:
    """What a pass moves of its weights, and the part of their bytes that encoding them saves."""

    traffic: Traffic = Traffic()
    compression_savings: float = 0.0


@dataclass(frozen=True, slots=True)
class MceWork:
    """Operations that the result needs (two for a product and its sum), and cycles for them."""

    operations: int = 0
    cycles: int = 0


@dataclass(frozen=True, slots=True)
class PleWork:
    """Patches of 4 x 4 elements that each engine's lanes process, and the kernel."""

    patches: int = 0
    operation: PleOperation = PleOperation.ADDITION


@dataclass(frozen=True, slots=True)
class Statistics:
    """All figures of a pass."""

    input: Traffic = Traffic()
    output: Traffic = Traffic()
    weights: WeightTraffic = WeightTraffic()
    mce: MceWork = MceWork()
    ple: PleWork = PleWork()


ParentIds = tuple["int | ParentIds", ...]
"""For each input of a pass, the place of the pass that makes it, or the inputs of what is not one.

So it is () for an input of the network, and nested for a concatenation or a reshape.
"""
PassCommand = McePle | PleOnly | Convert


@dataclass(frozen=True, slots=True)
class Pass:
    """A command, and what it does not say of itself.

    operation_ids        of the network's operations that it carries out, ascending
    parents              where its inputs come from
    weight_stripe_bytes  encoded size of each stripe of its weights, in the stream's order
    weights_shape        of its weights as the network has them, H W I O, or None where the command
                         says it; a Winograd kernel's extents are rounded up to multiples of 3 there
    """

    command: PassCommand
    operation_ids: tuple[int, ...] = ()
    parents: ParentIds = ()
    weight_stripe_bytes: tuple[int, ...] = ()
    weights_shape: Shape | None = None


def passes_of(program: Program) -> list[Pass]:
    """Return the passes of a compiled network, whose operations and parents are not known.

    Commands that only dump, wait or mark are not passes. E928 and E929 for weights that are not
    there, E982 for a command that cannot be estimated.
    """
    passes: list[Pass] = []
    for command in program.commands:
        match command:
            case McePle():
                sizes = tuple(place.size for place in program.weight_stripes(command))
                passes.append(Pass(command, weight_stripe_bytes=sizes))
            case PleOnly() | Convert():
                passes.append(Pass(command))
            case SpaceToDepth() | Cascade():
                name = type(command).__name__
                raise fail("E982", f"a pass must be McePle, PleOnly or Convert, not {name}")
            case _:
                pass
    return passes


def require_possible(pass_: Pass) -> None:
    """E983 for a pass that no compiler makes: parts without extent, or weights without stripes."""
    command = pass_.command
    for what, count in _counts(pass_):
        if count <= 0:
            name = type(command).__name__
            raise fail("E983", f"{what} of a pass must be at least 1, and is {count} in {name}")
    if isinstance(command, PleOnly) and command.input_count > 2:
        raise fail("E983", f"inputs of a pass must be at most 2, and are {command.input_count}")


def _counts(pass_: Pass) -> Iterator[tuple[str, int]]:
    """Return each count that must not be 0, with its name."""
    command = pass_.command
    for record in tensors_of(command):
        yield "the stripe extents", min(record.stripe_shape)
        yield "the extents", min(record.shape)
    if isinstance(command, PleOnly):
        yield "the inputs", command.input_count
    if isinstance(command, McePle):
        yield "the weights' stripes", len(pass_.weight_stripe_bytes)
        yield "the weights' extents", min(pass_.weights_shape or command.weights.shape)
        yield "the block's extents", min(command.block_config.width, command.block_config.height)
        yield "the strides", min(command.mce.stride_x, command.mce.stride_y)
        yield "the engine's stripe extents", min(command.mce.output_stripe_shape)
        yield "the engine's extents", min(command.mce.output_shape)


def tensors_of(command: PassCommand) -> tuple[TensorRecord, ...]:
    """Return the feature maps of a pass: its inputs, then its output."""
    match command:
        case PleOnly():
            return *(command.input0, command.input1)[: command.input_count], command.output
        case McePle() | Convert():
            return command.input, command.output


def as_data(estimated: Iterable[tuple[Pass, Statistics]]) -> dict[str, Any]:
    """Return performance data by the library's names, JSON-ready.

    Ref: Ethos-N driver stack 23.02, `Support.cpp` (`PrintNetworkPerformanceDataJson`).
    """
    return {"Stream": [_pass_data(pass_, figures) for pass_, figures in estimated], "Issues": {}}


def _pass_data(pass_: Pass, figures: Statistics) -> dict[str, Any]:
    # The library prints six digits, as C++ does.
    saved = float(f"{figures.weights.compression_savings:.6g}")
    weights = _traffic_data(figures.weights.traffic)
    return {
        "OperationIds": list(pass_.operation_ids),
        "ParentIds": _listed(pass_.parents),
        "Input": _traffic_data(figures.input),
        "Output": _traffic_data(figures.output),
        "Weights": {**weights, "CompressionSavings": int(saved) if saved in (0, 1) else saved},
        "Mce": {"Operations": figures.mce.operations, "CycleCount": figures.mce.cycles},
        "Ple": {"NumOfPatches": figures.ple.patches, "Operation": int(figures.ple.operation)},
    }


def _listed(parents: ParentIds) -> list[Any]:
    return [parent if isinstance(parent, int) else _listed(parent) for parent in parents]


def _traffic_data(traffic: Traffic) -> dict[str, int]:
    return {
        "DramParallelBytes": traffic.dram_parallel_bytes,
        "DramNonParallelBytes": traffic.dram_non_parallel_bytes,
        "SramBytes": traffic.sram_bytes,
        "NumCentralStripes": traffic.central_stripes,
        "NumBoundaryStripes": traffic.boundary_stripes,
        "NumReloads": traffic.reloads,
    }


WEIGHT_BITS = 9
PAYLOAD_HEADER_BYTES = 41
"""Of the encoding parameters and a full palette: 325 bits."""
CHANNEL_HEADER_BYTES = 14
STREAM_ALIGNMENT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Kernel:
    """The weights of a pass, as far as they say how its input is moved; H W I O or H W I M."""

    shape: Shape
    is_depthwise: bool


WITHOUT_WEIGHTS = Kernel((1, 1, 1, 1), is_depthwise=True)


def up(value: int, step: int) -> int:
    """Round up to a multiple."""
    return -(-value // step) * step


def stripe_counts(shape: Shape, stripe: Shape) -> Shape:
    """Count the stripes along each axis."""
    n, h, w, c = (-(-extent // part) for extent, part in zip(shape, stripe, strict=True))
    return n, h, w, c


def _moved_shape(record: TensorRecord) -> Shape:
    """Return the extents that are moved: whole brick groups in all formats but NHWC."""
    if record.format is Format.NHWC:
        return record.shape
    return brick_groups(record.shape)


def brick_groups(shape: Shape) -> Shape:
    """Round planes up to brick groups, 8 x 8 elements."""
    n, h, w, c = shape
    return n, up(h, 8), up(w, 8), c


@dataclass(frozen=True, slots=True)
class _Streaming:
    """Along which axes an input has more than one stripe, and where neighbours are needed."""

    counts: Shape
    neighbour_rows: bool
    neighbour_columns: bool

    @property
    def rows(self) -> bool:
        return self.counts[1] > 1

    @property
    def columns(self) -> bool:
        return self.counts[2] > 1

    @property
    def channels(self) -> bool:
        return self.counts[3] > 1

    @property
    def uses_boundary_slots(self) -> bool:
        """Whether rows above and below a stripe are kept apart from it."""
        return self.neighbour_rows and self.rows and self.columns and not self.channels

    def slots_to_buffer(self) -> int:
        """Count the stripes in SRAM from which on the next can be moved beside the work."""
        beside_rows = min(3 if self.neighbour_rows else 1, self.counts[1])
        beside_columns = min(3 if self.neighbour_columns else 1, self.counts[2])
        if self.channels:
            return 2 * beside_rows * beside_columns
        if self.columns:
            return beside_columns + 1
        return beside_rows + 1 if self.rows else 1


def input_traffic(
    record: TensorRecord,
    kernel: Kernel,
    output_depth_stripes: int,
    capabilities: Capabilities,
) -> Traffic:
    """Return the traffic of an input.

    output_depth_stripes  into how many stripes of channels the output is cut
    """
    shape, stripe = _moved_shape(record), record.stripe_shape
    if record.location is Location.SRAM:
        return Traffic(sram_bytes=math.prod(shape))
    counts = stripe_counts(shape, stripe)
    streaming = _Streaming(counts, kernel.shape[0] > 1, kernel.shape[1] > 1)
    reloads = _reloads(streaming, kernel, output_depth_stripes, capabilities)
    total = (reloads + 1) * _bytes_once(shape, stripe, streaming, capabilities)
    first, border = _first_bytes(shape, stripe, streaming, capabilities)
    kept_apart = 0
    if streaming.uses_boundary_slots:
        kept_apart = border * stripe[2] * stripe[3] * capabilities.boundary_slots
    slots = -(-(record.tile_bytes - kept_apart) // math.prod(stripe))
    first = min(first, total) if slots >= streaming.slots_to_buffer() else total
    return Traffic(
        dram_parallel_bytes=total - first,
        dram_non_parallel_bytes=first,
        central_stripes=math.prod(counts),
        boundary_stripes=(counts[1] - 1) * counts[2] if streaming.uses_boundary_slots else 0,
        reloads=reloads,
    )


def _reloads(
    streaming: _Streaming, kernel: Kernel, output_depth_stripes: int, capabilities: Capabilities
) -> int:
    if streaming.channels:
        return -(-kernel.shape[3] // capabilities.ogs) - 1
    if (streaming.rows or streaming.columns) and not kernel.is_depthwise:
        return output_depth_stripes - 1
    return 0


def _bytes_once(
    shape: Shape, stripe: Shape, streaming: _Streaming, capabilities: Capabilities
) -> int:
    """Return the bytes of an input with what is moved again for the stripes beside it."""
    lines = columns = 0
    if streaming.neighbour_columns and streaming.channels:
        columns = stripe[2]
    if streaming.neighbour_rows and (streaming.channels or (streaming.rows and streaming.columns)):
        lines = capabilities.boundary_stripe_height
    height = shape[1] + 2 * lines * ((shape[1] - 1) // stripe[1])
    width = shape[2] + 2 * columns * ((shape[2] - 1) // stripe[2])
    return shape[0] * height * width * shape[3]


def _first_bytes(
    shape: Shape, stripe: Shape, streaming: _Streaming, capabilities: Capabilities
) -> tuple[int, int]:
    """Return the bytes that must be there before work begins, and the rows of a neighbour."""
    _, height, width, channels = (min(pair) for pair in zip(shape, stripe, strict=True))
    lines = columns = 0
    if streaming.neighbour_rows and streaming.rows:
        apart = streaming.channels or streaming.columns
        lines = capabilities.boundary_stripe_height if apart else height
    if streaming.neighbour_columns and streaming.columns:
        columns = width
    return (height + lines) * (width + columns) * channels, lines


def output_traffic(record: TensorRecord) -> Traffic:
    """Return the traffic of an output: its last stripe when the work is done."""
    shape = _moved_shape(record)
    total = math.prod(shape)
    if record.location is Location.SRAM:
        return Traffic(sram_bytes=total)
    last = math.prod(min(pair) for pair in zip(shape, record.stripe_shape, strict=True))
    return Traffic(
        dram_parallel_bytes=total - last,
        dram_non_parallel_bytes=last,
        central_stripes=math.prod(stripe_counts(shape, record.stripe_shape)),
    )


def conversion_traffic(record: TensorRecord, in_dram: bool) -> Traffic:
    """Return the traffic of a change of layout, of one side: all, and beside nothing."""
    if not in_dram:
        return Traffic(sram_bytes=math.prod(brick_groups(record.shape)))
    return Traffic(
        dram_non_parallel_bytes=math.prod(_moved_shape(record)),
        central_stripes=math.prod(stripe_counts(record.shape, record.stripe_shape)),
    )


def weight_traffic(
    record: TensorRecord,
    kernel: Kernel,
    stripe_bytes: tuple[int, ...],
    input: TensorRecord,
    capabilities: Capabilities,
) -> WeightTraffic:
    """Return the traffic of encoded weights."""
    total = sum(stripe_bytes)
    _, lines, columns, channels = stripe_counts(input.shape, input.stripe_shape)
    reloads = 0
    if lines > 1 and columns == 1 and channels > 1:
        fits = record.tile_bytes >= largest_weight_bytes(kernel, capabilities)
        reloads = 0 if fits else lines - 1
    moved = (reloads + 1) * total
    first = stripe_bytes[0] if record.tile_bytes > max(stripe_bytes) else moved
    traffic = Traffic(
        dram_parallel_bytes=moved - first,
        dram_non_parallel_bytes=first,
        central_stripes=len(stripe_bytes),
        reloads=reloads,
    )
    kept = np.float32(total) / np.float32(math.prod(kernel.shape))
    return WeightTraffic(traffic, max(0.0, float(np.float32(1) - kept)))


def largest_weight_bytes(kernel: Kernel, capabilities: Capabilities) -> int:
    """Return the bytes of encoded weights that can be compressed in no way."""
    height, width, inputs, outputs = kernel.shape
    if kernel.is_depthwise:
        lanes, parallel = 1 + capabilities.srams // 8, capabilities.srams
        outputs *= inputs
    else:
        lanes, parallel = up(inputs, capabilities.igs), capabilities.ogs
    payload = -(-height * width * lanes * WEIGHT_BITS // 8)
    channel = payload + PAYLOAD_HEADER_BYTES + CHANNEL_HEADER_BYTES
    return up(channel * -(-outputs // parallel), STREAM_ALIGNMENT_BYTES) * parallel


HALF_PATCH = (4, 2)
"""Height and width of what the multipliers make at once of an output."""
WINOGRAD_KERNEL = 3
"""The extent of the kernels that one along height or width is taken apart into."""
WINOGRAD_BLOCKS = {(False, False): (2, 2), (True, False): (4, 2), (False, True): (2, 4)}
"""Height and width of a block of outputs, by whether the kernel has one column, one row."""
WINOGRAD_PRODUCTS = 16
"""Products for one block of outputs."""


def uninterleaved_channels(channels: int, mce: MceRecord, capabilities: Capabilities) -> int:
    """Return the channels of an input before it was interleaved for a stride."""
    parts = mce.stride_x * mce.stride_y
    if parts == 1:
        return channels
    srams = capabilities.srams
    return channels // (parts * srams) * srams + channels % srams


def mce_work(command: McePle, kernel: Kernel, capabilities: Capabilities) -> MceWork:
    """Return the operations of a pass, and the cycles of the compute engine for them."""
    mce = command.mce
    channels = uninterleaved_channels(command.input.shape[3], mce, capabilities)
    _, height, width, outputs = mce.output_shape
    match mce.operation:
        case MceOperation.CONVOLUTION:
            pairs = channels * outputs
        case MceOperation.DEPTHWISE_CONVOLUTION:
            pairs = channels
        case MceOperation.FULLY_CONNECTED:
            pairs = channels * command.input.shape[1] * command.input.shape[2] * outputs
    operations = 2 * kernel.shape[0] * kernel.shape[1] * height * width * pairs
    if mce.algorithm is Algorithm.WINOGRAD:
        return MceWork(operations, _winograd_cycles(command, kernel, capabilities))
    is_depthwise = mce.operation is MceOperation.DEPTHWISE_CONVOLUTION
    lanes = 1 if is_depthwise else capabilities.igs
    depth = 1 if is_depthwise else channels
    ogs = capabilities.igs if is_depthwise else capabilities.ogs
    elements = up(height, HALF_PATCH[0]) * up(width, HALF_PATCH[1])
    products = kernel.shape[0] * kernel.shape[1] * elements * up(depth, lanes) * up(outputs, ogs)
    return MceWork(operations, products // (lanes * capabilities.mac_units_per_og * ogs))


def _winograd_cycles(command: McePle, kernel: Kernel, capabilities: Capabilities) -> int:
    kernel_height, kernel_width = kernel.shape[:2]
    _, height, width, outputs = command.mce.output_shape
    lines, columns = WINOGRAD_BLOCKS[kernel_width == 1, kernel_height == 1]
    blocks = -(-height // lines) * -(-width // columns)
    parts = -(-kernel_height // WINOGRAD_KERNEL) * -(-kernel_width // WINOGRAD_KERNEL)
    depth = up(command.input.shape[3], capabilities.igs)
    products = depth * blocks * WINOGRAD_PRODUCTS * parts
    each = products // (capabilities.igs * capabilities.mac_units_per_og)
    return each * -(-outputs // capabilities.ogs)


def ple_work(
    operation: PleOperation, shapes: Iterable[Shape], capabilities: Capabilities
) -> PleWork:
    """Return the patches of the largest of what a kernel takes."""
    _, patch_height, patch_width, _ = capabilities.patch_shape
    lanes = capabilities.engines * capabilities.ple_lanes
    counts = [
        (-(-height // patch_height), -(-width // patch_width), -(-channels // lanes))
        for _, height, width, channels in shapes
    ]
    lines, columns, depth = (max(axis) for axis in zip(*counts, strict=True))
    return PleWork(lines * columns * depth, operation)
