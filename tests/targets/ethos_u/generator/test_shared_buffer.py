"""The shared buffer: against the registers of Vela's streams, and against the hazard checker."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.conformance.cases import cases
from mizzen.conformance.compilers import Built, Compiler, build
from mizzen.targets.ethos_u.generator.shared_buffer import (
    CORES,
    LARGEST_BLOCK,
    Demand,
    Parts,
    fits,
    parts_of,
)
from mizzen.targets.ethos_u.judge.hazards import shared_buffer as judge
from mizzen.targets.ethos_u.machine.commands_values import AccFormat
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

from . import buffer_registers as read

SEED = 17
VELA = {"generator": "vela"}


def agreements(program: Program) -> int:
    """Hold our parts to the registers of each operation of a stream; return how many."""
    core = CORES[name_of(program)]
    count = 0
    for kernel, registers in read.kernels(program):
        demand = read.demand(kernel, registers)
        part = read.is_part_kernel(registers) if demand.has_traversal else False
        found = parts_of(demand, registers.block(), part, core)
        if kernel.mode in read.UNARY:
            assert found is not None
            found = replace(found, ifm2_ib_start=None)
        assert found == read.parts(kernel, registers), (kernel.name, demand, registers.block())
        count += 1
    return count


def name_of(program: Program) -> str:
    word = program.hardware.config_word if program.hardware else 0
    return next(row.name for row in ACCELERATORS.values() if row.config_word == word)


@pytest.mark.parametrize("accelerator", CORES)
def test_vela_gives_operations_the_same_parts(
    accelerator: str, repository: Path, model_file: Callable[[str], Path]
) -> None:
    files = [repository / "examples" / "digits" / "digits.tflite"]
    files.append(model_file("pretrainedResnet_quant.tflite"))
    for path in files:
        steps = mizzen.compile(path, accelerator, prove="off", target_options=VELA).steps
        programs = [step.program for step in steps if isinstance(step, NpuStep)]
        assert sum(map(agreements, programs)) > 5


@pytest.mark.sweep
@pytest.mark.parametrize("accelerator", CORES)
def test_vela_gives_single_operators_the_same_parts(accelerator: str) -> None:
    count = 0
    for case in cases():
        outcome = build(case.build(), f"{case.name}.tflite", Compiler.REGOR, resolve(accelerator))
        if isinstance(outcome, Built):
            for step in artifact_of(outcome.network, "network.tflite").steps:
                if isinstance(step, NpuStep):
                    count += agreements(step.program)
    assert count > 1000


def demands(rng: random.Random) -> Iterator[Demand]:
    """Return demands of every kind, without end."""
    while True:
        ifm_bytes = rng.choice((1, 2, 4))
        if rng.random() < 0.3:
            inputs = rng.choice((1, 2))
            yield Demand(1, 1, 1, 1, 1, False, ifm_bytes, None, False, False, None, inputs, False)
            continue
        height, width = rng.randint(1, 8), rng.randint(1, 8)
        upscale = rng.choice((1, 1, 2))
        full = rng.random() < 0.6
        yield Demand(
            height,
            width,
            rng.randint(1, 3),
            rng.randint(1, 3),
            upscale,
            upscale == 2 and rng.random() < 0.5,
            ifm_bytes,
            rng.randint(1, 70) if full else None,
            full,
            rng.random() < 0.2,
            rng.choice((AccFormat.I32, AccFormat.I40)),
            1,
            height == 1 and rng.random() < 0.5,
        )


def block_of(rng: random.Random, unit: tuple[int, int, int]) -> tuple[int, int, int]:
    height, width, depth = (
        least * min(rng.randint(1, most // least) for _ in range(3))
        for least, most in zip(unit, LARGEST_BLOCK, strict=True)
    )
    return height, width, depth


def needed(demand: Demand, block: tuple[int, int, int], part: bool, name: str) -> list[int]:
    """Return the banks of each part by the checker's formula."""
    accelerator = ACCELERATORS[name]
    registers = read.registers_of(demand, block, part, Parts(0, 0, 0), accelerator)
    is_elementwise = demand.accumulators is None
    channels = demand.ifm_depth_of_job(part) or block[2]
    use = judge.Use(is_elementwise, demand.inputs == 2, demand.has_table, channels)
    shape = (1 if demand.one_row else 64, 64, 64)
    return [row.needed for row in judge.parts(registers, accelerator, shape, use)]


@pytest.mark.parametrize("name", CORES)
def test_what_fits_is_what_the_checker_says(name: str) -> None:
    rng, core = random.Random(SEED), CORES[name]
    kinds = demands(rng)
    fitting = 0
    for _ in range(600):
        demand, block, part = next(kinds), block_of(rng, core.microblock), rng.random() < 0.5
        tables = 2 if demand.has_table or core.keeps_tables else 0
        banks = needed(demand, block, part, name)
        found = parts_of(demand, block, part, core)
        assert (found is not None) == (2 + sum(banks) <= core.banks - tables)
        if found is None:
            continue
        fitting += 1
        assert found.ib_end >= 2 + banks[0]
        end = found.ib_end if demand.accumulators is None else core.banks - tables
        second = found.ab_start if found.ifm2_ib_start is None else found.ifm2_ib_start
        assert len(banks) == 1 or end - second >= banks[1]
    assert fitting > 100


@pytest.mark.parametrize("name", CORES)
def test_blocks_are_looked_at_together_as_one_by_one(name: str) -> None:
    rng, core = random.Random(SEED), CORES[name]
    kinds = demands(rng)
    for _ in range(40):
        demand, part = next(kinds), rng.random() < 0.5
        blocks = [block_of(rng, core.microblock) for _ in range(20)]
        blocks += [(1, 1, 1), (3, 5, 9), (0, 0, 0), (34, 2, 8), (2, 66, 8), (2, 2, 136)]
        together = fits(demand, np.array(blocks), part, core).tolist()
        assert together == [parts_of(demand, row, part, core) is not None for row in blocks]
