"""Which elements each worker executes."""

from __future__ import annotations

from itertools import accumulate

from mizzen.mesh.machine import Work, WorkKind
from mizzen.mesh.program import Compute, ElementProgram, MeshProgram

TILE_NS, INSTRUCTION_NS, OUTPUT_NS, OPERAND_NS = 30_000, 1_000, 5, 1
"""What it costs to evaluate a tile, whatever it computes; another instruction; an element that a
tile gives; one that goes into its sums. Measured on a batch of eight images, for each of them."""

MACS_PER_NS = {WorkKind.CONVOLUTION: 20, WorkKind.DEPTHWISE: 2}
"""Products that matrix products, and sums tap by tap, make in a nanosecond."""


def divide(program: MeshProgram, workers: int) -> tuple[tuple[int, ...], ...]:
    """Return the elements of each of so many parts, of about the same work; none is empty.

    Elements are taken by replicas and in the order of layers, so that few messages go between
    parts: those of a replica that is divided work on different images at the same time.
    """
    workers = max(workers, 1)
    elements = sorted(program.elements, key=_place)
    total = list(accumulate((_cost(each) for each in elements), initial=0))
    parts: list[list[int]] = [[] for _ in range(workers)]
    for element, before, after in zip(elements, total, total[1:], strict=False):
        middle = (before + after) / 2 / max(total[-1], 1)
        parts[min(int(middle * workers), workers - 1)].append(element.element)
    return tuple(tuple(part) for part in parts if part)


def _place(element: ElementProgram) -> tuple[int, int, int]:
    layers = [each.kernel.layer for each in element.instructions if isinstance(each, Compute)]
    return element.replica, min(layers, default=0), element.element


def _cost(element: ElementProgram) -> int:
    """Return about how many nanoseconds an image takes."""
    computed = [each.work for each in element.instructions if isinstance(each, Compute)]
    return INSTRUCTION_NS * len(element.instructions) + sum(map(_tile_cost, computed))


def _tile_cost(work: Work) -> int:
    products = work.macs // MACS_PER_NS.get(work.kind, 1)
    summed = OPERAND_NS * work.pixels * work.taps
    return TILE_NS + OUTPUT_NS * work.pixels * work.channels + summed + products
