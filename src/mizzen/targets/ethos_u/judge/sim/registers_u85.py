"""What operations are on Ethos-U85."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np

from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.sim.operations import (
    FIRST_CHAIN,
    HWC,
    INTERNAL,
    NOWHERE,
    AccumulatorInput,
    Accumulators,
    Activation,
    Binary,
    Clip,
    Convolution,
    Dma,
    DmaEnd,
    Elementwise,
    FeatureMap,
    Format,
    Function,
    Indices,
    Interpolation,
    Kernel,
    MatrixProduct,
    Operation,
    Output,
    Pool,
    Pooling,
    Resize,
    Space,
    Steps,
    Stream,
    Tiling,
    Upscale,
    Where,
)
from mizzen.targets.ethos_u.judge.sim.registers import Registers, Shape, int_of, name_of
from mizzen.targets.ethos_u.judge.sim.rounding import DOUBLING_BITS, Rounding, Scale
from mizzen.targets.ethos_u.judge.sim.scales import RECORDS_U85, RecordFormat
from mizzen.targets.ethos_u.judge.sim.weights_u85 import LayoutU85

ROUNDING = {
    "DOUBLE_SYMMETRIC": Rounding.DOUBLE,
    "NATURAL": Rounding.NATURAL,
    "DOUBLE_ASYMMETRIC": Rounding.ASYMMETRIC,
    "SYMMETRIC": Rounding.SYMMETRIC,
    "TRUNCATE_TO_ZERO": Rounding.TRUNCATE,
    "TRUNCATE_TO_LOWER": Rounding.FLOOR,
}
ACCUMULATOR_BITS = {"I32": 32, "I48": 48}
ACCUMULATOR_INPUTS = {
    "RESET": AccumulatorInput.ZERO,
    "KEEP": AccumulatorInput.KEPT,
    "IFM2": AccumulatorInput.MAP,
}
TRANSPOSED = {
    "HWC": HWC,
    "WHC": (1, 0, 2),
    "HCW": (0, 2, 1),
    "WCH": (1, 2, 0),
    "CHW": (2, 0, 1),
    "CWH": (2, 1, 0),
}
REVERSED = {"NONE": None, "H": 0, "W": 1, "C": 2}
BROADCAST_BITS = (1, 2, 4)
"""Bits of the broadcast mode for height, width and depth."""
SCALAR = 8
MICROBLOCK_AREA = {"U1X1": 1, "U1X2": 2, "U1X4": 4, "U2X2": 4, "U2X4": 8, "U4X4": 16}
POINT = Kernel(1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
WEIGHT_SUFFIXES = ("", "1", "2", "3")


@dataclass(frozen=True, slots=True)
class TableKind:
    """A kind of lookup table: what it means, the type that is looked up, and its size."""

    function: Function
    index: np.dtype[np.integer]
    size_bytes: int


TABLE_ENTRIES = 256
"""Entries of a table that is not one of segments."""

TABLES: dict[str, TableKind] = {
    "LUT_U8_U8": TableKind(Function.ENTRIES, np.dtype(np.uint8), 256),
    "LUT_S8_S8": TableKind(Function.ENTRIES, np.dtype(np.int8), 256),
    "LUT_S8_S16": TableKind(Function.ENTRIES, np.dtype(np.int8), 512),
    "LUT_S8_S32": TableKind(Function.ENTRIES, np.dtype(np.int8), 1024),
    "LUT_S16_S16": TableKind(Function.SEGMENTS, np.dtype(np.int16), 2048),
    "LUT_S16_S32": TableKind(Function.SEGMENTS_32, np.dtype(np.int16), 2048),
    "LUT_TANH": TableKind(Function.TABLE_TANH, np.dtype(np.int16), 2048),
    "LUT_SIGMOID": TableKind(Function.TABLE_SIGMOID, np.dtype(np.int16), 2048),
}


class ChannelScaling(TypedDict, total=False):
    """What an operation has more where each channel has its own scale."""

    scales: tuple[Stream, ...]
    record: RecordFormat


class RegistersU85(Registers):
    """Registers of U85. Maps of 64 bits hold sums of 48."""

    largest_element_bits = 64

    def _resolve(self, instruction: Instruction, where: Where) -> Operation | None:
        operation = self._started(instruction, where)
        has_no_sums = isinstance(operation, Elementwise | Resize | MatrixProduct)
        if has_no_sums and operation.output.fm.region == NOWHERE:
            raise self._fault("E614", "the operation must write its result: it leaves no sums")
        if any(fm.dtype.itemsize == 8 for fm in self._summed(operation)):
            raise self._fault("E614", "a map of 64 bits must only be scaled, by a pointwise POOL")
        return operation

    def _summed(self, operation: Operation | None) -> list[FeatureMap]:
        """The inputs that an operation does more with than to scale them."""
        match operation:
            case Pooling() if operation.kernel.is_pointwise:
                return []
            case Convolution() | Pooling() | Resize():
                return [operation.ifm]
            case MatrixProduct():
                return [operation.ifm, operation.weights]
            case Elementwise():
                return operation.maps
            case _:
                return []

    def _started(self, instruction: Instruction, where: Where) -> Operation | None:
        values = instruction.values
        match instruction.command.name:
            case "OP_CONV" if int_of(values["weights_ifm2"]):
                return self._matrix_product(where)
            case "OP_CONV":
                return self._convolution(where, depthwise=False)
            case "OP_DEPTHWISE":
                return self._convolution(where, depthwise=True)
            case "OP_POOL":
                return self._pooling(where, Pool[name_of(values["pooling_mode"])])
            case "OP_ELEMENTWISE":
                return self._elementwise(where, Binary[name_of(values["elementwise_mode"])])
            case "OP_RESIZE":
                return self._resize(where, Interpolation[name_of(values["resize_mode"])])
            case "OP_DMA_START":
                return self._dma(where)
            case _:
                return None

    # Feature maps

    def _feature_map(self, prefix: str, shape: Shape) -> FeatureMap:
        match self._choice(f"SET_{prefix}_PRECISION", "activation_storage"):
            case "CHAINED":
                region = self._region(f"SET_{prefix}_REGION")
                return self._dense(prefix, shape, FIRST_CHAIN - region)
            case "NONE" if prefix == "OFM" and not self._writes():
                return self._dense(prefix, shape, NOWHERE)
            case "TILE2X2":
                return super()._feature_map(prefix, shape)
            case "TILE3X1":
                return replace(super()._feature_map(prefix, shape), tiling=Tiling.STACK)
            case name:
                raise self._fault("E614", f"{prefix}: storage {name} holds no feature map")

    def _dense(self, prefix: str, shape: Shape, region: int) -> FeatureMap:
        """A whole map that is in no memory, taken as dense: its blocks stay inside the NPU."""
        height, width, depth = shape
        dtype = self._dtype(f"SET_{prefix}_PRECISION")
        return FeatureMap(
            region=region,
            bases=(0, 0, 0, 0),
            height_0=height,
            height_1=height,
            width_0=width,
            stride_y=width * depth * dtype.itemsize,
            stride_x=depth * dtype.itemsize,
            stride_c=dtype.itemsize,
            format=Format.NHWC,
            dtype=dtype,
            zero_point=self._number(f"SET_{prefix}_ZERO_POINT"),
            height=height,
            width=width,
            depth=depth,
        )

    def _operand(self, prefix: str, shape: Shape) -> FeatureMap | int:
        mode = int_of(self._fields(f"SET_{prefix}_BROADCAST")["broadcast_mode"])
        if mode & SCALAR:
            return self._number("SET_OP_SCALAR") - self._number(f"SET_{prefix}_ZERO_POINT")
        sizes = [1 if mode & bit else size for bit, size in zip(BROADCAST_BITS, shape, strict=True)]
        return self._feature_map(prefix, (sizes[0], sizes[1], sizes[2]))

    # Results

    def _output(self, shape: Shape) -> Output:
        precision = self._fields("SET_OFM_PRECISION")
        axes = TRANSPOSED[name_of(precision["activation_transpose"])]
        fm = self._feature_map("OFM", (shape[axes[0]], shape[axes[1]], shape[axes[2]]))
        scale = self._fields("SET_OFM_SCALE")
        pair = int_of(scale["scale"]), int_of(scale["shift"])
        return Output(
            fm=fm,
            rounding=ROUNDING[name_of(scale["round_mode"])],
            scale=pair if name_of(precision["scale_mode"]) == "GLOBAL" else None,
            activation=self._activation(fm),
            axes=axes,
            reversed=REVERSED[name_of(precision["activation_reverse"])],
            doubling_bit=DOUBLING_BITS - int_of(scale["dbl_rnd"]),
        )

    def _activation(self, fm: FeatureMap) -> Activation:
        fields = self._fields("SET_ACTIVATION")
        kind = TABLES.get(name_of(fields["activation_function"]))
        dtype = kind.index if kind else fm.dtype
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        clips = name_of(fields["activation_clip_range"]) != "NONE"
        if clips:
            bounds = self._number("SET_ACTIVATION_MIN"), self._number("SET_ACTIVATION_MAX")
            if low == 0:  # the registers' 16 bits are unsigned then
                bounds = bounds[0] & 0xFFFF, bounds[1] & 0xFFFF
            low, high = max(low, bounds[0]), min(high, bounds[1])
        # Without a range, casts to fewer bits and sums of 32 bits lose their high bits.
        clip = Clip(fm.zero_point, low, high, dtype, wraps=not clips and kind is None)
        if kind is None:
            return Activation(clip)
        entry_bytes = kind.size_bytes // TABLE_ENTRIES
        if kind.function is Function.ENTRIES and entry_bytes != fm.dtype.itemsize:
            bits = 8 * entry_bytes
            raise self._fault("E614", f"the output of this table must have {bits} bits an element")
        start = kind.size_bytes * int_of(fields["table"])
        return Activation(clip, kind.function, Stream(INTERNAL, start, kind.size_bytes))

    def _accumulators(self, shape: Shape) -> Accumulators:
        fields = self._fields("SET_ACC_FORMAT")
        written = self._writes()
        initial = ACCUMULATOR_INPUTS[name_of(fields["acc_input"])]
        if initial is AccumulatorInput.KEPT or not written:
            self._check_block(shape)
        return Accumulators(
            bits=ACCUMULATOR_BITS[name_of(fields["acc_format"])],
            initial=initial,
            map=self._feature_map("IFM2", shape) if initial is AccumulatorInput.MAP else None,
            written=written,
        )

    def _writes(self) -> bool:
        """Whether the operation writes its output, or leaves its sums to the next."""
        return self._choice("SET_ACC_FORMAT", "acc_output") == "ENABLE"

    def _check_block(self, shape: Shape) -> None:
        """What stays in the accumulators is one block."""
        names = ("HEIGHT", "WIDTH", "DEPTH")
        block = [self._number(f"SET_OFM_BLK_{name}_M1") for name in names]
        if any(size > limit for size, limit in zip(shape, block, strict=True)):
            raise self._fault(
                "E614", f"accumulators keep a block of {block}, not an output of {[*shape]}"
            )

    # Operations

    def _convolution(self, where: Where, *, depthwise: bool) -> Convolution:
        kernel, shape = self._kernel(), self._ofm_shape()
        depth = shape[2] if depthwise else self._number("SET_IFM_DEPTH_M1")
        ifm, upscale = self._ifm(kernel, shape, depth)
        self._check_decomposition()
        accumulators = self._accumulators(shape)
        layout = self._layout(ifm, kernel, shape[2], depthwise=depthwise)
        suffixes = WEIGHT_SUFFIXES[: 1 if layout.is_fast else layout.streams]
        return Convolution(
            where=where,
            ifm=ifm,
            upscale=upscale,
            kernel=kernel,
            output=self._output(shape),
            depthwise=depthwise,
            accumulators=accumulators,
            weights=tuple(self._stream("WEIGHT", suffix) for suffix in suffixes),
            layout=layout,
            scales=(self._stream("SCALE", ""),),
            record=RECORDS_U85[accumulators.bits],
        )

    def _layout(self, ifm: FeatureMap, kernel: Kernel, depth: int, *, depthwise: bool) -> LayoutU85:
        area = MICROBLOCK_AREA[self._choice("SET_ACC_FORMAT", "microblock")]
        order = self._choice("SET_KERNEL_STRIDE", "weight_order")
        format_ = self._fields("SET_WEIGHT_FORMAT")
        return LayoutU85(
            ofm_depth=depth,
            ifm_depth=ifm.depth,
            kernel_height=kernel.height,
            kernel_width=kernel.width,
            stride_y=kernel.stride_y,
            stride_x=kernel.stride_x,
            dilation_y=kernel.dilation_y,
            dilation_x=kernel.dilation_x,
            ofm_block_depth=self._number("SET_OFM_BLK_DEPTH_M1"),
            ofm_ublock_depth=max(1, self._hardware.macs // (8 * area)),
            ifm_bits=8 * ifm.dtype.itemsize,
            macs=self._hardware.macs,
            streams=self._hardware.weight_streams,
            depthwise=depthwise,
            part_kernel=order == "PART_KERNEL_FIRST",
            sparse=name_of(format_["weight_sparsity"]) == "SPARSE_2_4",
            is_fast=name_of(format_["weight_format"]) == "FWD",
        )

    def _matrix_product(self, where: Where) -> MatrixProduct:
        kernel, shape = self._kernel(), self._ofm_shape()
        depth = self._number("SET_IFM_DEPTH_M1")
        ifm, upscale = self._ifm(kernel, shape, depth)
        return MatrixProduct(
            where=where,
            ifm=ifm,
            weights=self._feature_map("IFM2", (1, shape[2], depth)),
            upscale=upscale,
            kernel=kernel,
            output=self._output(shape),
            accumulators=self._accumulators(shape),
        )

    def _pooling(self, where: Where, mode: Pool) -> Pooling:
        kernel, shape = self._kernel(), self._ofm_shape()
        reduce = mode is Pool.REDUCE_SUM
        if reduce and shape[2] != 1:
            raise self._fault("E613", f"a sum over channels must have depth 1, not {shape[2]}")
        depth = self._number("SET_IFM_DEPTH_M1") if reduce else shape[2]
        accumulators, output = self._accumulators(shape), self._output(shape)
        if mode is Pool.NONE:
            return self._unpooled(where, accumulators, output)
        ifm, upscale = self._ifm(kernel, shape, depth)
        return Pooling(
            where=where,
            mode=mode,
            ifm=ifm,
            upscale=upscale,
            kernel=kernel,
            output=output,
            accumulators=accumulators,
            divided=mode is Pool.AVERAGE,
            **self._channel_scales(output, accumulators),
        )

    def _unpooled(self, where: Where, accumulators: Accumulators, output: Output) -> Pooling:
        """Scale accumulators, to which nothing is added: those of a map are the map's sums."""
        if accumulators.map is None or not accumulators.written:
            raise self._fault("E614", "POOL of mode NONE must scale IFM2 and write the result")
        return Pooling(
            where=where,
            mode=Pool.SUM,
            ifm=accumulators.map,
            upscale=Upscale.NONE,
            kernel=POINT,
            output=output,
            accumulators=Accumulators(accumulators.bits),
            divided=False,
            **self._channel_scales(output, accumulators),
        )

    def _channel_scales(self, output: Output, accumulators: Accumulators) -> ChannelScaling:
        if output.scale is not None:
            return {}
        return {"scales": (self._stream("SCALE", ""),), "record": RECORDS_U85[accumulators.bits]}

    def _elementwise(self, where: Where, mode: Binary) -> Elementwise:
        shape = self._ofm_shape()
        self._check_not_upscaled()
        a = self._operand("IFM", shape)
        output = self._output(shape)
        if output.scale is None:
            raise self._fault("E614", "an elementwise operation must have one scale for all")
        product = mode is Binary.MUL
        scale_a, scale_b = self._operand_scale("IFM"), self._operand_scale("IFM2", mode)
        if product and (scale_a or scale_b):
            raise self._fault("E614", "operands of a product must not be scaled")
        if product and self._dtype("SET_IFM_PRECISION").itemsize == 4:
            output = replace(output, scale=(1, output.scale[1]))  # shifted alone
        return Elementwise(
            where=where,
            mode=mode,
            a=a,
            b=None if mode.is_unary else self._operand("IFM2", shape),
            reversed=False,
            scale_a=scale_a,
            scale_b=scale_b,
            output=output,
        )

    def _operand_scale(self, prefix: str, mode: Binary | None = None) -> Scale | None:
        """The scale of an operand; of IFM2 only where the operation has one, or LRELU's slope."""
        if mode and mode.is_unary and mode is not Binary.LRELU:
            return None
        fields = self._fields(f"SET_{prefix}_SCALE")
        scale = Scale(
            int_of(fields["scale"]),
            int_of(fields["shift"]),
            ROUNDING[name_of(fields["round_mode"])],
            DOUBLING_BITS - int_of(fields["dbl_rnd"]),
        )
        return None if scale.is_identity else scale

    def _resize(self, where: Where, mode: Interpolation) -> Resize:
        shape = self._ofm_shape()
        height = self._number("SET_KERNEL_HEIGHT_M1")
        width = self._number("SET_IFM_WIDTH0_M1")
        return Resize(
            where=where,
            mode=mode,
            ifm=self._feature_map("IFM", (height, width, shape[2])),
            rows=self._steps("Y"),
            columns=self._steps("X"),
            output=self._output(shape),
        )

    def _steps(self, axis: str) -> Steps:
        scale = self._number(f"SET_RESIZE_{axis}_SCALE_N_M1")
        fields = self._fields(f"SET_RESIZE_{axis}")
        step = int_of(fields["one_step_int"]) * scale + int_of(fields["one_step_mod"])
        return Steps(scale, step, self._number(f"SET_RESIZE_{axis}_OFFSET"))

    # Transfers

    def _dma(self, where: Where) -> Dma:
        mode = self._choice("SET_DMA0_SRC_REGION", "stride_mode")
        strided, planar = mode in ("D2", "D3"), mode == "D3"
        lines = self._number("SET_DMA0_SIZE0") if strided else 1
        return Dma(
            where=where,
            source=self._dma_end("SRC", strided=strided, planar=planar),
            destination=self._dma_end("DST", strided=strided, planar=planar),
            length=self._number("SET_DMA0_LEN"),
            rows=lines,
            planes=self._number("SET_DMA0_SIZE1") if planar else 1,
            indices=self._indices(lines, planar=planar),
        )

    def _dma_end(self, end: str, *, strided: bool, planar: bool) -> DmaEnd:
        """One end; rows that indices name are a stride apart, even if only one is taken."""
        name = f"SET_DMA0_{end}_REGION"
        strided = strided or self._choice(name, "idx_mode") == "ENABLED"
        return DmaEnd(
            Space[self._choice(name, "region_mode")],
            self._region(name),
            self._number(f"SET_DMA0_{end}"),
            self._number(f"SET_DMA0_{end}_STRIDE1") if planar else 0,
            self._number(f"SET_DMA0_{end}_STRIDE0") if strided else 0,
        )

    def _indices(self, lines: int, *, planar: bool) -> Indices | None:
        gathers, scatters = (
            self._choice(f"SET_DMA0_{end}_REGION", "idx_mode") == "ENABLED"
            for end in ("SRC", "DST")
        )
        if not (gathers or scatters):
            return None
        if gathers and scatters:
            raise self._fault("E614", "a transfer must have indices on one side, not on both")
        skip = self._number("SET_DMA0_IDX_SKIP1") if planar else 0
        return Indices(
            stream=Stream(
                self._region("SET_DMA0_IDX_REGION"), self._number("SET_DMA0_IDX"), 4 * lines
            ),
            plane_stride=4 * lines + skip,
            greatest=self._number("SET_DMA0_IDX_MAX"),
            scatters=scatters,
        )
