"""Streams at random, over maps of all layouts: races and bad accesses as both oracles have them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.hazards.findings import BadAccess, MissingOutput
from mizzen.targets.ethos_u.machine.commands import decode
from mizzen.targets.ethos_u.machine.program import Program

from .bytewise import Fault, Place, faults
from .interleaving import Guarantees, Stream, races
from .maker import SIZE, Maker
from .test_planted import found_by_us

OFFSETS = st.integers(1, 15).map(lambda unit: 96 * unit)
"""Rows of narrow maps may go backwards, by a few bytes; the oracle has no addresses below 0."""
SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 3), st.sampled_from([8, 16, 24, 40]))
BLOCKS = st.tuples(st.integers(1, 2), st.integers(1, 3), st.sampled_from([8, 16, 32]))
LAYOUTS = st.fixed_dictionaries(
    {
        "bricks": st.booleans(),
        "room_x": st.sampled_from([0, 0, 8, -4]),
        "room_y": st.sampled_from([0, 0, 16, -8]),
        "split": st.sampled_from([(9, 9, 9), (9, 9, 9), (2, 2, 9), (1, 2, 2)]),
        "bases": st.sampled_from([(0, 0, 0), (0, 0, 0), (512, 1024, 640)]),
    }
)


def bad(program: Program) -> set[Fault]:
    """Return our findings about single accesses, those of one operation and memory as one."""
    found: dict[tuple[str, int, Place], tuple[int, int]] = {}
    for finding in find_hazards(program).findings:
        match finding:
            case BadAccess(operation=operation):
                offset = operation.origin.command
            case MissingOutput():
                offset = -1
            case _:
                continue
        assert offset is not None
        span = finding.span
        key = finding.diagnostic.code, offset, (span.place.kind.name.lower(), span.place.index)
        first, last = found.get(key, (span.first, span.last))
        found[key] = min(first, span.first), max(last, span.last)
    return {(*key, *ends) for key, ends in found.items()}


@settings(max_examples=120, deadline=None)
@given(st.data())
@pytest.mark.parametrize("accelerator", ["ethos-u55-32", "ethos-u65-512", "ethos-u85-256"])
def test_streams_over_all_layouts(accelerator: str, data: st.DataObject) -> None:
    maker = Maker(accelerator)
    for _ in range(data.draw(st.integers(1, 6))):
        match data.draw(st.sampled_from(["copy", "copy", "again", "dma", "kernels", "transfers"])):
            case "dma":
                region, length = data.draw(st.sampled_from([(0, 64), (1, 200), (1, 704)]))
                source, target = data.draw(OFFSETS), data.draw(OFFSETS)
                maker.dma(source, target, length, source_region=region)
            case "kernels":
                maker.add("OP_KERNEL_WAIT", n=data.draw(st.integers(0, 1)))
            case "transfers":
                maker.add("OP_DMA_WAIT", k=data.draw(st.integers(0, 1)))
            case kind:
                source, middle = data.draw(OFFSETS), data.draw(OFFSETS)
                shape, one, other = data.draw(SHAPES), data.draw(LAYOUTS), data.draw(LAYOUTS)
                more = {"block": data.draw(BLOCKS), "blockdep": data.draw(st.integers(0, 3))}
                maker.copy(source, middle, shape, ifm_layout=one, ofm_layout=other, **more)
                if kind == "again":  # reads what was written, in the same layout
                    target = data.draw(OFFSETS)
                    maker.copy(middle, target, shape, ifm_layout=other, ofm_layout=one, **more)
    inputs = [(data.draw(OFFSETS), 700) for _ in range(data.draw(st.integers(0, 3)))]
    program = maker.program(inputs, (data.draw(OFFSETS), 300))
    instructions = decode(program.words, maker.accelerator.arch)
    stream = Stream(instructions, maker.accelerator)
    conflicts = stream.conflicts(Guarantees(stream, instructions, maker.accelerator))
    assert found_by_us(program) == races(stream, conflicts, instructions, maker.accelerator)
    assert bad(program) == faults(program, instructions)
    assert all(0 <= last < 4 * SIZE for *_, last in faults(program, instructions))
