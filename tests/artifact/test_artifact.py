"""Artifacts: loading, batches in every form, state, CPU operators between NPU operators."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import CpuStep, NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer import write as write_file
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.package.tflite.builder import NetworkBuilder

from ..frontends.tflite.sparse_files import Form, with_sparsity  # noqa: TID252 tests are no package with a name

Array = npt.NDArray[Any]


def network(batch: int = 1) -> bytes:
    """Two inputs, two outputs: a sum and its logistic."""
    net = NetworkBuilder("two")
    a = net.tensor("a", (batch, 4, 6), np.int8, 0.05, 3)
    b = net.tensor("b", (batch, 4, 6), np.int8, 0.04, -5)
    total = net.tensor("total", (batch, 4, 6), np.int8, 0.07, 1)
    score = net.tensor("score", (batch, 4, 6), np.int8, 1 / 256, -128)
    net.operator("ADD", [a, b], [total], ("AddOptions", {}))
    net.operator("LOGISTIC", [total], [score])
    return net.finish([a, b], [total, score])


def islands() -> bytes:
    """NPU, CPU, NPU: the absolute value is forced to the CPU."""
    net = NetworkBuilder("islands")
    tensors = [net.tensor(f"t{i}", (1, 5, 8), np.int8, 0.05, 0) for i in range(4)]
    net.operator("RELU6", [tensors[0]], [tensors[1]])
    net.operator("ABS", [tensors[1]], [tensors[2]])
    net.operator("ADD", [tensors[2], tensors[0]], [tensors[3]], ("AddOptions", {}))
    return net.finish([tensors[0]], [tensors[3]])


def memory_cell(zero_point: int = 0) -> bytes:
    """A stateful network on the NPU: an LSTM of 4 cells, one step a call.

    `zero_point` is that of the hidden state, which is also the output.
    """
    net, x, y = memory_cell_net(zero_point)
    return net.finish([x], [y])


def memory_cell_net(zero_point: int = 0) -> tuple[NetworkBuilder, int, int]:
    """The same network, its input and its output."""
    net = NetworkBuilder("lstm")
    rng = np.random.default_rng(7)
    x = net.tensor("x", (1, 1, 3), np.int8, 0.02, 4)

    def weights(name: str, columns: int) -> int:
        return net.constant(name, rng.integers(-127, 128, (4, columns)).astype(np.int8), 0.01)

    from_input = [weights(f"wi{gate}", 3) for gate in range(4)]
    from_hidden = [weights(f"wr{gate}", 4) for gate in range(4)]
    biases = [
        net.constant(f"b{gate}", rng.integers(-900, 900, 4).astype(np.int32), 0.0002)
        for gate in range(4)
    ]
    hidden = net.tensor("hidden", (1, 4), np.int8, 1 / 128, zero_point, variable=True)
    cell = net.tensor("cell", (1, 4), np.int16, 2.0**-11, 0, variable=True)
    y = net.tensor("y", (1, 1, 4), np.int8, 1 / 128, zero_point)
    inputs = [x, *from_input, *from_hidden, -1, -1, -1, *biases, -1, -1, hidden, cell]
    gates = [net.tensor(f"g{gate}", (0,), np.int16, 2.0**-12) for gate in range(4)]
    gates.append(net.tensor("g4", (0,), np.int8, 1 / 128, zero_point))
    options = {"fused_activation_function": 4, "cell_clip": 8.0, "time_major": False}
    net.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [*inputs, -1, -1, -1, -1],
        [y],
        ("UnidirectionalSequenceLSTMOptions", options),
        intermediates=gates,
    )
    return net, x, y


def raw_archive(model: bytes, folder: Path) -> Path:
    """Compile a network with Vela's command line into an archive."""
    source = folder / "net.tflite"
    source.write_bytes(model)
    vela = [sys.executable, "-m", "ethosu.vela", str(source), "--output-format", "raw"]
    options = ["--accelerator-config", "ethos-u55-128", "--output-dir", str(folder)]
    subprocess.run([*vela, *options], check=True, capture_output=True)
    return folder / "net_vela.npz"


