"""Costs against both models that judge streams, of every operation that Vela makes of networks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.targets.ethos_u.generator.schedule.cost import events, formula
from mizzen.targets.ethos_u.judge.timing import KernelWork, vela_formula
from mizzen.targets.ethos_u.judge.timing.machine import machine_of
from mizzen.targets.ethos_u.judge.timing.stages import stages_of
from mizzen.targets.ethos_u.judge.timing.work import work_of
from mizzen.targets.ethos_u.machine.program import accelerator_of
from mizzen.targets.ethos_u.machine.system_config import resolve

from .vela_streams import facts_of_work, traffic_of_work


def is_chained(work: KernelWork) -> bool:
    """Whether an operation takes from another or hands on inside the NPU."""
    return work.chained or work.goes_on


@pytest.mark.usefixtures("velas_code")
@pytest.mark.parametrize(
    "accelerator",
    [
        "ethos-u55-32",
        "ethos-u55-128",
        "ethos-u65-512",
        "ethos-u85-128",
        "ethos-u85-256",
        "ethos-u85-1024",
    ],
)
@pytest.mark.parametrize("name", ["kws_ref_model", "vww_96_int8", "rnnoise_INT8"])
def test_costs_are_those_of_the_judges(
    name: str, accelerator: str, model_file: Callable[[str], Path]
) -> None:
    artifact = mizzen.compile(model_file(f"{name}.tflite"), accelerator, prove="off")
    machine = machine_of(resolve(accelerator))
    programs = [step.program for step in artifact.steps if isinstance(step, NpuStep)]
    seen = 0
    for program in programs:
        for work in work_of(program, accelerator_of(program.hardware)):
            if not isinstance(work, KernelWork) or is_chained(work):
                continue
            seen += 1
            facts, traffic = facts_of_work(work), traffic_of_work(work, machine)
            assert facts.subkernels == work.subkernels
            blocks = np.array([work.blocks.block], np.int64)
            by_formula = formula(facts, blocks, work.part_kernel, traffic, machine)
            span = events(facts, blocks, work.part_kernel, traffic, machine)
            assert by_formula.total[0] == next(vela_formula.vela_cycles([work], machine)).total
            stages = stages_of(work, machine)
            assert span.main[0] == pytest.approx(stages.main_cycles)
            assert span.fetch[0] == pytest.approx(stages.fetch_cycles)
            assert span.drain[0] == pytest.approx(stages.drain_cycles)
    assert seen > 15
