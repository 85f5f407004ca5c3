"""Hold every ONNX operator that is lowered to integers against its float32 model.

    python benchmarks/onnx_operators.py [--outputs 1000000] [--only Conv,Add] [--json]

Each operator is lowered again and again between DequantizeLinear and QuantizeLinear of random
scales, weights and attributes, computed by the graph's reference on random integers, and compared
with NumPy in float32 (`onnx_float_models`). Figures: `onnx_operators`, how many forms of operators;
`onnx_worst_step`, the most that an output is off; `onnx_most_differing`, of 10**6 outputs of one
operator, the most that are off at all; `onnx_most_differing_near`, the same of operators that are
not exact by design (`NEAR`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from mizzen.frontends.onnx.lowering.lower import lower
from mizzen.frontends.onnx.model import Model, Node, TensorType
from mizzen.ops.control_flow import Custom
from mizzen.ops.limits import WindowLimits
from mizzen.reference import evaluate
from onnx_float_models import FUNCTIONS, MODELS, Array

LIMITS = WindowLimits(longest_stride=3, largest_kernel=64)
OPSET = 24
MILLION = 1_000_000


@dataclass(frozen=True, eq=False)
class Integers:
    """Integers of a tensor, and what they stand for.

    axis      that scales are of, None for one scale
    constant  whether the network has them
    """

    array: Array
    scale: Array
    zero: Array
    axis: int | None = None
    constant: bool = False

    @property
    def real(self) -> Array:
        """The real numbers, float32."""
        scale, zero = self.scale, self.zero.astype(np.int64)
        if self.axis is not None:
            shape = [-1 if index == self.axis else 1 for index in range(self.array.ndim)]
            scale, zero = scale.reshape(shape), zero.reshape(shape)
        return (self.array.astype(np.int64) - zero).astype(np.float32) * scale


@dataclass(frozen=True, eq=False)
class Trial:
    """One form of an operator with its inputs; arrays are constants in floating point."""

    kind: str
    inputs: Sequence[Integers | Array]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    result: str = "int8"


Draw = Callable[[np.random.Generator], Trial]


def quantized(
    random: np.random.Generator,
    shape: Sequence[int],
    dtype: str = "int8",
    span: tuple[float, float] = (0.5, 20.0),
) -> Integers:
    """Return random integers of a random scale, whose range has a random extent in `span`."""
    limit = np.iinfo(dtype)
    extent = float(np.exp(random.uniform(*np.log(span))))
    scale = np.float32(extent / (limit.max - limit.min))
    middle = 0 if dtype == "int16" else random.integers(limit.min, limit.max + 1)
    array = random.integers(limit.min, limit.max + 1, shape).astype(dtype)
    return Integers(array, np.asarray(scale), np.asarray(middle, dtype))


def positive(random: np.random.Generator, shape: Sequence[int]) -> Integers:
    """Return random integers that stand for numbers above zero."""
    whole = quantized(random, shape)
    array = np.maximum(whole.array, -127)
    return Integers(array, whole.scale, np.asarray(-128, np.int8))


def weight(
    random: np.random.Generator, shape: Sequence[int], axis: int | None = 0, dtype: str = "int8"
) -> Integers:
    """Return a constant weight, with a scale for each output or one with a zero point."""
    limit = np.iinfo(dtype)
    count = 1 if axis is None else shape[axis]
    scale = random.uniform(0.001, 0.01, count).astype(np.float32)
    zero = np.full(count, 0 if dtype == "int8" else 128, dtype)
    if axis is None:
        scale, zero = scale.reshape(()), zero.reshape(())
    array = random.integers(limit.min, limit.max + 1, shape).astype(dtype)
    return Integers(array, scale, zero, axis, constant=True)


def reals(random: np.random.Generator, *shape: int) -> Array:
    """Return random numbers."""
    return random.normal(size=shape).astype(np.float32)


IMAGE = (1, 8, 24, 24)
ROWS = (64, 96)


def convolution(**attributes: Any) -> Draw:
    """Draw a convolution of a kernel of 3x3."""

    def draw(random: np.random.Generator) -> Trial:
        inputs = 8 // attributes.get("group", 1)
        x = quantized(random, IMAGE)
        kernel = weight(random, (8, inputs, 3, 3))
        return Trial("Conv", [x, kernel], attributes)

    return draw


def unsigned_convolution(random: np.random.Generator) -> Trial:
    """Draw a convolution of bytes without a sign."""
    x = quantized(random, IMAGE, "uint8")
    kernel = weight(random, (8, 8, 3, 3), None, "uint8")
    return Trial("Conv", [x, kernel], {"pads": [0, 1, 2, 1]}, "uint8")


def row_convolution(random: np.random.Generator) -> Trial:
    """Draw a convolution of [N,C,W]."""
    x = quantized(random, (4, 8, 129))
    return Trial("Conv", [x, weight(random, (8, 8, 5))], {"pads": [3, 1], "strides": [2]})


def transposed(random: np.random.Generator) -> Trial:
    """Draw a transposed convolution."""
    attributes = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
    x = quantized(random, (1, 8, 12, 12))
    return Trial("ConvTranspose", [x, weight(random, (8, 8, 4, 4), 1)], attributes)


def gemm(random: np.random.Generator) -> Trial:
    """Draw a product with a bias of 32 bits."""
    x, matrix = quantized(random, ROWS), weight(random, (96, 64), 1)
    scale = matrix.scale * x.scale
    bias = random.integers(-5000, 5000, 64).astype(np.int32)
    zero = np.zeros(64, np.int32)
    return Trial("Gemm", [x, matrix, Integers(bias, scale, zero, 0, constant=True)])


def products(random: np.random.Generator) -> Trial:
    """Draw a product of two computed stacks of matrices."""
    x, y = quantized(random, (4, 32, 48)), quantized(random, (4, 48, 32))
    return Trial("MatMul", [x, y])


def binary(kind: str, dtype: str = "int8") -> Draw:
    """Draw two operands of different scales."""

    def draw(random: np.random.Generator) -> Trial:
        x, y = (quantized(random, (16, 256), dtype) for _ in range(2))
        return Trial(kind, [x, y], {}, dtype)

    return draw


def by_constants(kind: str) -> Draw:
    """Draw an operand, and constants in floating point."""

    def draw(random: np.random.Generator) -> Trial:
        constants = reals(random, 16, 1)
        if kind == "Div":
            constants = np.sign(constants) * (np.abs(constants) + np.float32(0.3))
        return Trial(kind, [quantized(random, (16, 256)), constants])

    return draw


def by_number(kind: str) -> Draw:
    """Draw an operand, and a constant number."""

    def draw(random: np.random.Generator) -> Trial:
        number = np.float32(random.uniform(0.2, 3.0))
        return Trial(kind, [quantized(random, (256,)), np.asarray(number)])

    return draw


def pool(kind: str, **attributes: Any) -> Draw:
    """Draw a pool of images."""
    return lambda random: Trial(kind, [quantized(random, IMAGE)], attributes)


def planes(kind: str) -> Draw:
    """Draw many planes."""
    return lambda random: Trial(kind, [quantized(random, (64, 16, 8, 8))])


def reduction(kind: str, *axes: int) -> Draw:
    """Draw a reduction of dimensions."""

    def draw(random: np.random.Generator) -> Trial:
        x = quantized(random, (16, 16, 8, 8))
        return Trial(kind, [x, np.array(axes, np.int64)], {"keepdims": 1})

    return draw


def function(kind: str) -> Draw:
    """Draw a function of all 256 integers."""
    whole = np.arange(-128, 128).astype(np.int8)

    def draw(random: np.random.Generator) -> Trial:
        if kind in ("Log", "Sqrt", "Reciprocal"):
            return Trial(kind, [positive(random, (256,))])
        x = quantized(random, (256,))
        return Trial(kind, [Integers(whole, x.scale, x.zero)])

    return draw


def clip(random: np.random.Generator) -> Trial:
    """Draw bounds."""
    low, high = (np.asarray(np.float32(each)) for each in np.sort(random.uniform(-8, 8, 2)))
    return Trial("Clip", [quantized(random, (256,)), low, high])


def power(random: np.random.Generator) -> Trial:
    """Draw an exponent."""
    return Trial("Pow", [positive(random, (256,)), np.asarray(np.float32(random.uniform(0.3, 3)))])


def softmax(kind: str, dtype: str = "int8") -> Draw:
    """Draw scores."""
    return lambda random: Trial(kind, [quantized(random, (40, 100), dtype)], {"axis": -1}, dtype)


def concat(random: np.random.Generator) -> Trial:
    """Draw two tensors of different scales."""
    return Trial("Concat", [quantized(random, ROWS), quantized(random, ROWS)], {"axis": 1})


def batch_norm(random: np.random.Generator) -> Trial:
    """Draw a norm by constants."""
    x = quantized(random, IMAGE)
    variance = random.uniform(0.3, 3, 8).astype(np.float32)
    parts = (reals(random, 8) for _ in range(3))
    return Trial("BatchNormalization", [x, *parts, variance])


def layer_norm(random: np.random.Generator) -> Trial:
    """Draw a norm along the last axis."""
    x = quantized(random, ROWS)
    return Trial("LayerNormalization", [x, reals(random, 96), reals(random, 96)], {"axis": -1})


DRAWS: dict[str, Draw] = {
    "Conv": convolution(),
    "Conv, pads, stride 2": convolution(pads=[0, 1, 2, 1], strides=[2, 2]),
    "Conv, depthwise": convolution(group=8, pads=[1, 1, 1, 1]),
    "Conv, groups": convolution(group=2),
    "Conv, uint8": unsigned_convolution,
    "Conv, rows": row_convolution,
    "ConvTranspose": transposed,
    "Gemm": gemm,
    "MatMul, two inputs": products,
    **{kind: binary(kind) for kind in ("Add", "Sub", "Mul", "Max", "Min")},
    **{f"{kind}, uint8": binary(kind, "uint8") for kind in ("Add", "Mul")},
    **{f"{kind}, int16": binary(kind, "int16") for kind in ("Add", "Mul")},
    **{f"{kind} of constants": by_constants(kind)
       for kind in ("Add", "Sub", "Mul", "Div", "PRelu")},
    **{f"{kind} of a number": by_number(kind) for kind in ("Add", "Mul", "Div", "Max", "Min")},
    "Clip": clip,
    "Pow": power,
    **{kind: function(kind) for kind in FUNCTIONS},
    "MaxPool": pool("MaxPool", kernel_shape=[3, 3], pads=[1, 0, 1, 2]),
    "AveragePool": pool("AveragePool", kernel_shape=[3, 3], strides=[2, 2]),
    "AveragePool, pads": pool("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "AveragePool, pads count": pool(
        "AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1
    ),
    "AveragePool, tiles": pool("AveragePool", kernel_shape=[4, 4], strides=[4, 4]),
    "GlobalAveragePool": planes("GlobalAveragePool"),
    "GlobalMaxPool": planes("GlobalMaxPool"),
    "ReduceMean": reduction("ReduceMean", 2, 3),
    "ReduceMean, rows": reduction("ReduceMean", 3),
    "ReduceSum": reduction("ReduceSum", 1),
    "ReduceMax": reduction("ReduceMax", 1),
    "Softmax": softmax("Softmax"),
    "Softmax, uint8": softmax("Softmax", "uint8"),
    "LogSoftmax": softmax("LogSoftmax"),
    "Concat": concat,
    "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm,
}  # fmt: skip
"""Forms of operators, by what a table calls them."""


NEAR = ("Softmax", "LogSoftmax", "LayerNormalization", "int16")
"""What is at most a step off, and often: functions of sums, and steps that float32 is too coarse
for."""


def network(trial: Trial, scale: Array, zero: Array, shape: tuple[int, ...]) -> Model:
    """Return the operator between DequantizeLinear and QuantizeLinear."""
    nodes: list[Node] = []
    types: dict[str, TensorType] = {}
    constants: dict[str, Array] = {}
    inputs: list[str] = []

    def known(name: str, array: Array) -> str:
        constants[name] = array
        types[name] = TensorType(array.dtype, array.shape)
        return name

    def node(kind: str, names: Sequence[str], result: str, attributes: Mapping[str, Any]) -> str:
        nodes.append(Node(len(nodes), kind, "", result, tuple(names), (result,), attributes))
        return result

    names: list[str] = []
    for index, each in enumerate(trial.inputs):
        if not isinstance(each, Integers):
            names.append(known(f"c{index}", each))
            continue
        name = f"x{index}"
        if each.constant:
            known(name, each.array)
        else:
            types[name] = TensorType(each.array.dtype, each.array.shape)
            inputs.append(name)
        parts = [known(f"{name}.scale", each.scale), known(f"{name}.zero", each.zero)]
        axis = {} if each.axis is None else {"axis": each.axis}
        names.append(node("DequantizeLinear", [name, *parts], f"{name}.real", axis))
        types[names[-1]] = TensorType(np.dtype(np.float32), each.array.shape)
    real = node(trial.kind, names, "real", trial.attributes)
    parts = [known("y.scale", scale), known("y.zero", zero)]
    node("QuantizeLinear", [real, *parts], "y", {})
    types["real"] = TensorType(np.dtype(np.float32), shape)
    types["y"] = TensorType(zero.dtype, shape)
    return Model("trial", OPSET, tuple(nodes), tuple(inputs), ("y",), types, constants)


def sign_changed(operation: Custom, operands: Sequence[Array]) -> Sequence[Array]:
    """Compute where bytes with and without a sign meet; all else must be integers."""
    (array,) = operands
    match operation.operator_name:
        case "onnx.signed":
            return [(array.astype(np.int64) - 128).astype(np.int8)]
        case "onnx.unsigned":
            return [(array.astype(np.int64) + 128).astype(np.uint8)]
        case name:
            raise AssertionError(
                f"{name} stays with ONNX Runtime: {operation.implementation_attrs}"
            )


def steps_off(trial: Trial, random: np.random.Generator) -> Array:
    """Return by how many steps each output is off the float model's."""
    given = [each.real if isinstance(each, Integers) else each for each in trial.inputs]
    with np.errstate(all="ignore"):
        real = MODELS[trial.kind](trial.attributes, *given).astype(np.float32)
    limit = np.iinfo(trial.result)
    scale, zero = chosen(real, trial.result, random)
    steps = np.rint(real / scale) + zero
    wanted = np.clip(steps, limit.min, limit.max).astype(trial.result)
    lowering = lower(network(trial, np.asarray(scale), np.asarray(zero), real.shape), LIMITS)
    computed = [each.array for each in trial.inputs
                if isinstance(each, Integers) and not each.constant]  # fmt: skip
    (result,) = evaluate(lowering.graph, computed, custom=sign_changed)
    return np.abs(result.astype(np.int64) - wanted.astype(np.int64))


