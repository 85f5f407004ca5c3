"""Constants as they lie in flash, each part of the NPU's by what reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mizzen.analysis.memory.layout import Constant, ConstantRead
from mizzen.targets.ethos_u.judge.hazards.footprint import run
from mizzen.targets.ethos_u.judge.hazards.intervals import Intervals


def divided(constants: Iterable[Constant], reads: Sequence[ConstantRead]) -> Iterator[Constant]:
    """Return constants, those of a stream in parts; bytes that several operations read are the
    first one's."""
    for constant in constants:
        if constant.call is None:
            yield constant
        else:
            yield from _parts(constant, [read for read in reads if read.call == constant.call])


def _parts(whole: Constant, reads: Sequence[ConstantRead]) -> Iterator[Constant]:
    rest = run(0, whole.size_bytes).intervals
    parts: dict[str, Intervals] = {}
    for read in reads:
        fresh = read.bytes & rest
        if fresh:
            parts[read.name] = parts[read.name] | fresh if read.name in parts else fresh
            rest = rest - fresh
    if rest:
        parts[f"other {whole.name}"] = rest
    for name, bytes_ in parts.items():
        at = None if whole.address is None else whole.address + bytes_.first
        yield Constant(name, bytes_.size, at)
