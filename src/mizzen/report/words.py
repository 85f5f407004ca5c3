"""How numbers are written for people: sizes, shares, counts, durations; names of memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mizzen.report.cost import InferenceTime
from mizzen.report.energy import InferenceEnergy

MEMORY_NAMES: Mapping[str, str] = {
    "Sram": "SRAM",
    "Dram": "DRAM",
    "OnChipFlash": "on-chip flash",
    "OffChipFlash": "off-chip flash",
}
"""The memories that a board has, by their names in `vela.ini`."""


def size(size_bytes: int) -> str:
    """Write bytes as people read memory: `768 bytes`, `22.5 KiB`, `3.20 MiB`."""
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    if size_bytes < 1024 * 1024:
        return f"{size_bytes / 1024:.1f} KiB"
    return f"{size_bytes / (1024 * 1024):.2f} MiB"


def exact_size(size_bytes: int) -> str:
    """Write bytes as people read memory, and each of them: `22.5 KiB (23,040 bytes)`."""
    return size(size_bytes) if size_bytes < 1024 else f"{size(size_bytes)} ({size_bytes:,} bytes)"


def share(part: int, whole: int) -> str:
    """Write a part of a whole in percent; only all of it is `100 %`, only nothing is `0 %`."""
    if part == whole:
        return "100 %"
    if part == 0:
        return "0 %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"


def count(number: int, noun: str) -> str:
    """Write a number with its noun: `1 operator`, `1,024 operators`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """Write a time with three digits and the unit that suits it."""
    for unit, in_seconds in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= in_seconds:
            return f"{seconds / in_seconds:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def per_second(rate: float) -> str:
    """Write how often something is done in a second: `6,200`, `42.3`; `-` where nothing says."""
    if not rate:
        return "-"
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def inference(time: InferenceTime) -> str:
    """Say how long an inference takes, in the same words wherever it is told."""
    text = count(time.cycles, "cycle")
    if time.seconds:
        text += f", {duration(time.seconds)} at {time.clock_hz / 1e6:g} MHz"
        text += f", {per_second(time.inferences_per_second)} inferences per second"
    if time.cpu_cycles:
        text += f"; {time.cpu_cycles:,} of the cycles on {_core(time)} at {_core_clock(time)}"
    return text


def millijoules(mj: float) -> str:
    """Write an energy with two digits, which is more than is sure of one: `0.19 mJ`."""
    return f"{mj:#.2g} mJ"


def inference_energy(energy: InferenceEnergy) -> str:
    """Say what an inference takes, how sure that is, and whose figures these are."""
    text = f"{millijoules(energy.mj)} an inference, {energy.low_mj:#.2g} to {energy.high_mj:#.2g}"
    if idle := energy.parts_mj.get("idle"):
        text += f"; the idle board takes {millijoules(idle)} of it"
    return f"{text}; figures of {'; '.join(energy.sources)}"


def conversions(time: InferenceTime) -> str:
    """Say what a program's floats take besides, where the file takes integers."""
    more = count(time.conversion_cycles, "cycle")
    return f"{more} more on {_core(time)}, if your program hands over floats"


def _core(time: InferenceTime) -> str:
    return f"a {time.processor.title()}" if time.processor else "the CPU"


def _core_clock(time: InferenceTime) -> str:
    if time.processor_clock_hz in (0.0, time.clock_hz):
        return "the same clock"
    return f"{time.processor_clock_hz / 1e6:g} MHz"


def shape(dimensions: Sequence[int]) -> str:
    """Write a shape: `[1, 49, 10, 1]`."""
    return f"[{', '.join(str(dimension) for dimension in dimensions)}]"


def layer_shape(taken: Iterable[Sequence[int]], given: Iterable[Sequence[int]]) -> str:
    """Write what a layer takes and gives, without a batch of 1: `49x10x1 -> 25x5x64`."""
    before, after = (" and ".join(map(_extents, shapes)) for shapes in (taken, given))
    return f"{before} -> {after}" if before else f"-> {after}"


def _extents(dimensions: Sequence[int]) -> str:
    shown = dimensions[1:] if len(dimensions) > 1 and dimensions[0] == 1 else dimensions
    return "x".join(map(str, shown))


def memory_name(memory: str) -> str:
    """Return a memory as people call it; one that is not of `vela.ini` by its own name."""
    return MEMORY_NAMES.get(memory, memory)


def short_name(name: str) -> str:
    """Return the first of the names that a converter joined: of what was fused last."""
    return name.partition(";")[0]
