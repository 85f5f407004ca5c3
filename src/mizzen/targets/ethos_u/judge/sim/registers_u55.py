"""What operations are on Ethos-U55 and U65.

Their 32-bit feature maps are intermediate results: zero points and clipping do not apply to them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.sim.operations import (
    INTERNAL,
    Accumulators,
    Activation,
    Binary,
    Clip,
    Convolution,
    Dma,
    DmaEnd,
    Elementwise,
    FeatureMap,
    Function,
    Kernel,
    Operation,
    Output,
    Pool,
    Pooling,
    Space,
    Stream,
    Where,
)
from mizzen.targets.ethos_u.judge.sim.registers import Registers, Shape, int_of, name_of
from mizzen.targets.ethos_u.judge.sim.rounding import DOUBLING_BITS, Rounding, Scale
from mizzen.targets.ethos_u.judge.sim.scales import RECORD_U55
from mizzen.targets.ethos_u.judge.sim.weights import SplitLayout, WeightOrder

ROUNDING = {"DBL": Rounding.DOUBLE, "TRUNCATE": Rounding.TRUNCATE, "NATURAL": Rounding.NATURAL}
POOLS = {"MAX": Pool.MAX, "AVERAGE": Pool.AVERAGE, "REDUCE_SUM": Pool.REDUCE_SUM}
ACCUMULATOR_BITS = {"I32": 32, "I40": 40}
FORCED = {
    "OFM_PRECISION": None,
    "FORCE_UINT8": np.dtype(np.uint8),
    "FORCE_INT8": np.dtype(np.int8),
    "FORCE_INT16": np.dtype(np.int16),
}
LEFT_SHIFT = {1: 20}
"""Bits that operands of ADD and SUB gain before they are rescaled, by bytes of an element."""
WIDE_LEFT_SHIFT = 15

FIRST_TABLE = 16
"""Activation function number of the first lookup table."""
SLOT_BYTES = 256
TABLE_AREA_BYTES = 2048
"""Eight slots at the very end of one core's shared buffer."""
TABLES = {1: (Function.ENTRIES, 256), 2: (Function.SEGMENTS, 2048), 4: (Function.ENTRIES, 1024)}
"""What a table means and its size, by the bytes of an output element."""
CURVES = {"RELU": Function.NONE, "TANH": Function.TANH, "SIGMOID": Function.SIGMOID}


def clip_of(
    dtype: np.dtype[np.integer[Any]], forced: np.dtype[np.integer[Any]] | None,
    zero_point: int, low: int, high: int,
) -> Clip | None:  # fmt: skip
    """Return the clipping of an operation; None for 32-bit results, which are stored as they are.

    Bounds are those of the registers, within the type that is stored or forced.
    """
    ranged = forced or (dtype if dtype.itemsize <= 2 else None)
    if ranged is None:
        return None
    info = np.iinfo(ranged)
    if info.min == 0:  # the registers' 16 bits are unsigned then
        low, high = low & 0xFFFF, high & 0xFFFF
    return Clip(zero_point, max(low, int(info.min)), min(high, int(info.max)), ranged)


