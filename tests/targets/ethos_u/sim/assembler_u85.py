"""Small programs for Ethos-U85, for what no compiler's stream exercises.

Maps are dense NHWC in the scratch region: input at 0, second input at 0x1000, output at 0x2000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.commands import Arch, Instruction, encode, instruction_set
from mizzen.targets.ethos_u.program import HardwareId, Placement, Program
from mizzen.targets.ethos_u.sim import Outcome, Simulator

Array = npt.NDArray[Any]
Fields = dict[str, int]
Settings = dict[str, Fields]

U85_256 = HardwareId(config_word=0x2000_0118, id_word=0x2000_7000)
U85 = instruction_set(Arch.U85)
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
    """SET commands of the output: its shape before it is permuted, unscaled, not clipped."""
    height, width, depth = shape
    return feature_map("OFM", shape, dtype, OFM, **{"scale_mode": 1, **precision}) | {
        "SET_OFM_HEIGHT_M1": {"height": height},
        "SET_OFM_WIDTH_M1": {"width": width},
        "SET_OFM_DEPTH_M1": {"depth": depth},
        "SET_OFM_BLK_HEIGHT_M1": {"height": 16},
        "SET_OFM_BLK_WIDTH_M1": {"width": 16},
        "SET_OFM_BLK_DEPTH_M1": {"depth": 16},
        "SET_OFM_SCALE": {"scale": 1},
        "SET_ACTIVATION": {"activation_clip_range": 1},
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


def commands(settings: Settings, operation: str, **fields: int) -> list[Instruction]:
    """The settings, fields that are not given being 0, then the operation."""
    made: list[Instruction] = []
    for name, values in settings.items():
        command = U85[name]
        made.append(command(**{field.name: values.get(field.name, 0) for field in command.fields}))
    return [*made, U85[operation](**fields)]


def program(
    made: Iterable[Instruction],
    inputs: Sequence[Array],
    output: tuple[tuple[int, ...], npt.DTypeLike],
    constants: npt.NDArray[np.uint8] | None = None,
) -> Program:
    """A program whose inputs are at IFM and IFM2, and whose output is at OFM."""
    held = np.zeros(0, np.uint8) if constants is None else constants
    return Program(
        words=encode([*made, U85["OP_STOP"](mask=0xFFFF)], Arch.U85),
        hardware=U85_256,
        region_bytes={0: len(held), 1: SCRATCH_BYTES},
        constants={0: held},
        inputs=tuple(
            Placement(f"input {offset}", x.shape, x.dtype, 1, offset)
            for x, offset in zip(inputs, (IFM, IFM2), strict=False)
        ),
        outputs=(Placement("output", output[0], np.dtype(output[1]), 1, OFM),),
    )


def run(
    made: Iterable[Instruction],
    inputs: Sequence[Array],
    output: tuple[tuple[int, ...], npt.DTypeLike],
    constants: npt.NDArray[np.uint8] | None = None,
) -> tuple[Array, list[str]]:
    """Execute; gives the output and the codes of the notes."""
    simulator = Simulator(program(made, inputs, output, constants))
    outcome: Outcome = simulator.run([x[None] for x in inputs], 1)
    return outcome.outputs[0][0], [row.code for row in outcome.diagnostics]
