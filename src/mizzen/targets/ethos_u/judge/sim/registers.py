"""The register file: what SET commands left behind, and the operations that OP commands start.

Registers keep their value from one operation to the next. An operation that needs a register no
command has set is a fault: hardware would compute with whatever was there. What all architectures
have in common is here; `registers_u55` and `registers_u85` say what an operation is on each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.sim.hardware import Hardware
from mizzen.targets.ethos_u.judge.sim.operations import (
    FeatureMap,
    Format,
    Kernel,
    Operation,
    Stream,
    Upscale,
    Where,
)

Value = int | Enum
Shape = tuple[int, int, int]


class Registers(ABC):
    """The state that SET commands write, read by the operation that an OP command starts."""

    largest_element_bits = 32

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware
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
        return self._resolve(instruction, where)

    @abstractmethod
    def _resolve(self, instruction: Instruction, where: Where) -> Operation | None: ...

    def _fields(self, name: str) -> Mapping[str, Value]:
        fields = self._registers.get(name)
        if fields is None:
            raise self._fault("E611", f"the operation needs {name}, which no command has set")
        return fields

    def _number(self, name: str) -> int:
        return int(int_of(next(iter(self._fields(name).values()))))

    def _choice(self, name: str, field: str) -> str:
        return name_of(self._fields(name)[field])

    def _region(self, name: str) -> int:
        fields = self._fields(name)
        if fields.get("custom_dma_cs"):
            raise self._fault("E614", f"{name}: the custom DMA's chip select is not modelled")
        return int_of(fields["region"])

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
        if bits > self.largest_element_bits:
            raise self._fault(
                "E614",
                f"{precision}: elements must have at most {self.largest_element_bits} bits, "
                f"not {bits}",
            )
        # 32- and 64-bit maps are intermediate results; hardware knows them only as signed.
        signed = self._choice(precision, "activation_type") == "SIGNED" or bits > 16
        return np.dtype(f"{'i' if signed else 'u'}{bits // 8}")

    def _feature_map(self, prefix: str, shape: Shape) -> FeatureMap:
        height, width, depth = shape
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

    def _ofm_shape(self) -> Shape:
        """Height, width and depth of the result."""
        return (
            self._number("SET_OFM_HEIGHT_M1"),
            self._number("SET_OFM_WIDTH_M1"),
            self._number("SET_OFM_DEPTH_M1"),
        )

    def _ifm(self, kernel: Kernel, ofm: Shape, depth: int) -> tuple[FeatureMap, Upscale]:
        """The input's size is not in any register; it follows from the output and the kernel."""
        upscale = Upscale[self._choice("SET_IFM_UPSCALE", "mode")]
        height = (ofm[0] - 1) * kernel.stride_y + kernel.dilated_height
        width = (ofm[1] - 1) * kernel.stride_x + kernel.dilated_width
        height -= kernel.pad_top + kernel.pad_bottom
        width -= kernel.pad_left + kernel.pad_right
        factor = 1 if upscale is Upscale.NONE else 2
        shape = -(-height // factor), -(-width // factor), depth
        return self._feature_map("IFM", shape), upscale

    def _check_not_upscaled(self) -> None:
        if self._choice("SET_IFM_UPSCALE", "mode") != "NONE":
            raise self._fault("E614", "an elementwise operation must not upscale its input")

    def _kernel(self) -> Kernel:
        stride = self._fields("SET_KERNEL_STRIDE")
        dilation = [2 if name_of(stride[f"dilation_{axis}"]) == "X2" else 1 for axis in "yx"]
        size = [self._number("SET_KERNEL_HEIGHT_M1"), self._number("SET_KERNEL_WIDTH_M1")]
        if any((dilated - 1) % step for dilated, step in zip(size, dilation, strict=True)):
            raise self._fault("E613", f"a kernel of {size[0]} x {size[1]} cannot be dilated by 2")
        return Kernel(
            height=(size[0] - 1) // dilation[0] + 1,
            width=(size[1] - 1) // dilation[1] + 1,
            stride_y=int_of(stride["stride_y"]),
            stride_x=int_of(stride["stride_x"]),
            dilation_y=dilation[0],
            dilation_x=dilation[1],
            pad_top=self._number("SET_IFM_PAD_TOP"),
            pad_left=self._number("SET_IFM_PAD_LEFT"),
            pad_bottom=self._number("SET_IFM_PAD_BOTTOM"),
            pad_right=self._number("SET_IFM_PAD_RIGHT"),
        )

    def _check_decomposition(self) -> None:
        if self._choice("SET_KERNEL_STRIDE", "decomposition") != "D8X8":
            raise self._fault("E614", "the 4 x 4 kernel decomposition is not modelled")

    def _stream(self, kind: str, suffix: str) -> Stream:
        return Stream(
            region=self._region(f"SET_{kind}_REGION"),
            offset=self._number(f"SET_{kind}{suffix}_BASE"),
            length=self._number(f"SET_{kind}{suffix}_LENGTH"),
        )


def name_of(value: Value) -> str:
    """Return the name of an enumeration's value."""
    return value.name if isinstance(value, Enum) else str(value)


def int_of(value: Value) -> int:
    """Return the number of a value."""
    return int(value.value) if isinstance(value, Enum) else value
