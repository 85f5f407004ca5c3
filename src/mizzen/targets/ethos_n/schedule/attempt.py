"""One attempt to divide the work graph into passes: what is decided of each node, where maps lie.

A stripe is the part of a tensor that is worked on at a time; a tile is the SRAM for one or more
stripes of a tensor. An offset is the same in every bank: what is divided is one bank, and sizes are
those of a bank's share. Placement is first fit, from the beginning or from the end. What does not
stay goes to DRAM, perhaps compressed in cells, each with the room of an incompressible one.

Ref: Ethos-N driver stack 23.02, how the Support Library prepares its graph, its SRAM allocation;
`g_FcafDeepCellShape`, `g_FcafWideCellShape`, `g_FcafCellSizeBytes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from mizzen.targets.ethos_n.commands_values import Algorithm, Format, Location, Strategy
from mizzen.targets.ethos_n.config import BRICK_GROUP_SHAPE, BlockConfig, Capabilities
from mizzen.targets.ethos_n.lower.work_graph import (
    Concat,
    FusedPle,
    Layout,
    LonePle,
    Mce,
    Node,
    Relabel,
    Source,
    Stored,
)
from mizzen.targets.ethos_n.tensors import Shape

BRICK_HEIGHT, BRICK_WIDTH, BRICK_CHANNELS = BRICK_GROUP_SHAPE[1:]
"""Of a brick group."""


def divide_up(number: int, divisor: int) -> int:
    """Return the quotient rounded up."""
    return -(-number // divisor)


def round_up(number: int, multiple: int) -> int:
    """Return the next multiple."""
    return -(-number // multiple) * multiple


def volume(shape: Shape) -> int:
    """Return the number of elements, which is that of bytes."""
    return shape[0] * shape[1] * shape[2] * shape[3]


def brick_bytes(shape: Shape) -> int:
    """Return the size of a map in whole brick groups."""
    planes = round_up(shape[1], BRICK_HEIGHT) * round_up(shape[2], BRICK_WIDTH)
    return shape[0] * planes * round_up(shape[3], BRICK_CHANNELS)


@dataclass(frozen=True, slots=True)
class Tile:
    """The SRAM of one tensor in a pass.

    bytes   over all banks
    stripes that fit in it
    offset_bytes within each bank
    """

    stripe: Shape
    bytes: int
    stripes: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class McePlan:
    """How a pass of the compute engines cuts its tensors and where they lie.

    ple_offset_bytes  of the kernel of the programmable layer engine, within each bank
    """

    strategy: Strategy
    block: BlockConfig
    input: Tile
    weights: Tile
    output: Tile
    ple_offset_bytes: int


@dataclass(frozen=True, slots=True)
class PlePlan:
    """How a pass of the programmable layer engine alone cuts its tensors and where they lie."""

    inputs: tuple[Tile, ...]
    output: Tile
    ple_offset_bytes: int


CELLS = {Format.FCAF_DEEP: (8, 8, 32), Format.FCAF_WIDE: (8, 16, 16)}
"""Height, width and channels of a cell; the formats in the order of preference."""
CELL_BYTES = 2112


def consists_of_cells(format: Format, extents: tuple[int, ...]) -> bool:
    """Say whether height, width and channels are whole cells."""
    return all(extent % side == 0 for extent, side in zip(extents, CELLS[format], strict=True))


def cell_bytes(shape: Shape, format: Format) -> int:
    """Return the size of a compressed map."""
    cells = 1
    for extent, side in zip(shape[1:], CELLS[format], strict=True):
        cells *= divide_up(extent, side)
    return CELL_BYTES * cells


Hole = tuple[int, int]
"""Begin and end of a free part, bytes within a bank."""
Holes = tuple[Hole, ...]
"""All free parts in order, none beside another."""

Owner = TypeVar("Owner")


class Side(Enum):
    """From which side a place is looked for."""

    BEGIN = "begin"
    END = "end"

    @property
    def other(self) -> Side:
        """The opposite side."""
        return Side.END if self is Side.BEGIN else Side.BEGIN


def take(holes: Holes, size: int, side: Side) -> tuple[Holes, int] | None:
    """Take `size` bytes of the first hole that has them; return the rest, and where they are."""
    places = range(len(holes)) if side is Side.BEGIN else range(len(holes) - 1, -1, -1)
    for place in places:
        begin, end = holes[place]
        if size <= end - begin:
            offset = begin if side is Side.BEGIN else end - size
            return _without(holes, place, offset, size), offset
    return None


def _without(holes: Holes, place: int, offset: int, size: int) -> Holes:
    begin, end = holes[place]
    parts = ((begin, offset), (offset + size, end))
    return holes[:place] + tuple(part for part in parts if part[0] < part[1]) + holes[place + 1 :]


def _take_at(holes: Holes, offset: int, size: int) -> Holes:
    for place, (begin, end) in enumerate(holes):
        if begin <= offset and offset + size <= end:
            return _without(holes, place, offset, size)
    raise AssertionError("what is kept was free before")


def _give_back(holes: Holes, offset: int, size: int) -> Holes:
    merged: list[Hole] = []
    for begin, end in sorted((*holes, (offset, offset + size))):
        if merged and merged[-1][1] == begin:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return tuple(merged)


@dataclass(slots=True)
class _Resident(Generic[Owner]):
    size: int
    owners: list[Owner]


@dataclass(slots=True)
class Sram(Generic[Owner]):
    """The feature maps that stay in SRAM from one pass to others, each with those who need it."""

    holes: Holes
    residents: dict[int, _Resident[Owner]] = field(default_factory=dict[int, "_Resident[Owner]"])

    def keep(self, offset: int, size: int, owner: Owner) -> None:
        """Leave a map where a pass has put it."""
        self.holes = _take_at(self.holes, offset, size)
        self.residents[offset] = _Resident(size, [owner])

    def share(self, offset: int, owner: Owner) -> None:
        """Count one more who needs the map."""
        self.residents[offset].owners.append(owner)

    def release(self, offset: int, owner: Owner) -> None:
        """Count one less; with the last, the map's place is free."""
        resident = self.residents[offset]
        resident.owners.remove(owner)
        if not resident.owners:
            del self.residents[offset]
            self.holes = _give_back(self.holes, offset, resident.size)


