"""Where things of pictures lie: scales of maps, timelines and charts, in pixels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mizzen.report.page.blocks import Limit, Lines, Map, Occupancy, Points, Timeline

CHART_WIDTH, CHART_HEIGHT, CHART_MARGIN = 720.0, 260.0, 56.0
LANE_HEIGHT, LANE_LABEL = 18.0, 150.0
WIDE_LANE_HEIGHT, FEW_LANES = 34.0, 8
SPAN, AXIS_HEIGHT = 850.0, 24.0
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
    """Places along a timeline, whose bars are `span` wide together, `label` from the left."""

    start: float
    stop: float
    height: float
    lane: float = LANE_HEIGHT
    label: float = LANE_LABEL
    span: float = SPAN

    @staticmethod
    def of(block: Timeline) -> TimeScale:
        """Return the scale of a timeline's bars."""
        bars = [bar for lane in block.lanes for bar in lane.bars]
        start = min((bar.start for bar in bars), default=0.0)
        start = min(start, 0.0)
        stop = max((bar.stop for bar in bars), default=1.0)
        lane = WIDE_LANE_HEIGHT if len(block.lanes) <= FEW_LANES else LANE_HEIGHT
        height = lane * len(block.lanes) + AXIS_HEIGHT
        return TimeScale(start, max(stop, start + 1e-12), height, lane)

    @property
    def width(self) -> float:
        """Of the picture."""
        return self.label + self.span

    def at(self, time: float) -> float:
        """Return how far a time is from the start, in pixels."""
        return (time - self.start) / (self.stop - self.start) * self.span

    @property
    def ticks(self) -> list[float]:
        """Times to write below."""
        return [self.start + (self.stop - self.start) * index / TICKS for index in range(TICKS + 1)]


@dataclass(frozen=True, slots=True)
class MemoryScale:
    """Places of what lies in memory: columns across, bytes upwards."""

    count: int
    highest: int
    step: int
    label: float = 90.0
    span: float = SPAN
    top: float = 24.0
    tall: float = 260.0

    @staticmethod
    def of(block: Occupancy) -> MemoryScale:
        """Return the scale of all pieces: from 0 to the end of the highest."""
        highest = max((piece.high for piece in block.pieces), default=1)
        step = 1
        while highest > step * (TICKS + 2):
            step *= 2
        return MemoryScale(max(block.columns, 1), max(highest, 1), step)

    @property
    def width(self) -> float:
        """Of the picture."""
        return self.label + self.span

    @property
    def height(self) -> float:
        """Of the picture."""
        return self.top + self.tall + AXIS_HEIGHT

    def at(self, column: float) -> float:
        """Return how far the start of a column is from that of the first, in pixels."""
        return column / self.count * self.span

    def down(self, address: float) -> float:
        """Return how far an address is from the top, in pixels."""
        return self.top + (1 - address / self.highest) * self.tall

    @property
    def ticks(self) -> list[int]:
        """Addresses to write beside: multiples of a power of two."""
        return list(range(0, self.highest + 1, self.step))

    @property
    def columns(self) -> list[float]:
        """Columns to write below."""
        parts = min(TICKS, self.count)
        return [float(round(self.count * index / parts)) for index in range(parts + 1)]


@dataclass(frozen=True, slots=True)
class LogScale:
    """Places of points; both axes are logarithmic and begin and end at powers of ten."""

    low: tuple[float, float]
    high: tuple[float, float]
    width: float = 900.0
    height: float = 380.0
    left: float = 64.0
    top: float = 24.0

    @staticmethod
    def of(block: Points) -> LogScale:
        """Return the scale of points and of the lines above them."""
        ceilings = [limit.ceiling for limit in block.limits]
        knees = [limit.ceiling / limit.slope for limit in block.limits if limit.slope]
        across = [point.x for point in block.points] + knees or [1.0]
        upwards = [point.y for point in block.points] + ceilings or [1.0]
        low = _decade(min(across), math.floor), _decade(min(upwards), math.floor)
        high = _decade(max(across) * 1.01, math.ceil), _decade(max(upwards) * 1.01, math.ceil)
        return LogScale(low, high)

    @property
    def right(self) -> float:
        """Where the chart ends."""
        return self.width - 16.0

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point is, in pixels from the top left."""
        across, upwards = (
            math.log(value / self.low[axis]) / math.log(self.high[axis] / self.low[axis])
            for axis, value in enumerate((x, y))
        )
        tall = self.height - self.top - 2 * AXIS_HEIGHT
        return self.left + across * (self.right - self.left), self.top + (1 - upwards) * tall

    def ticks(self, axis: int) -> list[float]:
        """Return the powers of ten of an axis."""
        first, last = (round(math.log10(end[axis])) for end in (self.low, self.high))
        return [10.0**power for power in range(first, last + 1)]

    def limit(self, limit: Limit) -> list[tuple[float, float]]:
        """Return the corners of a limit: where it enters the chart, its knee, its end."""
        end = self.at(self.high[0], limit.ceiling)
        if not limit.slope:
            return [self.at(self.low[0], limit.ceiling), end]
        first = max(self.low[0], self.low[1] / limit.slope)
        return [
            self.at(first, first * limit.slope),
            self.at(limit.ceiling / limit.slope, limit.ceiling),
            end,
        ]

    def angle(self, ends: list[tuple[float, float]]) -> float:
        """Return how far a line's first part rises, in degrees, clockwise."""
        (x, y), (to_x, to_y) = ends[:2]
        return math.degrees(math.atan2(to_y - y, to_x - x))


def _decade(value: float, towards: Callable[[float], int]) -> float:
    return 10.0 ** towards(math.log10(value))


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
