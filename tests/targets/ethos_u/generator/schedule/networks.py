"""A network by hand, and what must hold of any schedule."""

from __future__ import annotations

from mizzen.targets.ethos_u.generator.operations import Kernel, Role, Schedule, Sequence
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode

from ..sequences import Network  # noqa: TID252 tests are no package with a name

SAME = {"pad_top": 1, "pad_left": 1, "pad_bottom": 1, "pad_right": 1}


def residual() -> Sequence:
    """Return a network with a branch, a sum and a pool."""
    network = Network()
    image = network.tensor((16, 16, 3), Role.INPUT, layout=Layout.NHWC)
    first = network.convolution(image, 16, Kernel(3, 3, 2, 2, **SAME))
    wide = network.convolution(first, 24, Kernel())
    deep = network.convolution(wide, 24, Kernel(3, 3, **SAME), depthwise=True)
    pooled = network.pool(network.add(wide, deep), PoolingMode.MAX, Kernel(2, 2, 2, 2))
    last = network.convolution(pooled, 40, Kernel(3, 3, **SAME))
    return network.sequence((image,), (last,))


def overlaps(schedule: Schedule) -> list[tuple[int, int]]:
    """Return pairs of tensors that hold something at once in the same bytes.

    The output of an operation may lie where the operation reads an input for the last time.
    """
    lifetimes, found = schedule.sequence.lifetimes(), []
    rows = [
        (index, place.region, place.offset_bytes, place.offset_bytes + tensor.size_bytes(layout))
        for index, (place, tensor, layout) in enumerate(
            zip(schedule.places, schedule.sequence.tensors, schedule.layouts, strict=True)
        )
        if place is not None
    ]
    for one, region, start, end in rows:
        for other, memory, low, high in rows:
            if one >= other or region != memory:
                continue
            first, last = lifetimes[one]
            since, until = lifetimes[other]
            if start < high and low < end and first < until and since < last:
                found.append((one, other))
    return found