FORMATS = {Layout.NHWC: Format.NHWC, Layout.NHWCB: Format.NHWCB}


@dataclass(frozen=True, slots=True, eq=False)
class McePass:
    """A pass of the compute engines and, after them, of the programmable layer engine."""

    nodes: tuple[Node, ...]
    mce: Node
    ple: Node | None
    plan: McePlan
    algorithm: Algorithm

    @property
    def work(self) -> Mce:
        """What the compute engines do."""
        return self.mce.doing(Mce)

    @property
    def kernel(self) -> FusedPle | None:
        """What the programmable layer engine does, None for nothing."""
        return None if self.ple is None else self.ple.doing(FusedPle)


@dataclass(frozen=True, slots=True, eq=False)
class PlePass:
    """A pass of the programmable layer engine alone."""

    nodes: tuple[Node, ...]
    plan: PlePlan

    @property
    def work(self) -> LonePle:
        """What the engine does."""
        return self.nodes[0].doing(LonePle)


@dataclass(frozen=True, slots=True, eq=False)
class ConvertPass:
    """A pass that moves a map through SRAM, or within it, stripe by stripe."""

    nodes: tuple[Node, ...]
    stripe: Shape
    offset_bytes: int


Pass = McePass | PlePass | ConvertPass


@dataclass(slots=True)
class MapDecision:
    """What is decided of a node's map.

    location     None while no pass makes it, and inside of a pass
    compression  its format if it is compressed
    """

    made_by: Pass | None = None
    location: Location | None = None
    sram_offset_bytes: int = 0
    compression: Format | None = None


@dataclass(slots=True)
class Attempt:
    """The passes so far, in the order of execution, and where they leave what they make."""

    capabilities: Capabilities
    sram: Sram[Node]
    passes: list[Pass] = field(default_factory=list[Pass])
    placements: dict[Node, MapDecision] = field(default_factory=dict[Node, MapDecision])

    def of(self, node: Node) -> MapDecision:
        """Return the decision about a node."""
        if node not in self.placements:
            location = Location.DRAM if isinstance(node.work, Source) else None
            self.placements[node] = MapDecision(location=location)
        return self.placements[node]

    def location(self, node: Node) -> Location | None:
        """Return where a node's map is."""
        return self.of(node).location

    def in_sram(self, node: Node) -> bool:
        """Say whether a node's map is in SRAM."""
        return self.of(node).location is Location.SRAM

    def in_dram(self, node: Node) -> bool:
        """Say whether a node's map is in DRAM."""
        return self.of(node).location is Location.DRAM

    def needs_no_pass(self, node: Node) -> bool:
        """Say whether a node is made by no pass in any case."""
        return isinstance(node.work, Source | Stored)

    def compressed(self, node: Node) -> bool:
        """Say whether a node's map is compressed."""
        return self.of(node).compression is not None

    def format(self, node: Node) -> Format:
        """Return how a node's map lies in DRAM."""
        return self.of(node).compression or FORMATS[node.layout]

    def follower(self, node: Node) -> Node | None:
        """Return the node that could join a pass after `node`: its only user, of no pass yet."""
        if len(node.users) != 1:
            return None
        user = node.users[0]
        return None if self.of(user).made_by is not None else user

    def commit(
        self,
        made: Pass,
        location: Location | None,
        offset: int,
        size: int,
        compression: Format | None = None,
    ) -> None:
        """Add a pass whose output lies at `offset`; `size` bytes of each bank if it stays there."""
        self.passes.append(made)
        for node in made.nodes:
            self.of(node).made_by = made
        last = made.nodes[-1]
        placement = self.of(last)
        placement.location = location
        placement.sram_offset_bytes = offset
        placement.compression = compression
        if location is Location.SRAM:
            self.sram.keep(offset, size, last)

    def settle(self, node: Node) -> None:
        """Hand a node's map over to its users, and give back what the node has used.

        To be called for every node in order, after the pass that takes it has been formed.
        """
        placement = self.of(node)
        if isinstance(node.work, Stored):
            placement.location = Location.DRAM
            return
        if isinstance(node.work, Concat):
            placement.location = Location.DRAM
        if isinstance(node.work, Relabel) and placement.made_by is None:
            source = self.of(node.source)
            placement.location = source.location
            if self.in_sram(node.source):
                placement.sram_offset_bytes = source.sram_offset_bytes
                self.sram.share(source.sram_offset_bytes, node)
        if placement.location is Location.SRAM:
            for user in node.users:
                self.sram.share(placement.sram_offset_bytes, user)
            self.sram.release(placement.sram_offset_bytes, node)
        for source in node.inputs:
            if self.in_sram(source):
                self.sram.release(self.of(source).sram_offset_bytes, node)
