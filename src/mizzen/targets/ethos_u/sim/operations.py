"""Operations as the simulator executes them: everything an `OP_` command takes from registers.

Plain data, resolved once from the register file; sizes in elements, strides and bases in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.sim.rounding import Rounding

BRICK = 16
"""Channels in one brick of the NHCWB16 format."""


class Format(Enum):
    """How a feature map lies in memory."""

    NHWC = "NHWC"
    NHCWB16 = "NHCWB16"


class Upscale(Enum):
    """What the NPU does to its input before the kernel sees it."""

    NONE = "none"
    NEAREST = "nearest"
    ZEROS = "zeros"


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """A feature map `[height, width, depth]` in memory, cut into up to 2 x 2 tiles.

    Rows below `height_0` (or `height_1` right of `width_0`) continue at another base.
    """

    region: int
    bases: tuple[int, int, int, int]
    height_0: int
    height_1: int
    width_0: int
    stride_y: int
    stride_x: int
    stride_c: int
    format: Format
    dtype: np.dtype[np.integer[Any]]
    zero_point: int
    height: int
    width: int
    depth: int

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value of an element."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    @property
    def magnitude(self) -> int:
        """Largest absolute value of an element minus the zero point."""
        low, high = self.limits
        return max(abs(low - self.zero_point), abs(high - self.zero_point))


@dataclass(frozen=True, slots=True)
class Kernel:
    """The window: sizes without dilation, strides and dilations in elements, padding per side."""

    height: int
    width: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    pad_top: int
    pad_left: int
    pad_bottom: int
    pad_right: int

    @property
    def dilated_height(self) -> int:
        """Rows from the first to the last kernel row."""
        return (self.height - 1) * self.dilation_y + 1

    @property
    def dilated_width(self) -> int:
        """Columns from the first to the last kernel column."""
        return (self.width - 1) * self.dilation_x + 1

    @property
    def is_padded(self) -> bool:
        """Whether any side has padding."""
        return any((self.pad_top, self.pad_left, self.pad_bottom, self.pad_right))

    @property
    def is_pointwise(self) -> bool:
        """Whether every output reads exactly the input at its own place."""
        return (self.height, self.width, self.stride_y, self.stride_x) == (
            1, 1, 1, 1,
        ) and not self.is_padded  # fmt: skip


class Function(Enum):
    """What follows clipping."""

    NONE = "none"
    TANH = "tanh"
    SIGMOID = "sigmoid"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Activation:
    """Clip bounds, then a function; `table` is the index of the lookup table for TABLE.

    `forced` is the type that the clip range forces on values before the function, if any.
    """

    function: Function
    table: int
    minimum: int
    maximum: int
    forced: np.dtype[np.integer[Any]] | None


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go and how they get there."""

    fm: FeatureMap
    rounding: Rounding
    scale: tuple[int, int] | None
    """Global multiplier and shift; None for per-channel scales."""
    activation: Activation


@dataclass(frozen=True, slots=True)
class Stream:
    """A range of bytes in a region."""

    region: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Where:
    """The command in the stream, and the operator of the user's model it was made for."""

    name: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Convolution:
    """CONV and DEPTHWISE; one weight and one scale stream per core."""

    where: Where
    ifm: FeatureMap
    upscale: Upscale
    kernel: Kernel
    output: Output
    depthwise: bool
    part_kernel: bool
    ofm_block_depth: int
    accumulator_bits: int
    weights: tuple[Stream, ...]
    scales: tuple[Stream, ...]


class Pool(Enum):
    """Kinds of pooling."""

    MAX = "max"
    AVERAGE = "average"
    REDUCE_SUM = "reduce sum"


@dataclass(frozen=True, slots=True)
class Pooling:
    """POOL."""

    where: Where
    mode: Pool
    ifm: FeatureMap
    upscale: Upscale
    kernel: Kernel
    output: Output
    accumulator_bits: int


class Binary(Enum):
    """Elementwise operations of two operands, and of one."""

    MUL = "mul"
    ADD = "add"
    SUB = "sub"
    MIN = "min"
    MAX = "max"
    SHR = "shr"
    SHL = "shl"
    LRELU = "lrelu"
    ABS = "abs"
    CLZ = "clz"

    @property
    def is_unary(self) -> bool:
        """Whether the operation has one operand."""
        return self in (Binary.LRELU, Binary.ABS, Binary.CLZ)


class OperandScaling(Enum):
    """Which operand of ADD and SUB is rescaled with full precision first."""

    BOTH_16 = "both, by 16-bit multipliers"
    A_32 = "operand A, by a 32-bit multiplier and shift"
    B_32 = "operand B, by a 32-bit multiplier and shift"


@dataclass(frozen=True, slots=True)
class Elementwise:
    """ELEMENTWISE: `a op b`, where `reversed` makes `b` the first operand.

    `b` is a feature map (a broadcast axis has size 1), a scalar in units of the second input with
    its zero point already subtracted, or None for unary operations.
    """

    where: Where
    mode: Binary
    a: FeatureMap
    b: FeatureMap | int | None
    reversed: bool
    operand_scaling: OperandScaling
    scale_a: tuple[int, int]
    scale_b: int
    input_rounding: Rounding
    output: Output


class Space(Enum):
    """Where a DMA end lies."""

    EXTERNAL = "external"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class DmaEnd:
    """One end of a transfer."""

    space: Space
    region: int
    offset: int


@dataclass(frozen=True, slots=True)
class Dma:
    """DMA_START: `planes` x `rows` runs of `length` bytes.

    The source is contiguous; the destination moves on by `length + skip_row` per row and by
    `skip_plane` more per plane.
    """

    where: Where
    source: DmaEnd
    destination: DmaEnd
    length: int
    rows: int
    planes: int
    skip_row: int
    skip_plane: int


Operation = Convolution | Pooling | Elementwise | Dma
