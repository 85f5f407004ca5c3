"""Recurrent layers: one operator for all steps, from export to the converted program."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

from mizzen.quantize import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)

# PyTorch's recurrent layers hold flat copies of their weights, which export sees first.
pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes .* were assigned")

LAYERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "lstm": (nn.LSTM, {}),
    "lstm_two_layers_both_ways": (nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    "lstm_batch_first": (nn.LSTM, {"batch_first": True}),
    "lstm_no_bias": (nn.LSTM, {"bias": False}),
    "gru": (nn.GRU, {}),
    "gru_two_layers_both_ways": (nn.GRU, {"num_layers": 2, "bidirectional": True}),
    "gru_no_bias_batch_first": (nn.GRU, {"bias": False, "batch_first": True}),
    "rnn": (nn.RNN, {}),
    "rnn_relu_both_ways": (nn.RNN, {"nonlinearity": "relu", "bidirectional": True}),
}
INPUT = (9, 2, 5)
Array = np.ndarray[Any, np.dtype[Any]]


class Whole(nn.Module):
    """All that a recurrent layer gives, as one tuple of tensors."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = states if len(states) > 1 else next(iter(states), None)
        sequence, last = self.layer(x, first)
        return (sequence, *last) if isinstance(last, tuple) else (sequence, last)


def build(name: str) -> nn.Module:
    kind, options = LAYERS[name]
    return Whole(kind(5, 8, **options))


