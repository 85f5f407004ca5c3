"""Memory as the NPU sees it, for a whole batch, and feature maps as arrays over it.

Each region of a batch is one array `[batch, size]`; a constant region is `[size]` and shared. A
feature map is cut into pieces of equal cells (runs of contiguous bytes), which NumPy moves as
opaque items: one strided copy per piece, whatever the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic, MizzenError, fail
from mizzen.targets.ethos_u.judge.sim.operations import (
    BRICK,
    HWC,
    FeatureMap,
    Format,
    Output,
    Tiling,
    Where,
)

Array = npt.NDArray[Any]

ALIGNMENT_BYTES = 64
"""Rows of a batch start aligned, so that typed views of aligned offsets are aligned."""


class Workspace:
    """Buffers that kernels share, one per use, grown on demand and never returned."""

    def __init__(self) -> None:
        self._buffers: dict[str, npt.NDArray[np.uint8]] = {}

    def take(self, use: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return the buffer for `use` as an array with undefined contents."""
        type_ = np.dtype(dtype)
        size = type_.itemsize
        for extent in shape:
            size *= extent
        buffer = self._buffers.get(use)
        if buffer is None or len(buffer) < size:
            buffer = self._buffers[use] = np.empty(size, np.uint8)
        return np.ndarray(shape, type_, buffer.data)


@dataclass(frozen=True, slots=True)
class Piece:
    """A rectangle of a feature map whose cells lie at constant strides.

    A cell holds `cell_bytes` contiguous bytes; `counts` cells along y, x and c lie `strides` bytes
    apart. `ys`, `xs`, `cs` select the same elements in a dense `[H, W, C]` array.
    """

    ys: slice
    xs: slice
    cs: slice
    offset: int
    cell_bytes: int
    counts: tuple[int, int, int]
    strides: tuple[int, int, int]

    @property
    def extent(self) -> tuple[int, int]:
        """First byte and one past the last byte that the piece touches."""
        spans = [(n - 1) * stride for n, stride in zip(self.counts, self.strides, strict=True)]
        low = self.offset + sum(span for span in spans if span < 0)
        high = self.offset + sum(span for span in spans if span > 0) + self.cell_bytes
        return low, high


def pieces(fm: FeatureMap) -> tuple[Piece, ...]:
    """Cut a feature map into tiles, and its bricks into whole ones and the last."""
    return _stacked(fm) if fm.tiling is Tiling.STACK else _quartered(fm)


def _stacked(fm: FeatureMap) -> tuple[Piece, ...]:
    parts: list[Piece] = []
    ends = [min(end, fm.height) for end in (fm.height_0, fm.height_1, fm.height)]
    start = 0
    for end, base in zip(ends, fm.bases, strict=False):
        if start < end:
            parts += _tile(fm, slice(start, end), slice(0, fm.width), base)
            start = end
    return tuple(parts)


def _quartered(fm: FeatureMap) -> tuple[Piece, ...]:
    parts: list[Piece] = []
    split = min(fm.width_0, fm.width)
    columns = [(0, split, fm.height_0, 0), (split, fm.width, fm.height_1, 1)]
    for x, x_end, height, tile in columns:
        lines = min(height, fm.height)
        for y, y_end, base in ((0, lines, fm.bases[tile]), (lines, fm.height, fm.bases[tile + 2])):
            if x < x_end and y < y_end:
                parts += _tile(fm, slice(y, y_end), slice(x, x_end), base)
    return tuple(parts)


def _tile(fm: FeatureMap, ys: slice, xs: slice, base: int) -> list[Piece]:
    size = fm.dtype.itemsize
    height, width = ys.stop - ys.start, xs.stop - xs.start
    if fm.format is Format.NHWC:
        counts, strides = (height, width, 1), (fm.stride_y, fm.stride_x, 0)
        return [Piece(ys, xs, slice(0, fm.depth), base, fm.depth * size, counts, strides)]
    whole = fm.depth // BRICK
    strides = (fm.stride_y, BRICK * size, fm.stride_c)
    parts: list[Piece] = []
    if whole:
        counts = (height, width, whole)
        parts.append(Piece(ys, xs, slice(0, whole * BRICK), base, BRICK * size, counts, strides))
    if rest := fm.depth - whole * BRICK:
        cs, counts = slice(whole * BRICK, fm.depth), (height, width, 1)
        offset = base + whole * fm.stride_c
        parts.append(Piece(ys, xs, cs, offset, rest * size, counts, strides))
    return parts


class OutsideRegionError(MizzenError):
    """E631, an access beyond its region: which one, and whether it would have written."""

    def __init__(self, diagnostic: Diagnostic, region: int, *, written: bool) -> None:
        super().__init__(diagnostic)
        self.region = region
        self.written = written


