"""The schedule without search."""

from __future__ import annotations

import pytest

from mizzen.targets.ethos_u.generator.operations import Chain, Copy, Issue
from mizzen.targets.ethos_u.generator.schedule import plain
from mizzen.targets.ethos_u.generator.shared_buffer import CORES, demand_of, parts_of
from mizzen.targets.ethos_u.machine.system_config import resolve

from .networks import overlaps, residual


@pytest.mark.parametrize("name", ["ethos-u55-32", "ethos-u55-128", "ethos-u65-512"])
def test_every_operation_has_a_block_that_fits_and_tensors_do_not_overlap(name: str) -> None:
    configuration = resolve(name)
    core = CORES[name]
    found = plain(residual(), configuration)
    assert overlaps(found) == []
    assert len(found.items) == len(found.sequence.operations)
    for item in found.items:
        assert isinstance(item, Issue)
        operation = found.sequence.operations[item.operation]
        assert not isinstance(operation, Copy | Chain)
        assert item.blocking is not None
        block, part_kernel = item.blocking.block, item.blocking.part_kernel
        assert parts_of(demand_of(operation), block, part_kernel, core) is not None
    sizes = [
        t.size_bytes(lay) for t, lay in zip(found.sequence.tensors, found.layouts, strict=True)
    ]
    assert max(sizes) <= found.region_bytes[1] < sum(sizes)
