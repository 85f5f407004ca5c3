"""Operations as the simulator executes them: everything an `OP_` command takes from registers.

Plain data, resolved once from the register file; sizes in elements, strides and bases in bytes.
What differs between architectures is resolved too: an operation means the same whatever started it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.judge.sim.rounding import DOUBLING_BITS, Rounding, Scale
from mizzen.targets.ethos_u.judge.sim.scales import RecordFormat
from mizzen.targets.ethos_u.judge.sim.weights import WeightLayout

BRICK = 16
"""Channels in one brick of the NHCWB16 format."""


class Format(Enum):
    """How a feature map lies in memory."""

    NHWC = "NHWC"
    NHCWB16 = "NHCWB16"


class Tiling(Enum):
    """How the bases of a feature map divide it."""

    QUAD = "two rows of two tiles"
    STACK = "three tiles, one below the other"


class Upscale(Enum):
    """What the NPU does to its input before the kernel sees it."""

    NONE = "none"
    NEAREST = "nearest"
    ZEROS = "zeros"


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """A feature map `[height, width, depth]` in memory, cut into tiles.

    QUAD: rows below `height_0` (or `height_1` right of `width_0`) continue at another base. STACK:
    the second tile starts at row `height_0`, the third at row `height_1`.

    `region` is negative for what is not a memory of the program: see `plan`. `zero_point` is what
    the operation applies, 0 where the machine ignores it.
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
    tiling: Tiling = Tiling.QUAD

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and depth."""
        return self.height, self.width, self.depth

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value of an element."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    @property
    def magnitude(self) -> int:
        """Largest absolute value of an element minus the zero point; 64 bits hold sums of 48."""
        if self.dtype.itemsize == 8:
            return 1 << 47
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


@dataclass(frozen=True, slots=True)
class Stream:
    """A range of bytes in a region."""

    region: int
    offset: int
    length: int


class Function(Enum):
    """What becomes of a clipped result; of an unclipped one for the four of tanh and sigmoid."""

    NONE = "none"
    TANH = "tanh, from the machine's own table"
    SIGMOID = "sigmoid, from the machine's own table"
    TABLE_TANH = "tanh, from a table"
    TABLE_SIGMOID = "sigmoid, from a table"
    ENTRIES = "an entry of a table"
    SEGMENTS = "a line between two entries of a table"
    SEGMENTS_32 = "a line between two entries of a table, with 7 bits more"


@dataclass(frozen=True, slots=True)
class Clip:
    """Zero point and bounds of a result, and the type that they lie in.

    A result that `wraps` has no bounds: its low bits are stored.
    """

    zero_point: int
    low: int
    high: int
    dtype: np.dtype[np.integer[Any]]
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class Activation:
    """What follows scaling: zero point and clipping, and a function.

    clip    None for a result that is stored as it is, and has to fit
    table   where the table of the function lies, if it has one
    """

    clip: Clip | None
    function: Function = Function.NONE
    table: Stream | None = None


HWC = (0, 1, 2)
INTERNAL = -1
"""Stands for the NPU's own memory, shared buffer or table RAM, among the regions."""
FIRST_CHAIN = -2
"""Chain buffer k, of eight, is region FIRST_CHAIN - k."""
NOWHERE = FIRST_CHAIN - 8
"""Stands for no memory at all: the output of an operation that leaves its sums to the next."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go and how they get there.

    fm            the map in memory
    scale         multiplier and shift of all channels; None where each has its own, or none at all
    axes          axis of the result that each axis of `fm` is
    reversed      axis of the result that is written backwards
    doubling_bit  where DOUBLE rounds first
    """

    fm: FeatureMap
    rounding: Rounding
    scale: tuple[int, int] | None
    activation: Activation
    axes: tuple[int, int, int] = HWC
    reversed: int | None = None
    doubling_bit: int = DOUBLING_BITS

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and depth of the result before it is permuted."""
        result = [0, 0, 0]
        for axis, size in zip(self.axes, self.fm.shape, strict=True):
            result[axis] = size
        return result[0], result[1], result[2]


@dataclass(frozen=True, slots=True)
class Where:
    """The command in the stream, and the operator of the user's model it was made for."""

    name: str
    origin: Origin


class AccumulatorInput(Enum):
    """What accumulators hold before an operation adds to them."""

    ZERO = "zero"
    KEPT = "what the operation before left"
    MAP = "the second input"


