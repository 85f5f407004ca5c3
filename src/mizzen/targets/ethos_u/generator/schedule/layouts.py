"""Which layout each free tensor has, chosen with the operations beside it."""

from __future__ import annotations

from mizzen.targets.ethos_u.generator.operations import BRICK
from mizzen.targets.ethos_u.generator.schedule.storage import Storage, free_tensors
from mizzen.targets.ethos_u.generator.schedule.units import Costs
from mizzen.targets.ethos_u.generator.tuned import LAYOUT_PASSES
from mizzen.targets.ethos_u.machine.commands_values import Layout

WIDEST_ROW_MAJOR = 2 * BRICK
"""Whole bricks of more channels than this lose nothing to a row-major map."""


def choose_layouts(storage: Storage, costs: Costs, cycles_per_byte: float = 0.0) -> Storage:
    """Return a storage in which no other layout of one tensor alone saves cycles.

    cycles_per_byte  that a byte of a tensor is worth, where memory is short
    """
    free = [
        tensor
        for tensor, is_free in enumerate(free_tensors(costs.sequence))
        if is_free and costs.users(tensor) and _matters(storage, tensor)
    ]
    for _ in range(LAYOUT_PASSES):
        before = storage.layouts
        for tensor in free:
            storage = min(
                (storage.with_layout(tensor, layout) for layout in Layout),
                key=lambda trial: (
                    costs.staged_cycles(trial, costs.users(tensor))
                    + cycles_per_byte * trial.size_bytes(tensor),
                    trial.size_bytes(tensor),
                    trial.layouts[tensor] != before[tensor],
                ),
            )
        if storage.layouts == before:
            break
    return storage


def _matters(storage: Storage, tensor: int) -> bool:
    depth = storage.sequence.tensors[tensor].shape[2]
    return depth % BRICK != 0 or depth <= WIDEST_ROW_MAJOR
