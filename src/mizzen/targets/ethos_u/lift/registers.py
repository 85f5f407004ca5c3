"""What SET commands leave behind, and the operation that an OP command makes of it.

Operations come out over regions instead of tensors: a view's `tensor` is the number of a region and
its offset an address. What a command takes from a register that the contract has no field for is
refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.isa import Instruction
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Bytes,
    Kernel,
    Map,
    Scalar,
    Scale,
    Shape,
    Tiles,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ActivationFunction,
    Broadcast,
    ClipRange,
    DmaRegionMode,
    DmaStrideMode,
    ElementwiseMode,
    KernelDecomposition,
    KernelDilation,
    Layout,
    OfmScaleMode,
    OperandOrder,
    ParallelMode,
    PoolingMode,
    Precision,
    UpscaleMode,
    WeightOrder,
)
from mizzen.targets.ethos_u.machine.config import Accelerator

UNARY = (ElementwiseMode.ABS, ElementwiseMode.CLZ, ElementwiseMode.LRELU)
SUMS = (ElementwiseMode.ADD, ElementwiseMode.SUB)
SCALED = (*SUMS, ElementwiseMode.MUL, ElementwiseMode.LRELU, ElementwiseMode.ABS)
"""Modes whose result OFM_SCALE scales."""
TABLE_BYTES = {1: 256, 2: 2048, 4: 1024}
"""By the bytes of an element of the output. Ref: Ethos-U55 and U65 TRM, lookup tables."""
TABLE_AREA_BYTES, TABLE_SLOT_BYTES = 2048, 256
"""Tables are at the end of a core's shared buffer, in slots."""


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes of a region."""

    region: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class TableRange:
    """Bytes of the NPU's own memory that hold a table."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """A DMA of `length` bytes; `destination` is None where it goes into the NPU's own memory."""

    source: int
    source_offset: int
    destination: int | None
    destination_offset: int
    length: int


class Registers:
    """Values by command, read by the operation that is made."""

    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        self._fields: dict[str, Mapping[str, int]] = {}
        self._reader = ("", Origin())

    def write(self, instruction: Instruction) -> None:
        """Keep what a SET command says."""
        self._fields[instruction.command.name] = instruction.values

    def read_for(self, name: str, origin: Origin) -> None:
        """Say which operation asks from here on."""
        self._reader = name, origin

    def refusal(self, reason: str) -> MizzenError:
        """Return why the operation cannot be lifted. E271."""
        name, origin = self._reader
        return fail(
            "E271",
            f"{name}: {reason}",
            origin=origin,
            help="the compiler's own words for it remain right; keep those",
        )

    def fields(self, name: str) -> Mapping[str, int]:
        """Return the fields of a register. E272 if no command has set it."""
        found = self._fields.get(name)
        if found is None:
            operation, origin = self._reader
            raise fail(
                "E272",
                f"{operation}: {name} must be set before, and no command has set it",
                origin=origin,
                help="the command stream is damaged; compile it again",
            )
        return found

    def number(self, name: str) -> int:
        """Return the value of a register with one field."""
        return int(next(iter(self.fields(name).values())))

    def region(self, name: str) -> int:
        """Return the region that a register names."""
        fields = self.fields(name)
        if fields.get("custom_dma_cs"):
            raise self.refusal(f"{name} must not choose a custom DMA, and does")
        return fields["region"]

    # Maps

    def _dtype(self, prefix: str) -> np.dtype[np.integer[Any]]:
        fields = self.fields(f"SET_{prefix}_PRECISION")
        precision = Precision(fields["activation_precision"])
        if precision is Precision.B64:
            raise self.refusal(f"elements of {prefix} must have at most 32 bits, not 64")
        signed = fields["activation_type"] or precision is Precision.B32
        return np.dtype(f"{'i' if signed else 'u'}{1 << precision}")

    def ofm_shape(self) -> Shape:
        """Return height, width and depth of the output."""
        number = self.number
        return number("SET_OFM_HEIGHT_M1"), number("SET_OFM_WIDTH_M1"), number("SET_OFM_DEPTH_M1")

    def map(self, prefix: str, shape: Shape) -> Map:
        """Return the map of registers `SET_<prefix>_*`."""
        number = self.number
        if min(shape) < 1:
            size = " x ".join(map(str, shape))
            raise self.refusal(f"{prefix} must have elements, and is {size}")
        layout = Layout(self.fields(f"SET_{prefix}_PRECISION")["activation_format"])
        view = Bytes(
            tensor=self.region(f"SET_{prefix}_REGION"),
            shape=shape,
            offset_bytes=number(f"SET_{prefix}_BASE0"),
            strides_bytes=(
                number(f"SET_{prefix}_STRIDE_Y"),
                number(f"SET_{prefix}_STRIDE_X"),
                number(f"SET_{prefix}_STRIDE_C"),
            ),
            layout=layout,
            tiles=self._tiles(prefix, shape),
        )
        return Map(view, self._dtype(prefix), number(f"SET_{prefix}_ZERO_POINT"))

    def _tiles(self, prefix: str, shape: Shape) -> Tiles | None:
        """Return where rows and columns go on; None where all lie in the first tile.

        Of a tile that has no element the base says nothing; it is taken to be the first tile's.
        """
        number = self.number
        height_0, width_0 = number(f"SET_{prefix}_HEIGHT0_M1"), number(f"SET_{prefix}_WIDTH0_M1")
        height_1 = number(f"SET_{prefix}_HEIGHT1_M1")
        is_wide = shape[1] > width_0
        is_used = is_wide, shape[0] > height_0, is_wide and shape[0] > height_1
        if not any(is_used):
            return None
        right, below, both = (
            number(f"SET_{prefix}_BASE{tile if used else 0}")
            for tile, used in enumerate(is_used, 1)
        )
        return Tiles(height_0, height_1, width_0, (right, below, both))

    def ofm(self) -> Map:
        """Return the output."""
        return self.map("OFM", self.ofm_shape())

    def ifm(self, kernel: Kernel, depth: int) -> tuple[Map, UpscaleMode]:
        """Return the input: its height and width follow from the output's and the kernel."""
        rows, columns, _ = self.ofm_shape()
        upscale = UpscaleMode(self.fields("SET_IFM_UPSCALE")["mode"])
        height = (rows - 1) * kernel.stride_y + kernel.dilated_height
        width = (columns - 1) * kernel.stride_x + kernel.dilated_width
        height -= kernel.pad_top + kernel.pad_bottom
        width -= kernel.pad_left + kernel.pad_right
        if upscale is not UpscaleMode.NONE:
            height, width = -(-height // 2), -(-width // 2)
        return self.map("IFM", (height, width, depth)), upscale

    def operands(self, mode: ElementwiseMode) -> tuple[Map, Map | Scalar | None, bool]:
        """Return the operands of an elementwise operation, and whether the second comes first."""
        shape = self.ofm_shape()
        if self.fields("SET_IFM_UPSCALE")["mode"] != UpscaleMode.NONE:
            raise self.refusal("the input of an elementwise operation must not be upscaled, and is")
        ifm = self.map("IFM", shape)
        if mode in UNARY:
            return ifm, None, False
        broadcast = self.fields("SET_IFM2_BROADCAST")
        swapped = broadcast["operand_order"] == OperandOrder.ORDER_A
        if broadcast["broadcast_constant"] == Broadcast.ENABLE:
            value = self.number("SET_IFM2_SCALAR")
            zero_point = self.number("SET_IFM2_ZERO_POINT")
            return ifm, Scalar(value, self._dtype("IFM2"), zero_point), swapped
        height, width, depth = (
            1 if broadcast[f"broadcast_{axis}"] == Broadcast.ENABLE else extent
            for axis, extent in zip("hwc", shape, strict=True)
        )
        return ifm, self.map("IFM2", (height, width, depth)), swapped

    # Everything else

    def kernel(self) -> Kernel:
        """Return the window."""
        stride, number = self.fields("SET_KERNEL_STRIDE"), self.number
        dilation_y, dilation_x = (
            2 if stride[f"dilation_{axis}"] == KernelDilation.X2 else 1 for axis in "yx"
        )
        height, width = number("SET_KERNEL_HEIGHT_M1"), number("SET_KERNEL_WIDTH_M1")
        if (height - 1) % dilation_y or (width - 1) % dilation_x:
            raise self.refusal(f"a kernel of {height} x {width} cannot be dilated by 2")
        return Kernel(
            (height - 1) // dilation_y + 1,
            (width - 1) // dilation_x + 1,
            stride["stride_y"],
            stride["stride_x"],
            dilation_y,
            dilation_x,
            number("SET_IFM_PAD_TOP"),
            number("SET_IFM_PAD_LEFT"),
            number("SET_IFM_PAD_BOTTOM"),
            number("SET_IFM_PAD_RIGHT"),
        )

    def is_part_kernel(self) -> bool:
        """Return the traversal of the weights."""
        fields = self.fields("SET_KERNEL_STRIDE")
        if fields["decomposition"] != KernelDecomposition.D8X8:
            raise self.refusal("the kernel must be decomposed into 8 x 8 elements, not 4 x 4")
        return fields["weight_order"] == WeightOrder.PART_KERNEL_FIRST

    def cores(self) -> int:
        """Return how many cores the output's channels are divided among."""
        if self._accelerator.cores == 1:
            return 1
        mode = self.fields("SET_PARALLEL_MODE")["parallel_mode"]
        return self._accelerator.cores if mode == ParallelMode.DUAL_CORE_DEPTH else 1

    def streams(self, kind: str, depth: int) -> list[Range]:
        """Return where the weights or the scales of each core lie; of a core that has channels."""
        region = self.region(f"SET_{kind}_REGION")
        return [
            Range(
                region,
                self.number(f"SET_{kind}{core}_BASE"),
                self.number(f"SET_{kind}{core}_LENGTH"),
            )
            for core in ("", "1")[: min(self.cores(), depth)]
        ]

    def is_scaled_globally(self) -> bool:
        """Return whether OFM_SCALE is the output's scale."""
        return self.fields("SET_OFM_PRECISION")["scale_mode"] == OfmScaleMode.GLOBAL

    def ofm_scale(self) -> Scale:
        """Return OFM_SCALE."""
        fields = self.fields("SET_OFM_SCALE")
        return Scale(fields["scale"], fields["shift"])

    def pooling_scale(self, mode: PoolingMode, kernel: Kernel) -> Scale:
        """Return the scale of a pooling operation: of those that have none, one of 1."""
        if mode is PoolingMode.MAX or (mode is PoolingMode.AVERAGE and any(kernel.pads)):
            return Scale(1, 0)
        if not self.is_scaled_globally():
            raise self.refusal("a pooling operation must take its scale from OFM_SCALE")
        return self.ofm_scale()

    def result_scale(self, mode: ElementwiseMode) -> Scale | None:
        """Return OFM_SCALE of an elementwise operation; None where it is not in use."""
        if self.is_scaled_globally():
            return self.ofm_scale()
        if mode in SCALED:
            raise self.refusal(f"{mode.name} must take its scale from OFM_SCALE")
        return None

    def operand_scales(self, mode: ElementwiseMode) -> tuple[Scale | None, Scale | None]:
        """Return OPA_SCALE and OPB_SCALE; None where the operation has none."""
        if mode not in SUMS:
            return None, None
        first = self.fields("SET_OPA_SCALE")
        second = self._fields.get("SET_OPB_SCALE")
        return (
            Scale(first["scale"], first["shift"]),
            None if second is None else Scale(second["scale"], 0),
        )

    def activation(self, itemsize: int) -> tuple[Activation, TableRange | None]:
        """Return clip and function, without its table, and where that lies."""
        fields = self.fields("SET_ACTIVATION")
        function = ActivationFunction(fields["activation_function"])
        slot = function - ActivationFunction.TABLE_0
        made = Activation(
            self.number("SET_ACTIVATION_MIN"),
            self.number("SET_ACTIVATION_MAX"),
            None,
            function.name if slot < 0 else ActivationFunction.RELU.name,
            ClipRange(fields["activation_clip_range"]),
        )
        if slot < 0:
            return made, None
        shared = (self._accelerator.shram_kib or 0) * 1024 // self._accelerator.cores
        start = shared - TABLE_AREA_BYTES + slot * TABLE_SLOT_BYTES
        return made, TableRange(start, TABLE_BYTES[itemsize])

    def transfer(self) -> Transfer:
        """Return the DMA that the registers describe."""
        source = self.fields("SET_DMA0_SRC_REGION")
        destination = self.fields("SET_DMA0_DST_REGION")
        if source["stride_mode"] != DmaStrideMode.D1:
            raise self.refusal("a transfer must be of one run of bytes")
        if source["region_mode"] != DmaRegionMode.EXTERNAL:
            raise self.refusal("a transfer must not read the NPU's own memory")
        inside = destination["region_mode"] == DmaRegionMode.INTERNAL
        return Transfer(
            self.region("SET_DMA0_SRC_REGION"),
            self.number("SET_DMA0_SRC"),
            None if inside else self.region("SET_DMA0_DST_REGION"),
            self.number("SET_DMA0_DST"),
            self.number("SET_DMA0_LEN"),
        )
