"""The commands of Ethos-U55, U65 and U85: one row each, in the order of the opcodes.

Ref: `ethosu55_interface.h`, `ethosu65_interface.h` and `ethosu85_interface.h` of Arm's Ethos-U core
driver (struct `npu_<name>_t` of each command), and the Technical Reference Manuals of the three.
Bits of the parameter (word 0, bits 31:16) are written ``p(high, low)``, bits of the payload
(word 1) ``w(high, low)``, as the headers count them. Values are the user's numbers: sizes that
registers hold minus one are the sizes.

Zero points, clip boundaries and the IFM2 scalar are 16 bits whose sign depends on the feature map's
type; rows give the signed reading, so 0xFFFF is -1 for unsigned 16-bit data too.
"""

from __future__ import annotations

from mizzen.isa import Command, Field, Kind, Slice, bits, choice, minus_one, number, signed
from mizzen.targets.ethos_u.machine.commands_values import (
    ALL,
    U55,
    U55_U65,
    U65,
    U65_U85,
    U85,
    AccFormat,
    AccFormatU85,
    AccInputU85,
    AccOutputU85,
    ActivationFunction,
    ActivationFunctionU85,
    ActivationType,
    Arch,
    BranchConditionU85,
    Broadcast,
    BroadcastU85,
    ClipRange,
    ClipRangeU85,
    DmaIndexModeU85,
    DmaRegionMode,
    DmaStrideMode,
    ElementwiseMode,
    ElementwiseModeU85,
    IfmScaleMode,
    KernelDecomposition,
    KernelDilation,
    Layout,
    MicroblockU85,
    OfmScaleMode,
    OperandOrder,
    ParallelMode,
    PoolingMode,
    PoolingModeU85,
    Precision,
    ResizeModeU85,
    ReverseU85,
    RoundMode,
    RoundModeIfmU85,
    RoundModeOfmU85,
    Storage,
    TransposeU85,
    UpscaleMode,
    WeightFormatU85,
    WeightOrder,
    WeightSparsityU85,
)

Archs = tuple[Arch, ...]
Row = tuple[Archs, Command]

_CMD1 = 1 << 14  # control, bits 15:14 of word 0: 1 says that a payload word follows


def p(high: int, low: int | None = None) -> Slice:
    """Return bits of the parameter, counted from its bit 0."""
    return bits(high + 16, None if low is None else low + 16)


def w(high: int, low: int | None = None) -> Slice:
    """Return bits of the payload word."""
    return bits(high + 32, None if low is None else low + 32)


def _row(archs: Archs, kind: Kind, key: int, name: str, doc: str, *fields: Field) -> Row:
    headers = ", ".join(f"ethosu{arch.name[1:]}_interface.h" for arch in archs)
    source = f"{headers}: npu_{name.lower()}_t"
    return archs, Command(name, key, 2 if key & _CMD1 else 1, kind, fields, doc, source)


def op(archs: Archs, opcode: int, name: str, doc: str, *fields: Field) -> Row:
    """Make the row of a command that starts work."""
    return _row(archs, Kind.OPERATION, opcode, name, doc, *fields)


def ctl(archs: Archs, key: int, name: str, doc: str, *fields: Field) -> Row:
    """Make the row of a command that acts on the stream."""
    return _row(archs, Kind.CONTROL, key, name, doc, *fields)


def set0(archs: Archs, opcode: int, name: str, doc: str, *fields: Field) -> Row:
    """Make the row of a one-word register write."""
    return _row(archs, Kind.SETTING, opcode, name, doc, *fields)


def set1(archs: Archs, opcode: int, name: str, doc: str, *fields: Field) -> Row:
    """Make the row of a register write with a payload word."""
    return _row(archs, Kind.SETTING, opcode | _CMD1, name, doc, *fields)


# Fields that several rows share.

_TYPE = choice("activation_type", ActivationType, p(0), doc="Sign of the elements")
_IFM_PRECISION = choice("activation_precision", Precision, p(3, 2), doc="Bits of an element")
_OFM_PRECISION = choice("activation_precision", Precision, p(2, 1), doc="Bits of an element")
_FORMAT = choice("activation_format", Layout, p(7, 6), doc="Order in memory")
_STORAGE = choice("activation_storage", Storage, p(15, 14), doc="Tiles, or not in memory")
_ROUND = choice("round_mode", RoundMode, p(15, 14), doc="Rounding of scaled values")
_OFM_SCALE_MODE = choice("scale_mode", OfmScaleMode, p(8), doc="Where output scales come from")