def chosen(real: Array, dtype: str, random: np.random.Generator) -> tuple[Any, Any]:
    """Return a scale as calibration would choose it, with a part that saturates."""
    limit = np.iinfo(dtype)
    low, high = min(float(real.min()), 0.0), max(float(real.max()), 0.0)
    part = random.uniform(0.6, 1.3)
    scale = np.float32((high - low or 1.0) * part / (limit.max - limit.min))
    if dtype == "int16":
        return np.float32(max(-low, high, 1e-3) * part / limit.max), np.int16(0)
    zero = np.clip(np.rint(limit.min - low / scale), limit.min, limit.max)
    return scale, zero.astype(dtype)


@dataclass(frozen=True, slots=True)
class Off:
    """How far an operator is off."""

    outputs: int
    differing: int
    worst: int

    @property
    def of_a_million(self) -> int:
        """How many of 10**6 outputs differ."""
        return ceil(self.differing * MILLION / self.outputs)


def measured(draw: Draw, outputs: int) -> Off:
    """Draw trials until there are as many outputs."""
    random = np.random.default_rng(17)
    seen = differing = worst = 0
    while seen < outputs:
        off = steps_off(draw(random), random)
        seen += off.size
        differing += int(np.count_nonzero(off))
        worst = max(worst, int(off.max()))
    return Off(seen, differing, worst)


