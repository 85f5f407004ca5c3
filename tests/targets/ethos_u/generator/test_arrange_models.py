"""Whole networks stay exact however they are arranged, and cost less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from mizzen.targets.ethos_u.lift import lift

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.conformance.cases import cases
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.generator.arrange import Layouts, best, in_planes, variants
from mizzen.targets.ethos_u.generator.arrange.copies import copies
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import Operation, Sequence
from mizzen.targets.ethos_u.generator.schedule import Estimator, schedule
from mizzen.targets.ethos_u.judge.timing import estimate
from mizzen.targets.ethos_u.machine.system_config import resolve

from .interpreter import interpret, is_same, random_inputs
from .program_judges import require_right

SMALL = resolve("ethos-u55-128")
CASES = {case.name: case for case in cases()}


def lifted(model: Path | bytes, accelerator: str = "ethos-u55-128") -> Iterator[Sequence]:
    """Return what Vela makes of a network, as sequences."""
    vela = {"generator": "vela"}
    artifact = mizzen.compile(model, accelerator, prove="off", target_options=vela)
    for step in artifact.steps:
        if isinstance(step, NpuStep):
            yield lift(step.program)


def cost(sequence: Sequence) -> tuple[float, float]:
    """Return the cycles of a sequence once it is a stream: by Vela's formula, by events."""
    rows = estimate(emit(schedule(sequence, SMALL), SMALL.accelerator), SMALL)
    return sum(row.vela_cycles for row in rows), sum(row.cycles for row in rows)


def test_keywords_take_a_quarter_less_and_are_right(model_file: Callable[[str], Path]) -> None:
    (sequence,) = lifted(model_file("kws_ref_model.tflite"))
    found = best(sequence, SMALL.accelerator, Estimator(SMALL, sequence.tensors)).sequence
    for ours, plain in zip(cost(found), cost(sequence), strict=True):
        assert ours < 0.75 * plain
    program = emit(schedule(found, SMALL), SMALL.accelerator)
    require_right(program, sequence, SMALL.accelerator)


def test_copies_of_maps_leave_and_of_constants_where_that_pays(
    model_file: Callable[[str], Path],
) -> None:
    (sequence,) = lifted(model_file("vww4_128_128_INT8.tflite"))
    found = best(sequence, SMALL.accelerator, Estimator(SMALL, sequence.tensors))
    what = [row.what for row in found.steps]
    assert what.count("leave out a copy") == 5
    assert what.count("write constant channels instead of copying them") >= 6
    assert len(list(copies(sequence))) == 13
    assert len(list(copies(found.sequence))) <= 2
    assert is_same(sequence, found.sequence, range(1))


def any_cost(seed: int) -> Callable[[Operation, Layouts], float]:
    """Return costs by chance, so that anything is done."""
    chance = Random(seed)
    return lambda operation, layouts: chance.random()


@pytest.mark.parametrize(
    "model", ["rnnoise_INT8", "micro_speech_quantized", "pretrainedResnet_quant"]
)
def test_networks_stay_exact_under_any_cost(model: str, model_file: Callable[[str], Path]) -> None:
    for sequence in lifted(model_file(f"{model}.tflite")):
        inputs = random_inputs(sequence)
        expected = interpret(sequence, inputs)
        for seed in range(2):
            found = best(sequence, SMALL.accelerator, any_cost(seed)).sequence
            found = in_planes(found, SMALL.accelerator, any_cost(seed))
            for ours, theirs in zip(interpret(found, inputs), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u55-256"])
def test_every_rewrite_of_every_operator_is_exact(name: str, accelerator: str) -> None:
    try:
        sequences = list(lifted(CASES[name].build(), accelerator))
    except MizzenError as error:
        pytest.skip(f"not on the NPU, or not lifted: {error.diagnostic.message}")
    for sequence in sequences:
        inputs = random_inputs(sequence)
        try:
            expected = interpret(sequence, inputs)
        except AssertionError as error:
            pytest.skip(f"beyond the interpreter: {error}")
        configuration = resolve(accelerator)
        rows = [row.sequence for row in variants(sequence, configuration.accelerator)]
        rows += [
            best(sequence, configuration.accelerator, costs).sequence
            for costs in (Estimator(configuration, sequence.tensors), any_cost(0))
        ]
        for row in rows:
            for ours, theirs in zip(interpret(row, inputs), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)
