"""The architectures of Ethos-U, and enumerations that their command fields hold.

Names follow the register headers `ethosu55_interface.h`, `ethosu65_interface.h` and
`ethosu85_interface.h` of Arm's core driver. U55 and U65 agree in all of them; where U85 differs, it
has a class of its own with U85 at the end of its name.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class Arch(Enum):
    """Products with one set of commands; the value is its name."""

    U55 = "Ethos-U55"
    U65 = "Ethos-U65"
    U85 = "Ethos-U85"


U55, U65, U85 = (Arch.U55,), (Arch.U65,), (Arch.U85,)
U55_U65 = (*U55, *U65)
U65_U85 = (*U65, *U85)
ALL = (*U55, *U65, *U85)


class ActivationType(IntEnum):
    """Whether elements of a feature map are signed."""

    UNSIGNED = 0
    SIGNED = 1


class Precision(IntEnum):
    """Bits of an element of a feature map: 8 shifted left by the value."""

    B8 = 0
    B16 = 1
    B32 = 2
    B64 = 3


class Layout(IntEnum):
    """Order of a feature map in memory: row major, or in bricks of 16 channels."""

    NHWC = 0
    NHCWB16 = 1


class Storage(IntEnum):
    """U85: how a feature map's base addresses divide it, or that it is not in memory."""

    TILE2X2 = 0
    TILE3X1 = 1
    CHAINED = 2
    NONE = 3


class IfmScaleMode(IntEnum):
    """U55, U65: which operand of an addition is scaled with 32-bit intermediate precision."""

    OPA_OPB_16 = 0
    OPA_32 = 1
    OPB_32 = 2


class OfmScaleMode(IntEnum):
    """Whether each channel has a scale record or OFM_SCALE applies to all."""

    PER_CHANNEL = 0
    GLOBAL = 1


class RoundMode(IntEnum):
    """U55, U65: rounding of scaled results."""

    DBL = 0
    TRUNCATE = 1
    NATURAL = 2


class RoundModeOfmU85(IntEnum):
    """U85: rounding of output scaling."""

    DOUBLE_SYMMETRIC = 0
    NATURAL = 1
    DOUBLE_ASYMMETRIC = 2
    SYMMETRIC = 3
    TRUNCATE_TO_ZERO = 4
    TRUNCATE_TO_LOWER = 5


class RoundModeIfmU85(IntEnum):
    """U85: rounding of input scaling."""

    DOUBLE_SYMMETRIC = 0
    NATURAL = 1


class TransposeU85(IntEnum):
    """U85: permutation of the output when it is written."""

    HWC = 0
    WHC = 1
    HCW = 2
    WCH = 3
    CHW = 6
    CWH = 7


class ReverseU85(IntEnum):
    """U85: axis of the output that is written backwards."""

    NONE = 0
    H = 1
    W = 2
    C = 3


class PoolingMode(IntEnum):
    """U55, U65: what a pooling operation computes over its window."""

    MAX = 0
    AVERAGE = 1
    REDUCE_SUM = 2


class PoolingModeU85(IntEnum):
    """U85: what a pooling operation computes over its window."""

    MAX = 0
    AVERAGE = 1
    REDUCE_SUM = 2
    SUM = 3
    NONE = 4
    MIN = 5
    ARGMAX_X = 6
    ARGMAX_Y = 7


class ElementwiseMode(IntEnum):
    """U55, U65: the elementwise operation."""

    MUL = 0
    ADD = 1
    SUB = 2
    MIN = 3
    MAX = 4
    LRELU = 5
    ABS = 6
    CLZ = 7
    SHR = 8
    SHL = 9


class ElementwiseModeU85(IntEnum):
    """U85: the elementwise operation."""

    MUL = 0
    ADD = 1
    SUB = 2
    MIN = 3
    MAX = 4
    LRELU = 5
    ABS = 6
    CLZ = 7
    SHR = 8
    SHL = 9
    LSR = 10
    DIV = 11
    CMP_EQ = 16
    CMP_NE = 17
    CMP_GE = 18
    CMP_GT = 19
    AND = 33
    OR = 34
    XOR = 35
    NOT = 36
    AND_NOT = 42


class ResizeModeU85(IntEnum):
    """U85: interpolation of a resize."""

    BILINEAR = 0
    REPLICATE = 1
    NEAREST = 2


