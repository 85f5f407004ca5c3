"""How far a stream reaches into each region, by the kernel's count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mizzen.targets.ethos_u.judge.linux.maps import Corner, FeatureMap, Role
from mizzen.targets.ethos_u.judge.linux.registers import Registers
from mizzen.targets.ethos_u.judge.linux.rules import Rule
from mizzen.targets.ethos_u.machine.commands import Arch

Broken = Iterator[tuple[Rule, str]]

KERNEL = (
    "SET_KERNEL_WIDTH_M1",
    "SET_KERNEL_HEIGHT_M1",
    "SET_KERNEL_STRIDE",
    "SET_IFM_PAD_TOP",
    "SET_IFM_PAD_LEFT",
    "SET_IFM_PAD_RIGHT",
    "SET_IFM_PAD_BOTTOM",
)
INTERNAL = 0x100
"""The bit of a transfer's region that names memory inside the NPU."""
LONGEST = 1 << 64


@dataclass
class Reach:
    """The end of what is read or written of each region, in bytes, and the written regions."""

    end: dict[int, int] = field(default_factory=dict[int, int])
    written: set[int] = field(default_factory=set[int])

    def note(self, region: int, end: int) -> None:
        """Keep how far an access reaches."""
        self.end[region] = max(self.end.get(region, 0), end)

    def add(self, feature_map: FeatureMap, last: Corner) -> Broken:
        """Keep how far a map reaches up to its last element; yield what is not set for it."""
        missing = feature_map.registers.missing(*feature_map.needed())
        yield from ((Rule.REGISTERS, f"{name} is not") for name in missing)
        if missing or feature_map.is_chained:
            return
        for corner in feature_map.corners(last):
            end = feature_map.end(corner)
            if isinstance(end, str):
                yield Rule.TILES, f"{end} is not set"
                return
            self.note(feature_map.region, end)


def kernel_reach(registers: Registers, reach: Reach) -> Broken:
    """Yield what is wrong with the IFM of a convolution or pooling."""
    missing = registers.missing(*KERNEL)
    yield from ((Rule.REGISTERS, f"{name} is not") for name in missing)
    if missing:
        return
    number, strides = registers.parameter, registers.parameter("SET_KERNEL_STRIDE")
    stride_x = (strides >> 5 & 2) + (strides & 1) + 1
    stride_y = (strides >> 8 & 2) + (strides >> 1 & 1) + 1
    dilation_x, dilation_y = 1 + (strides >> 3 & 1), 1 + (strides >> 4 & 1)
    padding_x = (number("SET_IFM_PAD_LEFT") & 0x7F) + (number("SET_IFM_PAD_RIGHT") & 0xFF)
    padding_y = (number("SET_IFM_PAD_TOP") & 0x7F) + (number("SET_IFM_PAD_BOTTOM") & 0xFF)
    covered_x = number("SET_OFM_WIDTH_M1") * stride_x + number("SET_KERNEL_WIDTH_M1") * dilation_x
    covered_y = number("SET_OFM_HEIGHT_M1") * stride_y + number("SET_KERNEL_HEIGHT_M1") * dilation_y
    if covered_x < padding_x or covered_y < padding_y:
        came = f"{padding_y} x {padding_x} of padding meet {covered_y} x {covered_x}"
        yield Rule.WINDOW, came
        return
    last = Corner(covered_x - padding_x, covered_y - padding_y, number("SET_IFM_DEPTH_M1"))
    yield from reach.add(FeatureMap(Role.IFM, registers), last)


def stream_reach(registers: Registers, reach: Reach, kind: str) -> Broken:
    """Yield what is wrong with the weights or scales of an operation; `kind` names which."""
    extra = {
        ("WEIGHT", Arch.U65): ("WEIGHT1",),
        ("WEIGHT", Arch.U85): ("WEIGHT1", "WEIGHT2", "WEIGHT3"),
        ("SCALE", Arch.U65): ("SCALE1",),
    }
    region = f"SET_{kind}_REGION"
    for name in (kind, *extra.get((kind, registers.arch), ())):
        base, length = f"SET_{name}_BASE", f"SET_{name}_LENGTH"
        unset = registers.missing(base, length)
        if name != kind and len(unset) == 2:
            continue
        missing = registers.missing(region, base, length)
        yield from ((Rule.BUFFER, f"{each} is not set") for each in missing)
        if not missing:
            end = registers.address(base) + registers.length(length)
            reach.note(registers.parameter(region) & 7, end)


def transfer_reach(registers: Registers, reach: Reach) -> Broken:
    """Yield what is wrong with a transfer."""
    strides = {
        Arch.U65: ("SET_DMA0_SKIP0", "SET_DMA0_SKIP1"),
        Arch.U85: ("SET_DMA0_SRC_STRIDE0", "SET_DMA0_SRC_STRIDE1"),
    }[registers.arch]
    yield from _side(registers, reach, "SRC", strides)
    yield from _side(registers, reach, "DST", ("SET_DMA0_DST_STRIDE0", "SET_DMA0_DST_STRIDE1"))
    parameter = registers.parameter("SET_DMA0_DST_REGION")
    if not parameter & INTERNAL:
        reach.written.add(parameter & 7)


def _side(registers: Registers, reach: Reach, side: str, strides: tuple[str, str]) -> Broken:
    """Yield what is wrong with the reading or the writing of a transfer.

    A stride that nothing has set counts as 0: the kernel means to refuse it, and does not.
    """
    region = f"SET_DMA0_{side}_REGION"
    parameter = registers.parameter(region)
    dimensions = parameter >> 9 & 3
    sizes = ("SET_DMA0_SIZE0", "SET_DMA0_SIZE1")[:dimensions]
    missing = registers.missing(region, f"SET_DMA0_{side}", "SET_DMA0_LEN", *sizes)
    yield from ((Rule.TRANSFER, f"{name} is not set") for name in missing)
    empty = [name for name in sizes if registers.has(name) and not registers.parameter(name)]
    yield from ((Rule.TRANSFER, f"{name} is 0") for name in empty)
    if missing or empty:
        return
    length = registers.address("SET_DMA0_LEN")
    for size, stride in zip(sizes, strides, strict=False):
        length += registers.signed(stride)
        if length < 0:
            yield Rule.STRIDE, f"{stride} is {registers.signed(stride)}"
            return
        length *= registers.parameter(size)
    end = length + registers.address(f"SET_DMA0_{side}")
    if end >= LONGEST:
        yield Rule.TRANSFER, "its end is beyond 64 bits"
    elif not parameter & INTERNAL:
        reach.note(parameter & 7, end)
