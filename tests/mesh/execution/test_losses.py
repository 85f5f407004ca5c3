"""A chip is lost while images are under way: what was on it is mapped anew, and results stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
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
from mizzen.mesh.machine import Machine, find_machine, without
from mizzen.mesh.mapping import Mapping, map_network
from mizzen.mesh.network import network_of_tflite
from mizzen.mesh.program import MeshProgram, Rule, check, surviving

Made = dict[str, Callable[[], Mapping]]
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


@pytest.mark.sweep
def test_the_search_maps_what_was_lost_onto_the_rest(models: Path) -> None:
    content = (models / "pretrainedResnet_quant.tflite").read_bytes()
    network = network_of_tflite(content, "resnet8")
    program = emit(map_network(network, find_machine("spinnaker2-48")))
    shape = (160, *network.tensors[network.inputs[0]].shape)
    given = np.random.default_rng(2).integers(-128, 128, shape).astype(np.int8)

    def remap(machine: Machine) -> MeshProgram:
        left = emit(map_network(network, machine))
        assert check(left) == ()
        assert not any(machine.element_chip[row.element] == 5 for row in left.elements)
        return left

    found = execute_through(Loss(5, 60), program, [given], remap, images_at_once=1)
    assert 0 < len(found.repeated) < 160
    assert np.array_equal(found.outputs[0], reference(network, [given])[network.outputs[0]])


@pytest.mark.sweep
def test_the_replicas_that_are_left_go_on_on_the_board(models: Path) -> None:
    content = (models / "pretrainedResnet_quant.tflite").read_bytes()
    network = network_of_tflite(content, "resnet8")
    program = emit(map_network(network, find_machine("spinnaker2-48")))
    shape = (160, *network.tensors[network.inputs[0]].shape)
    given = np.random.default_rng(2).integers(-128, 128, shape).astype(np.int8)

    def remap(machine: Machine) -> MeshProgram:
        left = surviving(program, machine)
        assert check(left) == ()
        assert program.replicas // 2 < left.replicas < program.replicas
        return left

    found = execute_through(Loss(5, 60), program, [given], remap, images_at_once=1)
    assert 0 < len(found.repeated) < 160
    assert np.array_equal(found.outputs[0], reference(network, [given])[network.outputs[0]])


def test_whole_replicas_survive_and_are_numbered_anew(by_hand: Made) -> None:
    program = emit(by_hand["replicas"]())
    left = surviving(program, without(program.machine, [1]))
    assert check(left) == ()
    assert left.replicas == 2
    assert {row.element % 4 for row in left.elements} == {0, 2}
    given = [np.random.default_rng(3).integers(-128, 128, (9, 1, 6, 6, 3)).astype(np.int8)]
    found, expected = (execute(row, given).outputs for row in (left, program))
    assert np.array_equal(found[0], expected[0])
    cut = next(link for route in left.routes for link in route.links)
    assert surviving(program, without(program.machine, [1], [cut])).replicas == 1


def test_where_no_replica_is_whole_the_network_is_mapped_again(by_hand: Made) -> None:
    program = emit(by_hand["residual"]())
    with pytest.raises(MizzenError) as error:
        surviving(program, without(program.machine, [4]))
    assert str(error.value) == (
        "error[E544]: a replica of hand must lie on working elements and links, and none of 1 "
        "does\n  help map the network again, on the machine as it is"
    )


def test_a_chip_that_is_lost_later_changes_nothing(on_chips: OnChips) -> None:
    program = emit(on_chips(find_machine("spinnaker2-48"), [0, 1]))
    given = images(9)

    def remap(machine: Machine) -> MeshProgram:
        raise AssertionError

    found = execute_through(Loss(1, 9), program, given, remap)
    assert found.repeated == ()
    assert np.array_equal(found.outputs[0], execute(program, given).outputs[0])
