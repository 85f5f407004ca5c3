"""Networks of a single operator: what the NPU must compute like the kernels.

Scales are chosen so that outputs spread over their whole range: an error anywhere shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.package.tflite.builder import NetworkBuilder

Shape = tuple[int, ...]

SAME, VALID = 0, 1
NONE, RELU, RELU_N1_TO_1, RELU6 = 0, 1, 2, 3
SCALE = {"int8": 0.05, "uint8": 0.05, "int16": 0.0004, "int32": 1.0, "bool": 1.0}
ZERO = {"int8": 7, "uint8": 121, "int16": 0, "int32": 0, "bool": 0}
SPREAD = {"int8": 74.0, "uint8": 74.0, "int16": 18900.0}
"""Standard deviation of uniformly random values of the type."""


@dataclass(frozen=True)
class Case:
    """One network.

    operator  its one operator's type, as in TFLite's schema
    dtype     the type of its data, as NumPy names it
    build     gives the `.tflite` file, the same one every time
    limit     the largest magnitude of its INT16 and INT32 inputs, None for their whole range
    """

    name: str
    operator: str
    dtype: str
    build: Callable[[], bytes]
    limit: int | None = None


@dataclass(frozen=True)
class Q:
    """A quantisation: real value = scale x (integer - zero_point)."""

    scale: float
    zero_point: int = 0


def quantization(dtype: str) -> Q:
    """Return the quantisation that inputs of a type have where a case asks for no other."""
    return Q(SCALE[dtype], ZERO[dtype])


def rng_of(name: str) -> np.random.Generator:
    """Return the source of a case's constants."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def one(
    name: str,
    kind: str,
    shapes: Sequence[Shape],
    outputs: Sequence[Shape],
    dtype: str = "int8",
    options: tuple[str, dict[str, Any]] | None = None,
    *,
    constants: Sequence[np.ndarray[Any, Any]] = (),
    constants_first: int = 0,
    in_dtypes: Sequence[str] = (),
    in_q: Sequence[Q] | None = None,
    out_q: Q | None = None,
    out_dtype: str | None = None,
    limit: int | None = None,
) -> Case:
    """Describe a network of one operator.

    Its operands are so many constants, the inputs, the rest of the constants. `in_dtypes` are the
    inputs' types where they are not all `dtype`.
    """
    types = in_dtypes or [dtype] * len(shapes)

    def build() -> bytes:
        """Build the network of the operator."""
        net = NetworkBuilder(name)
        scales = in_q or [quantization(type_) for type_ in types]
        inputs = [
            net.tensor(f"x{i}", shape, type_, *_q(q))
            for i, (shape, type_, q) in enumerate(zip(shapes, types, scales, strict=True))
        ]
        fixed = [net.constant(f"c{i}", data) for i, data in enumerate(constants)]
        of = out_dtype or dtype
        result = out_q or (scales[0] if of == types[0] else quantization(of))
        plain = of == "int32" != dtype and out_q is None
        made = [
            net.tensor(f"y{i}", shape, of) if plain else net.tensor(f"y{i}", shape, of, *_q(result))
            for i, shape in enumerate(outputs)
        ]
        order = [*fixed[:constants_first], *inputs, *fixed[constants_first:]]
        net.operator(kind, order, made, options)
        return net.finish(inputs, made)

    return Case(name, kind, dtype, build, limit)


def _q(q: Q) -> tuple[float, int]:
    return q.scale, q.zero_point


def i32(*values: Any) -> np.ndarray[Any, Any]:
    """Return an array of INT32."""
    return np.array(values, np.int32)


LIMITS = {
    "ADD": 1 << 17,
    "SUB": 1 << 17,
    "MUL": 1 << 10,
    "SQUARED_DIFFERENCE": 360,
    "SUM": 1 << 20,
}
"""Magnitudes of INT32 operands within which results fit, and NPU operands that are scaled up."""


def _limit(kind: str, dtype: str) -> int | None:
    return LIMITS.get(kind) if dtype == "int32" else None