def measure(names: Sequence[str], outputs: int) -> Iterator[tuple[str, Off]]:
    """Measure one operator after the other."""
    for name in names:
        yield name, measured(DRAWS[name], outputs)


def is_near(name: str) -> bool:
    """Whether an operator is not exact by design."""
    return any(part in name for part in NEAR)


def _most(offs: Iterable[Off]) -> int:
    return max((off.of_a_million for off in offs), default=0)


def main() -> None:
    """Measure, and print a table or the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outputs", type=int, default=MILLION)
    parser.add_argument("--only", help="names of operators, separated by commas")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    wanted = [name for name in DRAWS if not options.only or name.split(",")[0] in
              options.only.split(",")]  # fmt: skip
    offs: dict[str, Off] = {}
    for name, off in measure(wanted, options.outputs):
        offs[name] = off
        if not options.json:
            print(f"{name:28}{off.outputs:>10,}{off.differing:>7} differ, worst {off.worst}",
                  flush=True)  # fmt: skip
    figures = {
        "onnx_operators": len(offs),
        "onnx_worst_step": max(off.worst for off in offs.values()),
        "onnx_most_differing": _most(off for name, off in offs.items() if not is_near(name)),
        "onnx_most_differing_near": _most(off for name, off in offs.items() if is_near(name)),
    }
    print(json.dumps({"figures": figures}) if options.json else figures)


if __name__ == "__main__":
    main()
