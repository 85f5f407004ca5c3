"""Programs of mappings by hand, executed: every tensor is that of the whole network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mizzen.mesh.emission import emit
from mizzen.mesh.execution import InProcess, compare, execute, reference
from mizzen.mesh.mapping import Mapping


def images(count: int, shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(5).integers(-128, 128, (count, *shape)).astype(np.int8)


@pytest.mark.parametrize("parts", [1, 3])
def test_every_tensor_is_that_of_the_whole_network(hand_mapping: Mapping, parts: int) -> None:
    program = emit(hand_mapping)
    given = images(7, hand_mapping.network.tensors[0].shape)
    rows = compare(program, [given], InProcess(parts))
    assert [str(row) for row in rows if row.differing] == []
    assert len(rows) == len(hand_mapping.network.tensors)


def test_outputs_come_in_the_order_of_images_whatever_the_batches_are(
    by_hand: dict[str, Callable[[], Mapping]],
) -> None:
    mapping = by_hand["replicas"]()
    program = emit(mapping)
    given = images(11, (1, 6, 6, 3))
    expected = reference(mapping.network, [given])[2]
    assert len(np.unique(expected)) > 20, "a constant output says nothing"
    for images_at_once in (1, 2, 8):
        (found,) = execute(program, [given], images_at_once=images_at_once).outputs
        assert np.array_equal(found, expected)
