"""The register file: what SET commands left behind, and the operations that OP commands start.

Registers keep their value from one operation to the next. An operation that needs a register no
command has set is a fault: hardware would compute with whatever was there.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.sim.operations import (
    Activation,
    Binary,
    Convolution,
    Dma,
    DmaEnd,
    Elementwise,
    FeatureMap,
    Format,
    Function,
    Kernel,
    OperandScaling,
    Operation,
    Output,
    Pool,
    Pooling,
    Space,
    Stream,
    Upscale,
    Where,
)
from mizzen.targets.ethos_u.sim.rounding import Rounding

Value = int | Enum

ROUNDING = {"DBL": Rounding.DOUBLE, "TRUNCATE": Rounding.TRUNCATE, "NATURAL": Rounding.NATURAL}
POOLS = {"MAX": Pool.MAX, "AVERAGE": Pool.AVERAGE, "REDUCE_SUM": Pool.REDUCE_SUM}
OPERAND_SCALING = {
    "OPA_OPB_16": OperandScaling.BOTH_16,
    "OPA_32": OperandScaling.A_32,
    "OPB_32": OperandScaling.B_32,
}
ACCUMULATOR_BITS = {"I32": 32, "I40": 40}
FORCED = {
    "OFM_PRECISION": None,
    "FORCE_UINT8": np.dtype(np.uint8),
    "FORCE_INT8": np.dtype(np.int8),
    "FORCE_INT16": np.dtype(np.int16),
}
FIRST_TABLE = 16
"""Activation function number of the first lookup table."""


class Registers:
    """The state that SET commands write, read by the operation that an OP command starts.

    A machine with one core has no use for the parallel mode, and compilers leave it unset.
    """

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._registers: dict[str, Mapping[str, Value]] = {}
        self._where: Where | None = None

    def write(self, instruction: Instruction) -> None:
        """Keep what a SET command says."""
        self._registers[instruction.command.name] = instruction.values

    def operation(self, instruction: Instruction, where: Where) -> Operation | None:
        """Resolve the operation that `instruction` starts; None if it computes nothing.

        Raises E611 for a register that was never set, E613 for values that do not go together.
        """
        self._where = where
        match instruction.command.name:
            case "OP_CONV":
                return self._convolution(depthwise=False)
            case "OP_DEPTHWISE":
                return self._convolution(depthwise=True)
            case "OP_POOL":
                return self._pooling(POOLS[_name(instruction.values["pooling_mode"])])
            case "OP_ELEMENTWISE":
                mode = _name(instruction.values["elementwise_mode"])
                return self._elementwise(Binary[mode])
            case "OP_DMA_START":
                return self._dma()
            case _:
                return None

    def _fields(self, name: str) -> Mapping[str, Value]:
        fields = self._registers.get(name)
        if fields is None:
            raise self._fault("E611", f"the operation needs {name}, which no command has set")
        return fields

    def _number(self, name: str) -> int:
        return int(_as_int(next(iter(self._fields(name).values()))))

    def _choice(self, name: str, field: str) -> str:
        return _name(self._fields(name)[field])

    def _region(self, name: str) -> int:
        fields = self._fields(name)
        if fields.get("custom_dma_cs"):
            raise self._fault("E614", f"{name}: the custom DMA's chip select is not modelled")
        return _as_int(fields["region"])

    def _fault(self, code: str, message: str) -> MizzenError:
        assert self._where is not None
        return fail(
            code,
            f"{self._where.name}: {message}",
            origin=self._where.origin,
            help="the command stream is damaged or was made for another NPU; compile it again",
        )

    # Feature maps

    def _dtype(self, precision: str) -> np.dtype[np.integer[Any]]:
        bits = int(self._choice(precision, "activation_precision")[1:])
        if bits > 32:
            raise self._fault("E614", f"{precision}: elements must have at most 32 bits, not 64")
        # 32- and 64-bit maps are intermediate results; hardware knows them only as signed.
        signed = self._choice(precision, "activation_type") == "SIGNED" or bits > 16
        return np.dtype(f"{'i' if signed else 'u'}{bits // 8}")

    def _feature_map(self, prefix: str, height: int, width: int, depth: int) -> FeatureMap:
        if min(height, width, depth) < 1:
            raise self._fault(
                "E613", f"{prefix} must have a positive size, not {height} x {width} x {depth}"
            )
        precision = f"SET_{prefix}_PRECISION"
        base = [self._number(f"SET_{prefix}_BASE{tile}") for tile in range(4)]
        return FeatureMap(
            region=self._region(f"SET_{prefix}_REGION"),
            bases=(base[0], base[1], base[2], base[3]),
            height_0=self._number(f"SET_{prefix}_HEIGHT0_M1"),
            height_1=self._number(f"SET_{prefix}_HEIGHT1_M1"),
            width_0=self._number(f"SET_{prefix}_WIDTH0_M1"),
            stride_y=self._number(f"SET_{prefix}_STRIDE_Y"),
            stride_x=self._number(f"SET_{prefix}_STRIDE_X"),
            stride_c=self._number(f"SET_{prefix}_STRIDE_C"),
            format=Format[self._choice(precision, "activation_format")],
            dtype=self._dtype(precision),
            zero_point=self._number(f"SET_{prefix}_ZERO_POINT"),
            height=height,
            width=width,
            depth=depth,
        )

    def _ofm(self) -> FeatureMap:
        return self._feature_map(
            "OFM",
            self._number("SET_OFM_HEIGHT_M1"),
            self._number("SET_OFM_WIDTH_M1"),
            self._number("SET_OFM_DEPTH_M1"),
        )

    def _ifm(self, kernel: Kernel, ofm: FeatureMap, depth: int) -> tuple[FeatureMap, Upscale]:
        """The input's size is not in any register; it follows from the output and the kernel."""
        upscale = Upscale[self._choice("SET_IFM_UPSCALE", "mode")]
        height = (ofm.height - 1) * kernel.stride_y + kernel.dilated_height
        width = (ofm.width - 1) * kernel.stride_x + kernel.dilated_width
        height -= kernel.pad_top + kernel.pad_bottom
        width -= kernel.pad_left + kernel.pad_right
        factor = 1 if upscale is Upscale.NONE else 2
        return self._feature_map("IFM", -(-height // factor), -(-width // factor), depth), upscale

    def _kernel(self) -> Kernel:
        stride = self._fields("SET_KERNEL_STRIDE")
        dilation = [2 if _name(stride[f"dilation_{axis}"]) == "X2" else 1 for axis in "yx"]
        size = [self._number("SET_KERNEL_HEIGHT_M1"), self._number("SET_KERNEL_WIDTH_M1")]
        if any((dilated - 1) % step for dilated, step in zip(size, dilation, strict=True)):
            raise self._fault("E613", f"a kernel of {size[0]} x {size[1]} cannot be dilated by 2")
        return Kernel(
            height=(size[0] - 1) // dilation[0] + 1,
            width=(size[1] - 1) // dilation[1] + 1,
            stride_y=_as_int(stride["stride_y"]),
            stride_x=_as_int(stride["stride_x"]),
            dilation_y=dilation[0],
            dilation_x=dilation[1],
            pad_top=self._number("SET_IFM_PAD_TOP"),
            pad_left=self._number("SET_IFM_PAD_LEFT"),
            pad_bottom=self._number("SET_IFM_PAD_BOTTOM"),
            pad_right=self._number("SET_IFM_PAD_RIGHT"),
        )

    # Results

    def _rounding(self, precision: str) -> Rounding:
        return ROUNDING[self._choice(precision, "round_mode")]

    def _global_scale(self) -> tuple[int, int]:
        fields = self._fields("SET_OFM_SCALE")
        return _as_int(fields["scale"]), _as_int(fields["shift"])

    def _output(self, ofm: FeatureMap, scale: tuple[int, int] | None) -> Output:
        return Output(ofm, self._rounding("SET_OFM_PRECISION"), scale, self._activation())

    def _activation(self) -> Activation:
        fields = self._fields("SET_ACTIVATION")
        function = _name(fields["activation_function"])
        table = _as_int(fields["activation_function"]) - FIRST_TABLE
        kind = {"RELU": Function.NONE, "TANH": Function.TANH, "SIGMOID": Function.SIGMOID}
        return Activation(
            function=Function.TABLE if table >= 0 else kind[function],
            table=max(table, 0),
            minimum=self._number("SET_ACTIVATION_MIN"),
            maximum=self._number("SET_ACTIVATION_MAX"),
            forced=FORCED[_name(fields["activation_clip_range"])],
        )

    def _accumulator_bits(self) -> int:
        name = self._choice("SET_ACC_FORMAT", "acc_format")
        if name not in ACCUMULATOR_BITS:
            raise self._fault("E614", f"accumulators must be I32 or I40 here, not {name}")
        return ACCUMULATOR_BITS[name]

    # Operations

    def _convolution(self, *, depthwise: bool) -> Convolution:
        assert self._where is not None
        kernel, ofm = self._kernel(), self._ofm()
        depth = ofm.depth if depthwise else self._number("SET_IFM_DEPTH_M1")
        ifm, upscale = self._ifm(kernel, ofm, depth)
        suffixes = ("", "1") if self._is_parallel() and ofm.depth > 1 else ("",)
        order = self._choice("SET_KERNEL_STRIDE", "weight_order")
        if self._choice("SET_KERNEL_STRIDE", "decomposition") != "D8X8":
            raise self._fault("E614", "the 4 x 4 kernel decomposition is not modelled")
        global_scale = self._choice("SET_OFM_PRECISION", "scale_mode") == "GLOBAL"
        return Convolution(
            where=self._where,
            ifm=ifm,
            upscale=upscale,
            kernel=kernel,
            output=self._output(ofm, self._global_scale() if global_scale else None),
            depthwise=depthwise,
            part_kernel=order == "PART_KERNEL_FIRST",
            ofm_block_depth=self._number("SET_OFM_BLK_DEPTH_M1"),
            accumulator_bits=self._accumulator_bits(),
            weights=tuple(self._stream("WEIGHT", suffix) for suffix in suffixes),
            scales=tuple(self._stream("SCALE", suffix) for suffix in suffixes),
        )

    def _is_parallel(self) -> bool:
        if self._cores == 1:
            return False
        return self._choice("SET_PARALLEL_MODE", "parallel_mode") == "DUAL_CORE_DEPTH"

    def _stream(self, kind: str, suffix: str) -> Stream:
        return Stream(
            region=self._region(f"SET_{kind}_REGION"),
            offset=self._number(f"SET_{kind}{suffix}_BASE"),
            length=self._number(f"SET_{kind}{suffix}_LENGTH"),
        )

    def _pooling(self, mode: Pool) -> Pooling:
        assert self._where is not None
        kernel, ofm = self._kernel(), self._ofm()
        reduce = mode is Pool.REDUCE_SUM
        if reduce and ofm.depth != 1:
            raise self._fault("E613", f"a sum over channels must have depth 1, not {ofm.depth}")
        depth = self._number("SET_IFM_DEPTH_M1") if reduce else ofm.depth
        ifm, upscale = self._ifm(kernel, ofm, depth)
        counted = mode is Pool.AVERAGE and kernel.is_padded
        unscaled = mode is Pool.MAX or counted
        return Pooling(
            where=self._where,
            mode=mode,
            ifm=ifm,
            upscale=upscale,
            kernel=kernel,
            output=self._output(ofm, None if unscaled else self._global_scale()),
            accumulator_bits=self._accumulator_bits(),
        )

    def _elementwise(self, mode: Binary) -> Elementwise:
        assert self._where is not None
        ofm = self._ofm()
        if self._choice("SET_IFM_UPSCALE", "mode") != "NONE":
            raise self._fault("E614", "an elementwise operation must not upscale its input")
        a = self._feature_map("IFM", ofm.height, ofm.width, ofm.depth)
        adds = mode in (Binary.ADD, Binary.SUB)
        scaling = OperandScaling.BOTH_16
        if adds:
            scaling = OPERAND_SCALING[self._choice("SET_IFM_PRECISION", "scale_mode")]
        scale_a = self._fields("SET_OPA_SCALE") if adds else {"scale": 1, "shift": 0}
        both = adds and scaling is OperandScaling.BOTH_16
        unscaled = mode in (Binary.MIN, Binary.MAX, Binary.SHL, Binary.SHR, Binary.CLZ)
        b, reversed_ = self._second_operand(mode, ofm)
        return Elementwise(
            where=self._where,
            mode=mode,
            a=a,
            b=b,
            reversed=reversed_,
            operand_scaling=scaling,
            scale_a=(_as_int(scale_a["scale"]), _as_int(scale_a["shift"])),
            scale_b=self._number("SET_OPB_SCALE") if both else 1,
            input_rounding=self._rounding("SET_IFM_PRECISION"),
            output=self._output(ofm, None if unscaled else self._global_scale()),
        )

    def _second_operand(
        self, mode: Binary, ofm: FeatureMap
    ) -> tuple[FeatureMap | int | None, bool]:
        if mode.is_unary:
            return None, False
        fields = self._fields("SET_IFM2_BROADCAST")
        reversed_ = _name(fields["operand_order"]) == "ORDER_A"
        if _name(fields["broadcast_constant"]) == "ENABLE":
            return self._scalar(), reversed_
        sizes = [
            1 if _name(fields[f"broadcast_{axis}"]) == "ENABLE" else size
            for axis, size in zip("hwc", (ofm.height, ofm.width, ofm.depth), strict=True)
        ]
        return self._feature_map("IFM2", *sizes), reversed_

    def _scalar(self) -> int:
        scalar = self._number("SET_IFM2_SCALAR")
        if self._dtype("SET_IFM2_PRECISION").itemsize >= 4:
            return scalar
        return scalar - self._number("SET_IFM2_ZERO_POINT")

    def _dma(self) -> Dma:
        assert self._where is not None
        mode = self._choice("SET_DMA0_SRC_REGION", "stride_mode")
        strided, planar = mode in ("D2", "D3"), mode == "D3"
        return Dma(
            where=self._where,
            source=self._dma_end("SRC"),
            destination=self._dma_end("DST"),
            length=self._number("SET_DMA0_LEN"),
            rows=self._number("SET_DMA0_SIZE0") if strided else 1,
            planes=self._number("SET_DMA0_SIZE1") if planar else 1,
            skip_row=self._number("SET_DMA0_SKIP0") if strided else 0,
            skip_plane=self._number("SET_DMA0_SKIP1") if planar else 0,
        )

    def _dma_end(self, end: str) -> DmaEnd:
        name = f"SET_DMA0_{end}_REGION"
        space = Space[self._choice(name, "region_mode")]
        return DmaEnd(space, self._region(name), self._number(f"SET_DMA0_{end}"))


def _name(value: Value) -> str:
    return value.name if isinstance(value, Enum) else str(value)


def _as_int(value: Value) -> int:
    return int(value.value) if isinstance(value, Enum) else value