def reduce(kind: str, shape: Shape, axes: tuple[int, ...], dtype: str = "int8",
           out_q: Q | None = None, *, keep: bool = True) -> Case:  # fmt: skip
    """Describe a reduction over axes, which are kept with an extent of 1, or dropped."""
    out = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    if not keep:
        out = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    name = f"{kind.lower()}_{'x'.join(map(str, shape))}_axes{''.join(map(str, axes))}_{dtype}"
    name += "" if keep else "_dropped"
    name += "" if out_q is None else "_rescaled"
    options = ("ReducerOptions", {"keep_dims": keep})
    return one(name, kind, [shape], [out], dtype, options, constants=[i32(*axes)], out_q=out_q,
               limit=_limit(kind, dtype))  # fmt: skip


BINARY_OPTIONS = {
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
    "DIV": "DivOptions",
}


def binary(kind: str, a: Shape, b: Shape, dtype: str = "int8", activation: int = NONE) -> Case:
    """Describe an elementwise operator of two inputs, which broadcast."""
    out = tuple(np.broadcast_shapes(a, b))
    shapes = f"{'x'.join(map(str, a))}_{'x'.join(map(str, b))}"
    name = f"{kind.lower()}_{shapes}_{dtype}" + (f"_act{activation}" if activation else "")
    # The compiler multiplies int16 scales in single precision: powers of two are exact in it.
    s, z = (2.0**-11 if (kind, dtype) == ("MUL", "int16") else SCALE[dtype]), ZERO[dtype]
    same = kind in ("MAXIMUM", "MINIMUM") or dtype == "int32"
    in_q = [Q(s, z), Q(s, z) if same else Q(s * 0.375, -z // 3 if dtype == "int8" else z)]
    factors = {"ADD": 1.3, "SUB": 1.3, "MUL": s * (30 if dtype != "int16" else 8192),
               "SQUARED_DIFFERENCE": s * (80 if dtype != "int16" else 20000)}  # fmt: skip
    out_q = Q(s if dtype == "int32" else s * factors.get(kind, 1.0), z)
    options: dict[str, Any] = {"fused_activation_function": activation} if activation else {}
    if kind in ("ADD", "SUB") and dtype == "int16":
        options["pot_scale_int16"] = False
    return one(name, kind, [a, b], [out], dtype, (BINARY_OPTIONS[kind], options),
               in_q=in_q, out_q=out_q,
               limit=_limit(kind, dtype))  # fmt: skip


def unary(kind: str, dtype: str = "int8", options: tuple[str, dict[str, Any]] | None = None,
          in_q: Q | None = None, out_q: Q | None = None, shape: Shape = (1, 5, 7, 9),
          label: str = "") -> Case:  # fmt: skip
    """Describe a function of one input; `label` tells apart cases of the same shape and type."""
    name = f"{kind.lower()}{label}_{'x'.join(map(str, shape))}_{dtype}"
    return one(name, kind, [shape], [shape], dtype, options,
               in_q=[in_q or quantization(dtype)], out_q=out_q)  # fmt: skip


def prelu() -> Case:
    """Describe a PRELU with a slope for each channel."""

    def build() -> bytes:
        net = NetworkBuilder("prelu")
        x = net.tensor("x", (1, 5, 6, 7), "int8", 0.05, 7)
        alpha = rng_of("prelu").integers(-128, 128, (1, 1, 7)).astype(np.int8)
        slope = net.constant("alpha", alpha, 0.004, -20)
        y = net.tensor("y", (1, 5, 6, 7), "int8", 0.045, -30)
        net.operator("PRELU", [x, slope], [y])
        return net.finish([x], [y])

    return Case("prelu_int8", "PRELU", "int8", build)


def pad_v2() -> Case:
    """Describe a PADV2 whose value is not the zero point."""

    def build() -> bytes:
        net = NetworkBuilder("pad_v2")
        x = net.tensor("x", (1, 5, 4, 6), "int8", 0.05, 7)
        sides = net.constant("sides", np.array([[0, 0], [1, 2], [3, 2], [0, 0]], np.int32))
        value = net.constant("value", np.array([-77], np.int8), 0.05, 7)
        y = net.tensor("y", (1, 8, 9, 6), "int8", 0.05, 7)
        net.operator("PADV2", [x, sides, value], [y], ("PadV2Options", {}))
        return net.finish([x], [y])

    return Case("pad_v2", "PADV2", "int8", build)