_PAD_127 = number("pad", p(6, 0), doc="Padding", unit="elements")
_PAD_255 = number("pad", p(7, 0), doc="Padding, at most 128", unit="elements")
_WIDTH = minus_one("width", p(15, 0), doc="Width", unit="elements")
_HEIGHT = minus_one("height", p(15, 0), doc="Height", unit="elements")
_DEPTH = minus_one("depth", p(15, 0), doc="Depth", unit="elements")
_ZERO_POINT = signed("zero_point", p(15, 0), doc="Zero point; signed reading of 16 bits")
_CLIP = signed("clip_boundary", p(15, 0), doc="Bound, inclusive; signed reading of 16 bits")
_REGION = number("region", p(2, 0), doc="Index of the base pointer")
_CUSTOM_DMA = number("custom_dma_cs", p(15), doc="Use the custom DMA's chip select")
_REGION_MODE = choice("region_mode", DmaRegionMode, p(8), doc="Memory, or on-chip RAM")
_STRIDE_MODE = choice("stride_mode", DmaStrideMode, p(10, 9), doc="Dimensions of the transfer")
_INDEX_MODE = choice("idx_mode", DmaIndexModeU85, p(11), doc="Select rows by indices")
_DST_REGION = number(
    "region", p(2, 0), doc="Index of the base pointer; of on-chip RAM, a mask of cores"
)
_SIZE = number("size", p(15, 0), doc="Repetitions", unit="rows or planes")
_MASK = number("mask", p(15, 0), doc="16 bits that STATUS.irq_history_mask shows")
_SHIFT = number("shift", p(5, 0), doc="Right shift after the multiplication", unit="bits")
_SCALE_U85 = number("scale", w(30, 0), doc="Multiplier")
_DBL_RND = number(
    "dbl_rnd", p(10, 6), doc="The first of two roundings is at bit 31 less this", unit="bits"
)
_LENGTH_32 = number("length", w(31, 0), doc="Length of the stream", unit="bytes")
_LENGTH_20 = number("length", w(19, 0), doc="Length of the stream", unit="bytes")
_USER = number("user_reg", w(31, 0), doc="Value; the machine gives it no meaning")


def _without_u55(archs: Archs) -> Archs:
    return tuple(arch for arch in archs if arch is not Arch.U55)


def region(archs: Archs, opcode: int, name: str, doc: str, *more: Field) -> tuple[Row, ...]:
    """Make the rows of a region register; U55 has a chip select beside it."""
    index = _DST_REGION if name == "SET_DMA0_DST_REGION" else _REGION
    table_rows = [set0(_without_u55(archs), opcode, name, doc, index, *more)]
    if Arch.U55 in archs:
        table_rows.append(set0(U55, opcode, name, doc, index, *more, _CUSTOM_DMA))
    return tuple(table_rows)


