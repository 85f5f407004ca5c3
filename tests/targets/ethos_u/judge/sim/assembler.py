"""Small programs from commands, for tests of single operations.

Maps are dense NHWC in the scratch region: input at IFM, second input at IFM2, output at OFM.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.isa.command import Command
from mizzen.targets.ethos_u.machine.commands import Arch, Instruction, encode, instruction_set
from mizzen.targets.ethos_u.machine.program import HardwareId, Program, TensorAddress

Fields = dict[str, int]
Settings = dict[str, Fields]
Tensor = tuple[tuple[int, ...], npt.DTypeLike]
"""Shape and element type."""

IFM, IFM2, OFM = 0, 0x1000, 0x2000
SCRATCH_BYTES = 0x3000
PRECISION = {1: 0, 2: 1, 4: 2}


def feature_map(
    prefix: str, shape: tuple[int, int, int], dtype: npt.DTypeLike, offset: int, **precision: int
) -> Settings:
    """SET commands of a map `[H, W, C]`; `precision` are more fields of its precision."""
    type_ = np.dtype(dtype)
    height, width, depth = shape
    size = type_.itemsize
    settings: Settings = {
        f"SET_{prefix}_REGION": {"region": 1},
        f"SET_{prefix}_PRECISION": {
            "activation_type": int(type_.kind == "i"),
            "activation_precision": PRECISION[size],
            **precision,
        },
        f"SET_{prefix}_ZERO_POINT": {"zero_point": 0},
        f"SET_{prefix}_HEIGHT0_M1": {"height": height},
        f"SET_{prefix}_HEIGHT1_M1": {"height": height},
        f"SET_{prefix}_WIDTH0_M1": {"width": width},
        f"SET_{prefix}_STRIDE_X": {"stride": depth * size},
        f"SET_{prefix}_STRIDE_Y": {"stride": width * depth * size},
        f"SET_{prefix}_STRIDE_C": {"stride": size},
    }
    for tile in range(4):
        settings[f"SET_{prefix}_BASE{tile}"] = {"address": offset if tile == 0 else 0}
    return settings


def result(shape: tuple[int, int, int], dtype: npt.DTypeLike, **precision: int) -> Settings:
    """SET commands of the output, with its shape before it is permuted."""
    height, width, depth = shape
    return feature_map("OFM", shape, dtype, OFM, **{"scale_mode": 1, **precision}) | {
        "SET_OFM_HEIGHT_M1": {"height": height},
        "SET_OFM_WIDTH_M1": {"width": width},
        "SET_OFM_DEPTH_M1": {"depth": depth},
    }


def activation(low: int, high: int, function: int = 0) -> Settings:
    """SET commands of the activation."""
    return {
        "SET_ACTIVATION": {"activation_function": function},
        "SET_ACTIVATION_MIN": {"clip_boundary": low},
        "SET_ACTIVATION_MAX": {"clip_boundary": high},
    }


def window(height: int, width: int, **accumulators: int) -> Settings:
    """SET commands of a window with stride 1 and no padding; `accumulators` are of ACC_FORMAT."""
    sides = ("TOP", "LEFT", "BOTTOM", "RIGHT")
    return {f"SET_IFM_PAD_{side}": {"pad": 0} for side in sides} | {
        "SET_KERNEL_HEIGHT_M1": {"height": height},
        "SET_KERNEL_WIDTH_M1": {"width": width},
        "SET_KERNEL_STRIDE": {"stride_x": 1, "stride_y": 1},
        "SET_IFM_UPSCALE": {},
        "SET_ACC_FORMAT": accumulators,
    }


@dataclass(frozen=True)
class Assembler:
    """Makes programs for one accelerator."""

    arch: Arch
    hardware: HardwareId

    def __getitem__(self, name: str) -> Command:
        return instruction_set(self.arch)[name]

    def commands(self, settings: Settings, operation: str, **fields: int) -> list[Instruction]:
        """The settings, fields that are not given being 0 (no biased ones), then the operation."""
        made: list[Instruction] = []
        for name, values in settings.items():
            command = self[name]
            given = {field.name: values.get(field.name, 0) for field in command.fields}
            made.append(command(**given))
        return [*made, self[operation](**fields)]

    def program(
        self,
        made: Iterable[Instruction],
        inputs: Iterable[Tensor],
        output: Tensor,
        constants: npt.NDArray[np.uint8] | None = None,
    ) -> Program:
        """A program of commands and the OP_STOP behind them."""
        held = np.zeros(0, np.uint8) if constants is None else constants
        return Program(
            words=encode([*made, self["OP_STOP"](mask=0xFFFF)], self.arch),
            hardware=self.hardware,
            region_bytes={0: len(held), 1: SCRATCH_BYTES},
            constants={0: held},
            inputs=tuple(
                TensorAddress(f"input {offset}", shape, np.dtype(dtype), 1, offset)
                for (shape, dtype), offset in zip(inputs, (IFM, IFM2), strict=False)
            ),
            outputs=(TensorAddress("output", output[0], np.dtype(output[1]), 1, OFM),),
        )


U55_128 = Assembler(Arch.U55, HardwareId(config_word=0x0000_1807, id_word=0x1010_0000))
U85_256 = Assembler(Arch.U85, HardwareId(config_word=0x2000_0118, id_word=0x2000_7000))
