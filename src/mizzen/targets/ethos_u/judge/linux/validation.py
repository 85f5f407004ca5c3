"""Follow a stream as the kernel does, and say what it would refuse.

The kernel ends at the first refusal. Here all are listed, since a stream has to be mended of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mizzen.diagnostics import Diagnostic, Origin
from mizzen.targets.ethos_u.judge.linux.maps import NHCWB16, Corner, FeatureMap, Role
from mizzen.targets.ethos_u.judge.linux.reach import (
    Reach,
    kernel_reach,
    stream_reach,
    transfer_reach,
)
from mizzen.targets.ethos_u.judge.linux.registers import RESERVED, Registers, Word, words_of
from mizzen.targets.ethos_u.judge.linux.rules import Rule
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of

PAGE_BYTES = 4096
"""Buffers are rounded up to pages."""
SRAM_REGION = 2
WEIGHTS_ARE_IFM2 = 1
GLOBAL_SCALE = 0x100
TRANSPOSE = 0x3800
INDEX_MODE = 0x800
STRIDE_MODE_SHIFT = 9
POOL_WITHOUT_INPUT = 4
"""The mode of OP_POOL for which the kernel counts no IFM."""
UNARY = (5, 6, 7, 0x24)
"""Modes of OP_ELEMENTWISE for which the kernel counts no IFM2."""
SCALAR_U65, SCALAR_U85 = 0x80, 8
FORBIDDEN = {
    "OP_IRQ": Rule.NO_INTERRUPT,
    "OP_BRANCH": Rule.NO_BRANCH,
    "OP_RESIZE": Rule.NO_RESIZE,
}
"""Commands that no stream may have."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule that a stream breaks, where, and how."""

    rule: Rule
    came: str
    command: str = ""
    at: int | None = None
    origin: Origin = field(default_factory=Origin)

    @property
    def diagnostic(self) -> Diagnostic:
        """Return the refusal as an error at its command."""
        where = f"{self.command}: " if self.command else ""
        return Diagnostic(
            "E680",
            f"{where}Linux would refuse the stream: {self.rule.must}, and {self.came}",
            origin=self.origin,
            rule=self.rule.source,
            help=self.rule.remedy,
        )

    def as_dict(self) -> dict[str, object]:
        """Return the refusal as JSON-ready data."""
        return {
            **self.diagnostic.as_dict(),
            "linux_rule": self.rule.name,
            "command": self.command,
            "offset_words": self.at,
        }


@dataclass(frozen=True, slots=True)
class LinuxReport:
    """What the kernel would say of a stream.

    refusals      every rule that it breaks, in the stream's order
    region_bytes  how long the buffer of each region must be, by the kernel's count
    written       the regions that the stream writes to
    """

    refusals: tuple[Refusal, ...]
    region_bytes: Mapping[int, int]
    written: frozenset[int]

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The refusals as errors."""
        return tuple(refusal.diagnostic for refusal in self.refusals)

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready data."""
        return {
            "refusals": [refusal.as_dict() for refusal in self.refusals],
            "region_bytes": {str(region): size for region, size in self.region_bytes.items()},
            "written_regions": sorted(self.written),
        }


def would_linux_take(program: Program, sram_bytes: int | None = None) -> LinuxReport:
    """Return what Linux would refuse of a program; E604 and E605 if it names no accelerator.

    Buffers are those of the program's regions, rounded up to pages. Where `sram_bytes` is given,
    region 2 is the board's SRAM of so many bytes.
    """
    arch = accelerator_of(program.hardware).arch
    if arch is Arch.U55:
        refusal = Refusal(Rule.NPU, "this is for a U55", origin=Origin(kind="ethos-u55"))
        return LinuxReport((refusal,), {}, frozenset())
    reader = _Reader(program, arch)
    refusals = [*reader.refusals(), *_room(program, reader.reach, sram_bytes)]
    return LinuxReport(
        tuple(refusals),
        dict(sorted(reader.reach.end.items())),
        frozenset(reader.reach.written),
    )


