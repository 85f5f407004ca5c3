"""What commands of stream 3.1 hold: enumerations as the stream numbers them, and typed records.

One command is one pass over whole tensors: a compiler emits it, a simulator executes it. Shapes are
N, H, W, C (weights: H, W, I, O), in elements; SRAM offsets are bytes within each bank.

Ref: Ethos-N driver stack 23.02, command stream 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mizzen.targets.ethos_n.tensors import Shape


class DataTypeCode(IntEnum):
    """The type of a feature map's elements."""

    U8 = 0
    S8 = 1


class Format(IntEnum):
    """How a tensor lies in DRAM."""

    NHWCB_COMPRESSED = 0
    NHWCB = 1
    NHWC = 2
    NCHW = 3
    WEIGHT_STREAM = 4
    FCAF_DEEP = 5
    FCAF_WIDE = 6


class Location(IntEnum):
    """Where a pass finds or leaves a tensor."""

    DRAM = 0
    SRAM = 1


class Strategy(IntEnum):
    """How a pass cuts its tensors into stripes."""

    STRATEGY_0 = 0
    STRATEGY_1 = 1
    STRATEGY_3 = 2
    STRATEGY_4 = 3
    STRATEGY_6 = 4
    STRATEGY_7 = 5
    STRATEGY_X = 6


class Upsample(IntEnum):
    """The elements that the compute engine inserts between those of its input."""

    OFF = 0
    BILINEAR = 1
    NEAREST_NEIGHBOUR = 2
    TRANSPOSE = 3


class UpsampleEdge(IntEnum):
    """Whether the last row or column of an upsampled plane is made."""

    GENERATE = 0
    DROP = 1


class MceOperation(IntEnum):
    """The operation of the compute engine."""

    CONVOLUTION = 0
    DEPTHWISE_CONVOLUTION = 1
    FULLY_CONNECTED = 2


class Algorithm(IntEnum):
    """How the compute engine convolves."""

    DIRECT = 0
    WINOGRAD = 1


class PleOperation(IntEnum):
    """The kernel of the programmable layer engine."""

    ADDITION = 0
    ADDITION_RESCALE = 1
    AVGPOOL_3X3_1_1_UDMA = 2
    FAULT = 3
    INTERLEAVE_2X2_2_2 = 4
    MAXPOOL_2X2_2_2 = 5
    MAXPOOL_3X3_2_2_EVEN = 6
    MAXPOOL_3X3_2_2_ODD = 7
    MEAN_XY_7X7 = 8
    MEAN_XY_8X8 = 9
    PASSTHROUGH = 10
    SIGMOID = 11
    TRANSPOSE_XY = 12
    LEAKY_RELU = 13
    DOWNSAMPLE_2X2 = 14


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A tensor that a pass reads or writes.

    supertensor_shape   of the tensor in memory that this one is a part of
    supertensor_offset  where in it this one begins
    stripe_shape        the part that is in SRAM at a time
    tile_bytes          SRAM over all banks for the stripes that are there at the same time
    sram_offset_bytes   where they are in each bank
    dram_buffer_id      index in the table of buffers; of no meaning for a tensor in SRAM
    """

    data_type: DataTypeCode
    format: Format
    shape: Shape
    supertensor_shape: Shape
    supertensor_offset: Shape
    stripe_shape: Shape
    tile_bytes: int
    dram_buffer_id: int
    sram_offset_bytes: int
    zero_point: int
    location: Location


@dataclass(frozen=True, slots=True)
class BlockConfigRecord:
    """The part of a plane that is made at once, in elements."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class MceRecord:
    """What the compute engine does in a pass.

    uninterleaved_input_shape  of the input before an interleaving by the stride, if there was one
    output_zero_point          added to what was accumulated and scaled
    activation_min, ..._max    bounds of the result, in quantised numbers
    """

    stride_x: int
    stride_y: int
    pad_top: int
    pad_left: int
    uninterleaved_input_shape: Shape
    output_shape: Shape
    output_stripe_shape: Shape
    output_zero_point: int
    upsample: Upsample
    upsample_edge_row: UpsampleEdge
    upsample_edge_column: UpsampleEdge
    operation: MceOperation
    algorithm: Algorithm
    activation_min: int
    activation_max: int


@dataclass(frozen=True, slots=True)
class PleRecord:
    """What the programmable layer engine does in a pass.

    ce_sram, ple_sram    where its kernel is, bytes
    multiplier, shift    of the rescaling of the first and of the second input
    """

    ce_sram: int
    ple_sram: int
    operation: PleOperation
    multiplier0: int = 0
    shift0: int = 0
    multiplier1: int = 0
    shift1: int = 0


@dataclass(frozen=True, slots=True)
class McePle:
    """The compute engine, and after it the programmable layer engine."""

    input: TensorRecord
    weights: TensorRecord
    weight_metadata_buffer_id: int
    output: TensorRecord
    strategy: Strategy
    block_config: BlockConfigRecord
    mce: MceRecord
    ple: PleRecord


@dataclass(frozen=True, slots=True)
class PleOnly:
    """The programmable layer engine alone, on one or two inputs (`input_count`)."""

    input_count: int
    input0: TensorRecord
    input1: TensorRecord
    output: TensorRecord
    strategy: Strategy
    ple: PleRecord


@dataclass(frozen=True, slots=True)
class Convert:
    """A copy through SRAM from one layout to another."""

    input: TensorRecord
    output: TensorRecord


@dataclass(frozen=True, slots=True)
class SpaceToDepth:
    """Blocks of each plane to channels, by the DMA."""

    input: TensorRecord
    output: TensorRecord
    used_emcs: int
    intermediate0_bytes: int
    intermediate1_bytes: int


@dataclass(frozen=True, slots=True)
class DumpDram:
    """Writes a DRAM buffer to a file of this name, where the firmware can."""

    dram_buffer_id: int
    filename: str


@dataclass(frozen=True, slots=True)
class DumpSram:
    """Writes the SRAM to files of this name, where the firmware can."""

    filename: str


@dataclass(frozen=True, slots=True)
class Fence:
    """Waits for everything before it."""


@dataclass(frozen=True, slots=True)
class Section:
    """Starts a section of a cascade."""

    type: int


@dataclass(frozen=True, slots=True)
class Delay:
    """Waits."""

    value: int


@dataclass(frozen=True, slots=True)
class Cascade:
    """Agents that run side by side; of the experimental compiler only."""

    agents: int


Command = (
    McePle | PleOnly | Convert | SpaceToDepth | DumpDram | DumpSram | Fence | Section | Delay
    | Cascade
)  # fmt: skip
"""One command of a stream."""