class RegistersU55(Registers):
    """Registers of U55 and U65.

    A machine with one core has no use for the parallel mode, and compilers leave it unset.
    """

    def _resolve(self, instruction: Instruction, where: Where) -> Operation | None:
        match instruction.command.name:
            case "OP_CONV":
                return self._convolution(where, depthwise=False)
            case "OP_DEPTHWISE":
                return self._convolution(where, depthwise=True)
            case "OP_POOL":
                return self._pooling(where, POOLS[name_of(instruction.values["pooling_mode"])])
            case "OP_ELEMENTWISE":
                mode = name_of(instruction.values["elementwise_mode"])
                return self._elementwise(where, Binary[mode])
            case "OP_DMA_START":
                return self._dma(where)
            case _:
                return None

    def _input(self, prefix: str, shape: Shape) -> FeatureMap:
        fm = self._feature_map(prefix, shape)
        return replace(fm, zero_point=0) if fm.dtype.itemsize >= 4 else fm

    # Results

    def _rounding(self, precision: str) -> Rounding:
        return ROUNDING[self._choice(precision, "round_mode")]

    def _global_scale(self) -> tuple[int, int]:
        fields = self._fields("SET_OFM_SCALE")
        return int_of(fields["scale"]), int_of(fields["shift"])

    def _output(self, shape: Shape, scale: tuple[int, int] | None) -> Output:
        fm = self._feature_map("OFM", shape)
        return Output(fm, self._rounding("SET_OFM_PRECISION"), scale, self._activation(fm))

    def _activation(self, fm: FeatureMap) -> Activation:
        fields = self._fields("SET_ACTIVATION")
        clip = clip_of(
            fm.dtype,
            FORCED[name_of(fields["activation_clip_range"])],
            fm.zero_point,
            self._number("SET_ACTIVATION_MIN"),
            self._number("SET_ACTIVATION_MAX"),
        )
        index = int_of(fields["activation_function"]) - FIRST_TABLE
        if index < 0:
            return Activation(clip, CURVES[name_of(fields["activation_function"])])
        if clip is None:
            raise self._fault(
                "E614", "a table with 32-bit entries needs a clip range that is forced"
            )
        function, size = TABLES[fm.dtype.itemsize]
        start = self._hardware.internal_bytes - TABLE_AREA_BYTES + SLOT_BYTES * index
        return Activation(clip, function, Stream(INTERNAL, start, size))

    def _accumulators(self) -> Accumulators:
        name = self._choice("SET_ACC_FORMAT", "acc_format")
        if name not in ACCUMULATOR_BITS:
            raise self._fault("E614", f"accumulators must be I32 or I40 here, not {name}")
        return Accumulators(ACCUMULATOR_BITS[name])

    # Operations

    def _convolution(self, where: Where, *, depthwise: bool) -> Convolution:
        kernel, shape = self._kernel(), self._ofm_shape()
        depth = shape[2] if depthwise else self._number("SET_IFM_DEPTH_M1")
        ifm, upscale = self._ifm(kernel, shape, depth)
        suffixes = ("", "1") if self._is_parallel() and shape[2] > 1 else ("",)
        self._check_decomposition()
        global_scale = self._choice("SET_OFM_PRECISION", "scale_mode") == "GLOBAL"
        return Convolution(
            where=where,
            ifm=ifm,
            upscale=upscale,
            kernel=kernel,
            output=self._output(shape, self._global_scale() if global_scale else None),
            depthwise=depthwise,
            accumulators=self._accumulators(),
            weights=tuple(self._stream("WEIGHT", suffix) for suffix in suffixes),
            layout=self._layout(ifm, kernel, shape[2], len(suffixes), depthwise),
            scales=tuple(self._stream("SCALE", suffix) for suffix in suffixes),
            record=RECORD_U55,
        )

    def _layout(
        self, ifm: FeatureMap, kernel: Kernel, depth: int, cores: int, depthwise: bool
    ) -> SplitLayout:
        block = self._number("SET_OFM_BLK_DEPTH_M1")
        order = self._choice("SET_KERNEL_STRIDE", "weight_order")
        return SplitLayout(
            tuple(
                WeightOrder(
                    ofm_depth=len(range(core, depth, cores)),
                    ifm_depth=ifm.depth,
                    kernel_height=kernel.height,
                    kernel_width=kernel.width,
                    dilation_y=kernel.dilation_y,
                    dilation_x=kernel.dilation_x,
                    ofm_block_depth=max(1, -(-(block - core) // cores)),
                    ofm_ublock_depth=self._hardware.ofm_ublock_depth,
                    ifm_bits=8 * ifm.dtype.itemsize,
                    depthwise=depthwise,
                    part_kernel=order == "PART_KERNEL_FIRST",
                )
                for core in range(cores)
            )
        )

    def _is_parallel(self) -> bool:
        if self._hardware.cores == 1:
            return False
        return self._choice("SET_PARALLEL_MODE", "parallel_mode") == "DUAL_CORE_DEPTH"

    def _pooling(self, where: Where, mode: Pool) -> Pooling:
        kernel, shape = self._kernel(), self._ofm_shape()
        reduce = mode is Pool.REDUCE_SUM
        if reduce and shape[2] != 1:
            raise self._fault("E613", f"a sum over channels must have depth 1, not {shape[2]}")
        depth = self._number("SET_IFM_DEPTH_M1") if reduce else shape[2]
        ifm, upscale = self._ifm(kernel, shape, depth)
        counted = mode is Pool.AVERAGE and kernel.is_padded
        unscaled = mode is Pool.MAX or counted
        return Pooling(
            where=where,
            mode=mode,
            ifm=replace(ifm, zero_point=0) if ifm.dtype.itemsize >= 4 else ifm,
            upscale=upscale,
            kernel=kernel,
            output=self._output(shape, None if unscaled else self._global_scale()),
            accumulators=self._accumulators(),
            divided=counted,
        )

    def _elementwise(self, where: Where, mode: Binary) -> Elementwise:
        shape = self._ofm_shape()
        self._check_not_upscaled()
        a = self._input("IFM", shape)
        b, reversed_ = self._second_operand(mode, shape)
        scale_a, scale_b = self._operand_scales(mode, a)
        if reversed_:
            scale_a, scale_b = scale_b, scale_a
        return Elementwise(
            where=where,
            mode=mode,
            a=a,
            b=b,
            reversed=reversed_,
            scale_a=scale_a,
            scale_b=scale_b,
            output=self._output(shape, self._result_scale(mode, a)),
        )

    def _result_scale(self, mode: Binary, a: FeatureMap) -> tuple[int, int] | None:
        match mode:
            case Binary.MIN | Binary.MAX | Binary.SHL | Binary.SHR | Binary.CLZ | Binary.LRELU:
                return None
            case Binary.MUL if a.dtype.itemsize == 4:
                return 1, self._global_scale()[1]  # 32-bit products are shifted alone
            case _:
                return self._global_scale()

    def _operand_scales(self, mode: Binary, a: FeatureMap) -> tuple[Scale | None, Scale | None]:
        """Scales of the first and the second operand, after they have been ordered."""
        if mode is Binary.LRELU:
            return None, Scale(*self._global_scale(), self._rounding("SET_OFM_PRECISION"))
        if mode not in (Binary.ADD, Binary.SUB):
            return None, None
        fields = self._fields("SET_OPA_SCALE")
        multiplier, shift = int_of(fields["scale"]), int_of(fields["shift"])
        rounding = self._rounding("SET_IFM_PRECISION")
        left = LEFT_SHIFT.get(a.dtype.itemsize, WIDE_LEFT_SHIFT)
        # To shift left before a product is to round the product so many bits earlier.
        full = Scale(multiplier, shift, rounding, DOUBLING_BITS - left)
        coarse = Scale(1 << (left - 1), 0, rounding)
        match self._choice("SET_IFM_PRECISION", "scale_mode"):
            case "OPA_32":
                return full, coarse
            case "OPB_32":
                return coarse, full
            case _:
                both = multiplier, self._number("SET_OPB_SCALE")
                return Scale(both[0], 0, rounding), Scale(both[1], 0, rounding)

    def _second_operand(self, mode: Binary, shape: Shape) -> tuple[FeatureMap | int | None, bool]:
        if mode.is_unary:
            return None, False
        fields = self._fields("SET_IFM2_BROADCAST")
        reversed_ = name_of(fields["operand_order"]) == "ORDER_A"
        if name_of(fields["broadcast_constant"]) == "ENABLE":
            return self._scalar(), reversed_
        sizes = [
            1 if name_of(fields[f"broadcast_{axis}"]) == "ENABLE" else size
            for axis, size in zip("hwc", shape, strict=True)
        ]
        return self._input("IFM2", (sizes[0], sizes[1], sizes[2])), reversed_

    def _scalar(self) -> int:
        scalar = self._number("SET_IFM2_SCALAR")
        if self._dtype("SET_IFM2_PRECISION").itemsize >= 4:
            return scalar
        return scalar - self._number("SET_IFM2_ZERO_POINT")

    def _dma(self, where: Where) -> Dma:
        """The source is contiguous; the destination skips bytes after rows and planes."""
        mode = self._choice("SET_DMA0_SRC_REGION", "stride_mode")
        strided, planar = mode in ("D2", "D3"), mode == "D3"
        length = self._number("SET_DMA0_LEN")
        lines = self._number("SET_DMA0_SIZE0") if strided else 1
        row_bytes = length + (self._number("SET_DMA0_SKIP0") if strided else 0)
        plane = lines * row_bytes + (self._number("SET_DMA0_SKIP1") if planar else 0)
        return Dma(
            where=where,
            source=self._dma_end("SRC", lines * length, length),
            destination=self._dma_end("DST", plane, row_bytes),
            length=length,
            rows=lines,
            planes=self._number("SET_DMA0_SIZE1") if planar else 1,
        )

    def _dma_end(self, end: str, plane_stride: int, row_stride: int) -> DmaEnd:
        name = f"SET_DMA0_{end}_REGION"
        space = Space[self._choice(name, "region_mode")]
        offset = self._number(f"SET_DMA0_{end}")
        return DmaEnd(space, self._region(name), offset, plane_stride, row_stride)
