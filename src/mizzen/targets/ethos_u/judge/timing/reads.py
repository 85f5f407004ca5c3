"""Which bytes an operation moves over the buses: its blocks' parts of maps, and its constants.

Blocks are rectangles of a grid, so what all of them read of a map is a product of sums along the
axes; nothing here goes over every block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mizzen.targets.ethos_u.judge.hazards.blocks import (
    Blocks,
    Input,
    Pointwise,
    Sampled,
    Sliding,
    Whole,
)
from mizzen.targets.ethos_u.judge.hazards.maps import BRICK, Map, MemoryBlock
from mizzen.targets.ethos_u.judge.hazards.shared_buffer import SUBKERNEL
from mizzen.targets.ethos_u.judge.timing.work import KernelWork, WorkKind

Extents = list[tuple[int, int]]
"""First and one past the last position of each block along an axis."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes of a map that all blocks move, and those of the largest block.

    run_bytes    length of the runs that the largest block's lie in
    block_bytes  of the largest block
    """

    place: MemoryBlock
    bytes_: int
    block_bytes: int
    run_bytes: int


def reads_of(work: KernelWork, beat_bytes: int) -> Iterator[Moved]:
    """Return the bytes read of each input; beats of so many bytes are read whole."""
    for item in work.blocks.inputs:
        axes = [_extents(work.blocks, item, axis) for axis in range(3)]
        if work.is_u85:
            yield _reads_u85(work, item, axes, beat_bytes)
            continue
        times = len(work.subkernels)
        if times > 1 and isinstance(item.window, Sliding):
            axes[:2] = _in_parts(work, item.window, axes)
        yield _moved(item.map, axes, times, beat_bytes)


def _reads_u85(work: KernelWork, item: Input, axes: list[Extents], beat_bytes: int) -> Moved:
    """Return the bytes read of an input on U85, whose input memory keeps what it can.

    It takes the slabs of input channels back and forth, so that those that a block ends with are
    there when the next one in depth begins with them. Parts of a kernel read what is under all.
    """
    if isinstance(item.window, Whole):
        axes[2] = axes[2][:1]  # weights: each block in depth takes its own
    elif isinstance(item.window, Sliding) and item.window.every_channel and work.kept:
        whole = _moved(item.map, [*axes[:2], axes[2][:1]], 1, beat_bytes)
        axes[2] = _slabs_read(work, item)
        return replace(_moved(item.map, axes, 1, beat_bytes), block_bytes=whole.block_bytes)
    return _moved(item.map, axes, 1, beat_bytes)


def _slabs_read(work: KernelWork, item: Input) -> Extents:
    """Return the slabs of channels that are read for all blocks in depth at one place."""
    depth, slab = item.map.shape[2], item.slab or item.map.shape[2]
    slabs = [(low, min(low + slab, depth)) for low in range(0, depth, slab)]
    again, missing = work.blocks.counts[2] - 1, max(0, len(slabs) - work.kept)
    there, back = slabs[:missing], slabs[len(slabs) - missing :]
    return slabs + there * -(-again // 2) + back * (again // 2)


def write_of(work: KernelWork, beat_bytes: int) -> Moved | None:
    """Return the bytes written; None where nothing is."""
    result = work.blocks.result
    if result is None:
        return None
    order, counts = result.axes, work.blocks.counts
    axes: list[Extents] = []
    for axis in order:
        size, step = work.blocks.shape[axis], work.blocks.block[axis]
        axes.append([(at, min(size, at + step)) for at in range(0, counts[axis] * step, step)])
    return _moved(result.map, axes, 1, beat_bytes)


def _extents(blocks: Blocks, item: Input, axis: int) -> Extents:
    """Return the extents of an input that the blocks along one axis need."""
    size, step, extent = blocks.shape[axis], blocks.block[axis], item.map.shape[axis]
    edges = [(at, min(size, at + step)) for at in range(0, size, step)]
    match item.window:
        case Sliding(y, x) if axis < 2:
            along = x if axis else y
            return [along.range(start, stop, extent) for start, stop in edges]
        case Sliding(every_channel=True) | Whole():
            return [(0, extent)] * len(edges)
        case Sampled(y, x) if axis < 2:
            along = x if axis else y
            return [along.range(start, stop, extent) for start, stop in edges]
        case Pointwise() if extent == 1:
            return [(0, 1)] * len(edges)
        case _:
            return edges


def _in_parts(work: KernelWork, window: Sliding, axes: list[Extents]) -> list[Extents]:
    """Return the extents under a part of a kernel that is done in parts."""
    under: list[Extents] = []
    for axis, step, extents in zip((window.y, window.x), work.blocks.block, axes, strict=False):
        most = ((step - 1) * axis.stride + min(axis.extent, SUBKERNEL)) // axis.upscale
        under.append([(low, min(high, low + max(most, 1))) for low, high in extents])
    return under


def _moved(fm: Map, axes: list[Extents], times: int, beat_bytes: int) -> Moved:
    lines, columns, depths = axes
    size = fm.element_bytes
    height = [high - low for low, high in lines]
    if fm.bricks:
        deep = [(-(-high // BRICK) - low // BRICK) * BRICK * size for low, high in depths]
        width = [high - low for low, high in columns]
        total = sum(height) * sum(width) * sum(deep)
        block = max(height) * max(width) * max(deep)
        return Moved(fm.place, total * times, block * times, BRICK * size * max(width))
    channels = max(high - low for low, high in depths) * size
    dense = len(depths) == 1 or all(extent == depths[0] for extent in depths)
    if dense and abs(fm.stride_x) == channels:
        runs = [_beats((high - low) * channels, beat_bytes) for low, high in columns]
        total = sum(height) * sum(runs) * len(depths)
        return Moved(fm.place, total * times, max(height) * max(runs) * times, max(runs))
    width = [high - low for low, high in columns]
    pixels = [_beats((high - low) * size, beat_bytes) for low, high in depths]
    total = sum(height) * sum(width) * sum(pixels)
    block = max(height) * max(width) * max(pixels)
    return Moved(fm.place, total * times, block * times, max(pixels))


def _beats(length: int, beat_bytes: int) -> int:
    return -(-length // beat_bytes) * beat_bytes


def refetches(work: KernelWork) -> int:
    """Return how often weights and scales are read: once for each block in height and width."""
    if work.kind not in (WorkKind.CONVOLUTION, WorkKind.DEPTHWISE):
        return 1
    lines, columns, _ = work.blocks.counts
    return lines * columns
