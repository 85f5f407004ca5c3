"""What ways to split cost: as the machine's words for work and the rule of memory have it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from mizzen.mesh.machine import Overflow, cycles, find_machine
from mizzen.mesh.mapping.choosing import least_traffic
from mizzen.mesh.mapping.cutting import grown, repaired
from mizzen.mesh.mapping.depths import Buffering
from mizzen.mesh.mapping.options import SumSplit
from mizzen.mesh.mapping.splits import boxes_of, spans_of, sums_of
from mizzen.mesh.mapping.stages import problem_of
from mizzen.mesh.mapping.sum_ranges import SumRange
from mizzen.mesh.network.regions import work_of
from mizzen.mesh.network.shapes import mobilenet_v2, resnet50, transformer_block

MACHINES = ("spinnaker2-1", "simba36", "hetero")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("network", [mobilenet_v2(), transformer_block()], ids=lambda it: it.name)
def test_times_are_those_of_the_largest_tile(machine: str, network: object) -> None:
    from mizzen.mesh.network import Network

    assert isinstance(network, Network)
    board = find_machine(machine)
    problem = problem_of(network, board, (200,), Buffering.DOUBLE, SumSplit.ALLOWED)
    for layer, choices in list(zip(network.layers, problem.choices, strict=True))[::5]:
        for at, split in list(enumerate(choices.splits))[::7]:
            boxes = boxes_of(layer, network.tensors[layer.output].shape, split)
            largest = max(
                (
                    cycles(board.kinds[0], work_of(network, layer, box, span, split.sums - 1))
                    for box in boxes
                    for span in sums_of(layer, split)
                ),
                default=0,
            )
            expected = largest / board.kinds[0].clock_hz
            assert choices.seconds[0, at] >= expected * (1 - 1e-12)
            if len(boxes) == 1:
                assert choices.seconds[0, at] == pytest.approx(expected)


def test_parts_are_even_and_cover_the_axis() -> None:
    for extent, parts, group in ((7, 3, 1), (112, 8, 1), (1000, 7, 16), (5, 5, 1)):
        spans = spans_of(extent, parts, group)
        assert spans[0][0] == 0
        assert spans[-1][1] == extent
        assert all(one[1] == other[0] for one, other in itertools.pairwise(spans))
        assert max(b - a for a, b in spans) <= group * math.ceil(math.ceil(extent / group) / parts)


def test_no_choice_is_worse_than_another() -> None:
    network, machine = resnet50(), find_machine("spinnaker2-48")
    problem = problem_of(network, machine, (7104,), Buffering.DOUBLE, SumSplit.ALLOWED)
    for choices in problem.choices[::9]:
        rows = np.column_stack([choices.tiles, choices.seconds[0], choices.held, choices.traffic])
        for row in rows:
            as_good = (rows <= row).all(axis=1)
            assert as_good.sum() == 1


def test_saturating_sums_are_not_split_where_they_may_overflow() -> None:
    network, machine = resnet50(), find_machine("spinnaker2-48")
    kind = machine.kinds[0]
    assert kind.array is not None
    saturating = replace(kind, array=replace(kind.array, overflow=Overflow.SATURATE))
    deep = next(layer for layer in network.layers if layer.input_channels == 2048)
    shallow = next(layer for layer in network.layers if layer.input_channels == 64)
    assert SumRange(deep, (kind,)).may_be_cut
    assert not SumRange(deep, (saturating,)).may_be_cut
    assert SumRange(shallow, (saturating,)).may_be_cut


def test_parts_cut_by_metis_have_room() -> None:
    random = np.random.default_rng(1)
    weights: list[dict[int, int]] = [{} for _ in range(40)]
    for one, other, size in random.integers(0, 40, (200, 3)).tolist():
        if one != other:
            weights[one][other] = weights[other][one] = size + 1
    parts = repaired([0] * 30 + [1] * 10, weights, 4, 10)
    assert np.bincount(parts, minlength=4).tolist() == [10, 10, 10, 10]
    kept = repaired([seat // 10 for seat in range(40)], weights, 4, 10)
    assert kept == [seat // 10 for seat in range(40)]


def test_least_traffic_is_exact() -> None:
    random = np.random.default_rng(3)
    for _ in range(40):
        options = [
            (random.integers(1, 6, 4), random.integers(0, 50, 4), np.arange(4)) for _ in range(3)
        ]
        best = min(
            (
                sum(int(row[1][pick]) for row, pick in zip(options, picks, strict=True))
                for picks in np.ndindex(4, 4, 4)
                if sum(int(row[0][pick]) for row, pick in zip(options, picks, strict=True)) <= 9
            ),
            default=None,
        )
        if best is None:
            continue
        picks = least_traffic(options, 9)
        assert sum(int(row[1][pick]) for row, pick in zip(options, picks, strict=True)) == best
        assert sum(int(row[0][pick]) for row, pick in zip(options, picks, strict=True)) <= 9


def test_sums_out_of_range_are_cut_until_they_are_in_it() -> None:
    layer = next(layer for layer in resnet50().layers if layer.input_channels == 64)
    kind = find_machine("spinnaker2-48").kinds[0]
    limits = SumRange(layer, (kind,))
    limits.sums = np.full((5, 64), 1 << 18)
    assert not limits.holds(spans_of(64, 1, 16))
    assert not limits.holds(spans_of(64, 2, 16))
    assert limits.holds(spans_of(64, 4, 16))


def test_parts_that_are_grown_keep_what_belongs_together() -> None:
    """Two chains of four seats, with one thin edge between them: that is what is cut."""
    edges = [(0, 2, 9), (2, 4, 9), (4, 6, 9), (1, 3, 9), (3, 5, 9), (5, 7, 9), (6, 1, 1)]
    weights: list[dict[int, int]] = [{} for _ in range(8)]
    for one, other, size in edges:
        weights[one][other] = weights[other][one] = size
    assert grown(weights, 2) == [0, 1, 0, 1, 0, 1, 0, 1]
    assert sorted(grown(weights, 3)) == [0, 0, 0, 1, 1, 1, 2, 2]
