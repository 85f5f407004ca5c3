"""Compiled networks beside TensorFlow Lite Micro: counts, names, and damage that must be found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.comparison.constants import constants_beside
from mizzen.analysis.comparison.exactness import Inputs, compare, failures_of, notes_of
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.comparison import Outcome

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.tflite"


def test_every_layer_is_what_the_kernels_compute() -> None:
    found = compare(DIGITS, "ethos-u55-128", inputs=Inputs(count=3, seed=5))
    assert found.holds
    assert (found.inputs, found.run, found.seed) == (3, 1, 5)
    assert [row.outcome for row in found.layers if row.kind != "RESHAPE"] == [Outcome.EQUAL] * 7
    (view,) = (row for row in found.layers if row.kind == "RESHAPE")
    assert (view.outcome, view.into, view.elements) == (Outcome.FUSED, 6, 0)


def test_elements_are_those_of_the_tensors() -> None:
    found = compare(DIGITS, "ethos-u65-256", inputs=Inputs(count=3))
    main = read_network(DIGITS.read_bytes(), "digits").main
    seen = [row for row in found.layers if row.elements]
    assert len(seen) == 7
    for row in seen:
        (output,) = main.operators[row.index].outputs
        assert row.elements == 3 * main.tensors[output].elements
        assert row.name == main.tensors[output].name


def test_the_user_s_arrays_are_inferred(tmp_path: Path) -> None:
    images = np.load(DIGITS.with_name("images.npy"))[:7]
    found = compare(DIGITS, "ethos-u55-32", inputs=Inputs(arrays=[images]))
    assert (found.inputs, found.seed, found.elements) == (7, None, 70)


def damaged(artifact: mizzen.Artifact, layer: int) -> mizzen.Artifact:
    """Change the first scale of a layer among the constants of the NPU operator."""
    report = artifact.report
    assert report is not None
    network = read_network(artifact.data, artifact.name)
    (operator,) = network.main.operators
    constants = network.main.tensors[operator.inputs[1]].data
    assert constants is not None
    data = bytearray(artifact.data)
    start = artifact.data.index(constants.tobytes())
    data[start + scales_of(artifact, layer) + SCALE_BYTE] ^= 0x70
    return artifact_of(bytes(data), artifact.name, report, report.origins)


SCALE_BYTE = 8
"""Of the ten of a channel the highest of its scale, behind a bias of 40 bits."""


def scales_of(artifact: mizzen.Artifact, layer: int) -> int:
    """Return where the scales and biases of a layer begin among the constants."""
    (step,) = (step for step in artifact.steps if isinstance(step, NpuStep))
    assert artifact.report is not None
    (origins,) = artifact.report.origins
    base, offset = 0, 0
    for instruction in step.program.instructions:
        if instruction.command.name == "SET_SCALE_BASE":
            base = instruction.values["address"]
        if offset in origins and origins[offset].operator == layer:
            return base
        offset += 4 * instruction.command.words
    raise AssertionError(layer)


@pytest.mark.parametrize("layer", [0, 2, 6])
def test_a_damaged_layer_is_named(layer: int) -> None:
    artifact = mizzen.compile(DIGITS, "ethos-u55-128")
    broken = damaged(artifact, layer)
    found = compare(DIGITS, artifact=broken)
    assert [row.index for row in found.wrong] == [layer]
    later = [row.outcome for row in found.layers if row.index > layer and row.elements]
    assert set(later) <= {Outcome.INHERITED, Outcome.EQUAL}
    constants, failure = failures_of(found)
    assert (constants.code, failure.code) == ("E692", "E483")
    assert "multipliers of an operation must be the model's, and 1 of " in constants.message
    assert constants.origin == failure.origin
    assert f"layer {layer} must compute what TensorFlow Lite Micro does" in failure.message
    assert failure.origin is not None
    assert failure.origin.operator == layer


def test_an_artifact_without_its_report_has_its_layers_named(tmp_path: Path) -> None:
    artifact = mizzen.compile(DIGITS, "ethos-u55-128")
    file = tmp_path / "digits_vela.tflite"
    file.write_bytes(artifact.data)
    found = compare(DIGITS, artifact=file)
    assert found.holds
    assert found.count(Outcome.EQUAL) == 7


@pytest.mark.usefixtures("velas_code")
def test_a_stream_that_cannot_be_executed_is_told_with_its_layer() -> None:
    artifact = mizzen.compile(DIGITS, "ethos-u55-128", prove="off")
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    data = bytearray(artifact.data)
    constants = data.index(step.program.constants[0].tobytes())
    data[constants + 5500] ^= 0x40  # padding behind the weights of a layer
    with pytest.raises(MizzenError, match=r'E622.*\n.*operator 1 CONV_2D -> "conv1"'):
        compare(DIGITS, artifact=artifact_of(bytes(data), artifact.name))


def test_a_network_that_the_kernels_do_not_take_has_another_reference() -> None:
    """TensorFlow Lite Micro has no RELU_0_TO_1; the graph of integers has."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, 4, 4, 8), "int8", 0.02, 3)
    y = net.tensor("y", (1, 4, 4, 8), "int8", 1 / 255, -128)
    net.operator("RELU_0_TO_1", [x], [y])
    found = compare(net.finish([x], [y]), "ethos-u55-128", inputs=Inputs(count=2))
    assert found.holds
    assert found.reference == "the integer reference"
    assert found.elements == 2 * 128


