"""LSTM, GRU and RNN layers, unrolled, against ONNX Runtime in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed (pip install '.[onnx]')")

from mizzen.frontends.onnx.model import TensorType
from mizzen.graph import Array

from .comparing import integers
from .networks import Network, Scale, computed, from_runtime, lowered, on_host

STEPS, BATCH, INPUTS, HIDDEN = 12, 3, 10, 8
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
X, RESULT, CELL = Scale(0.0241, 3), Scale(1 / 128), Scale(0.031, 2)
WIDE_RESULT = Scale(1 / 32768, 0, "int16")


def layer(
    kind: str,
    *,
    states: bool = False,
    weights: bool = True,
    x: Scale = X,
    state: Scale = RESULT,
    result: Scale = RESULT,
    **attributes: Any,
) -> tuple[Network, dict[str, Array]]:
    """Return a network of one layer, with a bias and weights of each output's scale."""
    both = attributes.get("direction") == "bidirectional"
    directions, gates = 1 + both, GATES[kind] * HIDDEN
    random = np.random.default_rng(8)
    network = Network(21)
    given = {"x": integers(x, (STEPS, BATCH, INPUTS), 1)}
    names = [network.dequantize(network.input("x", (STEPS, BATCH, INPUTS), "int8"), x)]
    scale = Scale(random.uniform(0.002, 0.006, gates), np.zeros(gates, np.int64), "int8", 1)
    for inputs in (INPUTS, HIDDEN):
        weight = integers(scale, (directions, gates, inputs), inputs)
        if weights:
            names.append(network.weight(weight, scale))
        else:
            names.append(network.constant(scale.dequantize(weight)))
    bias = random.normal(size=(directions, 2 * gates)) * 0.3
    names += [network.constant(bias.astype(np.float32)), ""]
    for index in range(states * (2 if kind == "LSTM" else 1)):
        name = f"state{index}"
        given[name] = integers(state, (directions, BATCH, HIDDEN), 5 + index)
        names.append(network.dequantize(network.input(name, given[name].shape, "int8"), state))
    count = 3 if kind == "LSTM" else 2
    first = network.add(kind, *names, outputs=count, hidden_size=HIDDEN, **attributes)
    for index, own in enumerate((result, result, CELL)[:count]):
        network.outputs.append(network.quantize(first.replace("_0", f"_{index}"), own))
    return network, given


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM": ("LSTM", {}),
    "LSTM with states": ("LSTM", {"states": True}),
    "LSTM backwards": ("LSTM", {"direction": "reverse", "states": True}),
    "LSTM both ways": ("LSTM", {"direction": "bidirectional"}),
    "LSTM of floating point": ("LSTM", {"weights": False, "states": True}),
    "GRU of floating point": ("GRU", {"weights": False, "direction": "bidirectional"}),
    "RNN of floating point": ("RNN", {"weights": False}),
    "GRU": ("GRU", {"linear_before_reset": 1}),
    "GRU with states": ("GRU", {"linear_before_reset": 1, "states": True}),
    "GRU, reset first": ("GRU", {}),
    "GRU, reset first, both ways": ("GRU", {"direction": "bidirectional", "states": True}),
    "RNN": ("RNN", {}),
    "RNN with states": ("RNN", {"states": True}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layer_is_at_most_a_step_off(name: str) -> None:
    kind, options = CASES[name]
    network, given = layer(kind, **options)
    lowering = lowered(network)
    assert on_host(lowering) == {}
    results = computed(lowering, *given.values())
    for one, other in zip(results, from_runtime(network, given), strict=True):
        off = np.abs(one.astype(int) - other)
        assert off.max() <= 1
        assert np.count_nonzero(off) <= 0.1 * off.size


@pytest.mark.parametrize("weights", [True, False], ids=["integers", "reals"])
@pytest.mark.parametrize("kind", GATES)
def test_large_inputs_are_as_near(kind: str, weights: bool) -> None:
    """Where gates are open or closed anyway, their sums need not be told apart."""
    options: dict[str, Any] = {"linear_before_reset": 1} if kind == "GRU" else {}
    network, given = layer(kind, x=Scale(1.7, 3), weights=weights, **options)
    lowering = lowered(network)
    assert on_host(lowering) == {}
    results = computed(lowering, *given.values())
    for one, other in zip(results, from_runtime(network, given), strict=True):
        off = np.abs(one.astype(int) - other)
        assert off.max() <= 1
        assert np.count_nonzero(off) <= 0.1 * off.size


def test_states_too_far_from_zero_are_the_runtimes() -> None:
    network, _ = layer("LSTM", states=True, state=Scale(60.0))
    reason = on_host(lowered(network))["LSTM"]
    assert reason == "what its gates add goes too far to be told apart in 16 bits"


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("GRU", {"clip": 1.0}, "it clips its gates"),
        ("LSTM", {"clip": 1.0}, "it clips its gates"),
        ("RNN", {"activations": ["Affine"]}, "its activations are Affine"),
    ],
)
def test_refusals_say_why(kind: str, options: dict[str, Any], reason: str) -> None:
    assert on_host(lowered(layer(kind, **options)[0]))[kind] == reason


def test_a_constant_of_another_layer_is_refused() -> None:
    network, _ = layer("LSTM", weights=False)
    weight = network.nodes[1][1][1]
    network.constants[weight] = network.constants[weight][:, 1:]
    reason = on_host(lowered(network))["LSTM"]
    assert reason == "its input 1 is of shape [1, 31, 10], and must be of [1, 32, 10]"


def test_long_sequences_are_the_runtimes() -> None:
    network, _ = layer("RNN")
    network.inputs["x"] = TensorType(np.dtype(np.int8), (1000, BATCH, INPUTS))
    reason = on_host(lowered(network))["RNN"]
    assert reason == "it has 1000 steps, and 256 at most are unrolled"


def test_results_of_16_bits_are_the_runtimes() -> None:
    network, _ = layer("LSTM", result=WIDE_RESULT)
    reason = on_host(lowered(network))["LSTM"]
    assert reason == "its results have 16 bits, as many as its states have inside"