@dataclass(frozen=True, slots=True)
class Accumulators:
    """The accumulators of an operation.

    initial     what they start from; `map` is the second input for MAP
    written     whether their contents are scaled and written; else they are kept
    """

    bits: int
    initial: AccumulatorInput = AccumulatorInput.ZERO
    map: FeatureMap | None = None
    written: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether the operation starts from zero and writes its result."""
        return self.initial is AccumulatorInput.ZERO and self.written


@dataclass(frozen=True, slots=True)
class Convolution:
    """CONV and DEPTHWISE with weights from streams, which `layout` joins and orders.

    Of the scale streams, stream k has the records of channels k, k + streams, ...
    """

    where: Where
    ifm: FeatureMap
    upscale: Upscale
    kernel: Kernel
    output: Output
    depthwise: bool
    accumulators: Accumulators
    weights: tuple[Stream, ...]
    layout: WeightLayout
    scales: tuple[Stream, ...]
    record: RecordFormat


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """CONV with weights from a map `[1, output depth, input depth]`, without bias."""

    where: Where
    ifm: FeatureMap
    weights: FeatureMap
    upscale: Upscale
    kernel: Kernel
    output: Output
    accumulators: Accumulators


class Pool(Enum):
    """Kinds of pooling."""

    MAX = "max"
    MIN = "min"
    AVERAGE = "average"
    SUM = "sum"
    REDUCE_SUM = "reduce sum"
    NONE = "none"
    ARGMAX_X = "argmax x"
    ARGMAX_Y = "argmax y"


@dataclass(frozen=True, slots=True)
class Pooling:
    """POOL; `divided` by the number of elements of the window that are no padding."""

    where: Where
    mode: Pool
    ifm: FeatureMap
    upscale: Upscale
    kernel: Kernel
    output: Output
    accumulators: Accumulators
    divided: bool
    scales: tuple[Stream, ...] = ()
    record: RecordFormat | None = None


class Binary(Enum):
    """Elementwise operations of two operands, and of one."""

    MUL = "mul"
    ADD = "add"
    SUB = "sub"
    MIN = "min"
    MAX = "max"
    SHR = "shr"
    SHL = "shl"
    LSR = "lsr"
    DIV = "div"
    CMP_EQ = "equal"
    CMP_NE = "not equal"
    CMP_GE = "greater or equal"
    CMP_GT = "greater"
    AND = "and"
    OR = "or"
    XOR = "xor"
    AND_NOT = "and not"
    NOT = "not"
    LRELU = "lrelu"
    ABS = "abs"
    CLZ = "clz"

    @property
    def is_unary(self) -> bool:
        """Whether the operation has one operand."""
        return self in UNARY


UNARY = (Binary.LRELU, Binary.ABS, Binary.CLZ, Binary.NOT)


@dataclass(frozen=True, slots=True)
class Elementwise:
    """ELEMENTWISE: `a op b`, where `reversed` makes `b` the first operand.

    An operand is a feature map (a broadcast axis has size 1), a scalar with its zero point already
    subtracted, or None where an operation of one operand has no `b`. `scale_a` and `scale_b` are
    applied to `a` and `b`; LRELU applies the first to what is not negative, the second to the
    rest. SHR rounds like the output.
    """

    where: Where
    mode: Binary
    a: FeatureMap | int
    b: FeatureMap | int | None
    reversed: bool
    scale_a: Scale | None
    scale_b: Scale | None
    output: Output

    @property
    def maps(self) -> list[FeatureMap]:
        """The operands that are feature maps."""
        return [operand for operand in (self.a, self.b) if isinstance(operand, FeatureMap)]


class Interpolation(Enum):
    """How RESIZE makes an element from those around its place."""

    BILINEAR = "bilinear"
    NEAREST = "nearest"
    REPLICATE = "replicate"


@dataclass(frozen=True, slots=True)
class Steps:
    """Where RESIZE reads along one axis: element i at `(i * step + offset) / scale`."""

    scale: int
    step: int
    offset: int


@dataclass(frozen=True, slots=True)
class Resize:
    """RESIZE; `rows` and `columns` say where it reads."""

    where: Where
    mode: Interpolation
    ifm: FeatureMap
    rows: Steps
    columns: Steps
    output: Output


class Space(Enum):
    """Where a DMA end lies."""

    EXTERNAL = "external"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class DmaEnd:
    """One end of a transfer: where it starts, and how far apart its planes and rows are."""

    space: Space
    region: int
    offset: int
    plane_stride: int
    row_stride: int


@dataclass(frozen=True, slots=True)
class Indices:
    """Row numbers that DMA reads: int32 `[planes, rows]`, `plane_stride` bytes between planes.

    They replace the row counter of the destination if `scatters`, else of the source, and must
    be at most `greatest`.
    """

    stream: Stream
    plane_stride: int
    greatest: int
    scatters: bool


@dataclass(frozen=True, slots=True)
class Dma:
    """DMA_START: `planes` x `rows` runs of `length` bytes."""

    where: Where
    source: DmaEnd
    destination: DmaEnd
    length: int
    rows: int
    planes: int
    indices: Indices | None = None


Operation = Convolution | MatrixProduct | Pooling | Elementwise | Resize | Dma
