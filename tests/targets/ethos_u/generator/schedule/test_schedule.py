"""The schedule with search."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.arrange import chained
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import (
    Chain,
    Convolution,
    Copy,
    Fetch,
    Issue,
    Kernel,
    Role,
    Schedule,
)
from mizzen.targets.ethos_u.generator.schedule import Limits, schedule
from mizzen.targets.ethos_u.generator.shared_buffer import ARRAYS, CORES, demand_of, parts_of
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode
from mizzen.targets.ethos_u.machine.program import RegionIndex
from mizzen.targets.ethos_u.machine.system_config import resolve

from ..chained_networks import chainable  # noqa: TID252 tests are no package with a name
from ..program_judges import require_right  # noqa: TID252
from ..sequences import Network  # noqa: TID252
from .networks import overlaps, residual

SAME_3X3 = Kernel(3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)

MAPS_BYTES = 8 * 8 * (24 + 24 + 16)
"""The largest maps that are there at once."""


def fetched_before_use(found: Schedule) -> None:
    """Hold a schedule to that all bytes of a staged blob are there when it is used."""
    there: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for item in found.items:
        match item:
            case Fetch():
                there[item.staging, item.blob] |= set(range(item.start, item.stop))
            case Issue(staging=int() as staging, blob=int() as blob):
                assert there[staging, blob] == set(range(len(found.blobs[blob].data)))
            case Issue():
                pass


@pytest.mark.parametrize(
    "name", ["ethos-u55-32", "ethos-u55-128", "ethos-u55-256", "ethos-u65-512"]
)
@pytest.mark.parametrize("limit_bytes", [None, 20_000, MAPS_BYTES])
def test_schedules_are_whole_and_keep_their_limit(name: str, limit_bytes: int | None) -> None:
    configuration = resolve(name)
    core = CORES[configuration.accelerator.name]
    found = schedule(residual(), configuration, Limits(limit_bytes, limit_bytes))
    assert overlaps(found) == []
    fetched_before_use(found)
    if limit_bytes is not None:
        assert found.region_bytes[max(found.region_bytes)] <= max(limit_bytes, MAPS_BYTES)
    done: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for item in found.items:
        if isinstance(item, Issue):
            operation = found.sequence.operations[item.operation]
            if isinstance(operation, Copy | Chain):
                continue
            assert item.blocking is not None
            block, part_kernel = item.blocking.block, item.blocking.part_kernel
            assert parts_of(demand_of(operation), block, part_kernel, core) is not None
            done[item.operation].append(item.channels or (0, operation.ofm.shape[2]))
            assert (item.blob is None) == (not isinstance(operation, Convolution))
    for index, ranges in done.items():
        operation = found.sequence.operations[index]
        assert not isinstance(operation, Copy)
        assert sorted(row for start, stop in ranges for row in range(start, stop)) == list(
            range(operation.ofm.shape[2])
        )


def test_the_same_is_found_again() -> None:
    configuration = resolve("ethos-u55-128")
    first, second = (schedule(residual(), configuration, Limits(9000)) for _ in range(2))
    assert first.items == second.items
    assert first.places == second.places


def test_no_fast_memory_is_a_limit_too() -> None:
    configuration = resolve("ethos-u65-512")
    fast = int(RegionIndex.SCRATCH_FAST)
    assert schedule(residual(), configuration).region_bytes.get(fast, 0) > 0
    found = schedule(residual(), configuration, Limits(fast_bytes=0))
    assert found.region_bytes.get(fast, 0) == 0
    assert overlaps(found) == []


@pytest.mark.parametrize("seed", range(4))
def test_maps_in_the_arena_lie_over_others_as_the_blocks_that_are_taken_permit(seed: int) -> None:
    configuration = resolve("ethos-u65-512")
    network = Network(seed)
    last = source = network.tensor((24, 24, 16), Role.INPUT)
    for channels in (96, 24 + 8 * seed, 160, 48):
        last = network.convolution(last, channels, Kernel())
        last = network.convolution(last, channels, SAME_3X3, depthwise=True)
    sequence = network.sequence((source,), (last,))
    found = schedule(sequence, configuration, Limits(fast_bytes=0))
    assert len(emit(found, configuration.accelerator).words) > 0


def test_the_last_line_of_memory_counts_as_far_as_something_lies_in_it() -> None:
    """Transfers of U55 touch all of it: where there are any, it is there."""
    accelerator = "ethos-u55-128"
    pooled, copied = Network(), Network()
    for net in (pooled, copied):
        net.tensor((1, 1, 40), Role.INPUT)
        net.tensor((1, 1, 40), Role.OUTPUT)
    copied.operations.append(Copy(Origin(), 0, 0, 1, 0, 40))
    pooled.pool(pooled.whole(0), PoolingMode.MAX, Kernel())
    pooled.operations[-1] = replace(pooled.operations[-1], ofm=pooled.whole(1))
    for net, size_bytes in ((pooled, 40), (copied, 96)):
        made = schedule(net.sequence((0,), (1,)), resolve(accelerator))
        assert made.region_bytes == {int(RegionIndex.SCRATCH): size_bytes}
        assert not find_hazards(emit(made, resolve(accelerator).accelerator)).findings


@pytest.mark.parametrize("system", ["Ethos_U85_SYS_DRAM_Mid", "Ethos_U85_SYS_Flash_High"])
@pytest.mark.parametrize("name", ARRAYS)
def test_chains_are_scheduled_as_one(name: str, system: str) -> None:
    """What they hand on has no place; constants of their first links are fetched like others."""
    mode = "Shared_Sram" if "Flash" in system else "Sram_Only"
    configuration = resolve(name, system_config=system, memory_mode=mode)
    for seed in range(30, 34):
        sequence = chained(chainable(seed))
        found = schedule(sequence, configuration)
        inside = {
            tensor
            for operation in sequence.operations
            if isinstance(operation, Chain)
            for tensor in operation.handed_on
        }
        assert {tensor for tensor in inside if found.places[tensor]} == set()
        fetched_before_use(found)
        accelerator = configuration.accelerator
        require_right(emit(found, accelerator), sequence, accelerator)
