"""The constants of a program as its passes take them, and the numbers that its commands hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.isa.numbers import numbers_of
from mizzen.targets.ethos_n.commands import offsets
from mizzen.targets.ethos_n.program import Program
from mizzen.targets.ethos_n.sim.execution_plan import Plan

Array = npt.NDArray[Any]

SETTINGS = "settings"
PLACES = frozenset(
    f"{record}.{name}"
    for record, names in {
        "TensorRecord": "format supertensor_shape supertensor_offset stripe_shape tile_bytes "
        "dram_buffer_id sram_offset_bytes location",
        "MceRecord": "output_stripe_shape algorithm",
        "PleRecord": "ce_sram ple_sram",
        "McePle": "weights weight_metadata_buffer_id strategy block_config",
        "PleOnly": "strategy",
        "SpaceToDepth": "used_emcs intermediate0_bytes intermediate1_bytes",
    }.items()
    for name in names.split()
)
"""What of commands says where things lie and how they are cut."""


def constants_of(program: Program, plan: Plan) -> dict[int, dict[str, Array]]:
    """Return constants by their names, of passes by the byte offset of their commands.

    Those of weights are as `DecodedWeights` has them; `settings` are what commands compute with.
    """
    pairs = zip(offsets(program.commands), program.commands, strict=True)
    return {offset: dict(_held(plan, offset, command)) for offset, command in pairs}


def _held(plan: Plan, offset: int, command: object) -> Iterator[tuple[str, Array]]:
    decoded = plan.weights.get(offset)
    if decoded is not None:
        yield "weights", decoded.weights
        yield "biases", decoded.bias
        yield "multipliers", decoded.multipliers
        yield "shifts", decoded.shifts
    yield SETTINGS, np.array([*numbers_of(command, (), PLACES)], np.int64)
