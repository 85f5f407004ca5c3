"""How far a feature map reaches into its region, as the kernel computes it.

The kernel takes the corners of what an operation covers, finds their tiles and adds up strides. It
knows no upscaling: an operation that doubles its IFM counts as if it read twice the height and
width. Coordinates are those of the last element, as registers hold them (size minus 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from mizzen.targets.ethos_u.judge.linux.registers import Registers
from mizzen.targets.ethos_u.machine.commands import Arch

BRICK = 16
NHWC, NHCWB16 = 0, 1
TILES_2X2, STACKED, CHAINED = 0, 1, 2
"""Storage of a map of U85: four tiles, tiles one above another, or not in memory."""


class Role(Enum):
    """Which feature map of an operation, and the lowest bit of its element's size."""

    IFM = ("IFM", 2)
    IFM2 = ("IFM2", 2)
    OFM = ("OFM", 1)

    def __init__(self, prefix: str, size_bit: int) -> None:
        self.prefix = prefix
        self.size_bit = size_bit


@dataclass(frozen=True, slots=True)
class Corner:
    """The last element of a map that an operation reads or writes: column, row, channel."""

    x: int
    y: int
    c: int


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """A map as the registers describe it."""

    role: Role
    registers: Registers

    def name(self, register: str) -> str:
        """Return the name of one of its registers."""
        return f"SET_{self.role.prefix}_{register}"

    @property
    def region(self) -> int:
        """The region that it lies in."""
        return self.registers.parameter(self.name("REGION")) & 7

    @property
    def precision(self) -> int:
        """The register of element, layout and storage."""
        return self.registers.parameter(self.name("PRECISION"))

    @property
    def storage(self) -> int:
        """How its tiles lie; U65 knows one way."""
        return TILES_2X2 if self.registers.arch is Arch.U65 else self.precision >> 14

    @property
    def is_chained(self) -> bool:
        """Whether it stays inside the NPU."""
        return self.storage == CHAINED

    @property
    def layout(self) -> int:
        """NHWC or NHCWB16, as a number."""
        return self.precision >> 6 & 3

    def needed(self) -> tuple[str, ...]:
        """Return the registers that must have been set."""
        first = [self.name("REGION"), self.name("PRECISION")]
        if self.role is not Role.IFM2:
            first.append(self.name("DEPTH_M1"))
        if self.role is Role.OFM:
            first += [self.name("WIDTH_M1"), self.name("HEIGHT_M1")]
        if self.is_chained:
            return tuple(first)
        tiles = (self.name(each) for each in ("WIDTH0_M1", "HEIGHT0_M1", "HEIGHT1_M1", "STRIDE_Y"))
        last = self.name("STRIDE_X" if self.layout == NHWC else "STRIDE_C")
        return (*first, *tiles, last)

    def end(self, corner: Corner) -> int | str:
        """Return the byte after an element, or the name of the tile's base that nothing has set."""
        tile, x, y = self._tile(corner.x, corner.y)
        base = self.name(f"BASE{tile}")
        if not self.registers.has(base):
            return base
        element = 1 << (self.precision >> self.role.size_bit & 3)
        stride = self.registers.address
        start = stride(base) + y * stride(self.name("STRIDE_Y"))
        if self.layout == NHWC:
            return start + x * stride(self.name("STRIDE_X")) + (corner.c + 1) * element
        bricks, channel = divmod(corner.c, BRICK)
        start += bricks * stride(self.name("STRIDE_C"))
        return start + (BRICK * x + channel + 1) * element

    def _tile(self, x: int, y: int) -> tuple[int, int, int]:
        heights = tuple(self._extent(f"HEIGHT{index}_M1") for index in (0, 1))
        if self.storage == STACKED:
            if y >= heights[1]:
                return 2, x, y - heights[1]
            return (1, x, y - heights[0]) if y >= heights[0] else (0, x, y)
        right = int(x >= self._extent("WIDTH0_M1"))
        x -= right * self._extent("WIDTH0_M1")
        lower = y >= heights[right]
        return right + 2 * lower, x, y - lower * heights[right]

    def _extent(self, register: str) -> int:
        return self.registers.parameter(self.name(register)) + 1

    def corners(self, last: Corner) -> Iterator[Corner]:
        """Yield the elements whose places the kernel computes."""
        if self.storage == STACKED:
            first, second = (self._extent(f"HEIGHT{index}_M1") - 1 for index in (0, 1))
            heights = [0]
            heights += [second] if first < second <= last.y else []
            heights += [second + 1] if second < last.y else []
            yield from (Corner(last.x, y, last.c) for y in (*heights, last.y))
            return
        yield from (Corner(x, y, last.c) for x in (0, last.x) for y in (0, last.y))
