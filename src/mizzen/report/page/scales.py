"""Where things of pictures lie: scales of maps, timelines and charts, in pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mizzen.report.page.blocks import Lines, Map, Timeline

CHART_WIDTH, CHART_HEIGHT, CHART_MARGIN = 720.0, 260.0, 56.0
LANE_HEIGHT, LANE_LABEL = 18.0, 220.0
TICKS = 5


@dataclass(frozen=True, slots=True)
class MapScale:
    """The view of a map: its size and the stroke of its lines, in its own units."""

    x: float
    y: float
    width: float
    height: float
    stroke: float


def map_scale(block: Map) -> MapScale:
    """Return the view that shows all of a map."""
    left = min((node.x for node in block.nodes), default=0.0)
    top = min((node.y for node in block.nodes), default=0.0)
    right = max((node.x + node.width for node in block.nodes), default=1.0)
    bottom = max((node.y + node.height for node in block.nodes), default=1.0)
    margin = 0.02 * (right - left)
    smallest = min((min(node.width, node.height) for node in block.nodes), default=1.0)
    return MapScale(
        left - margin,
        top - margin,
        right - left + 2 * margin,
        bottom - top + 2 * margin,
        smallest / 5,
    )


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Places along a timeline."""

    start: float
    stop: float
    height: float
    width: float = CHART_WIDTH + LANE_LABEL
    label: float = LANE_LABEL

    @staticmethod
    def of(block: Timeline) -> TimeScale:
        """Return the scale of a timeline's bars."""
        bars = [bar for lane in block.lanes for bar in lane.bars]
        start = min((bar.start for bar in bars), default=0.0)
        stop = max((bar.stop for bar in bars), default=1.0)
        return TimeScale(start, max(stop, start + 1e-12), LANE_HEIGHT * (len(block.lanes) + 1.5))

    def at(self, time: float) -> float:
        """Return where a time is, in pixels from the left."""
        return LANE_LABEL + (time - self.start) / (self.stop - self.start) * CHART_WIDTH

    @property
    def ticks(self) -> list[float]:
        """Times to write below."""
        return [self.start + (self.stop - self.start) * index / TICKS for index in range(TICKS + 1)]


@dataclass(frozen=True, slots=True)
class Chart:
    """Places of a chart of lines."""

    lowest: tuple[float, float]
    highest: tuple[float, float]
    is_logarithmic: bool
    width: float = CHART_WIDTH + 2 * CHART_MARGIN
    height: float = CHART_HEIGHT + 2 * CHART_MARGIN

    @staticmethod
    def of(block: Lines) -> Chart:
        """Return the scales of a chart's lines; linear ones begin at 0."""
        points = [point for series in block.series for point in series.points] or [(1.0, 1.0)]
        least = min(x for x, _ in points), min(y for _, y in points)
        low = least if block.is_logarithmic else (min(0.0, least[0]), min(0.0, least[1]))
        high = max(x for x, _ in points), max(y for _, y in points)
        return Chart(low, high, block.is_logarithmic)

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        """Return where a point is, in pixels from the top left."""
        x, y = (self._part(axis, point[axis]) for axis in (0, 1))
        return CHART_MARGIN + x * CHART_WIDTH, CHART_MARGIN + (1 - y) * CHART_HEIGHT

    def ticks(self, axis: int) -> list[float]:
        """Return numbers to write along an axis."""
        low, high = self.lowest[axis], self.highest[axis]
        if not self.is_logarithmic:
            return [low + (high - low) * index / TICKS for index in range(TICKS + 1)]
        return [low * (high / low) ** (index / TICKS) for index in range(TICKS + 1)]

    def _part(self, axis: int, value: float) -> float:
        low, high = self.lowest[axis], self.highest[axis]
        if high <= low:
            return 0.5
        if self.is_logarithmic:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)