# fmt: off
# One row in the manual, one call here: the formatter would give each field a line.
_COMMAND0: tuple[Row, ...] = (
    ctl(ALL, 0x000, "OP_STOP", "End of the command stream; raises the interrupt", _MASK),
    ctl(ALL, 0x001, "OP_IRQ", "Raise the interrupt and go on", _MASK),
    op(U55_U65, 0x002, "OP_CONV", "Convolution or fully connected layer"),
    op(
        U85, 0x002, "OP_CONV", "Convolution, fully connected layer or matrix product",
        number("weights_ifm2", p(0), doc="Weights are IFM2, not a weight stream"),
    ),
    op(ALL, 0x003, "OP_DEPTHWISE", "Depthwise convolution"),
    op(
        U55_U65, 0x005, "OP_POOL", "Pooling, or a sum over channels",
        choice("pooling_mode", PoolingMode, p(2, 0), doc="What is computed over the window"),
    ),
    op(
        U85, 0x005, "OP_POOL", "Pooling, or a sum over channels",
        choice("pooling_mode", PoolingModeU85, p(2, 0), doc="What is computed over the window"),
    ),
    op(
        U55_U65, 0x006, "OP_ELEMENTWISE", "Elementwise operation of IFM and IFM2",
        choice("elementwise_mode", ElementwiseMode, p(5, 0), doc="The operation"),
    ),
    op(
        U85, 0x006, "OP_ELEMENTWISE", "Elementwise operation of IFM and IFM2",
        choice("elementwise_mode", ElementwiseModeU85, p(5, 0), doc="The operation"),
    ),
    op(
        U85, 0x007, "OP_RESIZE", "Resize in height and width",
        choice("resize_mode", ResizeModeU85, p(1, 0), doc="Interpolation"),
    ),
    op(ALL, 0x010, "OP_DMA_START", "Start the transfer that the DMA0 registers describe"),
    ctl(
        U55_U65, 0x011, "OP_DMA_WAIT", "Wait until few transfers are outstanding",
        number("k", p(0), doc="Most transfers still outstanding", unit="transfers"),
    ),
    ctl(
        U85, 0x011, "OP_DMA_WAIT", "Wait until few transfers are outstanding",
        number("k", p(1, 0), doc="Most transfers still outstanding", unit="transfers"),
    ),
    ctl(
        U55_U65, 0x012, "OP_KERNEL_WAIT", "Wait until few kernel operations are outstanding",
        number("n", p(1, 0), doc="Most operations still outstanding", unit="operations"),
    ),
    ctl(
        U85, 0x012, "OP_KERNEL_WAIT", "Wait until few kernel operations are outstanding",
        number("n", p(0), doc="Most operations still outstanding", unit="operations"),
    ),
    ctl(
        ALL, 0x013, "OP_PMU_MASK", "Mask the performance counters",
        number("enable", p(0), doc="Mask the counters from here on"),
    ),
    set0(ALL, 0x100, "SET_IFM_PAD_TOP", "Padding above the IFM", _PAD_127),
    set0(ALL, 0x101, "SET_IFM_PAD_LEFT", "Padding left of the IFM", _PAD_127),
    set0(ALL, 0x102, "SET_IFM_PAD_RIGHT", "Padding right of the IFM", _PAD_255),
    set0(ALL, 0x103, "SET_IFM_PAD_BOTTOM", "Padding below the IFM", _PAD_255),
    set0(ALL, 0x104, "SET_IFM_DEPTH_M1", "Channels of the IFM that a convolution reads", _DEPTH),
    set0(
        U55_U65, 0x105, "SET_IFM_PRECISION", "Element type and layout of the IFM",
        _TYPE, _IFM_PRECISION, _FORMAT,
        choice("scale_mode", IfmScaleMode, p(9, 8), doc="Which operand has 32-bit scaling"),
        _ROUND,
    ),
    set0(
        U85, 0x105, "SET_IFM_PRECISION", "Element type and layout of the IFM",
        _TYPE, _IFM_PRECISION, _FORMAT, _STORAGE,
    ),
    set0(
        ALL, 0x107, "SET_IFM_UPSCALE", "Doubling of the IFM before it is read",
        choice("mode", UpscaleMode, p(1, 0), doc="How new elements are filled"),
    ),
    set0(
        U85, 0x108, "SET_IFM_BROADCAST", "Broadcast of the IFM",
        choice("broadcast_mode", BroadcastU85, p(3, 0), doc="Axes, or a scalar"),
    ),
    set0(ALL, 0x109, "SET_IFM_ZERO_POINT", "Zero point of the IFM", _ZERO_POINT),
    set0(ALL, 0x10A, "SET_IFM_WIDTH0_M1", "Width of IFM tiles 0 and 2", _WIDTH),
    set0(ALL, 0x10B, "SET_IFM_HEIGHT0_M1", "Height of IFM tile 0", _HEIGHT),
    set0(ALL, 0x10C, "SET_IFM_HEIGHT1_M1", "Height of IFM tile 1", _HEIGHT),
    set0(
        U55_U65, 0x10D, "SET_IFM_IB_END", "End of the IFM buffers in SHRAM",
        number("ib_end", p(5, 0), doc="End, a multiple of 2", unit="KiB"),
    ),
    *region(ALL, 0x10F, "SET_IFM_REGION", "Region of the IFM"),
    set0(ALL, 0x111, "SET_OFM_WIDTH_M1", "Width of the OFM", _WIDTH),
    set0(ALL, 0x112, "SET_OFM_HEIGHT_M1", "Height of the OFM", _HEIGHT),
    set0(ALL, 0x113, "SET_OFM_DEPTH_M1", "Depth of the OFM", _DEPTH),
    set0(
        U55_U65, 0x114, "SET_OFM_PRECISION", "Element type, layout and scaling of the OFM",
        _TYPE, _OFM_PRECISION, _FORMAT, _OFM_SCALE_MODE, _ROUND,
    ),
    set0(
        U85, 0x114, "SET_OFM_PRECISION", "Element type, layout and scaling of the OFM",
        _TYPE, _OFM_PRECISION, _FORMAT, _OFM_SCALE_MODE,
        choice("activation_reverse", ReverseU85, p(10, 9), doc="Axis written backwards"),
        choice("activation_transpose", TransposeU85, p(13, 11), doc="Permutation when written"),
        _STORAGE,
    ),
    set0(
        U55_U65, 0x115, "SET_OFM_BLK_WIDTH_M1", "Width of an OFM block",
        minus_one("width", p(5, 0), doc="Width", unit="elements"),
    ),
    set0(
        U85, 0x115, "SET_OFM_BLK_WIDTH_M1", "Width of an OFM block",
        minus_one("width", p(6, 0), doc="Width", unit="elements"),
    ),
    set0(
        U55_U65, 0x116, "SET_OFM_BLK_HEIGHT_M1", "Height of an OFM block",
        minus_one("height", p(4, 0), doc="Height", unit="elements"),
    ),
    set0(
        U85, 0x116, "SET_OFM_BLK_HEIGHT_M1", "Height of an OFM block",
        minus_one("height", p(6, 0), doc="Height", unit="elements"),
    ),
    set0(
        U55_U65, 0x117, "SET_OFM_BLK_DEPTH_M1", "Depth of an OFM block",
        minus_one("depth", p(6, 0), doc="Depth", unit="elements"),
    ),
    set0(
        U85, 0x117, "SET_OFM_BLK_DEPTH_M1", "Depth of an OFM block",
        minus_one("depth", p(9, 0), doc="Depth", unit="elements"),
    ),
    set0(ALL, 0x118, "SET_OFM_ZERO_POINT", "Zero point of the OFM", _ZERO_POINT),
    set0(ALL, 0x11A, "SET_OFM_WIDTH0_M1", "Width of OFM tiles 0 and 2", _WIDTH),
    set0(ALL, 0x11B, "SET_OFM_HEIGHT0_M1", "Height of OFM tile 0", _HEIGHT),
    set0(ALL, 0x11C, "SET_OFM_HEIGHT1_M1", "Height of OFM tile 1", _HEIGHT),
    *region(ALL, 0x11F, "SET_OFM_REGION", "Region of the OFM"),
    set0(
        ALL, 0x120, "SET_KERNEL_WIDTH_M1", "Width of the kernel, dilated",
        minus_one("width", p(15, 0), doc="dilation * (width - 1) + 1", unit="elements"),
    ),
    set0(
        ALL, 0x121, "SET_KERNEL_HEIGHT_M1", "Height of the kernel, dilated",
        minus_one("height", p(15, 0), doc="dilation * (height - 1) + 1", unit="elements"),
    ),
    set0(
        ALL, 0x122, "SET_KERNEL_STRIDE", "Stride and dilation of the kernel, order of weights",
        minus_one("stride_x", p(0), p(6), doc="Stride in x", unit="elements"),
        minus_one("stride_y", p(1), p(9), doc="Stride in y", unit="elements"),
        choice("weight_order", WeightOrder, p(2), doc="Order of the weight stream"),
        choice("dilation_x", KernelDilation, p(3), doc="Dilation in x"),
        choice("dilation_y", KernelDilation, p(4), doc="Dilation in y"),
        choice("decomposition", KernelDecomposition, p(5), doc="Largest sub-kernel"),
    ),
    set0(
        U65, 0x123, "SET_PARALLEL_MODE", "Use of the two cores",
        choice("parallel_mode", ParallelMode, p(0), doc="One core, or channels divided"),
    ),
    set0(
        U55_U65, 0x124, "SET_ACC_FORMAT", "Accumulators",
        choice("acc_format", AccFormat, p(1, 0), doc="Format"),
    ),
    set0(
        U85, 0x124, "SET_ACC_FORMAT", "Accumulators",
        choice("acc_format", AccFormatU85, p(1, 0), doc="Format"),
        choice("acc_input", AccInputU85, p(5, 4), doc="Contents before the operation"),
        choice("acc_output", AccOutputU85, p(6), doc="Whether the OFM is written"),
        choice("microblock", MicroblockU85, p(10, 8), doc="Shape of the microblock"),
    ),
    set0(
        U55_U65, 0x125, "SET_ACTIVATION", "Activation function and its clip range",
        choice("activation_function", ActivationFunction, p(4, 0), doc="Function or table"),
        choice("activation_clip_range", ClipRange, p(14, 12), doc="Range before a table"),
    ),
    set0(
        U85, 0x125, "SET_ACTIVATION", "Activation function and its clip range",
        choice("activation_function", ActivationFunctionU85, p(4, 0), doc="Kind of table"),
        number("table", p(7, 5), doc="Index of the table, in tables of its own size"),
        choice("activation_clip_range", ClipRangeU85, p(12), doc="Range"),
    ),
    set0(ALL, 0x126, "SET_ACTIVATION_MIN", "Least output value", _CLIP),
    set0(ALL, 0x127, "SET_ACTIVATION_MAX", "Greatest output value", _CLIP),
    *region(ALL, 0x128, "SET_WEIGHT_REGION", "Region of the weight streams"),
    *region(ALL, 0x129, "SET_SCALE_REGION", "Region of the scale streams"),
    set0(
        U85, 0x12A, "SET_RESIZE_X_SCALE_N_M1", "Numerator of the scale in x",
        minus_one("resize_x_scale_n", p(10, 0), doc="Steps of an input element"),
    ),
    set0(
        U85, 0x12B, "SET_RESIZE_Y_SCALE_N_M1", "Numerator of the scale in y",
        minus_one("resize_y_scale_n", p(10, 0), doc="Steps of an input element"),
    ),
    set0(
        U85, 0x12C, "SET_RESIZE_X_OFFSET", "Position of the first output element in x",
        signed("resize_x_offset", p(11, 0), doc="Offset", unit="steps"),
    ),
    set0(
        U55_U65, 0x12D, "SET_AB_START", "Start of the accumulators in SHRAM",
        number("ab_start", p(5, 0), doc="Start, a multiple of 2", unit="KiB"),
    ),
    set0(
        U85, 0x12D, "SET_RESIZE_Y_OFFSET", "Position of the first output element in y",
        signed("resize_y_offset", p(11, 0), doc="Offset", unit="steps"),
    ),
    set0(
        U85, 0x12E, "SET_WEIGHT_FORMAT", "Format of the weight stream",
        choice("weight_format", WeightFormatU85, p(0), doc="Decoder"),
        choice("weight_sparsity", WeightSparsityU85, p(4), doc="Structured sparsity"),
    ),
    set0(
        U55_U65, 0x12F, "SET_BLOCKDEP", "Overlap with the operation before",
        number("blockdep", p(1, 0), doc="Blocks that may start before it ends", unit="blocks"),
    ),
    set0(
        U85, 0x12F, "SET_BLOCKDEP", "Overlap with the operation before",
        number("blockdep", p(2, 0), doc="Blocks that may start before it ends", unit="blocks"),
    ),
    *region(
        U55_U65, 0x130, "SET_DMA0_SRC_REGION", "Where DMA reads", _REGION_MODE, _STRIDE_MODE
    ),
    set0(
        U85, 0x130, "SET_DMA0_SRC_REGION", "Where DMA reads",
        _REGION, _REGION_MODE, _STRIDE_MODE, _INDEX_MODE,
    ),
    *region(
        U55_U65, 0x131, "SET_DMA0_DST_REGION", "Where DMA writes", _REGION_MODE, _STRIDE_MODE
    ),
    set0(
        U85, 0x131, "SET_DMA0_DST_REGION", "Where DMA writes",
        _DST_REGION, _REGION_MODE, _INDEX_MODE,
    ),
    set0(ALL, 0x132, "SET_DMA0_SIZE0", "Second dimension of a 2D or 3D transfer", _SIZE),
    set0(ALL, 0x133, "SET_DMA0_SIZE1", "Third dimension of a 3D transfer", _SIZE),
    set0(U85, 0x134, "SET_DMA0_IDX_REGION", "Region of the indices", _REGION),
    set0(
        U55_U65, 0x180, "SET_IFM2_BROADCAST", "Broadcast and order of IFM2",
        choice("broadcast_h", Broadcast, p(0), doc="IFM2 has one row"),
        choice("broadcast_w", Broadcast, p(1), doc="IFM2 has one column"),
        choice("broadcast_c", Broadcast, p(2), doc="IFM2 has one channel"),
        choice("operand_order", OperandOrder, p(6), doc="Which operand IFM2 is"),
        choice("broadcast_constant", Broadcast, p(7), doc="IFM2 is IFM2_SCALAR"),
    ),
    set0(
        U85, 0x180, "SET_IFM2_BROADCAST", "Broadcast of IFM2",
        choice("broadcast_mode", BroadcastU85, p(3, 0), doc="Axes, or a scalar"),
    ),
    set0(
        U55_U65, 0x181, "SET_IFM2_SCALAR", "Scalar in the place of IFM2",
        signed("scalar", p(15, 0), doc="Quantised value; signed reading of 16 bits"),
    ),
    set0(
        U55_U65, 0x185, "SET_IFM2_PRECISION", "Element type and layout of IFM2",
        _TYPE, _IFM_PRECISION, _FORMAT,
    ),
    set0(
        U85, 0x185, "SET_IFM2_PRECISION", "Element type and layout of IFM2",
        _TYPE, _IFM_PRECISION, _FORMAT, _STORAGE,
    ),
    set0(ALL, 0x189, "SET_IFM2_ZERO_POINT", "Zero point of IFM2", _ZERO_POINT),
    set0(ALL, 0x18A, "SET_IFM2_WIDTH0_M1", "Width of IFM2 tiles 0 and 2", _WIDTH),
    set0(ALL, 0x18B, "SET_IFM2_HEIGHT0_M1", "Height of IFM2 tile 0", _HEIGHT),
    set0(ALL, 0x18C, "SET_IFM2_HEIGHT1_M1", "Height of IFM2 tile 1", _HEIGHT),
    set0(
        U55_U65, 0x18D, "SET_IFM2_IB_START", "Start of the IFM2 buffers in SHRAM",
        number("ib_start", p(5, 0), doc="Start, a multiple of 2", unit="KiB"),
    ),
    *region(ALL, 0x18F, "SET_IFM2_REGION", "Region of IFM2"),
)

