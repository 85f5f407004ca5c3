"""Streams of what only U85 does: chains, results in another order, its own operations."""

from __future__ import annotations

import pytest

from mizzen.targets.ethos_u.generator.arrange.chains import chained
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import Chain
from mizzen.targets.ethos_u.generator.shared_buffer import ARRAYS
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

from .chained_networks import chainable
from .chance_schedules import by_chance
from .program_judges import blockdeps, greatest_blockdeps, needless_waits, require_right


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ARRAYS)
def test_chains_by_chance(name: str, seed: int) -> None:
    sequence, accelerator = chained(chainable(seed)), ACCELERATORS[name]
    program = emit(by_chance(sequence, accelerator, seed), accelerator)
    require_right(program, sequence, accelerator)
    if not any(isinstance(operation, Chain) for operation in sequence.operations):
        assert blockdeps(program)[1:] == greatest_blockdeps(program, accelerator)[1:]
        assert needless_waits(program, accelerator) == []
