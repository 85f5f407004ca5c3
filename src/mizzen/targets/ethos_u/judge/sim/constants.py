"""The constants of a program as its operations take them, whatever streams they are packed into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.isa.numbers import numbers_of
from mizzen.targets.ethos_u.judge.sim.makers import makers_of, operands_of
from mizzen.targets.ethos_u.judge.sim.memory import pieces
from mizzen.targets.ethos_u.judge.sim.operations import (
    Dma,
    FeatureMap,
    Stream,
    Where,
)
from mizzen.targets.ethos_u.judge.sim.plan import Plan, Step
from mizzen.targets.ethos_u.judge.sim.pooling_kernel import PoolingKernel
from mizzen.targets.ethos_u.judge.sim.scales import ChannelScales, RecordFormat
from mizzen.targets.ethos_u.judge.sim.weights import SplitLayout
from mizzen.targets.ethos_u.judge.sim.weights_u85 import LayoutU85
from mizzen.targets.ethos_u.machine.program import Program

Array = npt.NDArray[Any]

SETTINGS, OPERANDS = "settings", "operands"
APART = (Where, Stream, SplitLayout, LayoutU85, RecordFormat)
PLACES = frozenset(
    f"FeatureMap.{name}"
    for name in (
        "region", "bases", "height_0", "height_1", "width_0", "stride_y", "stride_x", "stride_c",
        "format", "tiling",
    )
)  # fmt: skip
"""What of a feature map says where it lies, and not what it is."""


def constants_of(program: Program, plan: Plan) -> dict[int, dict[str, Array]]:
    """Return constants by their names, of operations by the byte offset of their commands.

    `weights` are `[O, H, W, I]`, zero point taken off; `biases`, `multipliers` and `shifts` are by
    output channel; `table` is a function's; `maps` are the bytes of feature maps that lie among the
    constants; `settings` are the numbers that registers hold, without places and sizes of blocks;
    `operands` are digests of what made the bytes of each operand.
    """
    constants: dict[int, dict[str, Array]] = {}
    makers = dict(makers_of(program, plan))
    for step in plan.steps:
        offset = 4 * (step.operation.where.origin.command or 0)
        held = dict(_held(program, plan, step, offset))
        if offset in makers:
            held[OPERANDS] = makers[offset]
        if held:
            constants[offset] = held
    return constants


def _held(program: Program, plan: Plan, step: Step, offset: int) -> Iterator[tuple[str, Array]]:
    encoded = plan.encoded.get(offset)
    if encoded is not None:
        yield "weights", encoded.weights
        yield from _scales(encoded.scales)
    if isinstance(step.kernel, PoolingKernel) and step.kernel.scales is not None:
        yield from _scales(step.kernel.scales)
    table = plan.tables.get(offset)
    if table is not None:
        yield "table", table
    parts = [
        _bytes(program, fm) for fm in operands_of(step.operation) if fm.region in program.constants
    ]
    if parts:
        yield "maps", np.concatenate(parts)
    if not isinstance(step.operation, Dma):
        yield SETTINGS, np.array([*numbers_of(step.operation, APART, PLACES)], np.int64)


def _scales(scales: ChannelScales) -> Iterator[tuple[str, Array]]:
    yield "biases", scales.bias
    yield "multipliers", scales.multiplier
    yield "shifts", scales.shift


def _bytes(program: Program, fm: FeatureMap) -> Array:
    data = program.constants[fm.region]
    cells = [
        np.ndarray(piece.counts, f"V{piece.cell_bytes}", data.data, piece.offset, piece.strides)
        for piece in pieces(fm)
    ]
    return np.concatenate([np.frombuffer(cell.tobytes(), np.uint8) for cell in cells])
