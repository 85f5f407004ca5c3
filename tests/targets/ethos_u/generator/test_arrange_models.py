"""Whole networks stay exact however they are arranged, and cost less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

from mizzen.artifact.steps import read_network
from mizzen.conformance.cases import cases
from mizzen.frontends.tflite.lower import lower as lower_network
from mizzen.targets.ethos_u.generator.arrange import Layouts, best, in_planes, variants
from mizzen.targets.ethos_u.generator.arrange.copies import is_identity
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import Copy, Operation, Sequence
from mizzen.targets.ethos_u.generator.schedule import Estimator, schedule
from mizzen.targets.ethos_u.judge.timing import estimate
from mizzen.targets.ethos_u.machine.system_config import resolve

from .interpreter import interpret, is_same, random_inputs
from .program_judges import require_right

SMALL = resolve("ethos-u55-128")
CASES = {case.name: case for case in cases()}


def sequence_of(data: bytes) -> Sequence | None:
    """Return a network by our rules; None if they do not take all of it."""
    lowered = lower_network(read_network(data, "network"))
    graph = lowered.graph
    ends = (*graph.inputs, *graph.outputs)
    return lower(graph, [value for value in ends if lowered.is_unsigned(value)]).sequence


def cost(sequence: Sequence) -> tuple[float, float]:
    """Return the cycles of a sequence once it is a stream: by Vela's formula, by events."""
    rows = estimate(emit(schedule(sequence, SMALL), SMALL.accelerator), SMALL)
    return sum(row.vela_cycles for row in rows), sum(row.cycles for row in rows)


def test_keywords_take_a_quarter_less_and_are_right(model_file: Callable[[str], Path]) -> None:
    sequence = sequence_of(model_file("kws_ref_model.tflite").read_bytes())
    assert sequence is not None
    found = best(sequence, SMALL.accelerator, Estimator(SMALL, sequence.tensors)).sequence
    for ours, plain in zip(cost(found), cost(sequence), strict=True):
        assert ours < 0.75 * plain
    program = emit(schedule(found, SMALL), SMALL.accelerator)
    require_right(program, sequence, SMALL.accelerator)


def test_constant_channels_are_written_where_that_pays(
    model_file: Callable[[str], Path],
) -> None:
    sequence = sequence_of(model_file("vww4_128_128_INT8.tflite").read_bytes())
    assert sequence is not None
    found = best(sequence, SMALL.accelerator, Estimator(SMALL, sequence.tensors))
    what = [row.what for row in found.steps]
    assert what.count("write constant channels instead of copying them") >= 6
    copies = [row for row in found.sequence.operations if isinstance(row, Copy) or is_identity(row)]
    assert len(copies) <= 2
    assert is_same(sequence, found.sequence, range(1))


def any_cost(seed: int) -> Callable[[Operation, Layouts], float]:
    """Return costs by chance, so that anything is done."""
    chance = Random(seed)
    return lambda operation, layouts: chance.random()


@pytest.mark.parametrize(
    "model", ["rnnoise_INT8", "micro_speech_quantized", "pretrainedResnet_quant"]
)
def test_networks_stay_exact_under_any_cost(model: str, model_file: Callable[[str], Path]) -> None:
    sequence = sequence_of(model_file(f"{model}.tflite").read_bytes())
    assert sequence is not None
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
    sequence = sequence_of(CASES[name].build())
    if sequence is None:
        pytest.skip("our rules do not take it")
    inputs = random_inputs(sequence)
    try:
        expected = interpret(sequence, inputs)
    except AssertionError as error:
        pytest.skip(f"beyond the interpreter: {error}")
    configuration = resolve(accelerator)
    arranged = [row.sequence for row in variants(sequence, configuration.accelerator)]
    arranged += [
        best(sequence, configuration.accelerator, costs).sequence
        for costs in (Estimator(configuration, sequence.tensors), any_cost(0))
    ]
    for each in arranged:
        for ours, theirs in zip(interpret(each, inputs), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
