"""Facts of operations of U85 against what is read from the streams that they become."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import Convolution, Copy, Issue, Sequence
from mizzen.targets.ethos_u.generator.schedule import plain
from mizzen.targets.ethos_u.generator.schedule.facts import Facts, Function, facts_of
from mizzen.targets.ethos_u.generator.shared_buffer import ARRAYS
from mizzen.targets.ethos_u.judge.timing import KernelWork
from mizzen.targets.ethos_u.judge.timing.work import work_of
from mizzen.targets.ethos_u.machine.system_config import resolve

from .networks import residual
from .vela_streams import facts_of_work


def with_sparse_weights(sequence: Sequence) -> Sequence:
    """Return a sequence of whose weights two of four input channels are zeros."""
    operations = tuple(
        replace(
            row, weights=row.weights * (np.arange(row.weights.shape[3]) % 4 < 2).astype(np.int16)
        )
        if isinstance(row, Convolution) and not row.depthwise
        else row
        for row in sequence.operations
    )
    return replace(sequence, operations=operations)


def of_array(facts: Facts) -> Facts:
    """Return facts without modes and activations, which have other names in streams."""
    return replace(
        facts, mode="", function=Function.NONE, simple=False, reserves_second=False, slab=0
    )


@pytest.mark.parametrize("accelerator", ARRAYS)
@pytest.mark.parametrize("sparse", [False, True])
def test_facts_are_those_of_the_stream(accelerator: str, sparse: bool) -> None:
    configuration = resolve(accelerator)
    sequence = with_sparse_weights(residual()) if sparse else residual()
    schedule = plain(sequence, configuration)
    program = emit(schedule, configuration.accelerator)
    works = [
        row for row in work_of(program, configuration.accelerator) if isinstance(row, KernelWork)
    ]
    issues = [item for item in schedule.items if isinstance(item, Issue)]
    for item, work in zip(issues, works, strict=True):
        operation = sequence.operations[item.operation]
        assert not isinstance(operation, Copy)
        assert of_array(facts_of(operation, configuration.accelerator)) == of_array(
            facts_of_work(work)
        )
    assert sparse == any(work.sparse for work in works)
