"""Artifacts for Ethos-N whose operator has other tensors than its program has buffers."""

from __future__ import annotations

from pathlib import Path

import pytest

import mizzen
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"


def test_too_many_outputs_are_told_where_the_program_is_looked_at_and_where_it_is_run() -> None:
    compiled = mizzen.compile(DIGITS, "ethos-n78-4tops-4ple", prove="off")
    record = read_network(compiled.data, compiled.name).record
    main = record["subgraphs"][0]
    operator = main["operators"][0]  # SOFTMAX follows on the CPU
    operator["outputs"] = [*operator["outputs"]] * 2
    artifact = artifact_of(write(record, SCHEMA), "digits.tflite")
    (step,) = (row for row in artifact.steps if isinstance(row, NpuStep))
    for look in (lambda: step.view, lambda: step.simulator):
        with pytest.raises(MizzenError) as caught:
            look()
        assert caught.value.diagnostic.message == (
            "outputs of digits.tflite's NPU operator must fit [10] bytes, as its container says, "
            "and have [10, 10]"
        )
        assert caught.value.diagnostic.code == "E122"
