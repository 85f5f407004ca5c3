"""Regions of a tensor graph as code: what a compiler of regions takes, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mizzen.artifact.npu import read_network
from mizzen.diagnostics import Origin, ProgressCallback, Reason
from mizzen.frontends.tflite import Model
from mizzen.graph import Graph
from mizzen.ops.limits import WindowLimits
from mizzen.partition import Extracted, Partition
from mizzen.partition.placement import Legal
from mizzen.report import Area, Measure

CONSTANTS = "constants"
"""The area whose bytes no two regions share."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a region needs, by its compiler's estimate.

    npu_cycles  of `cycles`, what the NPU needs if memories never make it wait
    areas       bytes by what they hold
    performance the performance data that the driver's users know, JSON-ready, if there is any
    """

    cycles: int
    npu_cycles: int
    areas: tuple[Area, ...]
    memories: tuple[Measure, ...] = ()
    figures: Mapping[str, int] = field(default_factory=dict[str, int])
    performance: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class RegionCode:
    """A region's code.

    part      the region; its inputs and outputs are those of the network, in the same order
    network   a TFLite network of one custom operator
    compiler  whose code it is
    origins   byte offset of a command in the stream to the user's operator
    cycles    estimated cycles of each group
    """

    part: Extracted
    network: bytes
    compiler: str
    origins: Mapping[int, Origin]
    cycles: Mapping[int, int]
    costs: Costs
    log: str = ""

    @property
    def model(self) -> Model:
        """The network, read."""
        return read_network(self.network, self.part.graph.name)


@dataclass(frozen=True, slots=True)
class RegionRefusal:
    """Why a region cannot be compiled.

    reasons  of the groups because of which it cannot, at least one
    general  the reason for all others, where the search for such groups takes too long
    """

    reasons: Mapping[int, Reason]
    general: Reason


class RegionCompiler(Protocol):
    """Compiles regions of tensor graphs for a configuration."""

    @property
    def window_limits(self) -> WindowLimits:
        """How long windows of its depthwise convolutions may be."""
        ...

    def legality(self, graph: Graph) -> Legal:
        """Return what says why an operation of a graph cannot be on the NPU.

        What depends on the whole region is left to `compile`.
        """
        ...

    def unprofitable(self, partition: Partition) -> Mapping[int, Reason]:
        """Return the groups of NPU regions that had better stay on the CPU, and why."""
        ...

    def compile(
        self, part: Extracted, on_progress: ProgressCallback | None
    ) -> RegionCode | RegionRefusal:
        """Compile a region, whose graph may be changed."""
        ...


def areas_of(costs: Sequence[Costs]) -> tuple[Area, ...]:
    """Add regions up that run one after the other: constants add up, memory is shared."""
    rows: dict[tuple[str, str], int] = {}
    for area in (area for row in costs for area in row.areas):
        key, used = (area.name, area.memory), area.used_bytes
        before = rows.get(key, 0)
        rows[key] = before + used if area.name == CONSTANTS else max(before, used)
    return tuple(Area(name, memory, used) for (name, memory), used in rows.items())


def memories_of(costs: Sequence[Costs]) -> tuple[Measure, ...]:
    """Add regions up: their accesses, but the most that one of them uses."""
    rows: dict[str, Measure] = {}
    for row in (measure for region in costs for measure in region.memories):
        old = rows.get(row.memory, Measure(row.memory, 0))
        accesses = dict(old.accesses)
        for what, (read_bytes, written_bytes) in row.accesses.items():
            before = accesses.get(what, (0, 0))
            accesses[what] = (before[0] + read_bytes, before[1] + written_bytes)
        rows[row.memory] = Measure(
            row.memory,
            max(old.used_bytes, row.used_bytes),
            old.access_cycles + row.access_cycles,
            accesses,
        )
    return tuple(rows.values())


def performance_of(costs: Sequence[Costs]) -> tuple[dict[str, Any], ...]:
    """Return the performance data of the regions that have it."""
    return tuple(dict(row.performance) for row in costs if row.performance is not None)


def figures_of(costs: Sequence[Costs]) -> dict[str, int]:
    """Add up the numbers of the compiler's own reports."""
    total: dict[str, int] = {}
    for name, value in (item for row in costs for item in row.figures.items()):
        total[name] = total.get(name, 0) + value
    return total