@pytest.mark.parametrize("name", LAYERS)
def test_steps_compute_what_the_layer_does(name: str) -> None:
    module, x = build(name).eval(), torch.randn(INPUT)
    quantizer = EthosUQuantizer("ethos-u55-128").set_global(get_symmetric_quantization_config())
    program = torch.export.export(module, (x,)).module()
    program = quantizer.transform_for_annotation(program)
    # Sums of 8 products in another order, over 9 steps that do not amplify.
    torch.testing.assert_close(program(x), module(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_and_direction_is_one_operator(name: str, quantize: Callable[..., Any]) -> None:
    kind, options = LAYERS[name]
    flow = quantize(build(name), torch.randn(INPUT))
    steps = [operator for operator in flow.operators() if operator.startswith("mizzen")]
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    word = {nn.LSTM: "lstm", nn.GRU: "gru", nn.RNN: "rnn"}[kind]
    assert steps == [f"mizzen.{word}_steps_quantized.default"] * count
    assert flow.float_islands() == []
    assert flow.quantizer.report() == []


@pytest.mark.parametrize("name", LAYERS)
def test_results_are_close_to_the_float_layers(name: str, quantize: Callable[..., Any]) -> None:
    x = torch.randn(INPUT)
    assert quantize(build(name), x).noise(x) > 20


def test_first_states_may_be_inputs(quantize: Callable[..., Any]) -> None:
    inputs = torch.randn(INPUT), torch.rand(1, 2, 8), torch.rand(1, 2, 8)
    flow = quantize(build("lstm"), *inputs)
    assert flow.noise(*inputs) > 20
    kinds = {kind for *_, kind in flow.quantizations()}
    assert kinds == {torch.int8, torch.int16}


def test_16_bits_are_16_bits_at_every_step(quantize: Callable[..., Any]) -> None:
    quantizer = EthosUQuantizer("ethos-u85-256").set_global(
        get_symmetric_a16w8_quantization_config()
    )
    x = torch.randn(INPUT)
    flow = quantize(build("lstm"), x, quantizer=quantizer)
    (steps,) = (n for n in flow.converted.graph.nodes if "steps" in str(n.target))
    assert steps.args[-1] == [16] * 6
    assert flow.noise(x) > 40


def test_a_hundred_steps_take_seconds(quantize: Callable[..., Any], slowness: float) -> None:
    x = torch.randn(100, 1, 40)
    start = time.process_time()
    flow = quantize(Whole(nn.LSTM(40, 64)), x)
    torch.export.export(flow.converted, (x,))
    # The bar of the design: 5 s. Unrolling, the alternative, takes minutes.
    assert time.process_time() - start < 5 * slowness
    assert len(flow.converted.graph.nodes) < 60


def test_the_projections_scale_is_that_of_the_gates(quantize: Callable[..., Any]) -> None:
    flow = quantize(build("gru"), torch.randn(INPUT))
    (steps,) = (n for n in flow.converted.graph.nodes if "steps" in str(n.target))
    projection, hidden = steps.args[:2]
    result = next(user for user in steps.users if "quantize" in str(user.target))
    scales, zero_points = steps.args[-3:-1]
    assert (scales[0], zero_points[0]) == projection.args[1:3]
    assert (scales[-1], zero_points[-1]) == hidden.args[1:3] == result.args[1:3]


def test_a_layer_that_is_not_selected_stays_whole() -> None:
    quantizer = EthosUQuantizer("ethos-u55-128").set_global(get_symmetric_quantization_config())
    quantizer.set_module_type(nn.LSTM, None)
    network = nn.Sequential(nn.Linear(5, 5), build("lstm")).eval()
    program = torch.export.export(network, (torch.randn(INPUT),)).module()
    prepare_pt2e(program, quantizer)
    (stays,) = quantizer.report()
    assert stays.operator == "lstm"
    assert stays.reason == "set_module_type(LSTM, None) keeps it in floating point"


def test_projected_hidden_states_are_reported() -> None:
    class Projected(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.LSTM(5, 8, proj_size=4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.layer(x)[0])

    quantizer = EthosUQuantizer("ethos-u55-128").set_global(get_symmetric_quantization_config())
    program = torch.export.export(Projected().eval(), (torch.randn(INPUT),)).module()
    prepare_pt2e(program, quantizer)
    assert [node.operator for node in quantizer.report()] == ["lstm"]


def rounded(value: Array, scale: float, zero_point: int, bits: int) -> Array:
    low, high = (-128, 127) if bits == 8 else (-32767, 32767)
    return np.clip(np.rint(value / scale) + zero_point, low, high).astype(np.int64)


def test_the_lstm_operator_is_the_documented_sequence_of_roundings() -> None:
    """The recurrence in integers, written out: integer sums and products, then one rounding."""
    generator = np.random.default_rng(0)
    steps, batch, hidden = 6, 3, 4
    grids: tuple[str, ...] = ("gates", "sigmoid", "tanh", "cell", "narrow", "hidden")
    s: dict[str, float] = dict(zip(grids, (0.03, 2**-8, 2**-7, 2**-13, 2**-5, 0.008), strict=True))
    z: dict[str, int] = dict(zip(grids, (5, -128, 0, 0, 0, -3), strict=True))
    w: dict[str, int] = dict(zip(grids, (8, 8, 8, 16, 8, 8), strict=True))
    projection = generator.integers(-128, 128, (steps, batch, 4 * hidden))
    weight = generator.integers(-127, 128, (4 * hidden, hidden))
    h = generator.integers(-128, 128, (batch, hidden))
    c = generator.integers(-20000, 20000, (batch, hidden))
    weight_scale, first_h, first_c = 0.01, h, c

    def to(name: str, value: Array) -> Array:
        return rounded(value, s[name], z[name], w[name])

    def real(name: str, value: Array) -> Array:
        return (value - z[name]) * s[name]

    expected: list[Array] = []
    for step in projection:
        sums = (h - z["hidden"]) @ weight.T
        recurrent = to("gates", sums * s["hidden"] * weight_scale)
        gates = to("gates", real("gates", step) + real("gates", recurrent))
        i, f, g, o = np.split(real("gates", gates), 4, -1)
        i, f, o = (to("sigmoid", 1 / (1 + np.exp(-gate))) for gate in (i, f, o))
        g = to("tanh", np.tanh(g))
        kept = to("cell", real("sigmoid", f) * c * s["cell"])
        entering = to("cell", real("sigmoid", i) * real("tanh", g))
        c = np.clip(kept + entering, -32767, 32767)
        narrow = to("narrow", c * s["cell"])
        new = to("tanh", np.tanh(real("narrow", narrow)))
        h = to("hidden", real("sigmoid", o) * real("tanh", new))
        expected.append(h)

    def tensor(value: Array) -> torch.Tensor:
        return torch.tensor(value, dtype=torch.float32)

    sequence, cell = torch.ops.mizzen.lstm_steps_quantized(
        tensor(real("gates", projection)),
        tensor(real("hidden", first_h)),
        tensor(first_c * s["cell"]),
        tensor(weight * weight_scale),
        False,
        list(s.values()),
        list(z.values()),
        list(w.values()),
    )
    found = np.rint(sequence.numpy() / s["hidden"]) + z["hidden"]
    assert np.array_equal(found, np.stack(expected))
    assert np.array_equal(np.rint(cell.numpy() / s["cell"]), c)