def interpreter(data: bytes) -> Any:
    from tflite_micro.python.tflite_micro import runtime

    return runtime.Interpreter.from_bytes(data, arena_size=1 << 20)


def one(result: Any) -> Array:
    assert isinstance(result, np.ndarray)
    return result


@pytest.fixture(scope="module")
def two() -> Artifact:
    return mizzen.compile(network(), "ethos-u55-128")


def random(shape: tuple[int, ...], seed: int = 0) -> npt.NDArray[np.int8]:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


class TestForms:
    def test_what_it_takes_and_gives(self, two: Artifact) -> None:
        a, b = two.inputs
        assert (a.name, a.shape, a.dtype) == ("a", (1, 4, 6), np.int8)
        assert a.quantization == a.quantisation
        assert b.quantization is not None
        assert b.quantization.scale == pytest.approx((0.04,))
        assert b.quantization.zero_point == (-5,)
        assert [output.name for output in two.outputs] == ["total", "score"]
        assert two.accelerator == "ethos-u55-128"

    def test_a_batch_is_what_single_runs_give(self, two: Artifact) -> None:
        a, b = random((9, 4, 6), 1), random((9, 4, 6), 2)
        batched = two.run(a, b)
        singles = [two.run(a[i : i + 1], b[i : i + 1]) for i in range(9)]
        for index in range(2):
            assert np.array_equal(batched[index], np.concatenate([s[index] for s in singles]))

    def test_a_leading_axis_more(self, two: Artifact) -> None:
        a, b = random((5, 1, 4, 6), 1), random((5, 1, 4, 6), 2)
        total, _ = two.run(a, b)
        assert total.shape == (5, 1, 4, 6)
        assert np.array_equal(total[:, 0], two.run(a[:, 0], b[:, 0])[0])

    def test_a_model_with_a_batch_of_its_own(self) -> None:
        artifact = mizzen.compile(network(3), "ethos-u55-128", prove="off")
        a, b = random((2, 3, 4, 6), 1), random((2, 3, 4, 6), 2)
        stacked, _ = artifact.run(a, b)
        assert stacked.shape == (2, 3, 4, 6)
        alone, _ = artifact.run(a[1], b[1])
        assert alone.shape == (3, 4, 6)
        assert np.array_equal(stacked[1], alone)

    def test_too_few_inputs(self, two: Artifact) -> None:
        with pytest.raises(MizzenError) as caught:
            two.run(random((1, 4, 6)))
        assert str(caught.value) == (
            "error[E711]: the network takes 2 inputs ('a', 'b'), not 1\n"
            "  help give one array for each input, in this order or by name"
        )

    def test_a_wrong_shape(self, two: Artifact) -> None:
        with pytest.raises(MizzenError) as caught:
            two.run(random((1, 4, 7)), random((1, 4, 6)))
        assert str(caught.value) == (
            "error[E712]: input 'a' must be of shape [N, 4, 6] or [N, 1, 4, 6], not [1, 4, 7]\n"
            "  help N counts inferences; array.reshape() or array[None] may give this shape"
        )

    def test_a_wrong_type(self, two: Artifact) -> None:
        with pytest.raises(MizzenError) as caught:
            two.run(random((1, 4, 6)), np.zeros((1, 4, 6), np.complex64))
        assert str(caught.value) == (
            "error[E712]: input 'b' must be of type int8, not complex64\n"
            "  help give what the model was trained with, array.astype('int8')"
        )

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_real_numbers_are_quantised(self, two: Artifact, dtype: type) -> None:
        """As the command line does, to nearest, ties away from zero, saturated."""
        b = random((1, 4, 6), 2)
        real = np.linspace(-400, 400, 24).reshape(1, 4, 6).astype(dtype)
        quantization = two.inputs[0].quantization
        assert quantization is not None
        (scale,), (zero,) = quantization.scale, quantization.zero_point
        steps = real.astype(np.float64) / scale
        whole = np.clip(np.trunc(steps + np.copysign(0.5, steps)) + zero, -128, 127)
        expected = two.run(whole.astype(np.int8), b)
        assert all(map(np.array_equal, two.run(real, b), expected))

    def test_wide_integers_are_what_they_are(self, two: Artifact) -> None:
        a, b = random((1, 4, 6), 1), random((1, 4, 6), 2)
        found = two.run(a.astype(np.int64), b.tolist())
        assert all(map(np.array_equal, found, two.run(a, b)))
        with pytest.raises(MizzenError, match=r"E208.*integers from -128 to 127, .*, not 200"):
            two.run(np.full((1, 4, 6), 200), b)

    def test_inputs_by_name(self, two: Artifact) -> None:
        a, b = random((1, 4, 6), 1), random((1, 4, 6), 2)
        expected = two.run(a, b)
        assert all(map(np.array_equal, two.run(b=b, a=a), expected))
        assert all(map(np.array_equal, two.run({"b": b, "a": a}), expected))
        assert all(map(np.array_equal, two.run(b, a=a), expected))
        assert all(map(np.array_equal, two.session().run(a=a, b=b), expected))

    def test_a_name_that_no_input_has(self, two: Artifact) -> None:
        with pytest.raises(MizzenError) as caught:
            two.run(random((1, 4, 6)), c=random((1, 4, 6)))
        assert str(caught.value) == (
            "error[E711]: the network takes 2 inputs ('a', 'b'), not one called 'c'\n"
            "  help give one array for each input, in this order or by name"
        )

    def test_batches_that_differ(self, two: Artifact) -> None:
        with pytest.raises(MizzenError, match=r"same number of inferences.*not \[2, 3\]"):
            two.run(random((2, 4, 6)), random((3, 4, 6)))

    def test_no_inference(self, two: Artifact) -> None:
        with pytest.raises(MizzenError, match=r"at least 1, not \[0, 0\]"):
            two.run(random((0, 4, 6)), random((0, 4, 6)))


