"""Recurrent layers of 16 bits: on the NPU of every family, with tables of 513 points."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from mizzen.artifact.host_steps import DequantizeStep
from mizzen.artifact.interface import Array
from mizzen.compiler.codegen import step_of
from mizzen.compiler.ethos_u.makers import region_compiler
from mizzen.compiler.ethos_u.regions import WINDOW_LIMITS
from mizzen.compiler.proof.options import OFF
from mizzen.compiler.torch.placement import place
from mizzen.frontends.torch.int_lowering.int_lower import lower
from mizzen.frontends.torch.narrowing import read
from mizzen.graph import Graph
from mizzen.partition import extract
from mizzen.quantize import get_symmetric_a16w8_quantization_config
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.torch import compile_converted

Build = Callable[..., Any]
Oracle = Callable[[Graph, Sequence[Array]], list[Array]]

U55, U85 = "ethos-u55-128", "ethos-u85-256"
STEPS = 10

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(8, 16),
    "gru": lambda: nn.GRU(8, 16),
    "rnn": lambda: nn.RNN(8, 16),
    "rnn relu": lambda: nn.RNN(8, 16, nonlinearity="relu"),
}


class _Sequence(nn.Module):
    """Gives the sequence of hidden states alone."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


def _exported(name: str, converted: Build) -> tuple[Any, list[Any]]:
    calls = [(2 * torch.randn(STEPS, 1, 8),) for _ in range(4)]
    with warnings.catch_warnings():
        # PyTorch's recurrent layers hold flat copies of their weights, which export sees first.
        warnings.filterwarnings("ignore", "The tensor attributes .* were assigned")
        config = get_symmetric_a16w8_quantization_config()
        return converted(_Sequence(LAYERS[name]()), calls, U55, config), calls


@pytest.mark.parametrize("accelerator", [U55, U85])
@pytest.mark.parametrize("name", LAYERS)
def test_all_of_a_layer_is_in_one_region(name: str, accelerator: str, converted: Build) -> None:
    artifact = compile_converted(_exported(name, converted)[0], accelerator, prove="off")
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()
    assert sum(step.on_npu for step in artifact.steps) == 1


@pytest.mark.parametrize("name", LAYERS)
def test_the_stream_is_the_lowered_layer_bit_for_bit(
    name: str, converted: Build, tosa_oracle: Oracle
) -> None:
    lowered = lower(read(_exported(name, converted)[0], name), WINDOW_LIMITS)
    ((groups, code),) = place(lowered, region_compiler(resolve(U55)), (), OFF, None).code.items()
    whole = extract(lowered.graph, groups)
    tensors: dict[object, int] = {}
    for value in (*whole.inputs, *whole.outputs):
        tensors.setdefault(value, len(tensors))
    generator = np.random.default_rng(0)
    inputs = [
        generator.integers(-32767, 32768, value.shape).astype(np.int16) for value in whole.inputs
    ]
    values = {tensors[row]: x[None] for row, x in zip(whole.inputs, inputs, strict=True)}
    step_of(code, tensors).run(values, 1)
    for value, wanted in zip(whole.outputs, tosa_oracle(whole.graph, inputs), strict=True):
        np.testing.assert_array_equal(values[tensors[value]][0], wanted)


@pytest.mark.parametrize("name", LAYERS)
def test_outputs_are_what_pytorch_gives_but_for_some_of_the_last_bits(
    name: str, converted: Build
) -> None:
    """Two steps of 16 bits for each step of the layer.

    A sum of 48 bits is rescaled by a multiplier of 15 bits, 2**-15 off: one step at full scale.
    Between two points of a table the chord is off by h*h/8 of the second derivative, at most 0.8
    for tanh: with gates to 8 in either direction, h is 8/256, and that is 3 of 2**15 steps where
    the function bends most, under one elsewhere; both fade with the states.
    """
    exported, calls = _exported(name, converted)
    artifact = compile_converted(exported, U55, prove="off")
    (scale,) = [step.scale for step in artifact.steps if isinstance(step, DequantizeStep)]
    for (x,) in calls:
        wanted = exported.module()(x).detach().numpy()
        assert np.abs(artifact.run(x.numpy()) - wanted).max() / scale <= 2 * STEPS
