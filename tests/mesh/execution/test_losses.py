"""A chip is lost while images are under way: what was on it is mapped anew, and results stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mizzen.mesh.emission import emit
from mizzen.mesh.execution import (
    Engine,
    InProcess,
    Loss,
    Processes,
    execute,
    execute_through,
    reference,
)
from mizzen.mesh.machine import Machine, find_machine
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.program import MeshProgram, Rule, check

OnChips = Callable[[Machine, Sequence[int]], Mapping]


def images(count: int) -> list[Any]:
    return [np.random.default_rng(7).integers(-128, 128, (count, 1, 6, 6, 3)).astype(np.int8)]


@pytest.mark.parametrize("engine", [InProcess(1), InProcess(3), Processes(2)])
def test_the_rest_is_executed_without_the_chip(engine: Engine, on_chips: OnChips) -> None:
    board = find_machine("spinnaker2-48")
    program = emit(on_chips(board, [0, 1, 8]))
    given = images(50)
    asked: list[MeshProgram] = []

    def remap(machine: Machine) -> MeshProgram:
        assert not check(program)
        on_the_rest = check(replace(program, machine=machine))
        assert {row.rule for row in on_the_rest} == {Rule.ELEMENTS, Rule.ROUTES}
        asked.append(emit(on_chips(machine, [0, 2, 8])))
        assert check(asked[0]) == ()
        return asked[0]

    found = execute_through(Loss(1, 30), program, given, remap, engine)
    assert found.repeated[0] <= 30, "the batch of image 30 is executed again, whole"
    assert found.repeated == tuple(range(24, 50))
    assert len(asked) == 1
    assert np.array_equal(found.outputs[0], reference(program.network, given)[2])


def test_a_chip_that_is_lost_later_changes_nothing(on_chips: OnChips) -> None:
    program = emit(on_chips(find_machine("spinnaker2-48"), [0, 1]))
    given = images(9)

    def remap(machine: Machine) -> MeshProgram:
        raise AssertionError

    found = execute_through(Loss(1, 9), program, given, remap)
    assert found.repeated == ()
    assert np.array_equal(found.outputs[0], execute(program, given).outputs[0])
