"""The shared buffer of U55 and U65: what operations need of it, and streams that give too little.

The compiler gives each operation of the array just what it needs: its input ends where it must, and
its accumulators begin as late as they can, two banks before the end where tables are kept. So one
bank less is one too few, at every such operation of its streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.machine.commands import encode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import Program

WITH_BUFFER = [row.name for row in ACCELERATORS.values() if row.shram_kib is not None]
TABLE_BANKS = 2
Change = Callable[[int], int]


@pytest.fixture(scope="module")
def streams(repository: Path) -> Callable[[str], Program]:
    found: dict[str, Program] = {}

    def of(accelerator: str) -> Program:
        if accelerator not in found:
            path = repository / "examples" / "digits" / "digits.tflite"
            (step,) = mizzen.compile(path, accelerator, prove="off").steps
            assert isinstance(step, NpuStep)
            found[accelerator] = step.program
        return found[accelerator]

    return of


def misfits(program: Program, register: str, field: str, change: Change) -> list[str]:
    """Return what is found once every SET of a register is changed."""
    changed = [
        replace(row, values={**row.values, field: change(int(row.values[field]))})
        if row.name == register
        else row
        for row in program.instructions
    ]
    arch = ACCELERATORS[find_hazards(program).accelerator].arch
    found = find_hazards(replace(program, words=encode(changed, arch))).findings
    return [row.diagnostic.message for row in found if row.diagnostic.code == "E678"]


def kernels(program: Program, *names: str) -> list[Instruction]:
    return [row for row in program.instructions if row.name in names]


ARRAY = ("OP_CONV", "OP_DEPTHWISE", "OP_POOL")


@pytest.mark.parametrize("accelerator", WITH_BUFFER)
def test_one_bank_less_for_the_input(accelerator: str, streams: Callable[[str], Program]) -> None:
    program = streams(accelerator)
    found = misfits(program, "SET_IFM_IB_END", "ib_end", lambda end: end - 1)
    assert len(found) >= len(kernels(program, *ARRAY)) > 0
    assert all("must have" in text and "banks of the shared buffer" in text for text in found)


@pytest.mark.parametrize("accelerator", WITH_BUFFER)
def test_accumulators_that_begin_too_late(
    accelerator: str, streams: Callable[[str], Program]
) -> None:
    program = streams(accelerator)
    found = misfits(program, "SET_AB_START", "ab_start", lambda start: start + TABLE_BANKS + 1)
    late = [text for text in found if "the accumulators" in text]
    assert len(late) == len(kernels(program, *ARRAY))


@pytest.mark.parametrize("accelerator", WITH_BUFFER)
def test_blocks_that_are_too_large(accelerator: str, streams: Callable[[str], Program]) -> None:
    program = streams(accelerator)
    found = misfits(program, "SET_OFM_BLK_HEIGHT_M1", "height", lambda height: 32)
    assert found
    deep = misfits(program, "SET_OFM_BLK_DEPTH_M1", "depth", lambda depth: depth + 1)
    assert len(deep) == len(kernels(program, *ARRAY, "OP_ELEMENTWISE"))
    assert all("a block must be a" in text for text in deep)


def test_a_finding_in_words(streams: Callable[[str], Program]) -> None:
    program = streams("ethos-u55-128")
    first = misfits(program, "SET_IFM_IB_END", "ib_end", lambda end: 2)[0]
    assert first == (
        "OP_CONV: the input must have 4 banks of the shared buffer, and has 0 from bank 2"
    )