class UpscaleMode(IntEnum):
    """How the input is doubled in both directions before the operation reads it."""

    NONE = 0
    NEAREST = 1
    ZEROS = 2


class WeightOrder(IntEnum):
    """Order of weights in the stream: all of the depth first, or kernel elements first."""

    DEPTH_FIRST = 0
    PART_KERNEL_FIRST = 1


class KernelDecomposition(IntEnum):
    """Largest sub-kernel that a kernel is divided into."""

    D8X8 = 0
    D4X4 = 1


class KernelDilation(IntEnum):
    """Distance of kernel elements along one axis."""

    NONE = 0
    X2 = 1


class WeightFormatU85(IntEnum):
    """U85: standard or fast weight decoder."""

    SWD = 0
    FWD = 1


class WeightSparsityU85(IntEnum):
    """U85: structured sparsity of the weight stream."""

    NONE = 0
    SPARSE_2_4 = 1


class ParallelMode(IntEnum):
    """U65: whether two cores divide the output channels among them."""

    SINGLE_CORE = 0
    DUAL_CORE_DEPTH = 1


class AccFormat(IntEnum):
    """U55, U65: accumulator format."""

    I32 = 0
    I40 = 1
    F16 = 2


class AccFormatU85(IntEnum):
    """U85: accumulator format."""

    I32 = 0
    I48 = 1


class AccInputU85(IntEnum):
    """U85: what accumulators hold before the operation."""

    RESET = 0
    KEEP = 1
    IFM2 = 2


class AccOutputU85(IntEnum):
    """U85: whether the operation writes its output."""

    ENABLE = 0
    DISABLE = 1


class MicroblockU85(IntEnum):
    """U85: height and width of the output microblock."""

    U1X1 = 0
    U1X2 = 1
    U1X4 = 2
    U2X2 = 3
    U2X4 = 4
    U4X4 = 5


class ActivationFunction(IntEnum):
    """U55, U65: function applied to the clipped output; TABLE_n is a lookup table in SHRAM."""

    RELU = 0
    TANH = 3
    SIGMOID = 4
    TABLE_0 = 16
    TABLE_1 = 17
    TABLE_2 = 18
    TABLE_3 = 19
    TABLE_4 = 20
    TABLE_5 = 21
    TABLE_6 = 22
    TABLE_7 = 23


class ActivationFunctionU85(IntEnum):
    """U85: kind of lookup table applied to the clipped output."""

    LUT_NONE = 0
    LUT_U8_U8 = 1
    LUT_S8_S8 = 4
    LUT_S8_S16 = 5
    LUT_S8_S32 = 7
    LUT_S16_S16 = 8
    LUT_S16_S32 = 9
    LUT_TANH = 10
    LUT_SIGMOID = 11


class ClipRange(IntEnum):
    """U55, U65: range that clips the output before a table lookup."""

    OFM_PRECISION = 0
    FORCE_UINT8 = 2
    FORCE_INT8 = 3
    FORCE_INT16 = 5


class ClipRangeU85(IntEnum):
    """U85: clip to ACTIVATION_MIN and ACTIVATION_MAX, or to the output type alone."""

    B16 = 0
    NONE = 1


class Broadcast(IntEnum):
    """U55, U65: whether IFM2 is broadcast along one axis."""

    DISABLE = 0
    ENABLE = 1


class BroadcastU85(IntEnum):
    """U85: axes along which an input is broadcast."""

    NONE = 0
    H = 1
    W = 2
    HW = 3
    C = 4
    CH = 5
    CW = 6
    CWH = 7
    SCALAR = 8


class OperandOrder(IntEnum):
    """U55, U65: which operand of an elementwise operation IFM2 is."""

    ORDER_B = 0
    ORDER_A = 1


class DmaRegionMode(IntEnum):
    """Whether a DMA region is memory or on-chip RAM."""

    EXTERNAL = 0
    INTERNAL = 1


class DmaStrideMode(IntEnum):
    """Dimensions of a DMA transfer."""

    D1 = 0
    D2 = 1
    D3 = 2


class DmaIndexModeU85(IntEnum):
    """U85: whether rows of a DMA transfer are selected by indices."""

    DISABLED = 0
    ENABLED = 1


class BranchConditionU85(IntEnum):
    """U85: when a branch is taken."""

    ALWAYS = 0
    RF_TRUE = 1