class TestState:
    def test_a_session_goes_on_like_the_kernels(self) -> None:
        data = memory_cell()
        session = mizzen.compile(data, "ethos-u55-128", prove="off").session(batch=2)
        kernels = [interpreter(data), interpreter(data)]
        for step in range(20):
            x = random((2, 1, 3), step)
            y = one(session.run(x))
            for stream, kernel in enumerate(kernels):
                kernel.set_input(x[stream : stream + 1], 0)
                kernel.invoke()
                assert np.array_equal(kernel.get_output(0)[0], y[stream]), step

    def test_run_keeps_nothing(self) -> None:
        artifact = mizzen.compile(memory_cell(), "ethos-u55-128", prove="off")
        x = random((1, 1, 3), 5)
        first = one(artifact.run(x))
        assert np.array_equal(one(artifact.run(x)), first)
        session = artifact.session()
        assert np.array_equal(one(session.run(x)), first)
        assert not np.array_equal(one(session.run(x)), first)

    def test_another_batch_in_a_session(self) -> None:
        session = mizzen.compile(memory_cell(), "ethos-u55-128", prove="off").session(batch=2)
        with pytest.raises(MizzenError, match=r"must bring a batch of 2, not 3"):
            session.run(random((3, 1, 3)))

    def test_a_session_of_none(self, two: Artifact) -> None:
        with pytest.raises(MizzenError, match="a session needs a batch of at least 1, not 0"):
            two.session(0)


