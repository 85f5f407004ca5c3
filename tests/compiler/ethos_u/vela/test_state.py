"""Operators that keep state: what they leave is proved, from any state, and goes on exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.compiler.tflite_reference import Kernels
from mizzen.conformance.networks import lstm
from mizzen.cpu.tflm import CpuKernels
from mizzen.ops.control_flow import Custom
from mizzen.package.tflite.builder import NetworkBuilder

ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
CELLS = 4
UNNAMED = "tfl.pseudo_qconst"
"""What converters call every constant, and all state."""

Array = np.ndarray[Any, Any]
Left = tuple[list[Array], dict[int, Array]]


class Memory(NetworkBuilder):
    """Layers with state, whose tensors have one name."""

    def __init__(self) -> None:
        super().__init__("memory")
        self.rng = np.random.default_rng(7)

    def weights(self, rows: int, columns: int, scale: float = 0.01) -> int:
        data = self.rng.integers(-127, 128, (rows, columns)).astype(np.int8)
        return self.constant(UNNAMED, data, scale)

    def lstm(self, x: int, columns: int, scale: float, name: str) -> int:
        """One step of an LSTM a call."""
        from_input = [self.weights(CELLS, columns) for _ in range(4)]
        from_hidden = [self.weights(CELLS, CELLS) for _ in range(4)]
        noise = self.rng.integers(-900, 900, (4, CELLS)).astype(np.int32)
        biases = [self.constant(UNNAMED, row, 0.01 * scale) for row in noise]
        hidden = self.tensor(UNNAMED, (1, CELLS), "int8", 1 / 128, variable=True)
        cell = self.tensor(UNNAMED, (1, CELLS), "int16", 2.0**-11, variable=True)
        y = self.tensor(name, (1, 1, CELLS), "int8", 1 / 128)
        gates = [self.tensor(UNNAMED, (0,), "int16", 2.0**-12) for _ in range(4)]
        gates.append(self.tensor(UNNAMED, (0,), "int8", 1 / 128))
        none = [-1, -1, -1, -1]
        operands = [x, *from_input, *from_hidden, *none[:3], *biases, -1, -1, hidden, cell, *none]
        options = {"fused_activation_function": 4, "cell_clip": 8.0, "time_major": False}
        table = ("UnidirectionalSequenceLSTMOptions", options)
        self.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [y], table, intermediates=gates)
        return y

    def svdf(self, x: int) -> int:
        """A filter over three calls."""
        times = self.rng.integers(-3000, 3000, (CELLS, 3)).astype(np.int16)
        bias = np.zeros(CELLS, np.int32)
        state = self.tensor(UNNAMED, (1, 3 * CELLS), "int16", 1 / 128, variable=True)
        operands = [x, self.weights(CELLS, CELLS, 1 / 127), self.constant(UNNAMED, times, 1 / 4096),
                    self.constant(UNNAMED, bias, 1 / 128 / 4096), state]  # fmt: skip
        y = self.tensor("filtered", (1, CELLS), "int8", 1 / 64)
        self.operator("SVDF", operands, [y], ("SVDFOptions", {"rank": 1}))
        return y


def memory() -> bytes:
    """Two LSTMs for the NPU, a filter that the CPU keeps the state of, and a layer behind it."""
    net = Memory()
    x = net.tensor("x", (1, 1, 3), "int8", 0.02, 4)
    second = net.lstm(net.lstm(x, 3, 0.02, "first"), CELLS, 1 / 128, "second")
    flat = net.tensor("flat", (1, CELLS), "int8", 1 / 128)
    shape = net.constant("shape", np.array([1, CELLS], np.int32))
    net.operator("RESHAPE", [second, shape], [flat], ("ReshapeOptions", {}))
    filtered = net.svdf(flat)
    y = net.tensor("y", (1, 6), "int8", 1 / 64)
    bias = net.constant("bias", np.zeros(6, np.int32), 0.01 / 64)
    operands = [filtered, net.weights(6, CELLS), bias]
    net.operator("FULLY_CONNECTED", operands, [y], ("FullyConnectedOptions", {}))
    return net.finish([x], [y])


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_what_an_lstm_leaves_is_proved(dtype: str, accelerator: str) -> None:
    report = mizzen.compile(lstm(dtype).build(), accelerator).report
    assert report is not None
    assert report.on_cpu == report.diagnostics == report.proof.unproved == ()
    assert report.proof.equal == len(("y", "hidden", "cell"))


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_state_goes_on(accelerator: str) -> None:
    data = memory()
    artifact = mizzen.compile(data, accelerator)
    assert artifact.report is not None
    assert artifact.report.proof.unproved == ()
    assert [row.kind for row in artifact.report.on_cpu] == ["SVDF"]
    session, theirs = artifact.session(2), CpuKernels(data).session(2)
    seen = set[bytes]()
    for seed in range(30):
        x = np.random.default_rng(seed).integers(-128, 128, (2, 1, 1, 3)).astype(np.int8)
        found = np.asarray(session.run(x[:, 0]))
        assert np.array_equal(found, theirs.run([x], 2)[0][:, 0])
        seen.add(found.tobytes())
    assert len(seen) > 20


def _changed(left: Left) -> Left:
    results, after = left
    return results, {index: array + 1 for index, array in after.items()}


@pytest.mark.parametrize("forgets", [False, True])
def test_other_state_is_found(*, forgets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that leave other state, or do not start from what is there, are not the NPU's."""
    onward = Kernels.onward

    def planted(
        self: Kernels,
        operation: Custom,
        operands: Sequence[Array],
        count: int,
        state: Mapping[int, Array],
    ) -> Left:
        if not forgets:
            return _changed(onward(self, operation, operands, count, state))
        nothing = {index: np.zeros_like(array) for index, array in state.items()}
        return onward(self, operation, operands, count, nothing)

    monkeypatch.setattr(Kernels, "onward", planted)
    report = mizzen.compile(lstm("int8").build(), ACCELERATORS[0]).report
    assert report is not None
    assert [row.kind for row in report.on_cpu] == ["UNIDIRECTIONAL_SEQUENCE_LSTM"]