def _room(program: Program, reach: Reach, sram_bytes: int | None) -> Iterator[Refusal]:
    for region, end in sorted(reach.end.items()):
        if region == SRAM_REGION and sram_bytes is not None:
            if end > sram_bytes:
                came = f"the stream reaches to byte {end} of {sram_bytes}"
                yield Refusal(Rule.SRAM, came, origin=_region(region))
            continue
        size = program.region_bytes.get(region, 0)
        if end > -(-size // PAGE_BYTES) * PAGE_BYTES:
            came = f"it reaches to byte {end} of region {region}, which has {size}"
            yield Refusal(Rule.ROOM, came, origin=_region(region))


def _region(number: int) -> Origin:
    return Origin(kind=f"region {number}")


class _Reader:
    """Follows the registers of one stream."""

    def __init__(self, program: Program, arch: Arch) -> None:
        self._program = program
        self._arch = arch
        self._registers = Registers(arch)
        self.reach = Reach()

    def refusals(self) -> Iterator[Refusal]:
        """Yield what breaks a rule, command by command."""
        ended_at = None
        for word in words_of(self._program.words, self._arch):
            if isinstance(word, int):
                yield self._refusal(Rule.WORDS, "its second word is missing", "", word)
                break
            self._registers.write(word)
            if word.name == "OP_STOP":
                ended_at = word.at
            for rule, came in self._broken(word):
                yield self._refusal(rule, came, word.name, word.at)
        if ended_at != len(self._program.words) - 1:
            came = "it has none" if ended_at is None else "words come after it"
            yield self._refusal(Rule.ENDS, came, "", ended_at)

    def _refusal(self, rule: Rule, came: str, command: str, at: int | None) -> Refusal:
        known = self._program.origins.get(4 * at) if at is not None else None
        origin = known or Origin(command=at)
        return Refusal(rule, came, command, at, origin)

    def _broken(self, word: Word) -> Iterator[tuple[Rule, str]]:
        match word.name:
            case "OP_STOP" if word.at != len(self._program.words) - 1:
                yield Rule.ENDS, "words come after it"
            case name if name in FORBIDDEN:
                yield FORBIDDEN[name], "it is"
            case "OP_CONV" | "OP_DEPTHWISE" | "OP_POOL":
                yield from self._kernel(word)
            case "OP_ELEMENTWISE":
                yield from self._elementwise(word)
            case "OP_DMA_START":
                yield from transfer_reach(self._registers, self.reach)
            case "SET_IFM_PRECISION" | "SET_IFM2_PRECISION" | "SET_OFM_PRECISION":
                yield from self._precision(word)
            case "SET_DMA0_SRC_REGION" | "SET_DMA0_DST_REGION":
                yield from _transfer_mode(word)
            case "" if word.key & RESERVED:
                yield Rule.WORDS, f"bits 13:10 of {word.key:#06x} are not"
            case _:
                pass

    def _precision(self, word: Word) -> Iterator[tuple[Rule, str]]:
        if word.parameter >> 6 & 3 > NHCWB16:
            yield Rule.LAYOUT, f"the layout is number {word.parameter >> 6 & 3}"
        if (
            word.name == "SET_OFM_PRECISION"
            and self._arch is Arch.U85
            and word.parameter & TRANSPOSE
        ):
            yield Rule.NOT_TRANSPOSED, f"the permutation is number {word.parameter >> 11 & 7}"

    def _kernel(self, word: Word) -> Iterator[tuple[Rule, str]]:
        product = False
        if word.name == "OP_CONV":
            allowed = WEIGHTS_ARE_IFM2 if self._arch is Arch.U85 else 0
            if word.parameter & ~allowed:
                yield Rule.CONVOLUTION, f"it is {word.parameter:#x}"
            product = bool(word.parameter & WEIGHTS_ARE_IFM2)
        reads = not (word.name == "OP_POOL" and word.parameter == POOL_WITHOUT_INPUT)
        if reads:
            yield from kernel_reach(self._registers, self.reach)
        if product:
            registers = self._registers
            corner = Corner(
                registers.parameter("SET_IFM_DEPTH_M1"),
                0,
                registers.parameter("SET_OFM_DEPTH_M1"),
            )
            yield from self.reach.add(FeatureMap(Role.IFM2, registers), corner)
        if word.name != "OP_POOL" and not product:
            yield from stream_reach(self._registers, self.reach, "WEIGHT")
        if not self._registers.parameter("SET_OFM_PRECISION") & GLOBAL_SCALE:
            yield from stream_reach(self._registers, self.reach, "SCALE")
        yield from self._result()

    def _elementwise(self, word: Word) -> Iterator[tuple[Rule, str]]:
        registers, binary = self._registers, word.parameter not in UNARY
        needed = ["SET_IFM_BROADCAST"] if self._arch is Arch.U85 else []
        needed += ["SET_IFM2_BROADCAST"] if binary else []
        for name in registers.missing(*needed):
            yield Rule.BROADCAST, f"{name} is not"
        second = registers.parameter("SET_IFM2_BROADCAST")
        scalar = second & SCALAR_U65 if self._arch is Arch.U65 else second == SCALAR_U85
        if registers.parameter("SET_IFM_BROADCAST") != SCALAR_U85:
            yield from self._operand(Role.IFM)
        if binary and not scalar:
            yield from self._operand(Role.IFM2)
        yield from self._result()

    def _operand(self, role: Role) -> Iterator[tuple[Rule, str]]:
        """Yield what is wrong with an operand; an axis that is broadcast has one element."""
        broadcast = self._registers.parameter(f"SET_{role.prefix}_BROADCAST")
        last = self._last_result()
        corner = Corner(
            0 if broadcast & 2 else last.x,
            0 if broadcast & 1 else last.y,
            0 if broadcast & 4 else last.c,
        )
        yield from self.reach.add(FeatureMap(role, self._registers), corner)

    def _last_result(self) -> Corner:
        number = self._registers.parameter
        return Corner(
            number("SET_OFM_WIDTH_M1"), number("SET_OFM_HEIGHT_M1"), number("SET_OFM_DEPTH_M1")
        )

    def _result(self) -> Iterator[tuple[Rule, str]]:
        ofm = FeatureMap(Role.OFM, self._registers)
        yield from self.reach.add(ofm, self._last_result())
        if not ofm.is_chained:
            self.reach.written.add(ofm.region)


def _transfer_mode(word: Word) -> Iterator[tuple[Rule, str]]:
    if word.parameter & INDEX_MODE:
        yield Rule.INDEXED, "it does"
    if word.parameter >> STRIDE_MODE_SHIFT & 3 == 3:
        yield Rule.TRANSFER, "its number of dimensions is reserved"