class TestIslands:
    def test_cpu_operators_between_npu_operators(self) -> None:
        data = islands()
        artifact = mizzen.compile(data, "ethos-u65-256", ignore_ops=["ABS"], prove="off")
        assert [step.on_npu for step in artifact.steps] == [True, False, True]
        x = random((6, 5, 8))
        kernel = interpreter(data)
        for index, y in enumerate(one(artifact.run(x))):
            kernel.set_input(x[index : index + 1], 0)
            kernel.invoke()
            assert np.array_equal(kernel.get_output(0)[0], y)

    def test_all_on_the_cpu(self) -> None:
        data = islands()
        artifact = mizzen.compile(
            data, "ethos-u55-128", ignore_ops=["ABS", "ADD", "RELU6"], prove="off"
        )
        assert [type(step) for step in artifact.steps] == [CpuStep]
        assert artifact.accelerator is None
        assert one(artifact.run(random((2, 5, 8)))).shape == (2, 5, 8)


class TestOutputs:
    def test_outputs_that_are_inputs_or_constants_belong_to_the_caller(self) -> None:
        net = NetworkBuilder("outputs")
        x, y = net.tensor("x", (1, 4), np.int8, 0.5), net.tensor("y", (1, 4), np.int8, 0.5)
        constant = net.constant("c", np.array([[1, -2, 3, -4]], np.int8), 0.5)
        net.operator("ABS", [x], [y])
        artifact = artifact_of(net.finish([x], [y, x, constant]), "outputs")
        given = random((3, 4))
        computed, same, fixed = artifact.run(given)
        assert np.array_equal(computed, np.minimum(np.abs(given.astype(int)), 127))
        assert np.array_equal(same, given)
        assert fixed.tolist() == [[1, -2, 3, -4]] * 3
        assert not np.shares_memory(same, given)
        fixed[:] = 0
        assert artifact.run(given)[2].tolist() == [[1, -2, 3, -4]] * 3

    def test_an_output_that_is_the_state_of_cpu_operators(self) -> None:
        net = NetworkBuilder("outputs")
        x, y = (net.tensor(name, (1, 4), np.int8, 0.5) for name in "xy")
        z = net.tensor("z", (1, 4), np.int8, 0.5, variable=True)
        net.operator("ABS", [x], [y])
        with pytest.raises(MizzenError) as caught:
            artifact_of(net.finish([x], [y, z]), "outputs")
        assert caught.value.diagnostic.code == "E133"

    def test_an_output_that_is_a_sparse_constant(self) -> None:
        net = NetworkBuilder("outputs")
        x, y = (net.tensor(name, (1, 4), np.int8, 0.5) for name in "xy")
        values = np.array([[0, 5, 0, -7]], np.int8)
        z = net.constant("z", values, 0.5)
        net.operator("ABS", [x], [y])
        data = with_sparsity(net.finish([x], [y, z]), z, values, Form((0, 1), (1,)))
        found = artifact_of(data, "outputs").run(random((1, 4)))
        assert found[1].tolist() == [[0, 5, 0, -7]]

    def test_cpu_operators_that_take_nothing_run_in_every_batch(self) -> None:
        net = NetworkBuilder("outputs")
        x, y = net.tensor("x", (1, 4), np.int8, 0.5), net.tensor("y", (1, 4), np.int8, 0.5)
        constant = net.constant("c", np.array([[1, -2, 3, -4]], np.int8), 0.5)
        net.operator("ABS", [constant], [y])
        artifact = artifact_of(net.finish([x], [y]), "outputs")
        assert one(artifact.run(random((2, 4)))).tolist() == [[1, 2, 3, 4]] * 2
        assert one(artifact.session(2).run(random((2, 4)))).tolist() == [[1, 2, 3, 4]] * 2


