"""Tensors out of regions: which bytes belong together, what map they are, what is seen of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    Box,
    Bytes,
    Copy,
    Elementwise,
    Map,
    Operation,
    Role,
    Shape,
    Tensor,
    Tiles,
    maps_read,
)
from mizzen.targets.ethos_u.generator.operations import (
    Sequence as Operations,
)
from mizzen.targets.ethos_u.lift.carrying import TRANSFERRED_BYTES, End, carried
from mizzen.targets.ethos_u.lift.footprints import elements, grids, view_of
from mizzen.targets.ethos_u.lift.frames import Frame, View, best, flattened, is_flat, whole
from mizzen.targets.ethos_u.lift.stream import Step, Walk
from mizzen.targets.ethos_u.lift.values import Data
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.commands_values import Layout
from mizzen.targets.ethos_u.machine.program import TensorAddress, accelerator_of

BYTE = np.dtype(np.uint8)


@dataclass(slots=True)
class Block:
    """Bytes that one tensor holds, and everything that sees them.

    start, stop  addresses in its region
    pieces       what was written into it
    fixed        whether runs of its bytes are copied, so that its layout is not free
    """

    region: int
    start: int
    stop: int
    pieces: list[int] = field(default_factory=list[int])
    views: list[View] = field(default_factory=list[View])
    dtypes: list[np.dtype[np.integer[Any]]] = field(default_factory=list[np.dtype[np.integer[Any]]])
    fixed: bool = False
    index: int = -1
    frame: Frame | None = None


def shape_of(address: TensorAddress) -> Shape:
    """Return height, width and depth of a tensor of any rank: rows of all batches."""
    shape = (1, 1, 1, *address.shape)
    return math.prod(shape[:-2]), shape[-2], shape[-1]


class Tensors:
    """The tensors of a program, and its operations over them."""

    def __init__(self, walk: Walk, steps: Sequence[Step]) -> None:
        self._program = walk.program
        self._values = walk.values
        self._steps = steps
        self._tensors: list[Tensor] = []
        self._blocks: dict[int, Block] = {}
        self._constants: dict[object, int] = {}
        self._before: list[Operation] = []
        self._after: list[Operation] = []
        self._results = walk.results
        self._taken = walk.taken
        self._states = walk.states

    def sequence(self) -> Operations:
        """Return operations over tensors."""
        self._find_blocks()
        inputs = [self._input(index, row) for index, row in enumerate(self._program.inputs)]
        outputs = [
            self._output(*pair) for pair in zip(self._program.outputs, self._results, strict=True)
        ]
        operations = [
            operation for step in self._steps if (operation := self._moved(step)) is not None
        ]
        return Operations(
            tuple(self._tensors),
            (*self._before, *operations, *self._after),
            tuple(inputs),
            tuple(outputs),
        )

    # Blocks

    def _find_blocks(self) -> None:
        of = self._values.of
        seen = {of(piece) for step in self._steps for piece in step.reads if piece is not None}
        seen |= {of(piece) for piece in (*self._results, *self._states.values())}
        seen |= {of(step.written) for step in self._steps if not step.constant}
        for number, piece in enumerate(self._values.pieces):
            root = of(number)
            if root in seen:
                block = self._blocks.setdefault(root, Block(piece.region, piece.start, piece.stop))
                block.start, block.stop = (
                    min(block.start, piece.start),
                    max(block.stop, piece.stop),
                )
                block.pieces.append(number)
        for step in self._steps:
            self._see(step)

    def _see(self, step: Step) -> None:
        operation = step.operation
        if isinstance(operation, Copy):
            for piece in (step.written, *step.reads):
                block = None if piece is None else self._block(piece)
                if block is not None and not self._is_constant(block):
                    block.fixed = True
            return
        maps = (*zip(step.reads, maps_read(operation), strict=True), (step.written, operation.ofm))
        for place, (piece, map_) in enumerate(maps):
            block = None if piece is None else self._block(piece)
            if block is not None:
                written = place == len(maps) - 1
                block.views.append(View(view_of(map_), map_.dtype.itemsize, written))
                block.dtypes.append(map_.dtype)

    def _block(self, piece: int) -> Block | None:
        return self._blocks.get(self._values.of(piece))

    def _is_constant(self, block: Block) -> bool:
        """Return whether all of a block was brought from constants."""
        return all(self._values.pieces[piece].data is not None for piece in block.pieces)

    # Tensors

    def _input(self, index: int, row: TensorAddress) -> int:
        piece = index + 1
        role = Role.STATE if row.variable else Role.INPUT
        block = self._block(piece)
        if block is None or self._is_exactly(block, row, 1 if not row.variable else None):
            block = block or Block(row.region, row.offset, row.offset + row.size_bytes)
            return self._tensor(block, role, row)
        own = self._add(Tensor(row.name, shape_of(row), _integer(row), role, Layout.NHWC))
        block.fixed = True
        inside = row.offset - block.start
        target = self._tensor(block, Role.SCRATCH, None)
        origin = Origin(name=row.name)
        self._before += carried(origin, (own, 0), (target, inside), self._taken[index])
        if row.variable:
            changed = self._values.filled(row, piece)
            self._after += carried(origin, (target, inside), (own, 0), changed)
        return own

    def _output(self, row: TensorAddress, piece: int) -> int:
        block = self._block(piece)
        assert block is not None
        is_seen = block.index < 0 or self._tensors[block.index].role in (Role.OUTPUT, Role.STATE)
        if is_seen and self._is_exactly(block, row, None):
            return self._tensor(block, Role.OUTPUT, row)
        own = self._add(Tensor(row.name, shape_of(row), _integer(row), Role.OUTPUT, Layout.NHWC))
        block.fixed = True
        source = self._tensor(block, Role.SCRATCH, None)
        inside = row.offset - block.start
        origin = Origin(name=row.name)
        self._after += carried(origin, (source, inside), (own, 0), [(0, row.size_bytes)])
        return own

    def _is_exactly(self, block: Block, row: TensorAddress, pieces: int | None) -> bool:
        """Return whether a block is what the interface names, of so many pieces if given."""
        if pieces is not None and len(block.pieces) != pieces:
            return False
        found = block.region, block.start, block.stop
        return found == (row.region, row.offset, row.offset + row.size_bytes)

    def _tensor(self, block: Block, role: Role, row: TensorAddress | None) -> int:
        """Return the tensor of a block; made where there is none."""
        if block.index >= 0:
            return block.index
        shape = None if row is None else shape_of(row)
        dtype = _integer(row) if row is not None else self._dtype(block)
        frame = best(block.views, block.start, block.stop, shape, dtype.itemsize)
        frame = _usable(frame, block, shape, dtype)
        block.frame = frame
        layout = _layout(frame, block) if row is None else Layout.NHWC
        name = f"tensor {len(self._tensors)}" if row is None else row.name
        dtype = dtype if frame.itemsize == dtype.itemsize else BYTE
        block.index = self._add(Tensor(name, frame.shape, dtype, role, layout))
        return block.index

    def _dtype(self, block: Block) -> np.dtype[np.integer[Any]]:
        """Return the type of what was written first, else read first."""
        pairs = list(zip(block.views, block.dtypes, strict=True))
        pairs.sort(key=lambda pair: not pair[0].written)
        return pairs[0][1] if pairs else BYTE

    def _add(self, tensor: Tensor) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    # Operations

    def _moved(self, step: Step) -> Operation | None:
        """Return an operation over tensors; None for a transfer that nothing needs."""
        operation = step.operation
        if isinstance(operation, Copy):
            return self._copied(step, operation)
        maps = [
            self._map(piece, row)
            for piece, row in zip(step.reads, maps_read(operation), strict=True)
        ]
        ofm = self._map(step.written, operation.ofm)
        if isinstance(operation, Elementwise) and isinstance(operation.ifm2, Map):
            return replace(operation, ifm=maps[0], ifm2=maps[1], ofm=ofm)
        return replace(operation, ifm=maps[0], ofm=ofm)

    def _copied(self, step: Step, operation: Copy) -> Operation | None:
        block = self._block(step.written)
        if block is None or self._is_constant(block):
            return None
        start = operation.destination_offset_bytes - block.start
        target = self._tensor(block, Role.SCRATCH, None)
        (read,) = step.reads
        if read is None:
            data = self._values.pieces[step.written].data
            assert data is not None
            shape = 1, 1, operation.length_bytes
            source, offset = self._constant(data, shape, BYTE), 0
        else:
            from_ = self._block(read)
            assert from_ is not None
            source = self._tensor(from_, Role.SCRATCH, None)
            offset = operation.source_offset_bytes - from_.start
        ends, length = ((source, offset), (target, start)), operation.length_bytes
        if self._is_transferred(*ends, length):
            return Copy(operation.origin, source, offset, target, start, length)
        (found,) = carried(operation.origin, *ends, [(0, length)])
        return found

    def _is_transferred(self, source: End, destination: End, length_bytes: int) -> bool:
        """Return whether the machine takes a transfer, which may end behind its destination."""
        if accelerator_of(self._program.hardware).arch is not Arch.U55:
            return True
        if source[1] % TRANSFERRED_BYTES or destination[1] % TRANSFERRED_BYTES:
            return False
        tensor = self._tensors[destination[0]]
        size = math.prod(tensor.shape) * tensor.dtype.itemsize
        is_end = destination[1] + length_bytes == size
        return is_end or length_bytes % TRANSFERRED_BYTES == 0

    def _map(self, piece: int | None, map_: Map) -> Map:
        view = view_of(map_)
        if piece is None:
            return self._constant_map(map_, self._program.constants[map_.tensor], view)
        block = self._block(piece)
        assert block is not None
        if block.index < 0 and self._is_constant(block):
            return self._constant_map(map_, self._gathered(block), moved(view, block.start))
        index = self._tensor(block, Role.SCRATCH, None)
        assert block.frame is not None
        row = View(view, map_.dtype.itemsize, False)
        box = block.frame.box(row)
        if box is not None:
            return replace(map_, view=replace(box, tensor=index))
        flat = flattened(row) if is_flat(row) else view
        return replace(map_, view=replace(moved(flat, block.start), tensor=index))

    # Constants

    def _gathered(self, block: Block) -> Data:
        """Return the bytes of a block that was brought from constants; later ones count."""
        found = np.zeros(block.stop - block.start, np.uint8)
        for number in block.pieces:
            piece = self._values.pieces[number]
            assert piece.data is not None
            found[piece.start - block.start : piece.stop - block.start] = piece.data
        return found

    def _constant_map(self, map_: Map, memory: Data, view: Bytes) -> Map:
        """Return a map of a constant of its own: all of it, or its bytes if they are far fewer."""
        extents = [row.extent for row in grids(view, map_.dtype.itemsize)]
        low, high = min(row[0] for row in extents), max(row[1] for row in extents)
        if math.prod(view.shape) * map_.dtype.itemsize <= high - low:
            values = elements(view, map_.dtype, memory)
            data = np.ascontiguousarray(values).view(np.uint8).ravel()
            tensor = self._constant(data, view.shape, map_.dtype)
            return replace(map_, view=Box(tensor, view.shape))
        tensor = self._constant(memory[low:high].copy(), (1, 1, high - low), BYTE)
        return replace(map_, view=replace(moved(view, low), tensor=tensor))

    def _constant(self, data: Data, shape: Shape, dtype: np.dtype[np.integer[Any]]) -> int:
        key = data.tobytes(), shape, dtype
        if key not in self._constants:
            made = Tensor(
                f"constant {len(self._tensors)}", shape, dtype, Role.CONSTANT, Layout.NHWC, data
            )
            self._constants[key] = self._add(made)
        return self._constants[key]


def moved(view: Bytes, start: int) -> Bytes:
    """Return a view that counts from `start` on."""
    tiles = view.tiles
    if tiles is not None:
        right, below, both = tiles.offsets_bytes
        offsets = right - start, below - start, both - start
        tiles = Tiles(tiles.height_0, tiles.height_1, tiles.width_0, offsets)
    return replace(view, offset_bytes=view.offset_bytes - start, tiles=tiles)


def _integer(row: TensorAddress) -> np.dtype[np.integer[Any]]:
    """Return the integers that the bytes of an interface's tensor are to the machine."""
    kind = row.dtype.kind if row.dtype.kind in "iu" else "i"
    return np.dtype(f"{kind}{row.dtype.itemsize}")


def _usable(
    frame: Frame | None, block: Block, shape: Shape | None, dtype: np.dtype[np.integer[Any]]
) -> Frame:
    """Return a map that all views of a block can be told by: boxes, or else bytes of NHWC.

    In bricks every view must be a box; tiles, and bricks among others, leave nothing but bytes.
    """
    size = block.stop - block.start
    if shape is not None and (frame is None or math.prod(frame.shape) * dtype.itemsize != size):
        frame = whole(block.start, shape, dtype.itemsize)
    if frame is not None:
        others = [row for row in block.views if frame.box(row) is None]
        if not others or (frame.layout is Layout.NHWC and all(map(is_flat, others))):
            return frame
        if shape is not None:
            return frame
    start = block.start - block.start % BRICK
    block.start = start
    return whole(start, (1, 1, block.stop - start), 1)


def _layout(frame: Frame, block: Block) -> Layout | None:
    """Return the layout that a tensor must have; None where operations permit any."""
    if block.fixed:
        return frame.layout
    for row in block.views:
        box = frame.box(row)
        if box is None or box.start[2] % BRICK or box.steps[1] != 1:
            return frame.layout
    return None
