"""Lifetimes of a sequence's tensors."""

from __future__ import annotations

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import Copy, Role, Sequence, Tensor


def tensor(name: str, role: Role) -> Tensor:
    return Tensor(name, (1, 1, 16), np.dtype(np.int8), role)


def test_tensors_live_from_their_first_to_their_last_use() -> None:
    roles = [Role.INPUT, Role.SCRATCH, Role.SCRATCH, Role.OUTPUT, Role.SCRATCH]
    tensors = tuple(tensor(f"t{index}", role) for index, role in enumerate(roles))
    copies = tuple(
        Copy(Origin(), source, 0, target, 0, 16)
        for source, target in [(0, 1), (1, 2), (1, 3), (2, 3)]
    )
    sequence = Sequence(tensors, copies, inputs=(0,), outputs=(3,))
    assert sequence.lifetimes() == [(0, 0), (0, 2), (1, 3), (2, 3), (0, -1)]


def test_states_live_to_the_end() -> None:
    """What a state holds after the last operation is what the next invocation begins with."""
    roles = [Role.STATE, Role.INPUT, Role.OUTPUT]
    tensors = tuple(tensor(f"t{index}", role) for index, role in enumerate(roles))
    copies = Copy(Origin(), 1, 0, 0, 0, 16), Copy(Origin(), 1, 0, 2, 0, 16)
    sequence = Sequence(tensors, copies, inputs=(0, 1), outputs=(2,))
    assert sequence.lifetimes() == [(0, 1), (0, 1), (1, 1)]
