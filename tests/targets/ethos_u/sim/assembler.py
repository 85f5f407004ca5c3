"""Small programs from commands, for tests of single operations."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.commands import Arch, Instruction, encode, instruction_set
from mizzen.targets.ethos_u.program import HardwareId, Placement, Program

Fields = dict[str, int]
Settings = dict[str, Fields]

U55_128 = HardwareId(config_word=0x0000_1807, id_word=0x1010_0000)
U55 = instruction_set(Arch.U55)
INPUT_OFFSET, INPUT2_OFFSET, OUTPUT_OFFSET = 0, 0x1000, 0x2000
SCRATCH_BYTES = 0x3000

PRECISION = {1: 0, 2: 1, 4: 2}


def feature_map(
    prefix: str, shape: tuple[int, int, int], dtype: npt.DTypeLike, offset: int, **more: int
) -> Settings:
    """SET commands of a dense NHWC map `[H, W, C]` at `offset` of the scratch region."""
    type_ = np.dtype(dtype)
    height, width, depth = shape
    size = type_.itemsize
    precision: Fields = {
        "activation_type": int(type_.kind == "i"),
        "activation_precision": PRECISION[size],
        "activation_format": 0,
    }
    if prefix != "IFM2":
        precision["round_mode"] = more.get("round_mode", 0)
        precision["scale_mode"] = more.get("scale_mode", int(prefix == "OFM"))
    settings: Settings = {
        f"SET_{prefix}_REGION": {"region": 1},
        f"SET_{prefix}_PRECISION": precision,
        f"SET_{prefix}_ZERO_POINT": {"zero_point": more.get("zero_point", 0)},
        f"SET_{prefix}_HEIGHT0_M1": {"height": height},
        f"SET_{prefix}_HEIGHT1_M1": {"height": height},
        f"SET_{prefix}_WIDTH0_M1": {"width": width},
        f"SET_{prefix}_STRIDE_X": {"stride": depth * size},
        f"SET_{prefix}_STRIDE_Y": {"stride": width * depth * size},
        f"SET_{prefix}_STRIDE_C": {"stride": size},
    }
    for tile in range(4):
        settings[f"SET_{prefix}_BASE{tile}"] = {"address": offset if tile == 0 else 0}
    if prefix == "OFM":
        settings |= {
            "SET_OFM_HEIGHT_M1": {"height": height},
            "SET_OFM_WIDTH_M1": {"width": width},
            "SET_OFM_DEPTH_M1": {"depth": depth},
        }
    return settings


def activation(low: int, high: int, function: int = 0, clip_range: int = 0) -> Settings:
    """SET commands of the activation."""
    return {
        "SET_ACTIVATION": {"activation_function": function, "activation_clip_range": clip_range},
        "SET_ACTIVATION_MIN": {"clip_boundary": low},
        "SET_ACTIVATION_MAX": {"clip_boundary": high},
    }


def kernel(height: int, width: int, pad: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Settings:
    """SET commands of a window with stride 1; `pad` is top, left, bottom, right."""
    names = ("TOP", "LEFT", "BOTTOM", "RIGHT")
    settings: Settings = {
        f"SET_IFM_PAD_{name}": {"pad": value} for name, value in zip(names, pad, strict=True)
    }
    stride = {
        "stride_x": 1,
        "stride_y": 1,
        "weight_order": 0,
        "dilation_x": 0,
        "dilation_y": 0,
        "decomposition": 0,
    }
    return settings | {
        "SET_KERNEL_HEIGHT_M1": {"height": height},
        "SET_KERNEL_WIDTH_M1": {"width": width},
        "SET_KERNEL_STRIDE": stride,
        "SET_IFM_UPSCALE": {"mode": 0},
        "SET_ACC_FORMAT": {"acc_format": 0},
    }


def instructions(settings: Settings, operation: str, **fields: int) -> list[Instruction]:
    """The settings, fields that are not given being 0 (never a biased one), then the operation."""
    made: list[Instruction] = []
    for name, values in settings.items():
        command = U55[name]
        made.append(command(**{field.name: values.get(field.name, 0) for field in command.fields}))
    return [*made, U55[operation](**fields)]


def program(
    commands: Iterable[Instruction],
    inputs: Iterable[tuple[tuple[int, ...], npt.DTypeLike]],
    output: tuple[tuple[int, ...], npt.DTypeLike],
    constants: npt.NDArray[np.uint8] | None = None,
    hardware: HardwareId | None = U55_128,
    *,
    stop: bool = True,
) -> Program:
    """A program over a scratch region: inputs at 0 and 0x1000, the output at 0x2000."""
    made = [*commands, U55["OP_STOP"](mask=0xFFFF)] if stop else [*commands]
    places = zip(inputs, (INPUT_OFFSET, INPUT2_OFFSET), strict=False)
    return Program(
        words=encode(made, Arch.U55),
        hardware=hardware,
        region_bytes={0: 0 if constants is None else len(constants), 1: SCRATCH_BYTES},
        constants={0: np.zeros(0, np.uint8) if constants is None else constants},
        inputs=tuple(
            Placement(f"input {offset}", shape, np.dtype(dtype), 1, offset)
            for (shape, dtype), offset in places
        ),
        outputs=(Placement("output", output[0], np.dtype(output[1]), 1, OUTPUT_OFFSET),),
    )