def test_layers_that_nothing_names_are_said_to_be_unseen(tmp_path: Path) -> None:
    """Another schedule than the one that is compiled now: the outputs are compared all the same."""
    other = mizzen.compile(DIGITS, "ethos-u55-128", ignore_ops=["SOFTMAX"], prove="off")
    found = compare(DIGITS, artifact=artifact_of(other.data, other.name), prove="off")
    assert found.holds
    assert found.elements == 16 * 10
    assert [note.code for note in notes_of(found)] == ["W323", "W490"]


def test_an_operand_from_elsewhere_is_among_the_constants() -> None:
    """One bit of a region: an operation reads constants instead of a map; hardly an input shows."""
    artifact = mizzen.compile(DIGITS, "ethos-u85-256", prove="off")
    (step,) = (row for row in artifact.steps if isinstance(row, NpuStep))
    reads = [row for row in step.program.instructions if row.command.name == "SET_IFM_REGION"]
    told = set[str]()
    for row in reads:
        words = step.program.words.copy()
        words[row.offset_words] ^= 1 << 16
        data = artifact.data.replace(step.program.words.tobytes(), words.tobytes())
        found = constants_beside(artifact_of(data, artifact.name), artifact)
        told |= {wrong.what for wrong in found.wrong}
    assert told == {"numbers of constants"}


def test_an_artifact_of_another_network_is_refused(model_file: Callable[[str], Path]) -> None:
    other = mizzen.compile(model_file("hello_world_int8.tflite"), "ethos-u55-128")
    with pytest.raises(MizzenError, match=r"E487.*must be made of this model, which takes"):
        compare(DIGITS, artifact=other)


def test_what_a_kernel_leaves_unwritten_is_not_compared(
    model_file: Callable[[str], Path],
) -> None:
    """SignalEnergy computes the bins that are read; the memory of the others is anything."""
    found = compare(model_file("audio_preprocessor_int8.tflite"), "ethos-u55-128")
    assert found.holds
    unread = [row.kind for row in found.layers if row.outcome is Outcome.UNREAD]
    assert unread in (["SignalEnergy", "CAST"], [])  # none where the memory happens to be the same
    energies = [row.outcome for row in found.layers if row.kind == "SignalEnergy"]
    assert set(energies) <= {Outcome.UNREAD, Outcome.EQUAL}


@pytest.mark.usefixtures("velas_code")
def test_all_tensors_of_a_network_with_many_scales_are_given(
    model_file: Callable[[str], Path],
) -> None:
    """The kernels' process ended where an arena had room for all but a tensor's scales."""
    file = model_file("yolo-fastest_192_face_v4.tflite")
    found = compare(file, "ethos-u55-128", inputs=Inputs(count=1), prove="off")
    assert found.holds


def test_rows_of_inferences_are_cut_from_the_inputs() -> None:
    found = compare(DIGITS, "ethos-u55-128", inputs=Inputs(count=2, run=3))
    assert (found.inputs, found.run, found.elements) == (2, 3, 60)
    images = np.load(DIGITS.with_name("images.npy"))[:7]
    with pytest.raises(MizzenError, match=r"E493.*rows of 2 inferences, and there are 7"):
        compare(DIGITS, "ethos-u55-128", inputs=Inputs(arrays=[images], run=2))


