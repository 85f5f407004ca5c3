"""Artifacts of Ethos-N beside their model: judged by the NPU's roundings, not by themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.comparison import compare
from mizzen.analysis.comparison.exactness import Inputs, failures_of, notes_of
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.comparison import Outcome

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.tflite"
N78 = "ethos-n78-4tops-4ple"


def flipped(artifact: Artifact, part: bytes, rng: np.random.Generator) -> Artifact:
    """Return an artifact of which one bit in a part is another."""
    data = bytearray(artifact.data)
    place = data.index(part) + int(rng.integers(len(part)))
    data[place] ^= 1 << int(rng.integers(8))
    return artifact_of(bytes(data), artifact.name)


def holds(model: Path | bytes, artifact: Artifact) -> bool:
    try:
        return compare(model, artifact=artifact).holds
    except MizzenError:
        return False


def test_a_bit_of_the_weights(cases: Path) -> None:
    """262 of 1,000 outputs differ, and all that was said was that the code is proved."""
    folder = cases / "safety" / "n78-compare"
    artifact = folder / "digits_ethosn.tflite"
    with pytest.warns(mizzen.MizzenWarning, match="W315"):
        found = compare(folder / "digits.tflite", artifact=artifact)
    assert not found.holds
    assert found.differing
    assert [row.index for row in found.wrong] == [6]
    bias, output = failures_of(found)
    assert bias.message == (
        "biases of an operation must be the model's, and 1 of 32 are not, the first at [1]: "
        "1073742846 instead of 1022"
    )
    assert str(bias.origin) == 'digits.tflite, operator 1 CONV_2D -> "conv1"'
    assert output.message.startswith(
        "layer 6 must compute what the network in the NPU's own roundings does, and 159 of 160 "
        "elements differ"
    )


def test_bits_whose_outputs_change_are_found() -> None:
    artifact = mizzen.compile(DIGITS, N78)
    program = next(row for row in artifact.steps if isinstance(row, NpuStep)).program.program
    rng = np.random.default_rng(4)
    images = rng.integers(-128, 127, (200, 8, 8, 1), np.int8, endpoint=True)
    right, changing = artifact.run(images), 0
    for place in range(16):
        part = program.container.constant_dma if place % 4 else program.stream
        try:
            other = flipped(artifact, part, rng)
            same = np.array_equal(other.run(images), right)
        except MizzenError:
            continue
        if not same:
            changing += 1
            assert not holds(DIGITS, other)
    assert changing > 4


def test_a_sound_artifact_holds_in_other_words() -> None:
    """What the kernels round otherwise is told, and fails nothing."""
    artifact = mizzen.compile(DIGITS, N78)
    found = compare(DIGITS, artifact=artifact_of(artifact.data, "digits.tflite"))
    assert found.holds
    assert found.reference == "the network in the NPU's own roundings"
    assert found.count(Outcome.WHOLE) == 6
    assert not list(notes_of(found))
    assert found.constants is not None
    assert (found.constants.compared, found.constants.others) == (5, 0)


def test_operators_that_another_compilation_left_to_the_cpu() -> None:
    """Parts of the network are judged as they lie in the artifact, not as they would now."""
    other = mizzen.compile(DIGITS, N78, ignore_ops=["MAX_POOL_2D"])
    assert sum(isinstance(row, NpuStep) for row in other.steps) == 2
    found = compare(DIGITS, artifact=artifact_of(other.data, other.name))
    assert found.holds
    assert found.constants is not None
    assert found.constants.compared == 0
    assert [row.code for row in notes_of(found)] == ["W323"]
    rng = np.random.default_rng(2)
    program = next(row for row in other.steps if isinstance(row, NpuStep)).program.program
    bits = [flipped(other, program.container.constant_dma, rng) for _ in range(6)]
    assert not all(holds(DIGITS, row) for row in bits)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_an_artifact_of_other_weights(dtype: str) -> None:
    """The same network but for one weight: what is judged by is the model that the user gives."""
    model, other = network(dtype, 3), network(dtype, 4)
    artifact = mizzen.compile(other, N78)
    assert compare(other, artifact=artifact).holds
    found = compare(model, artifact=artifact)
    assert not found.holds
    assert found.constants is not None
    assert [(row.what, row.differing) for row in found.constants.wrong] == [("weights", 1)]


def network(dtype: str, weight: int) -> bytes:
    """One convolution, of which one weight can be chosen."""
    rng = np.random.default_rng(0)
    zero = 0 if dtype == "int8" else 128
    net = NetworkBuilder()
    x = net.tensor("x", (1, 8, 8, 16), dtype, 0.02, zero)
    kernel = rng.integers(-20, 20, (16, 3, 3, 16)) + zero
    kernel[5, 1, 1, 7] = weight + zero
    weights = net.constant("weights", kernel.astype(dtype), 0.01, zero)
    bias = net.constant("bias", rng.integers(-90, 90, 16).astype(np.int32), 0.02 * 0.01)
    y = net.tensor("y", (1, 8, 8, 16), dtype, 0.05, zero)
    options = {"stride_w": 1, "stride_h": 1}
    net.operator("CONV_2D", [x, weights, bias], [y], ("Conv2DOptions", options))
    return net.finish([x], [y])


def test_networks_of_the_zoo_hold(model_file: Callable[[str], Path]) -> None:
    file = model_file("micro_speech_quantized.tflite")
    artifact = mizzen.compile(file, N78)
    found = compare(file, artifact=artifact_of(artifact.data, artifact.name))
    assert found.holds
    assert compare(file, artifact=artifact, inputs=Inputs(count=3, seed=9)).holds
