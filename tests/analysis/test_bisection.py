"""The first wrong operation of a stream: with and without one beside it that is right."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.comparison import Inputs, compare
from mizzen.analysis.comparison.accusing import Evidence
from mizzen.analysis.comparison.bisection import FirstDifference, first_difference
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.diagnostics import MizzenError

from .registers import with_setting

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.tflite"


@cache
def compiled(accelerator: str = "ethos-u55-128") -> Artifact:
    return mizzen.compile(DIGITS, accelerator)


def found(name: str, operation: int, change: int, *, beside: bool) -> FirstDifference:
    right = compiled()
    wrong = with_setting(right, name, operation, change)
    told = first_difference(wrong, DIGITS, right=right if beside else None)
    assert told is not None
    return told


@pytest.mark.parametrize("beside", [False, True])
def test_a_stream_that_is_right_has_none(beside: bool) -> None:
    right = compiled()
    assert first_difference(right, DIGITS, right=right if beside else None) is None


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(
    ("name", "operation", "change"),
    [
        ("SET_OFM_ZERO_POINT", 0, 3),
        ("SET_KERNEL_HEIGHT_M1", 3, 1),
        ("SET_IFM_BASE0", 3, 16),
        ("SET_OFM_BASE0", 2, 64),
        ("SET_IFM_BASE0", 31, 16),
    ],
)
def test_the_operation_whose_register_is_wrong_is_named(
    name: str, operation: int, change: int, *, beside: bool
) -> None:
    if operation == 31 and not beside:
        return  # a step of a SOFTMAX: nothing in the network says what it must write
    assert found(name, operation, change, beside=beside).index == operation


def test_what_is_told() -> None:
    told = found("SET_OFM_ZERO_POINT", 0, 3, beside=False)
    assert (told.kind, told.word, told.offset_bytes) == ("OP_CONV", 72, 288)
    assert (told.operator.operator, told.operator.kind) == (0, "CONV_2D")
    assert (told.tensor, told.evidence, told.fault) == ("conv0", Evidence.RESULT, None)
    assert (told.differing, told.elements, told.largest) == (3320, 4096, 3)
    assert told.came == (told.expected or 0) + 3
    assert told.as_dict()["evidence"] == "what it writes is not what it must be"


def test_a_fault_is_of_its_operation() -> None:
    told = found("SET_IFM_DEPTH_M1", 3, -1, beside=False)
    assert told.fault is not None
    assert (told.index, told.evidence) == (3, Evidence.FAULT)


def test_another_network_is_refused() -> None:
    other = Path(__file__).parents[2] / "examples" / "digits" / "digits_float.onnx"
    with pytest.raises(MizzenError, match="E832"):
        first_difference(compiled(), other)


def test_the_file_of_mesa_is_compared_by_the_numbers_of_its_tensors(tmp_path: Path) -> None:
    accelerator = "ethos-u65-256"
    artifact = mizzen.compile(
        DIGITS, accelerator, memory_mode="Shared_Sram", system_config="Ethos_U65_Embedded"
    )
    wrong = with_setting(artifact, "SET_OFM_ZERO_POINT", 0, 3)
    main = read_network(DIGITS.read_bytes(), DIGITS.name).main
    for given, holds in ((artifact, True), (wrong, False)):
        (step,) = (step for step in given.steps if isinstance(step, NpuStep))
        program = step.program
        places = zip(
            (*main.inputs, *main.outputs), (*program.inputs, *program.outputs), strict=True
        )
        table = b"".join(struct.pack("<3I", i, each.offset, each.size_bytes) for i, each in places)
        parts = program.words.tobytes(), program.constants[0].tobytes()
        sizes = len(parts[0]), len(parts[1]), program.region_bytes[1], len(table)
        file = tmp_path / "net.bin"
        file.write_bytes(struct.pack("<4Q", *sizes) + table + b"".join(parts))
        found = compare(DIGITS, artifact=mizzen.load(file, accelerator), inputs=Inputs(count=4))
        assert (found.holds, found.layers) == (holds, ())
        assert holds == (found.first is None)
        assert found.first is None or (found.first.index, found.first.tensor) == (0, "conv0")