def test_the_reference_is_the_kernels_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they give is what must come: nothing of the compiler stands in for them."""
    honest = CpuKernels.run

    def off_by_one(self: CpuKernels, *given: object) -> list[np.ndarray]:
        first, *rest = honest(self, *given)  # pyright: ignore[reportArgumentType] - handed on
        return [first + np.int8(1), *rest]

    monkeypatch.setattr(CpuKernels, "run", off_by_one)
    found = compare(DIGITS, "ethos-u55-128", inputs=Inputs(count=1), prove="off")
    assert not found.holds
    assert found.differing == 10


def test_an_npu_that_rounds_otherwise_is_told_apart(model_file: Callable[[str], Path]) -> None:
    """Ethos-N scales with 16 bits; an operator is judged as a whole, by the model in that."""
    found = compare(model_file("vww_96_int8.tflite"), "ethos-n78-4tops-4ple", prove="off")
    assert found.holds
    assert found.count(Outcome.ROUNDED) == 1
    assert found.count(Outcome.WHOLE) == 29
    (note,) = notes_of(found)
    assert note.code == "W496"


def test_state_goes_on_from_inference_to_inference() -> None:
    """An LSTM on the NPU, its twin behind it: each inference starts from what the last one left."""
    found = compare(memory(), "ethos-u55-128", inputs=Inputs(count=3))
    assert found.holds
    assert (found.inputs, found.run, found.elements) == (3, 4, 3 * 4 * 4)
    assert found.count(Outcome.EQUAL) == 1


def memory() -> bytes:
    """One step of an LSTM a call."""
    rng = np.random.default_rng(7)
    net = NetworkBuilder()
    x = net.tensor("x", (1, 1, 3), "int8", 0.02, 4)
    weights = [rng.integers(-127, 128, (4, n)).astype(np.int8) for n in (3,) * 4 + (4,) * 4]
    held = [net.constant(f"w{i}", row, 0.01) for i, row in enumerate(weights)]
    noise = rng.integers(-900, 900, (4, 4)).astype(np.int32)
    biases = [net.constant(f"b{i}", row, 0.01 * 0.02) for i, row in enumerate(noise)]
    hidden = net.tensor("hidden", (1, 4), "int8", 1 / 128, variable=True)
    cell = net.tensor("cell", (1, 4), "int16", 2.0**-11, variable=True)
    y = net.tensor("y", (1, 1, 4), "int8", 1 / 128)
    gates = [net.tensor(f"g{i}", (0,), "int16", 2.0**-12) for i in range(4)]
    gates.append(net.tensor("g4", (0,), "int8", 1 / 128))
    none = [-1] * 3
    operands = [x, *held, *none, *biases, -1, -1, hidden, cell, *none, -1]
    options = {"fused_activation_function": 4, "cell_clip": 8.0, "time_major": False}
    net.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [y],
                 ("UnidirectionalSequenceLSTMOptions", options), intermediates=gates)  # fmt: skip
    return net.finish([x], [y])


@pytest.mark.usefixtures("velas_code")
def test_a_bounded_layer_does_not_blame_those_behind_it() -> None:
    """The table of SOFTMAX of 16 bits has other entries than the kernel's; the ADD is exact."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, 64), "int16", 1e-4)
    soft = net.tensor("soft", (1, 64), "int16", 1 / 32768)
    y = net.tensor("y", (1, 64), "int16", 1 / 16384)
    net.operator("SOFTMAX", [x], [soft], ("SoftmaxOptions", {"beta": 1.0}))
    net.operator("ADD", [soft, soft], [y], ("AddOptions", {}))
    found = compare(net.finish([x], [y]), "ethos-u55-128", inputs=Inputs(count=64))
    assert found.holds
    outcomes = {row.kind: row.outcome for row in found.layers}
    assert outcomes == {"SOFTMAX": Outcome.BOUNDED, "ADD": Outcome.EQUAL}
    (soft_layer,) = (row for row in found.layers if row.kind == "SOFTMAX")
    assert (soft_layer.steps, soft_layer.bound_steps) == (1, 1)
