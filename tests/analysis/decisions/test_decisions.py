"""What is read out of streams about each operation, and what other blocks would cost."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.decisions import decisions
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.report.decisions import Decision
from mizzen.targets.ethos_u.generator.shared_buffer import CORES
from mizzen.targets.ethos_u.judge.timing import KernelWork
from mizzen.targets.ethos_u.judge.timing.machine import machine_of
from mizzen.targets.ethos_u.judge.timing.vela_formula import vela_cycles
from mizzen.targets.ethos_u.judge.timing.work import work_of
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

VELA = {"generator": "vela"}
DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.tflite"


@cache
def compiled(accelerator: str) -> Artifact:
    return mizzen.compile(DIGITS, accelerator, prove="off", target_options=VELA)


@pytest.fixture(scope="module")
def digits_of_our_own() -> tuple[Decision, ...]:
    (rows,) = decisions(mizzen.compile(DIGITS, "ethos-u85-256", prove="off")).values()
    return rows


def program_of(artifact: Artifact) -> Program:
    (step,) = (row for row in artifact.steps if isinstance(row, NpuStep))
    assert isinstance(step.program, Program)
    return step.program


def rows_of(accelerator: str) -> tuple[Decision, ...]:
    (rows,) = decisions(compiled(accelerator)).values()
    return rows


def kernels(accelerator: str) -> list[KernelWork]:
    program = program_of(compiled(accelerator))
    steps = work_of(program, ACCELERATORS[accelerator])
    return [row for row in steps if isinstance(row, KernelWork)]


@pytest.mark.parametrize("accelerator", CORES)
def test_a_block_costs_what_the_formula_of_the_timing_model_gives(accelerator: str) -> None:
    machine = machine_of(resolve(accelerator))
    found = [row.taken.vela_cycles for row in rows_of(accelerator) if row.taken is not None]
    alone = [next(vela_cycles([work], machine)).total for work in kernels(accelerator)]
    assert found == alone


@pytest.mark.parametrize("accelerator", CORES)
def test_every_operation_has_its_block_and_another_that_fits(accelerator: str) -> None:
    rows = rows_of(accelerator)
    assert [row.block for row in rows] == [row.blocks.block for row in kernels(accelerator)]
    others = [row for row in rows if row.other is not None]
    assert len(others) >= 5  # those of the network; softmax goes over vectors
    assert all(row.other != row.taken and row.fitting > 1 for row in others)


@pytest.mark.parametrize("accelerator", CORES)
def test_the_buffer_is_divided_without_overlap(accelerator: str) -> None:
    for row in rows_of(accelerator):
        ends = [0, *(part.end for part in row.banks)]
        starts = [*(part.start for part in row.banks), CORES[accelerator].banks]
        assert all(end <= start for end, start in zip(ends, starts, strict=True)), row


def test_what_a_stream_says() -> None:
    first = rows_of("ethos-u55-128")[0]
    assert (first.name, first.operator) == ("OP_CONV", "operator 0 CONV_2D")
    assert (first.shape, first.block) == ("8x8x1 -> 8x8x16", (8, 8, 16))
    assert (first.order, first.layouts) == ("kernel first", ("NHWC", "NHCWB16"))
    assert (first.blockdep, first.table) == (0, None)
    tables = [row for row in rows_of("ethos-u55-128") if row.table is not None]
    assert [row.name for row in tables] == ["OP_ELEMENTWISE SUB"]
    assert tables[0].before == ("1.0 KiB from off-chip flash to the NPU's internal memory",)


@pytest.mark.parametrize("accelerator", [name for name in ACCELERATORS if "u85" in name])
def test_a_block_of_a_u85_costs_what_the_formula_gives(accelerator: str) -> None:
    """Of operations that are in a chain nothing is said: its block is that of all of them."""
    artifact = mizzen.compile(DIGITS, accelerator, prove="off")
    (rows,) = decisions(artifact).values()
    works = [row for row in work_of(program_of(artifact), ACCELERATORS[accelerator])
             if isinstance(row, KernelWork)]  # fmt: skip
    machine = machine_of(resolve(accelerator))
    for row, work in zip(rows, works, strict=True):
        assert row.banks == ()
        assert (row.taken is None) == (work.goes_on or work.chained)
        if row.taken is not None:
            assert row.taken.vela_cycles == next(vela_cycles([work], machine)).total
            assert row.other is None or row.other.block != row.taken.block
            assert row.fitting >= 1
    assert sum(row.other is not None for row in rows) >= 5


def test_what_a_u85_hands_on_lies_in_a_chain(digits_of_our_own: tuple[Decision, ...]) -> None:
    """SOFTMAX's operations on one number are chains; weights of one pixel are fast."""
    layouts = [row.layouts for row in digits_of_our_own]
    assert any(row[0] == "chain" and row[-1] != "chain" for row in layouts)
    assert any(row[-1] == "chain" and row[0] != "chain" for row in layouts)
    convolutions = [row for row in digits_of_our_own if row.constants]
    assert (convolutions[-1].operator, convolutions[-1].format) == (
        "operator 6 FULLY_CONNECTED",
        "fast",
    )
    assert "" in {row.format for row in convolutions}


def test_a_u85_has_microblocks_to_choose_from(digits_of_our_own: tuple[Decision, ...]) -> None:
    for row in digits_of_our_own:
        assert all(a % b == 0 for a, b in zip(row.block, row.microblock, strict=True)), row
    assert len({row.microblock for row in digits_of_our_own}) > 1
    assert all(not row.microblock for row in rows_of("ethos-u55-128"))
