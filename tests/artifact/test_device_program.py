"""Artifacts as programs of a device, executed over one arena of bytes: the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch
from torch import nn

import mizzen
from mizzen.artifact.device import device_program
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.package.device import KernelCall, NpuCall
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.torch import compile as compile_model

from .device_run import DeviceRun
from .networks import N78, U55, U85, convolutions

MAP = (1, 4, 4, 8)


class Islands(nn.Module):
    """Two regions of the NPU around what only the processor has."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.linear = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(self.conv(x)).mean((2, 3))
        values, order = torch.sort(y, -1)
        best, places = torch.topk(y, 3)
        return self.linear(values), order, best, places, values


class Counting(nn.Module):
    """State that PyTorch keeps, between a part of the NPU and one of the processor."""

    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("total", torch.zeros(1, 8))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.tanh(self.linear(x))
        self.total.copy_(self.total * 0.5 + torch.sort(y, -1)[0])
        return self.total + y, y


class Sorted(nn.Module):
    """State that the processor reads and writes, nothing of it on the NPU."""

    best: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("best", torch.zeros(1, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        self.best.copy_(torch.sort(torch.maximum(self.best, y), -1)[0])
        return self.best - y


class Lookup(nn.Module):
    """Indices of 64 bits for a table that the NPU reads."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 8)
        self.linear = nn.Linear(8, 4)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.linear(self.table(index))


def images(count: int, *shape: int) -> list[tuple[torch.Tensor]]:
    torch.manual_seed(0)
    return [(torch.randn(shape),) for _ in range(count)]


def arrays(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


def require_equal(artifact: mizzen.Artifact, calls: Sequence[Sequence[Any]]) -> DeviceRun:
    """Compare every call of a session with the device's."""
    session = artifact.session()
    device = DeviceRun(device_program(artifact))
    for inputs in calls:
        given = [np.asarray(array) for array in inputs]
        theirs, ours = arrays(session.run(*given)), device.run(*given)
        for left, right in zip(theirs, ours, strict=True):
            assert left.dtype == right.dtype
            assert np.array_equal(left.reshape(right.shape), right)
    return device


@pytest.mark.parametrize("accelerator", [U55, U85])
def test_what_only_the_processor_has_lies_between_two_calls_of_the_npu(accelerator: str) -> None:
    calls = images(4, 1, 3, 8, 8)
    artifact = compile_model(Islands().eval(), calls[0], accelerator, calibration=calls)
    program = require_equal(artifact, calls).program
    names = [call.operator for call in program.calls if isinstance(call, KernelCall)]
    assert {"aten::sort", "aten::topk"} <= set(names)
    assert sum(isinstance(call, NpuCall) for call in program.calls) == 2


@pytest.mark.parametrize("model", [Counting, Sorted])
def test_state_goes_on(model: type[nn.Module]) -> None:
    calls = images(5, 1, 8)
    artifact = compile_model(model().eval(), calls[0], U55, calibration=calls)
    program = require_equal(artifact, calls).program
    assert len(program.states) == 1


def test_indices_of_64_bits_are_made_such_of_32() -> None:
    calls = [(torch.tensor([[index, 15 - index]]),) for index in range(4)]
    artifact = compile_model(Lookup().eval(), calls[0], U85, calibration=calls)
    program = require_equal(artifact, calls).program
    assert isinstance(program.calls[0], KernelCall)
    assert program.calls[0].operator == "mizzen::narrow_index"
    assert dict(program.calls[0].arguments)["size"] == 16


def accumulator() -> bytes:
    """Add the input to a variable that starts at 17; give the sum."""
    net = NetworkBuilder()
    x, before, after = (net.tensor(name, MAP, "int8", 0.1, -3) for name in ("x", "before", "after"))
    handle = net.resource("handle")
    net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "total"}))
    net.operator("READ_VARIABLE", [handle], [before], ("ReadVariableOptions", {}))
    net.operator("ADD", [before, x], [after], ("AddOptions", {}))
    net.operator("ASSIGN_VARIABLE", [handle, after], [], ("AssignVariableOptions", {}))
    return net.finish([x], [after])


def test_variables_of_a_network_are_state() -> None:
    artifact = mizzen.compile(accumulator(), U55)
    assert len(artifact.steps) == 1
    generator = np.random.default_rng(0)
    calls = [(generator.integers(-128, 128, MAP, np.int8),) for _ in range(4)]
    device = require_equal(artifact, calls)
    (state,) = device.program.states
    assert state.read == state.write
    assert set(np.unique(state.initial)) == {-3}


def test_a_choice_between_parts_is_no_sequence_of_calls() -> None:
    net = NetworkBuilder()
    flag = net.tensor("flag", (1,), "bool")
    x, y = (net.tensor(name, MAP, "int8", 0.1, -3) for name in ("x", "y"))
    choice = {"then_subgraph_index": 1, "else_subgraph_index": 1}
    net.operator("IF", [flag, x], [y], ("IfOptions", choice))
    record: Record = read(net.finish([flag, x], [y]), SCHEMA, "net")
    (main,) = record["subgraphs"]
    same = {"tensors": [main["tensors"][x]], "inputs": [0], "outputs": [0], "operators": []}
    record["subgraphs"] = [main, same]
    artifact = mizzen.compile(write(record, SCHEMA), U55)
    with pytest.raises(mizzen.MizzenError) as caught:
        device_program(artifact)
    assert str(caught.value).splitlines()[0] == (
        "error[E452]: a device executes calls one after the other, and IF would choose between "
        "calls"
    )


def test_an_artifact_for_ethos_n_is_for_no_microcontroller() -> None:
    artifact = mizzen.compile(convolutions(), N78, prove="off")
    with pytest.raises(mizzen.MizzenError) as caught:
        device_program(artifact)
    assert str(caught.value) == (
        "error[E450]: an artifact for a microcontroller must be for an Ethos-U, not for "
        "ethos-n78-4tops-4ple\n"
        "  help an Ethos-N is served by the driver of a Linux system; `mizzen run` executes it on "
        "the host"
    )


@pytest.mark.parametrize("accelerator", [U55, U85])
def test_real_networks_lie_where_their_compiler_has_them(models: Path, accelerator: str) -> None:
    for name in ("person_detect", "rnnoise_INT8"):
        source = models / f"{name}.tflite"
        artifact = mizzen.compile(source, accelerator)
        generator = np.random.default_rng(1)
        calls = [
            [generator.integers(-128, 128, row.shape, row.dtype) for row in artifact.inputs]
            for _ in range(2)
        ]
        program = require_equal(artifact, calls).program
        (call,) = program.calls
        assert isinstance(call, NpuCall)
        assert call.scratch_offset_bytes == 0
        assert program.arena_bytes == call.scratch_bytes


def test_operators_of_tflite_keep_their_names_options_and_own_state(models: Path) -> None:
    artifact = mizzen.compile(models / "audio_preprocessor_int8.tflite", U55)
    program = device_program(artifact)
    kernels = {row.operator: row for row in program.calls if isinstance(row, KernelCall)}
    assert {"tflite::SignalRfft", "tflite::CAST"} <= set(kernels)
    noise = kernels["tflite::SignalFilterBankSpectralSubtraction"]
    (state,) = program.states
    assert noise.reads[-1] == state.read
    assert state.initial.dtype == np.uint32
    assert isinstance(dict(noise.arguments)["custom_options"], bytes)
    assert dict(kernels["tflite::DIV"].arguments)["fused_activation_function"] == 0
