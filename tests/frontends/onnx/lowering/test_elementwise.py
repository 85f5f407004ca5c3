"""Functions and arithmetic on each number, against ONNX's NumPy implementation in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from mizzen.graph import Array

from .comparing import integers
from .networks import Network, Scale, computed, float_model, from_runtime, lowered, on_host

SHAPE = (2, 3, 64)


@dataclass(frozen=True)
class Case:
    """One operator between DequantizeLinear and QuantizeLinear.

    inputs  a scale for a quantised input, or a constant that is left in floating point
    """

    kind: str
    inputs: Sequence[Scale | Array | np.float32]
    result: Scale
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    opset: int = 24

    def __str__(self) -> str:
        named = "".join(f" {name}={value}" for name, value in self.attributes.items())
        return f"{self.kind}{named} {self.result.dtype}"


def steps_off(case: Case, shapes: Sequence[Sequence[int]] | None = None) -> Array:
    """Return by how many steps the graph's result is off the float model's, number by number."""
    network, plain = Network(case.opset), Network(case.opset)
    given: list[Array] = []
    names, floats = list[str](), list[str]()
    reals: dict[str, Array] = {}
    for index, item in enumerate(case.inputs):
        if isinstance(item, Scale):
            shape = SHAPE if shapes is None else shapes[index]
            given.append(integers(item, shape, index))
            name = network.input(f"x{index}", shape, item.dtype)
            names.append(network.dequantize(name, item))
            floats.append(plain.input(name, shape))
            reals[name] = item.dequantize(given[-1])
        else:
            names.append(network.constant(item))
            floats.append(plain.constant(item))
    network.outputs.append(
        network.quantize(network.add(case.kind, *names, **case.attributes), case.result)
    )
    plain.outputs.append(plain.add(case.kind, *floats, **case.attributes))
    lowering = lowered(network)
    assert on_host(lowering) == {}
    (found,) = computed(lowering, *given)
    with np.errstate(all="ignore"):
        real = float_model(plain, reals)[0]
        wanted = case.result.quantize(real)
    assert found.dtype == wanted.dtype
    off = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
    return np.where(np.isnan(real), 0, off)


X = Scale(0.0317, 5)
UNIT, SIGNED_UNIT = Scale(1 / 256, -128), Scale(1 / 128, 0)
ABOVE = Scale(0.0137, -128)
"""Of numbers that are not negative."""
SMALL = Scale(0.003, -10)
FUNCTIONS = [
    Case("Abs", [X], Scale(0.0221, -100)),
    Case("Acos", [Scale(0.0077, 2)], Scale(0.0123, -128)),
    Case("Acosh", [Scale(0.0177, -128)], Scale(0.0083, -128)),
    Case("Asin", [Scale(0.0077, 2)], Scale(0.0123, -3)),
    Case("Asinh", [X], Scale(0.0173, -3)),
    Case("Atan", [X], Scale(0.0113, -3)),
    Case("Atanh", [Scale(0.0077, 2)], Scale(0.0213, -3)),
    Case("Ceil", [X], Scale(0.0321, 4)),
    Case("Celu", [X], Scale(0.0261, -90), {"alpha": 1.3}),
    Case("Cos", [X], SIGNED_UNIT),
    Case("Cosh", [X], Scale(0.11, -128)),
    Case("Elu", [X], Scale(0.0261, -90), {"alpha": 0.7}),
    Case("Erf", [X], SIGNED_UNIT),
    Case("Exp", [X], Scale(0.173, -128)),
    Case("Floor", [X], Scale(0.0321, 4)),
    Case("Gelu", [X], Scale(0.0231, -110)),
    Case("Gelu", [X], Scale(0.0231, -110), {"approximate": "tanh"}),
    Case("HardSigmoid", [X], UNIT, {"alpha": 0.21, "beta": 0.4}),
    Case("HardSigmoid", [X], UNIT),
    Case("HardSwish", [X], Scale(0.0231, -110)),
    Case("LeakyRelu", [X], Scale(0.0261, -90), {"alpha": 0.13}),
    Case("LeakyRelu", [X], Scale(0.0261, -90)),
    Case("Log", [ABOVE], Scale(0.0271, 80)),
    Case("Mish", [X], Scale(0.0231, -110)),
    Case("Neg", [X], Scale(0.0291, 3)),
    Case("Reciprocal", [ABOVE], Scale(0.171, -128)),
    Case("Round", [X], Scale(0.0321, 4)),
    Case("Selu", [X], Scale(0.0261, -70)),
    Case("Shrink", [X], Scale(0.0221, 4), {"bias": 0.1, "lambd": 0.6}),
    Case("Sigmoid", [X], UNIT),
    Case("Sign", [X], SIGNED_UNIT),
    Case("Sin", [X], SIGNED_UNIT),
    Case("Sinh", [X], Scale(0.11, 5)),
    Case("Softplus", [X], Scale(0.0231, -128)),
    Case("Softsign", [X], SIGNED_UNIT),
    Case("Sqrt", [ABOVE], Scale(0.0091, -128)),
    Case("Swish", [X], Scale(0.0231, -110), {"alpha": 1.2}),
    Case("Tan", [Scale(0.0107, 5)], Scale(0.041, 5)),
    Case("Tanh", [X], SIGNED_UNIT),
    Case("ThresholdedRelu", [X], Scale(0.0231, -110), {"alpha": 0.9}),
    Case("Pow", [X, np.float32(2)], Scale(0.0731, -128)),
    Case("Pow", [ABOVE, np.array([0.5], np.float32)], Scale(0.0131, -128)),
    Case("Relu", [X], Scale(0.0201, -128)),
    Case("Clip", [X, np.float32(-0.33), np.float32(2.2)], Scale(0.0201, -10)),
]


@pytest.mark.parametrize("case", FUNCTIONS, ids=str)
def test_functions_of_8_bits_are_exact(case: Case) -> None:
    off = steps_off(case)
    # Where the function's float32 rounding falls on a tie, NumPy and ONNX may take other sides.
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 4, np.count_nonzero(off)


WIDE = Scale(0.000131, 0, "int16")
WIDE_RESULT = Scale(0.000117, 0, "int16")


@pytest.mark.parametrize(
    "case",
    [
        Case("Sigmoid", [WIDE], Scale(2.0**-15, 0, "int16")),
        Case("Tanh", [WIDE], Scale(2.0**-15, 0, "int16")),
        Case("HardSwish", [WIDE], WIDE_RESULT),
        Case("Gelu", [WIDE], WIDE_RESULT),
        Case("LeakyRelu", [WIDE], WIDE_RESULT, {"alpha": 0.1}),
        Case("Sigmoid", [WIDE], UNIT),
        Case("Gelu", [X], WIDE_RESULT),
    ],
    ids=str,
)
def test_functions_of_16_bits(case: Case) -> None:
    off = steps_off(case)
    assert off.max() <= 2, off.max()


CHANNELS = np.random.default_rng(7).normal(size=(3, 1)).astype(np.float32)
NEAR = np.array([[1.0], [1.3], [-1.21]], np.float32)
NUMBER = np.float32(0.731)
Y = Scale(0.0213, -7)
UX, UY = Scale(0.0317, 133, "uint8"), Scale(0.0213, 121, "uint8")
WX, WY = Scale(0.000131, 0, "int16"), Scale(0.000093, 0, "int16")
ARITHMETIC = [
    *(Case(kind, [X, Y], Scale(0.0371, 2)) for kind in ("Add", "Sub", "Mul", "Max", "Min")),
    *(Case(kind, [UX, UY], Scale(0.0371, 120, "uint8"))
      for kind in ("Add", "Sub", "Mul", "Max", "Min")),
    *(Case(kind, [WX, WY], Scale(0.000171, 0, "int16"))
      for kind in ("Add", "Sub", "Mul", "Max", "Min")),
    *(Case(kind, [X, NUMBER], Scale(0.0361, 2))
      for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min")),
    *(Case(kind, [NUMBER, X], Scale(0.0361, 2)) for kind in ("Add", "Sub", "Mul")),
    *(Case(kind, [WX, NUMBER], Scale(0.000171, 0, "int16"))
      for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min")),
    *(Case(kind, [X, CHANNELS], Scale(0.0361, 2)) for kind in ("Add", "Sub", "Mul", "Div")),
    *(Case(kind, [CHANNELS, X], Scale(0.0361, 2)) for kind in ("Add", "Sub", "Mul")),
    *(Case(kind, [WX, CHANNELS], Scale(0.000291, 0, "int16"))
      for kind in ("Add", "Sub", "Mul")),
    Case("Div", [WX, NEAR], WX),
    Case("Max", [X, Y, Scale(0.0251, -60)], Scale(0.0241, -50)),
    Case("Min", [X, CHANNELS, Y], Scale(0.0241, -50)),
    Case("PRelu", [X, CHANNELS], Scale(0.0361, 2)),
    Case("PRelu", [WX, CHANNELS], Scale(0.000221, 0, "int16")),
    Case("PRelu", [X, np.float32(0.2)], Scale(0.0361, 2)),
]  # fmt: skip


@pytest.mark.parametrize("case", ARITHMETIC, ids=str)
def test_arithmetic_is_off_by_a_step_at_ties_only(case: Case) -> None:
    off = steps_off(case)
    assert off.max() <= 1
    several = case.result.dtype == "int16" and any(
        item is each for each in (CHANNELS, NEAR) for item in case.inputs
    )
    assert several or np.count_nonzero(off) <= 2, np.count_nonzero(off)


def test_factors_too_far_apart_for_16_bits_are_the_runtimes() -> None:
    network = Network()
    x = network.dequantize(network.input("x", (1, 3, 4), np.int16), WX)
    factors = network.constant(np.array([[1.0], [1000.0], [3.0]], np.float32))
    network.outputs.append(network.quantize(network.add("Mul", x, factors), WX))
    assert on_host(lowered(network)) == {
        "Mul": "its constant has numbers too far apart for one scale"
    }


@pytest.mark.parametrize("shapes", [((2, 3, 4, 5), (4, 5)), ((3, 1), (2, 1, 6)), ((5,), (1,))])
@pytest.mark.parametrize("kind", ["Add", "Mul", "Max"])
def test_operands_are_broadcast(kind: str, shapes: Sequence[Sequence[int]]) -> None:
    assert steps_off(Case(kind, [X, Y], Scale(0.0371, 2)), shapes).max() <= 1


def chain(*kinds: str) -> Network:
    """Return a network of several functions in floating point between its integers."""
    network = Network(opset=20)
    value = network.both(network.input("x", SHAPE), X)
    for kind in kinds:
        value = network.add(kind, value)
    network.outputs.append(network.both(value, Scale(0.0091, -60)))
    return network


def test_a_chain_of_functions_is_one_table() -> None:
    lowering = lowered(chain("Neg", "Sigmoid", "Softplus", "Relu"))
    assert on_host(lowering) == {}
    kinds = [row.kind for row in lowering.graph if row.kind not in ("CONST", "CUSTOM")]
    assert kinds == ["TABLE"]


def swish(network: Network, x: str) -> str:
    """Return x * sigmoid(x)."""
    return network.add("Mul", x, network.add("Sigmoid", x))


def hard_swish(network: Network, x: str) -> str:
    """Return x * clip(x + 3, 0, 6) / 6."""
    three, zero, six = (network.constant(np.float32(number)) for number in (3, 0, 6))
    cut = network.add("Clip", network.add("Add", x, three), zero, six)
    return network.add("Div", network.add("Mul", x, cut), six)


def gelu(network: Network, x: str) -> str:
    """Return x / 2 * (1 + erf(x / sqrt(2)))."""
    root, one, half = (network.constant(np.float32(number)) for number in (2**0.5, 1, 0.5))
    inner = network.add("Add", network.add("Erf", network.add("Div", x, root)), one)
    return network.add("Mul", network.add("Mul", x, inner), half)


@pytest.mark.parametrize("build", [swish, hard_swish, gelu])
def test_functions_written_in_several_operators_are_one_table(build: Any) -> None:
    network = Network(opset=17)
    result = Scale(0.0191, -110)
    x = network.dequantize(network.input("x", SHAPE, np.int8), X)
    network.outputs.append(network.quantize(build(network, x), result))
    lowering = lowered(network)
    assert on_host(lowering) == {}
    kinds = [row.kind for row in lowering.graph if row.kind not in ("CONST", "CUSTOM")]
    assert kinds == ["TABLE"]
    plain = Network(opset=17)
    plain.outputs.append(build(plain, plain.input("x", SHAPE)))
    given = integers(X, SHAPE, 3)
    wanted = result.quantize(float_model(plain, {"x": X.dequantize(given)})[0])
    (found,) = computed(lowering, given)
    assert np.abs(found.astype(int) - wanted).max() <= 1
    assert np.count_nonzero(found != wanted) <= 2


def test_quotients_of_computed_numbers_are_the_runtimes() -> None:
    network = Network()
    x, y = (network.both(network.input(name, SHAPE), X) for name in "xy")
    network.outputs.append(network.both(network.add("Div", x, y), X))
    assert on_host(lowered(network)) == {
        "Div": "its divisor is computed at run time, and no NPU divides"
    }


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul"])
def test_onnx_runtime_computes_the_same(kind: str) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    network = Network()
    x, y = (network.dequantize(network.input(name, SHAPE, np.int8), scale)
            for name, scale in (("x", X), ("y", Y)))  # fmt: skip
    network.outputs.append(network.quantize(network.add(kind, x, y), Scale(0.0371, 2)))
    given = {"x": integers(X, SHAPE, 0), "y": integers(Y, SHAPE, 1)}
    (found,) = computed(lowered(network), *given.values())
    (wanted,) = from_runtime(network, given)
    assert np.count_nonzero(found != wanted) <= 1
