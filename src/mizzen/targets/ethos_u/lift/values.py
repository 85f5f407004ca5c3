"""Values over regions: who wrote each byte last, and which writes one tensor holds.

Every write makes a piece; a read that sees bytes of several pieces makes them one. What a transfer
brings from constants is a piece too, with its bytes, so that weights and tables are found wherever
they were staged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.targets.ethos_u.generator.operations import Map
from mizzen.targets.ethos_u.lift.footprints import Grid, grids, view_of
from mizzen.targets.ethos_u.machine.program import Program, TensorAddress

Data = npt.NDArray[np.uint8]
Held = Mapping[int, Sequence[tuple[int, int]]]
"""Of each region, the first byte of each run that holds something, and one past its last."""

NOBODY = 0
"""Of a byte that nothing has written."""


@dataclass(slots=True)
class Piece:
    """What was written at once.

    start, stop  addresses in its region
    data         bytes from `start` on, of a transfer out of constants
    """

    region: int
    start: int
    stop: int
    data: Data | None = None


@dataclass(slots=True)
class Values:
    """The regions of a program while its stream is walked."""

    program: Program
    pieces: list[Piece] = field(default_factory=list[Piece])
    _parents: list[int] = field(default_factory=list[int])
    _writers: dict[int, npt.NDArray[np.int32]] = field(
        default_factory=dict[int, npt.NDArray[np.int32]]
    )
    where: tuple[str, Origin] = ("", Origin())

    def __post_init__(self) -> None:
        self._add(Piece(-1, 0, 0))
        for region, size in self.program.region_bytes.items():
            if region not in self.program.constants:
                self._writers[region] = np.zeros(size, np.int32)

    def is_constant(self, region: int) -> bool:
        """Return whether a region holds constants."""
        return region in self.program.constants

    def of(self, piece: int) -> int:
        """Return the number of the tensor that a piece belongs to."""
        parents = self._parents
        while parents[piece] != piece:
            parents[piece] = parents[parents[piece]]
            piece = parents[piece]
        return piece

    def is_given(self, piece: int) -> bool:
        """Return whether a piece is an input or a state, that no operation writes."""
        return 0 < piece <= len(self.program.inputs)

    def members(self, tensor: int) -> set[int]:
        """Return the pieces of a tensor."""
        return {piece for piece in range(len(self.pieces)) if self.of(piece) == tensor}

    def new_region(self, first: int) -> int:
        """Return the number of a region that does not exist yet, from a number on."""
        return max(first, 1 + max(piece.region for piece in self.pieces))

    def move(self, tensor: int, region: int, size: int) -> None:
        """Say that a tensor is all of a region of its own."""
        for piece in self.members(tensor):
            self.pieces[piece] = Piece(region, 0, size)

    def join(self, pieces: list[int]) -> int:
        """Make pieces one tensor; return its number."""
        found = sorted({self.of(piece) for piece in pieces})
        for other in found[1:]:
            self._parents[other] = found[0]
        return found[0]

    # Maps

    def write(self, map_: Map) -> int:
        """Note that an operation writes a map; return the piece."""
        rows = self._grids(map_)
        extents = [row.extent for row in rows]
        region = map_.tensor
        piece = self._add(
            Piece(region, min(low for low, _ in extents), max(high for _, high in extents))
        )
        for row in rows:
            row.within(self._writers[region])[...] = piece
        return piece

    def read(self, map_: Map) -> int | None:
        """Return the tensor that a map is read from; None of constants. E273."""
        region = map_.tensor
        rows = self._grids(map_)
        if self.is_constant(region):
            return None
        pieces = {piece for row in rows for piece in self._pieces(region, row)}
        if NOBODY in pieces:
            raise self.unknown(region, *rows[0].extent)
        return self.join(list(pieces))

    def _grids(self, map_: Map) -> list[Grid]:
        rows = grids(view_of(map_), map_.dtype.itemsize)
        for row in rows:
            self._require_inside(map_.tensor, *row.extent)
        return rows

    def _pieces(self, region: int, row: Grid) -> set[int]:
        seen = row.within(self._writers[region])
        first = seen[0, 0, 0, 0]
        if (seen == first).all():
            return {int(first)}
        return {int(piece) for piece in np.unique(seen)}

    # Runs of bytes

    def put(self, region: int, start: int, length: int, data: Data | None = None) -> int:
        """Note that bytes are written; return the piece."""
        self._require_inside(region, start, start + length)
        if region not in self._writers:
            raise self._refusal(f"region {region} holds constants, and must not be written")
        piece = self._add(Piece(region, start, start + length, data))
        self._writers[region][start : start + length] = piece
        return piece

    def give(self, row: TensorAddress, held: Held | None) -> list[tuple[int, int]]:
        """Note that a tensor is there before anything runs; return what of it holds something.

        Runs are counted from the tensor's start; without `held` all of it does.
        """
        self.put(row.region, row.offset, row.size_bytes)
        if held is not None:
            seen = np.zeros(row.size_bytes, np.bool_)
            for first, end in held.get(row.region, ()):
                seen[max(0, first - row.offset) : max(0, end - row.offset)] = True
            self._writers_of(row)[~seen] = NOBODY
        return self.filled(row)

    def filled(self, row: TensorAddress, given: int = NOBODY) -> list[tuple[int, int]]:
        """Return the runs of a tensor that hold something now, counted from its start.

        given  a piece that does not count
        """
        seen = ~np.isin(self._writers_of(row), (NOBODY, given))
        edges = np.flatnonzero(np.diff(seen, prepend=False, append=False)).tolist()
        return [(first, end - first) for first, end in zip(edges[::2], edges[1::2], strict=True)]

    def _writers_of(self, row: TensorAddress) -> npt.NDArray[np.int32]:
        """Return who wrote each byte of a tensor, as a view."""
        return self._writers[row.region][row.offset : row.offset + row.size_bytes]

    def owners(self, region: int, start: int, length: int) -> list[int]:
        """Return the pieces that bytes are of, in order of their number."""
        self._require_inside(region, start, start + length)
        return [int(piece) for piece in np.unique(self._writers[region][start : start + length])]

    def runs(self, region: int, start: int, length: int) -> list[tuple[int, int, int]]:
        """Return the runs of bytes of one tensor: its number, or that of nobody, start, length."""
        self._require_inside(region, start, start + length)
        pieces, places = np.unique(
            self._writers[region][start : start + length], return_inverse=True
        )
        owners = np.array([self.of(int(piece)) for piece in pieces])[places]
        cuts = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), length]
        return [(int(owners[first]), start + first, last - first) for first, last in pairwise(cuts)]

    def forget(self, region: int, start: int, length: int) -> None:
        """Note that bytes hold from now on what nobody has written."""
        self._require_inside(region, start, start + length)
        self._writers[region][start : start + length] = NOBODY

    def constant(self, region: int, start: int, length: int) -> Data | None:
        """Return bytes that come from constants; None if any does not."""
        self._require_inside(region, start, start + length)
        if self.is_constant(region):
            return self.program.constants[region][start : start + length]
        found = np.empty(length, np.uint8)
        writers = self._writers[region][start : start + length]
        for number in np.unique(writers):
            piece = self.pieces[int(number)]
            if piece.data is None:
                return None
            at = np.flatnonzero(writers == number)
            found[at] = piece.data[at + start - piece.start]
        return found

    def require_constant(self, region: int, start: int, length: int, what: str) -> Data:
        """Return bytes that come from constants. E274 if any does not."""
        found = self.constant(region, start, length)
        if found is None:
            name, origin = self.where
            raise fail(
                "E274",
                f"{name}: the {what} must come from constants, and bytes {start}.."
                f"{start + length} of region {region} do not",
                origin=origin,
                help="the compiler's own words for it remain right; keep those",
            )
        return found

    def _add(self, piece: Piece) -> int:
        self._parents.append(len(self.pieces))
        self.pieces.append(piece)
        return len(self.pieces) - 1

    def _require_inside(self, region: int, start: int, stop: int) -> None:
        size = self.program.region_bytes.get(region, 0)
        if region in self.program.constants:
            size = len(self.program.constants[region])
        if start < 0 or stop > size:
            raise self._refusal(
                f"bytes {start}..{stop} must lie within the {size} bytes of region {region}"
            )

    def _refusal(self, reason: str) -> MizzenError:
        return self._fault(reason, "the command stream is damaged; compile it again")

    def unknown(self, region: int, start: int, stop: int) -> MizzenError:
        """Return that something is read that nobody has written. E273.

        The NPU operators of one network may hand values on in their scratch memory, which no
        interface of theirs names.
        """
        return self._fault(
            f"all that is read must have been written, and some of bytes {start}..{stop} of "
            f"region {region} has not",
            "another NPU operator of the network may have left it there: keep the compiler's own "
            "words for both",
        )

    def _fault(self, reason: str, help: str) -> MizzenError:
        name, origin = self.where
        return fail("E273", f"{name}: {reason}", origin=origin, help=help)
