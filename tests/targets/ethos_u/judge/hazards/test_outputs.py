"""Outputs that do not last, and inputs that are read behind the program and written over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mizzen.targets.ethos_u.judge.hazards import Surroundings, find_hazards
from mizzen.targets.ethos_u.machine.program import Program

from .maker import SIZE, Maker

IN, OUT, ELSEWHERE = 0x100, 0x200, 0x800
SHAPE, BYTES = (2, 8, 16), 256
HALF = (1, 8, 16)


def codes(program: Program, around: Surroundings | None = None) -> list[str]:
    return [row.code for row in find_hazards(program, around).diagnostics]


def program_of(*copies: tuple[int, int, tuple[int, int, int]]) -> Program:
    """Copies from, to, and how much; each for an operator of its own."""
    maker = Maker("ethos-u85-256")
    for source, target, shape in copies:
        maker.copy(source, target, shape)
    return maker.program([(IN, BYTES)], (OUT, BYTES))


def of_one_operator(program: Program) -> Program:
    first = next(iter(program.origins.values()))
    return replace(program, origins=dict.fromkeys(program.origins, first))


def test_an_output_that_lasts() -> None:
    assert codes(program_of((IN, OUT, SHAPE))) == []
    assert codes(program_of((IN, OUT, SHAPE), (OUT, ELSEWHERE, SHAPE))) == []


@pytest.mark.parametrize("target", [OUT - 0x40, OUT + 0xC0])
def test_a_later_operation_over_a_part_of_an_output(target: int) -> None:
    program = program_of((IN, OUT, SHAPE), (OUT, ELSEWHERE, SHAPE), (ELSEWHERE, target, HALF))
    (found,) = find_hazards(program).findings
    assert found.diagnostic.render().startswith(
        "error[E597]: OP_POOL: OFM must not write over output 'output', bytes "
        f"{max(OUT, target)}..{min(OUT + BYTES, target + 128) - 1} of region 1, which OP_POOL at "
    )
    assert found.as_dict()["first_byte"] == max(OUT, target)


def test_a_later_operation_over_a_whole_output_that_nobody_has_read() -> None:
    assert codes(program_of((IN, OUT, SHAPE), (IN, OUT, SHAPE))) == ["E597"]


def test_memory_of_an_output_that_was_used_before() -> None:
    """What was there before is nobody's, read or not."""
    before = (IN, OUT - 0x40, HALF), (IN, OUT + 0x40, HALF)
    assert codes(program_of(*before, (IN, OUT, SHAPE))) == []
    wide = program_of((IN, OUT - 0x40, (2, 8, 32)), (IN, OUT, SHAPE))
    (given,) = wide.inputs
    assert codes(replace(wide, inputs=(replace(given, shape=(2 * BYTES,)),))) == []


def test_an_output_over_its_own_input() -> None:
    assert codes(program_of((IN, OUT, SHAPE), (OUT, OUT, SHAPE))) == []


def test_an_output_in_parts_of_several_operators() -> None:
    parts = (IN, OUT, HALF), (IN, OUT + 0x80, HALF)
    assert codes(program_of(*parts)) == []
    assert codes(program_of(*parts, (IN, OUT + 0xC0, HALF))) == ["E597"]


def test_what_one_operator_leaves_undone_another_completes() -> None:
    """Vela lets an operator write rows of the output that the PAD behind it fills."""
    half = (IN, OUT + 0x40, HALF)
    assert codes(program_of((IN, OUT, SHAPE), half)) == []
    assert codes(program_of((IN, OUT, SHAPE), (OUT, ELSEWHERE, HALF), half)) == []


def test_operations_of_one_operator_may_overlap() -> None:
    program = program_of((IN, OUT, SHAPE), (IN, OUT + 0xC0, HALF))
    assert codes(program) == ["E597"]
    assert codes(of_one_operator(program)) == []
    assert codes(replace(program, origins={})) == []


def test_a_transfer_over_an_output() -> None:
    maker = Maker("ethos-u85-256")
    maker.copy(IN, OUT, SHAPE)
    maker.copy(OUT, ELSEWHERE, SHAPE)
    maker.add("OP_KERNEL_WAIT", n=0)
    maker.dma(IN, OUT + 0xE0, 64)
    assert codes(maker.program([(IN, BYTES)], (OUT, BYTES))) == ["E597"]


@pytest.mark.parametrize("target", [IN, IN - 0x80, IN + 0x80])
def test_an_input_that_is_read_behind_the_program(target: int) -> None:
    program = program_of((IN, OUT, SHAPE), (OUT, target, SHAPE))
    if target + BYTES > OUT:
        program = program_of((IN, OUT, SHAPE), (OUT, target, HALF))
    kept = Surroundings({1: [(0, SIZE)]}, frozenset((0,)), {0: [(0, SIZE)]})
    assert codes(program) == []
    assert codes(program, replace(kept, kept={})) == []
    (found,) = find_hazards(program, kept).findings
    assert found.diagnostic.render().startswith(
        "error[E598]: OP_POOL: OFM must not write to input 'i256', which is read after the "
        "program, and writes "
    )
    assert found.as_dict()["memory"] == "region 1"


def test_an_input_that_several_programs_complete() -> None:
    """What no program before has written of an input may be written: a concatenation's part."""
    program = program_of((IN, OUT, SHAPE), (OUT, IN, HALF))
    done = Surroundings({1: [(0, SIZE)]}, frozenset((0,)), {0: [(IN + BYTES // 2, IN + BYTES)]})
    assert codes(program, done) == []
    assert codes(program, replace(done, kept={0: [(IN, IN + 1)]})) == ["E598"]
