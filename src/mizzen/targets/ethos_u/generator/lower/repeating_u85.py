"""Values many times over on U85, where each time is too often for a copy: axis by axis."""

from __future__ import annotations

from math import prod

from mizzen.ops.data_layout import Tile
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node
from mizzen.targets.ethos_u.generator.lower.finish import numbers
from mizzen.targets.ethos_u.generator.lower.movement import MOST_COPIES
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule_u85
from mizzen.targets.ethos_u.generator.lower.refusing import need


@rule_u85(Tile)
def repeated(site: Site) -> Node:
    """A value repeated along one axis, what comes of that along the next, and so on."""
    operation = site.operation
    assert isinstance(operation, Tile)
    source = operation.operand
    counts: list[int] = numbers(operation.multiples).tolist()
    times = [(axis, count) for axis, count in reversed(list(enumerate(counts))) if count > 1]
    need(prod(counts) > MOST_COPIES, "each time is a copy")
    copies = sum(count for _, count in times)
    need(copies <= MOST_COPIES, f"it repeats {prod(counts)} times")
    need(not site.steps, "its result is only moved")

    def emit(emitter: Emitter) -> None:
        place, view = emitter.target(site.value), emitter.read(source)
        dtype = emitter.tensors[view.tensor].dtype
        for axis, count in times:
            extent = view.shape[axis]
            shape = tuple(
                count * size if at == axis else size for at, size in enumerate(view.shape)
            )
            made = place if axis == times[-1][0] else emitter.tensor("repeated", shape, dtype)
            for index in range(count):
                emitter.copy(view, made.part(axis, index * extent, extent), site.origin)
            view = made

    return Node(site.value, (source,), (operation,), emit)
