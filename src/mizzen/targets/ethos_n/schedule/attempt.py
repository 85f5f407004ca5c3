"""One attempt to divide the work graph into passes: what is decided of each node so far.

Ref: Ethos-N driver stack 23.02, how the Support Library prepares its graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mizzen.targets.ethos_n.commands_values import Algorithm, Format, Location
from mizzen.targets.ethos_n.config import Capabilities
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
from mizzen.targets.ethos_n.schedule.sram_tiles import McePlan, PlePlan, Sram
from mizzen.targets.ethos_n.tensors import Shape

FORMATS = {Layout.NHWC: Format.NHWC, Layout.NHWCB: Format.NHWCB}


@dataclass(frozen=True, slots=True, eq=False)
class McePass:
    """A pass of the compute engines and, behind them, of the programmable layer engine."""

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
        """Return what is decided of a node."""
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
        """Return the node that could join a pass behind `node`: its only user, of no pass yet."""
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
