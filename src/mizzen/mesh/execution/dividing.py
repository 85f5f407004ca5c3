"""Which elements each worker executes."""

from __future__ import annotations

from itertools import accumulate

from mizzen.mesh.program import Compute, ElementProgram, MeshProgram

TILE_COST = 20_000
"""What evaluating a tile costs besides its products, in multiply-accumulates."""


def divide(program: MeshProgram, workers: int) -> tuple[tuple[int, ...], ...]:
    """Return the elements of each of so many parts, of about the same work; none is empty.

    Elements are taken by replicas and in the order of layers, so that few messages go between
    parts: those of a replica that is divided work on different images at the same time.
    """
    rows = sorted(program.elements, key=_place)
    total = list(accumulate((_cost(row) for row in rows), initial=0))
    parts: list[list[int]] = [[] for _ in range(workers)]
    for row, before, after in zip(rows, total, total[1:], strict=False):
        middle = (before + after) / 2 / max(total[-1], 1)
        parts[min(int(middle * workers), workers - 1)].append(row.element)
    return tuple(tuple(part) for part in parts if part)


def _place(row: ElementProgram) -> tuple[int, int, int]:
    layers = [each.kernel.layer for each in row.instructions if isinstance(each, Compute)]
    return row.replica, min(layers, default=0), row.element


def _cost(row: ElementProgram) -> int:
    computed = [each.work for each in row.instructions if isinstance(each, Compute)]
    return sum(work.macs + work.pixels * work.channels * work.taps + TILE_COST for work in computed)