_RESIZE_STEPS = (
    number("one_step_int", p(3, 0), doc="Whole input elements of one output element"),
    number("blk_step_int", p(14, 4), doc="Whole input elements of one block"),
    number("one_step_mod", w(10, 0), doc="Remainder of one output element", unit="steps"),
    number("blk_step_mod", w(26, 16), doc="Remainder of one block", unit="steps"),
)

_COMMAND1: tuple[Row, ...] = (
    set1(ALL, 0x021, "SET_WEIGHT_LENGTH", "Length of the weight stream of core 0", _LENGTH_32),
    set1(ALL, 0x023, "SET_SCALE_LENGTH", "Length of the scale stream of core 0", _LENGTH_20),
    set1(
        U55_U65, 0x024, "SET_OFM_SCALE", "Scale of the OFM where no channel has its own",
        _SHIFT, number("scale", w(31, 0), doc="Multiplier; 32-bit operations only shift"),
    ),
    set1(
        U85, 0x024, "SET_OFM_SCALE", "Scale of the OFM where no channel has its own",
        _SHIFT, _DBL_RND, choice("round_mode", RoundModeOfmU85, p(15, 13), doc="Rounding"),
        _SCALE_U85,
    ),
    set1(
        U55_U65, 0x025, "SET_OPA_SCALE", "Scale of operand A of an addition",
        _SHIFT, number("scale", w(31, 0), doc="Multiplier; 16 bits if both are scaled"),
    ),
    set1(
        U85, 0x025, "SET_IFM_SCALE", "Scale of the IFM",
        _SHIFT, _DBL_RND, choice("round_mode", RoundModeIfmU85, p(13), doc="Rounding"),
        _SCALE_U85,
    ),
    set1(
        U55_U65, 0x026, "SET_OPB_SCALE", "Scale of operand B of an addition",
        number("scale", w(15, 0), doc="Multiplier, if both operands are scaled"),
    ),
    set1(
        U85, 0x026, "SET_IFM2_SCALE", "Scale of IFM2",
        _SHIFT, _DBL_RND, choice("round_mode", RoundModeIfmU85, p(13), doc="Rounding"),
        _SCALE_U85,
    ),
    set1(
        U85, 0x027, "SET_OP_SCALAR", "Scalar in the place of a broadcast input",
        signed("scalar", w(31, 0), doc="Quantised value; signed reading of 32 bits"),
    ),
    set1(
        U85, 0x038, "SET_DMA0_IDX_MAX", "Bound of the indices",
        number("idx_max", w(30, 0), doc="Greatest permitted index"),
    ),
    set1(U65_U85, 0x091, "SET_WEIGHT1_LENGTH", "Length of weight stream 1", _LENGTH_32),
    set1(U65, 0x093, "SET_SCALE1_LENGTH", "Length of the scale stream of core 1", _LENGTH_20),
    set1(U85, 0x093, "SET_WEIGHT2_LENGTH", "Length of weight stream 2", _LENGTH_32),
    set1(U85, 0x095, "SET_WEIGHT3_LENGTH", "Length of weight stream 3", _LENGTH_32),
    set1(U85, 0x096, "SET_RESIZE_X", "Steps of a resize in x", *_RESIZE_STEPS),
    set1(U85, 0x097, "SET_RESIZE_Y", "Steps of a resize in y", *_RESIZE_STEPS),
    set1(U55, 0x0A0, "SET_USER_DEFINED0", "Free register 0", _USER),
    set1(U55, 0x0A1, "SET_USER_DEFINED1", "Free register 1", _USER),
    set1(U55, 0x0A2, "SET_USER_DEFINED2", "Free register 2", _USER),
    set1(U55, 0x0A3, "SET_USER_DEFINED3", "Free register 3", _USER),
    set1(U55, 0x0A4, "SET_USER_DEFINED4", "Free register 4", _USER),
    set1(U55, 0x0A5, "SET_USER_DEFINED5", "Free register 5", _USER),
    set1(U55, 0x0A6, "SET_USER_DEFINED6", "Free register 6", _USER),
    set1(U55, 0x0A7, "SET_USER_DEFINED7", "Free register 7", _USER),
    ctl(
        U85, 0x100 | _CMD1, "OP_BRANCH", "Go on elsewhere in the command stream",
        choice("branch_cond", BranchConditionU85, p(0), doc="When the branch is taken"),
        number("branch_target", w(31, 0), doc="Place in the stream", unit="bytes"),
    ),
)

