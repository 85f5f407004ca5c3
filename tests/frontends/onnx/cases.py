"""ONNX's own cases of its operators: read and lowered as they are, and as quantised twins.

A twin of a case has its one node between DequantizeLinear and QuantizeLinear, with scales from the
case's data. What it should give is what ONNX's own NumPy implementation makes of the same numbers,
in float32, quantised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError
from mizzen.frontends.onnx.lowering.lower import lower
from mizzen.frontends.onnx.lowering.lowered import Lowered
from mizzen.frontends.onnx.lowering.notes import is_edge, noted
from mizzen.frontends.onnx.reading import read
from mizzen.graph import Array
from mizzen.ops.control_flow import Custom
from mizzen.ops.limits import WindowLimits

from .lowering.networks import Network, Scale, computed, from_runtime

LIMITS = WindowLimits(longest_stride=3, largest_kernel=64)

WEIGHTS = {
    "Conv": (1,), "ConvTranspose": (1,), "Gemm": (1,), "LSTM": (1, 2), "GRU": (1, 2), "RNN": (1, 2),
}  # fmt: skip
"""Inputs that are constants with integers, by type of operator."""

CONSTANTS = {
    "BatchNormalization": (1, 2, 3, 4),
    "Clip": (1, 2),
    "Conv": (2,),
    "ConvTranspose": (2,),
    "Gemm": (2,),
    "GroupNormalization": (1, 2),
    "GRU": (3,),
    "InstanceNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "LSTM": (3, 7),
    "OneHot": (2,),
    "Pad": (2,),
    "Pow": (1,),
    "PRelu": (1,),
    "Resize": (1, 2),
    "RMSNormalization": (1,),
    "RNN": (3,),
    "Div": (1,),
    "Upsample": (1,),
}
"""Inputs that are constants in floating point."""

FIRST_ONLY = ("LayerNormalization", "MaxPool")
"""Types of operators of which twins give the first result only."""

COMPUTED = (
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Min", "Mul", "Or", "Sub", "Where", "Xor",
)  # fmt: skip
"""Types of operators of which inputs beyond the first are given at run time, of whatever type."""


@dataclass(frozen=True, eq=False)
class Twin:
    """A case's quantised twin.

    given   what it takes
    wanted  what its results should be: integers, or what the case says where they are none
    """

    network: Network
    given: dict[str, Array]
    wanted: list[Array]


@cache
def collected() -> tuple[Any, ...]:
    """Return all cases, which takes ten seconds."""
    from onnx.backend.test.case.node import collect_testcases

    return tuple(collect_testcases(None))


def cases_of(module: str, kind: str) -> tuple[Any, ...]:
    """Return the cases of an operator, which one of the package's modules has: ``relu``."""
    from importlib import import_module

    node: Any = import_module("onnx.backend.test.case.node")
    import_module(f"{node.__name__}.{module}")
    return tuple(case for case in node._NodeTestCases if kinds_of(case) == (kind,))


def kinds_of(case: Any) -> tuple[str, ...]:
    """Return the types of a case's operators."""
    return tuple(node.op_type for node in case.model.graph.node)


def outcome(data: bytes, name: str) -> str:
    """Say what becomes of a file: the code that it is refused with, or what the host has of it."""
    try:
        lowering = lower(read(data, name), LIMITS)
    except MizzenError as error:
        return error.diagnostic.code
    return "on host" if reasons(lowering) else "lowered"


def reasons(lowering: Lowered) -> dict[str, str]:
    """Return what ONNX Runtime computes, and why."""
    return {
        operation.operator_name.removeprefix("onnx."): noted(operation).reason
        for operation in lowering.graph
        if isinstance(operation, Custom) and not is_edge(operation)
    }


def twin_of(case: Any, dtype: str = "int8") -> Twin | None:
    """Return a case's twin; None where it has several nodes, or no arrays, or no real numbers.

    dtype  of quantised inputs and results; weights have int8
    """
    graph, version = case.model.graph, case.model.opset_import[0].version
    if len(graph.node) != 1 or graph.node[0].domain or not case.data_sets or version > NEWEST:
        return None
    (node,) = graph.node
    inputs, outputs = case.data_sets[0]
    arrays = [*inputs, *outputs]
    if any(not isinstance(array, np.ndarray) or array.size == 0 for array in arrays):
        return None
    if not any(array.dtype == np.float32 for array in inputs):
        return None
    opset = max(version, 21 if dtype.endswith("16") else 13)
    if _form(node, version) != _form(node, opset):
        return None
    return _Making(node, opset, dtype).twin(case, inputs)


def _form(node: Any, opset: int) -> int:
    """Return the version that has a node's operator as an opset has it."""
    from onnx.defs import get_schema

    return get_schema(node.op_type, opset, "").since_version


NEWEST = 25
"""The opset that ONNX Runtime has."""


