"""What is strange in a stream, without the network: and nothing in one that is right."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.checking.artifacts import check_artifact
from mizzen.analysis.checking.invariants import invariants_of, strange_outputs
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.package.tflite.builder import NetworkBuilder

from .registers import with_setting

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.tflite"


@cache
def compiled(accelerator: str = "ethos-u55-128") -> Artifact:
    return mizzen.compile(DIGITS, accelerator)


def codes(artifact: Artifact) -> list[str]:
    return [each.code for each in invariants_of(artifact)]


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_nothing_is_strange_in_a_stream_that_is_right(accelerator: str) -> None:
    artifact = compiled(accelerator)
    assert codes(artifact) == []
    assert [each.code for each in check_artifact(artifact).doubts] == []


def test_a_result_that_nothing_reads_is_told_with_its_operator() -> None:
    told = list(invariants_of(with_setting(compiled(), "SET_OFM_BASE0", 2, 512)))
    (dead,) = (each for each in told if each.code == "W340")
    assert dead.message == (
        "what an operation writes must be read by another or leave the program, and nothing reads "
        "the result of operation 2, OP_DEPTHWISE"
    )
    assert dead.origin is not None
    assert (dead.origin.operator, dead.origin.command) == (2, 126)


def test_a_network_that_no_input_reaches_is_told() -> None:
    told = codes(with_setting(compiled(), "SET_IFM_BASE0", 0, 144))
    assert told == ["N671", "N670"]


def test_a_table_that_no_function_takes_is_told() -> None:
    wrong = with_setting(compiled(), "SET_ACTIVATION", 8, -0x3010)
    assert codes(wrong) == ["W342"]


def test_constants_that_nothing_reads_are_told() -> None:
    artifact = compiled()
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    more = np.concatenate([step.program.constants[0], np.ones(1 << 14, np.uint8)])
    program = replace(step.program, constants={0: more})
    other = NpuStep(step.family, replace(step.part, program=program))
    contents = replace(artifact.contents, steps=(other,))
    assert codes(Artifact(artifact.data, artifact.name, contents)) == ["W341"]


def test_outputs_that_never_vary_or_are_all_at_an_end_are_told() -> None:
    net = NetworkBuilder()
    x = net.tensor("x", (1, 4, 4, 8), "int8", 0.02, 3)
    y = net.tensor("y", (1, 4, 4, 8), "int8", 0.02, 0)
    net.operator("RELU", [x], [y])
    artifact = mizzen.compile(net.finish([x], [y]), "ethos-u55-128")
    inputs = [np.arange(4 * 128).reshape(4, 4, 4, 8).astype(np.int8)]
    same = np.full((4, 1, 4, 4, 8), 5, np.int8)
    largest = np.full((4, 1, 4, 4, 8), 127, np.int8)
    largest[0, 0, 0, 0, 0] = 3
    assert [each.code for each in strange_outputs(artifact, inputs, [same])] == ["N672"]
    assert [each.code for each in strange_outputs(artifact, inputs, [largest])] == ["N673"]
    assert not list(strange_outputs(artifact, inputs, [inputs[0][:, np.newaxis]]))