# fmt: on
# Addresses count from the region's base pointer. U55 has 32 bits of them, U65 and U85 have 40: the
# payload and, above it, the low byte of the parameter. Addresses and lengths are unsigned; strides
# and skips are two's complement of 40 bits everywhere: compilers write the sign into the parameter
# for U55 too, whose header names no bits there.
_ADDRESSES: tuple[tuple[Archs, int, str, str, str], ...] = (
    (ALL, 0x000, "SET_IFM_BASE0", "address", "Address of IFM tile 0"),
    (ALL, 0x001, "SET_IFM_BASE1", "address", "Address of IFM tile 1"),
    (ALL, 0x002, "SET_IFM_BASE2", "address", "Address of IFM tile 2"),
    (ALL, 0x003, "SET_IFM_BASE3", "address", "Address of IFM tile 3"),
    (ALL, 0x004, "SET_IFM_STRIDE_X", "stride", "From column to column of the IFM"),
    (ALL, 0x005, "SET_IFM_STRIDE_Y", "stride", "From row to row of the IFM"),
    (ALL, 0x006, "SET_IFM_STRIDE_C", "stride", "From brick to brick of the IFM"),
    (ALL, 0x010, "SET_OFM_BASE0", "address", "Address of OFM tile 0"),
    (ALL, 0x011, "SET_OFM_BASE1", "address", "Address of OFM tile 1"),
    (ALL, 0x012, "SET_OFM_BASE2", "address", "Address of OFM tile 2"),
    (ALL, 0x013, "SET_OFM_BASE3", "address", "Address of OFM tile 3"),
    (ALL, 0x014, "SET_OFM_STRIDE_X", "stride", "From column to column of the OFM"),
    (ALL, 0x015, "SET_OFM_STRIDE_Y", "stride", "From row to row of the OFM"),
    (ALL, 0x016, "SET_OFM_STRIDE_C", "stride", "From brick to brick of the OFM"),
    (ALL, 0x020, "SET_WEIGHT_BASE", "address", "Address of the weight stream of core 0"),
    (ALL, 0x022, "SET_SCALE_BASE", "address", "Address of the scale stream of core 0"),
    (ALL, 0x030, "SET_DMA0_SRC", "address", "Address that DMA reads from"),
    (ALL, 0x031, "SET_DMA0_DST", "address", "Address that DMA writes to"),
    (ALL, 0x032, "SET_DMA0_LEN", "length", "Length of the transfer, or of one row of it"),
    (U65, 0x033, "SET_DMA0_SKIP0", "skip", "From the end of a row to the next"),
    (U65, 0x034, "SET_DMA0_SKIP1", "skip", "From the end of a plane to the next"),
    (U85, 0x033, "SET_DMA0_SRC_STRIDE0", "stride", "From row to row that DMA reads"),
    (U85, 0x034, "SET_DMA0_SRC_STRIDE1", "stride", "From plane to plane that DMA reads"),
    (U85, 0x035, "SET_DMA0_DST_STRIDE0", "stride", "From row to row that DMA writes"),
    (U85, 0x036, "SET_DMA0_DST_STRIDE1", "stride", "From plane to plane that DMA writes"),
    (U85, 0x037, "SET_DMA0_IDX", "address", "Address of the indices"),
    (U85, 0x039, "SET_DMA0_IDX_SKIP1", "skip", "From the indices of a plane to the next"),
    (ALL, 0x080, "SET_IFM2_BASE0", "address", "Address of IFM2 tile 0"),
    (ALL, 0x081, "SET_IFM2_BASE1", "address", "Address of IFM2 tile 1"),
    (ALL, 0x082, "SET_IFM2_BASE2", "address", "Address of IFM2 tile 2"),
    (ALL, 0x083, "SET_IFM2_BASE3", "address", "Address of IFM2 tile 3"),
    (ALL, 0x084, "SET_IFM2_STRIDE_X", "stride", "From column to column of IFM2"),
    (ALL, 0x085, "SET_IFM2_STRIDE_Y", "stride", "From row to row of IFM2"),
    (ALL, 0x086, "SET_IFM2_STRIDE_C", "stride", "From brick to brick of IFM2"),
    (U65_U85, 0x090, "SET_WEIGHT1_BASE", "address", "Address of weight stream 1"),
    (U65, 0x092, "SET_SCALE1_BASE", "address", "Address of the scale stream of core 1"),
    (U85, 0x092, "SET_WEIGHT2_BASE", "address", "Address of weight stream 2"),
    (U85, 0x094, "SET_WEIGHT3_BASE", "address", "Address of weight stream 3"),
)
_SIGNED_ADDRESSES = ("stride", "skip")


def _address_rows() -> tuple[Row, ...]:
    table_rows: list[Row] = []
    for archs, opcode, name, field_name, doc in _ADDRESSES:
        make = signed if field_name in _SIGNED_ADDRESSES else number
        is_narrow = make is number and Arch.U55 in archs
        if is_narrow:
            narrow = number(field_name, w(31, 0), doc=doc, unit="bytes")
            table_rows.append(set1(U55, opcode, name, doc, narrow))
        wide = make(field_name, w(31, 0), p(7, 0), doc=doc, unit="bytes")
        wide_on = _without_u55(archs) if is_narrow else archs
        table_rows.append(set1(wide_on, opcode, name, doc, wide))
    return tuple(table_rows)


ROWS: tuple[Row, ...] = tuple(
    sorted((*_COMMAND0, *_COMMAND1, *_address_rows()), key=lambda command: command[1].key)
)
"""All rows, by control and opcode: one-word commands first."""