class _Making:
    def __init__(self, node: Any, opset: int, dtype: str) -> None:
        self.node = node
        self.dtype = dtype
        self.network = Network(opset)
        self.given: dict[str, Array] = {}
        self.reals: dict[str, Array] = {}

    def twin(self, case: Any, inputs: Sequence[Array]) -> Twin | None:
        from onnx import helper
        from onnx.reference import ReferenceEvaluator

        named = dict(zip((each.name for each in case.model.graph.input), inputs, strict=False))
        places = [self._place(index, name, named) for index, name in enumerate(self.node.input)]
        try:
            with np.errstate(all="ignore"):
                results: Any = ReferenceEvaluator(case.model).run(None, self.reals)
        except Exception:
            return None
        attributes = {each.name: helper.get_attribute_value(each) for each in self.node.attribute}
        count = 1 if self.node.op_type in FIRST_ONLY else len(self.node.output)
        outputs = self.node.output[:count]
        names = tuple(f"y{index}" if name else "" for index, name in enumerate(outputs))
        self.network.nodes.append((self.node.op_type, tuple(places), names, attributes))
        wanted = [
            self._result(name, np.asarray(array))
            for name, array in zip((name for name in names if name), results, strict=False)
        ]
        return Twin(self.network, self.given, wanted)

    def _place(self, index: int, name: str, named: dict[str, Array]) -> str:
        if not name:
            return ""
        kind, array = self.node.op_type, named[name]
        self.reals[name] = array
        if array.dtype == np.float32 and index in CONSTANTS.get(kind, ()):
            return self.network.constant(array, name)
        if array.dtype == np.float32 and index in WEIGHTS.get(kind, ()):
            scale = Scale(float(np.abs(array).max()) / 127 or 1.0)
            integers = scale.quantize(array)
            self.reals[name] = scale.dequantize(integers)
            return self.network.weight(integers, scale)
        if array.dtype == np.float32:
            scale = fitting(array, self.dtype)
            self.given[name] = scale.quantize(array)
            self.reals[name] = scale.dequantize(self.given[name])
            return self.network.dequantize(self.network.input(name, array.shape, self.dtype), scale)
        if index and kind not in COMPUTED:
            return self.network.constant(array, name)
        self.given[name] = array
        return self.network.input(name, array.shape, array.dtype)

    def _result(self, name: str, array: Array) -> Array:
        if array.dtype != np.float32:
            self.network.outputs.append(name)
            return array
        scale = fitting(array, self.dtype)
        self.network.outputs.append(self.network.quantize(name, scale))
        return scale.quantize(np.nan_to_num(array))


def fitting(array: Array, dtype: str) -> Scale:
    """Return the scale of a type for what numbers there are, zero among them."""
    finite = array[np.isfinite(array)].astype(np.float64)
    low, high = min(float(finite.min(initial=0)), 0.0), max(float(finite.max(initial=0)), 0.0)
    if dtype == "int16":
        return Scale(np.float32(max(-low, high) / 32767 or 1.0), 0, dtype)
    scale = np.float32((high - low) / 255 or 1.0)
    least = np.iinfo(dtype).min
    return Scale(scale, int(np.clip(np.rint(-low / scale) + least, least, least + 255)), dtype)


@dataclass(frozen=True)
class Trial:
    """What becomes of a twin.

    reason    why it is not lowered; empty where it is
    elements  of its results
    differ    how many of them are not what they should be
    most      by how many steps at most
    runtime   by how many steps they are off what ONNX Runtime gives; None where it has none
    """

    reason: str
    elements: int = 0
    differ: int = 0
    most: int = 0
    runtime: int | None = None


def steps_off(results: Sequence[Array], wanted: Sequence[Array]) -> Array:
    """Return by how many steps each element is off."""
    parts: list[Array] = []
    for one, other in zip(results, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        parts.append(np.abs(one.astype(np.int64) - other.astype(np.int64)).reshape(-1))
    return np.concatenate(parts)


def tried(twin: Twin, name: str, *, runtime: bool = False) -> Trial:
    """Lower a twin and compute it.

    runtime  hold it against ONNX Runtime too
    """
    try:
        lowering = lower(read(twin.network.data, name), LIMITS)
    except MizzenError as error:
        return Trial(f"{error.diagnostic.code}: {error.diagnostic.message}")
    kept = reasons(lowering)
    if kept:
        return Trial("; ".join(f"{kind}: {reason}" for kind, reason in kept.items()))
    results = computed(lowering, *(twin.given[name] for name in lowering.model.inputs))
    off = steps_off(results, twin.wanted)
    peer = _from_runtime(twin) if runtime else None
    beside = None if peer is None else int(steps_off(results, peer).max(initial=0))
    return Trial("", off.size, int(np.count_nonzero(off)), int(off.max(initial=0)), beside)


def _from_runtime(twin: Twin) -> list[Array] | None:
    """Return what ONNX Runtime computes; None where it has no such operator or type."""
    try:
        return from_runtime(twin.network, twin.given)
    except Exception:
        return None