class TestFiles:
    def test_bytes_are_loaded_as_a_file_is(self, two: Artifact) -> None:
        a, b = random((2, 4, 6), 1), random((2, 4, 6), 2)
        loaded = mizzen.load(two.data, "ethos-u55-128")
        assert loaded.name == "artifact.tflite"
        assert all(map(np.array_equal, loaded.run(a, b), two.run(a, b)))
        assert all(map(np.array_equal, mizzen.run(two.data, a, b=b), two.run(a, b)))
        with pytest.raises(MizzenError, match=r"error.E113.: artifact\.tflite must be for"):
            mizzen.load(two.data, "ethos-u65-256")

    def test_saved_and_loaded(self, two: Artifact, tmp_path: Path) -> None:
        path = tmp_path / "two_vela.tflite"
        two.save(path)
        loaded = mizzen.load(path, accelerator="ethos-u55-128")
        a, b = random((3, 4, 6), 1), random((3, 4, 6), 2)
        assert np.array_equal(loaded.run(a, b)[1], two.run(a, b)[1])
        (step,) = loaded.steps
        assert isinstance(step, NpuStep)
        assert {origin.kind for origin in step.program.origins.values()} == {"ADD"}

    def test_without_its_report(self, two: Artifact, tmp_path: Path) -> None:
        path = tmp_path / "two_vela.tflite"
        path.write_bytes(two.data)
        (tmp_path / "two_vela.json").write_text('{"version": 1}')
        assert mizzen.load(path).report is None

    def test_for_another_accelerator(self, two: Artifact, tmp_path: Path) -> None:
        path = tmp_path / "two_vela.tflite"
        two.save(path)
        with pytest.raises(MizzenError) as caught:
            mizzen.load(path, accelerator="ethos-u65-256")
        assert str(caught.value) == (
            "error[E113]: two_vela.tflite must be for ethos-u65-256, and was compiled for "
            "ethos-u55-128\n"
            "  help compile the network with --accelerator-config ethos-u65-256"
        )

    def test_for_an_accelerator_that_there_is_not(self, two: Artifact, tmp_path: Path) -> None:
        path = tmp_path / "two_vela.tflite"
        two.save(path)
        with pytest.raises(MizzenError, match=r"^error\[E210\]"):
            mizzen.load(path, accelerator="ethos-u55-129")

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(
            MizzenError, match=r"^error\[E110\]: .* must be a file that can be read"
        ):
            mizzen.load(tmp_path / "none.tflite")

    def test_velas_raw_archive(self, two: Artifact, tmp_path: Path) -> None:
        loaded = mizzen.load(raw_archive(network(), tmp_path))
        a, b = random((4, 4, 6), 1), random((4, 4, 6), 2)
        shapes = [info.shape for info in loaded.inputs]
        results = loaded.run(a.reshape(4, *shapes[0]), b.reshape(4, *shapes[1]))
        for ours, theirs in zip(results, two.run(a, b), strict=True):
            assert np.array_equal(ours.ravel(), theirs.ravel())

    def test_state_of_velas_raw_archive(self, tmp_path: Path) -> None:
        """State starts at its zero point, as in the `.tflite` of the same network."""
        cell = memory_cell(zero_point=-23)
        loaded = mizzen.load(raw_archive(cell, tmp_path))
        (taken,), (given,) = loaded.inputs, loaded.outputs
        assert given.quantization is not None
        assert given.quantization.zero_point == (-23,)
        inputs = random((6, 1, 3))
        result = one(loaded.run(inputs.reshape(6, *taken.shape)))
        expected = one(mizzen.compile(cell, "ethos-u55-128", prove="off").run(inputs))
        assert np.array_equal(result.ravel(), expected.ravel())


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("place", ["a", "score"])
def test_scales_that_are_no_numbers(scale: float, place: str) -> None:
    record = read_file(network(), SCHEMA, "net")
    (tensor,) = (row for row in record["subgraphs"][0]["tensors"] if row["name"] == place)
    tensor["quantization"]["scale"] = np.array([scale], np.float32)
    with pytest.raises(MizzenError) as error:
        artifact_of(write_file(record, SCHEMA), "net.tflite")
    assert str(error.value) == (
        "error[E116]: net.tflite must have inputs and outputs whose scales are finite numbers, and "
        f"{place} has {scale}\n"
        "  help quantise the network again, with data that have no NaN and no infinity"
    )
