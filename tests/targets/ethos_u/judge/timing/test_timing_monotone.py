"""What may never make a stream slower: bandwidth, shorter latency, more MACs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mizzen.targets.ethos_u.judge.timing import estimate
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import HardwareId, Program

from .timed_kernels import Kernels, system

ROUNDING = 1e-6
SHAPES = st.tuples(*(st.sampled_from(row) for row in ((1, 4, 9), (1, 7, 16), (8, 16, 40))))
BLOCKS = st.tuples(*(st.sampled_from(row) for row in ((2, 4), (2, 8, 16), (8, 16, 48))))


@st.composite
def streams(draw: DrawFn, accelerator: str) -> Program:
    """Short streams of convolutions, copies, sums, transfers and waits, whatever they compute."""
    maker = Kernels(accelerator)
    for _ in range(draw(st.integers(1, 6))):
        shape, block = draw(SHAPES), draw(BLOCKS)
        more: dict[str, Any] = {"block": block, "blockdep": draw(st.integers(0, 3))}
        match draw(st.integers(0, 5)):
            case 0 | 1:
                kernel = draw(st.sampled_from([(1, 1), (3, 3), (2, 9)]))
                deep = draw(st.booleans())
                channels = shape[2] if deep else draw(st.sampled_from([3, 32, 100]))
                part = not deep and draw(st.booleans())
                maker.convolution(shape, channels, kernel=kernel, depthwise=deep, part=part,
                                  weights=draw(st.sampled_from([16, 2048])),
                                  region=draw(st.integers(0, 1)), **more)  # fmt: skip
            case 2:
                maker.copy(0, 0x800, shape, **more)
            case 3:
                maker.sum(shape, **more)
            case 4:
                length = draw(st.sampled_from([16, 1000, 20000]))
                maker.dma(0, 0x100, length, source_region=draw(st.integers(0, 1)))
            case _:
                maker.add(draw(st.sampled_from(["OP_DMA_WAIT", "OP_KERNEL_WAIT"])))
    return maker.made()


def memories() -> SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "clock_scale": st.sampled_from([0.1, 0.5, 1.0, 3.0]),
            "read_latency_cycles": st.sampled_from([0, 32, 500]),
            "write_latency_cycles": st.sampled_from([0, 40, 250]),
            "burst_bytes": st.sampled_from([8, 32, 128]),
        }
    )


def cycles(program: Program, accelerator: str, *memory: dict[str, Any]) -> float:
    return sum(row.cycles for row in estimate(program, system(accelerator, *memory)))


BETTER: dict[str, Callable[[float], float]] = {
    "clock_scale": lambda value: value * 1.7,
    "read_latency_cycles": lambda value: value // 2,
    "write_latency_cycles": lambda value: value // 2,
    "burst_bytes": lambda value: value // 2,
}


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
@pytest.mark.parametrize("field", BETTER)
@settings(max_examples=25)
@given(data=st.data())
def test_better_memory_is_never_slower(accelerator: str, field: str, data: st.DataObject) -> None:
    program = data.draw(streams(accelerator))
    before = [data.draw(memories()), data.draw(memories())]
    after = [{**row, field: BETTER[field](row[field])} for row in before]
    either = data.draw(st.sampled_from([(0,), (1,), (0, 1)]))
    changed = [after[port] if port in either else before[port] for port in (0, 1)]
    slower = cycles(program, accelerator, *before)
    assert cycles(program, accelerator, *changed) <= slower * (1 + ROUNDING) + ROUNDING


@settings(max_examples=50)
@given(data=st.data())
def test_more_macs_are_never_slower(data: st.DataObject) -> None:
    """From 64 on: Arm's rates have the smallest array pool an element a cycle, 64 MACs half one."""
    program = data.draw(streams("ethos-u55-64"))
    memory = [data.draw(memories()), data.draw(memories())]
    found: list[float] = []
    for name in ("ethos-u55-64", "ethos-u55-128", "ethos-u55-256"):
        hardware = HardwareId(ACCELERATORS[name].config_word, 0x1010_0000)
        found.append(cycles(replace(program, hardware=hardware), name, *memory))
    for fewer, more in pairwise(found):
        assert more <= fewer * (1 + ROUNDING) + ROUNDING


@settings(max_examples=50)
@given(data=st.data())
def test_sums(data: st.DataObject) -> None:
    """Causes add up to cycles, and these to the time when the last operation has ended."""
    accelerator = data.draw(st.sampled_from(["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"]))
    program = data.draw(streams(accelerator))
    rows = estimate(program, system(accelerator, *[data.draw(memories()) for _ in range(2)]))
    for row in rows:
        assert sum(row.causes.values()) == pytest.approx(row.cycles)
        assert row.cycles >= 0
        assert row.start <= row.end
    total = sum(row.cycles for row in rows)
    assert total == pytest.approx(max((row.end for row in rows), default=0.0))