class Memory:
    """All regions of one batch; `constants` are shared by the whole batch and read-only.

    `held` are regions that lie in memory of somebody else's, `[batch, bytes]`.
    """

    def __init__(
        self,
        batch: int,
        sizes: dict[int, int],
        constants: dict[int, npt.NDArray[np.uint8]],
        held: Mapping[int, npt.NDArray[np.uint8]] | None = None,
    ) -> None:
        self.batch = batch
        self.constants = constants
        self._accumulators: npt.NDArray[np.int64] | None = None
        self.regions: dict[int, npt.NDArray[np.uint8]] = dict(held or {})
        for region, size in sizes.items():
            if region not in constants and region not in self.regions:
                room = -(-max(size, 1) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
                self.regions[region] = np.zeros((batch, room), np.uint8)

    def cells(self, region: int, piece: Piece) -> Array:
        """The piece as opaque cells `[batch, y, x, c]`, a view of memory."""
        buffer, stride = self._buffer(region)
        return np.ndarray(
            (self.batch, *piece.counts),
            np.dtype(f"V{piece.cell_bytes}"),
            buffer.data,
            piece.offset,
            (stride, *piece.strides),
        )

    def dense(self, fm: FeatureMap, piece: Piece) -> Array | None:
        """The map as a typed view `[batch, H, W, C]` with dense rows, if it lies so in memory."""
        size = fm.dtype.itemsize
        covers = piece.cell_bytes == fm.depth * size and piece.counts[0] == fm.height
        is_dense = piece.strides[1] == fm.depth * size or fm.width == 1
        if not (covers and is_dense and piece.counts[1] == fm.width):
            return None
        buffer, stride = self._buffer(fm.region)
        strides = (stride, fm.stride_y, fm.depth * size, size)
        shape = (self.batch, fm.height, fm.width, fm.depth)
        return np.ndarray(shape, fm.dtype, buffer.data, piece.offset, strides)

    def bytes(self, region: int, offset: int, length: int) -> npt.NDArray[np.uint8]:
        """Bytes of a region as `[batch, length]`, or `[length]` of a constant region."""
        if region in self.constants:
            return self.constants[region][offset : offset + length]
        return self.regions[region][:, offset : offset + length]

    def accumulators(self, shape: tuple[int, int, int]) -> npt.NDArray[np.int64]:
        """Sums that stay in the NPU between two operations, `[batch, *shape]`."""
        if self._accumulators is None or self._accumulators.shape[1:] != shape:
            self._accumulators = np.zeros((self.batch, *shape), np.int64)
        return self._accumulators

    def rows(self, region: int, offset: int, length: int, count: int, stride: int) -> Array:
        """Runs of bytes as `[batch, count, length]`, a view of memory."""
        buffer, image = self._buffer(region)
        shape, strides = (self.batch, count, length), (image, stride, 1)
        return np.ndarray(shape, np.uint8, buffer.data, offset, strides)

    def _buffer(self, region: int) -> tuple[npt.NDArray[np.uint8], int]:
        if region in self.constants:
            return self.constants[region], 0
        array = self.regions[region]
        return array, array.strides[0]


class MapView:
    """A feature map over a batch's memory, read and written as dense `[n, H, W, C]` arrays."""

    def __init__(self, fm: FeatureMap, memory: Memory, workspace: Workspace, use: str) -> None:
        self.shape = (fm.height, fm.width, fm.depth)
        self.dtype = fm.dtype
        self._workspace = workspace
        self._use = use
        self._pieces = [(piece, memory.cells(fm.region, piece)) for piece in pieces(fm)]
        self._dense = None
        if len(self._pieces) == 1:
            self._dense = memory.dense(fm, self._pieces[0][0])

    def load(self, start: int, stop: int) -> Array:
        """Return images `start:stop` as an array; it may be a view of memory, so do not write."""
        if self._dense is not None:
            return self._dense[start:stop]
        dense = self._compact(start, stop)
        for piece, cells in self._pieces:
            _as_cells(dense, piece)[...] = cells[start:stop]
        return dense

    def target(self, start: int, stop: int) -> Array:
        """Return the array to fill with images `start:stop` before `commit`."""
        return self._compact(start, stop) if self._dense is None else self._dense[start:stop]

    def commit(self, start: int, stop: int) -> None:
        """Move what was filled into `target` to memory."""
        if self._dense is not None:
            return
        dense = self._compact(start, stop)
        for piece, cells in self._pieces:
            cells[start:stop] = _as_cells(dense, piece)

    def _compact(self, start: int, stop: int) -> Array:
        return self._workspace.take(self._use, (stop - start, *self.shape), self.dtype)


class OutputView:
    """Where an operation's result goes: filled as `[n, H, W, C]`, written as the output says."""

    def __init__(self, output: Output, memory: Memory, workspace: Workspace) -> None:
        self.shape = output.shape
        self._view = MapView(output.fm, memory, workspace, "ofm")
        self._workspace = workspace
        self._dtype = output.fm.dtype
        self._axes = (0, *(axis + 1 for axis in output.axes))
        self._flip = [slice(None)] * 4
        if output.reversed is not None:
            self._flip[output.reversed + 1] = slice(None, None, -1)
        self._direct = output.axes == HWC and output.reversed is None

    def target(self, start: int, stop: int) -> Array:
        """Return the array to fill with images `start:stop` before `commit`."""
        if self._direct:
            return self._view.target(start, stop)
        return self._workspace.take("permuted", (stop - start, *self.shape), self._dtype)

    def commit(self, start: int, stop: int) -> None:
        """Move what was filled into `target` to memory."""
        if not self._direct:
            result = self.target(start, stop)[tuple(self._flip)]
            np.copyto(self._view.target(start, stop), result.transpose(self._axes))
        self._view.commit(start, stop)


def _as_cells(dense: Array, piece: Piece) -> Array:
    part = dense[:, piece.ys, piece.xs, piece.cs]
    return part.view(np.dtype(f"V{piece.cell_bytes}"))


class Layout:
    """Which regions there are and how large: every access is checked against it once.

    used  up to where accesses go, in bytes, by region
    """

    def __init__(self, sizes: dict[int, int], constants: frozenset[int]) -> None:
        self.sizes = sizes
        self.constants = constants
        self.used: dict[int, int] = {}

    def check_map(self, fm: FeatureMap, where: Where, *, written: bool = False) -> None:
        """Raise E631 or E632 unless every byte of `fm` lies in its region and may be accessed."""
        for piece in pieces(fm):
            low, high = piece.extent
            self.check_range(fm.region, low, high - low, where, written=written)

    def check_range(
        self, region: int, offset: int, length: int, where: Where, *, written: bool = False
    ) -> None:
        """Raise E631 for bytes outside the region, E632 for a write to constants."""
        if region not in self.sizes:
            error = fail(
                "E631",
                f"{where.name}: region {region} must exist; the program has {sorted(self.sizes)}",
                origin=where.origin,
            )
            raise OutsideRegionError(error.diagnostic, region, written=written)
        size = self.sizes[region]
        if offset < 0 or length < 0 or offset + length > size:
            error = fail(
                "E631",
                f"{where.name}: bytes {offset}..{offset + length} must lie in region {region}, "
                f"which has {size} bytes",
                origin=where.origin,
                help="the command stream is damaged or belongs to another artifact",
            )
            raise OutsideRegionError(error.diagnostic, region, written=written)
        if written and region in self.constants:
            raise fail(
                "E632",
                f"{where.name}: region {region} holds constants and must not be written",
                origin=where.origin,
                help="the command stream is damaged or belongs to another artifact",
            )
        self.used[region] = max(self.used.get(region, 0), offset + length)


Run = Callable[[], None]
"""A command bound to a batch's memory, ready to execute any number of times."""


Bytes = npt.NDArray[np.uint8]


class Writer(IntEnum):
    """Who wrote a byte; for each byte of memory one of these is held."""

    NOBODY = 0
    CONSTANT = 1
    COMPUTED = 2


class KnownBytes:
    """Shadow of all regions: which bytes are known, and what they are.

    A region may be said to be far larger than what is used of it: nothing of it is touched before
    it is needed, so that the system gives no memory for the rest.
    """

    def __init__(self, sizes: dict[int, int], constants: dict[int, Bytes]) -> None:
        self._bytes = {
            region: constants[region] if region in constants else np.zeros(size, np.uint8)
            for region, size in sizes.items()
        }
        self._origins = {
            region: np.broadcast_to(np.uint8(Writer.CONSTANT), size)
            if region in constants
            else np.zeros(size, np.uint8)
            for region, size in sizes.items()
        }

    def runs(self, region: int, used_bytes: int) -> Iterator[tuple[int, Bytes]]:
        """Return the known bytes at the start of a region, as offsets and bytes of each run."""
        is_known = self._origins[region][:used_bytes] == Writer.CONSTANT
        edges = np.flatnonzero(np.diff(is_known, prepend=False, append=False)).tolist()
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            yield start, self._bytes[region][start:end].copy()

    def read(self, region: int, offset: int, length: int) -> Bytes | None:
        """Return bytes of a region, or None if any of them depends on the input."""
        span = slice(offset, offset + length)
        is_known = (self._origins[region][span] == Writer.CONSTANT).all()
        return self._bytes[region][span] if is_known else None

    def is_written(self, region: int, offset: int, length: int) -> bool:
        """Tell whether operations or transfers before wrote each of some bytes."""
        return bool(self._origins[region][offset : offset + length].all())

    def write(self, region: int, offset: int, data: Bytes) -> None:
        """Note that these bytes are known from here on."""
        span = slice(offset, offset + len(data))
        self._bytes[region][span] = data
        self._origins[region][span] = Writer.CONSTANT

    def forget(self, region: int, offset: int, length: int) -> None:
        """Note that these bytes depend on the input from here on."""
        self._origins[region][offset : offset + length] = Writer.COMPUTED

    def forget_map(self, fm: FeatureMap) -> None:
        """Note that an operation computes this feature map."""
        origins = self._origins[fm.region]
        for piece in pieces(fm):
            cell = np.full(piece.cell_bytes, Writer.COMPUTED, np.uint8)
            cells = np.ndarray(
                piece.counts, f"V{piece.cell_bytes}", origins.data, piece.offset, piece.strides
            )
            cells[...] = cell.view(f"V{piece.cell_bytes}")[0]
