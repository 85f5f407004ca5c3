"""Two TFLite networks, quantised and floating-point, whose tensors go by the same names.

Converters keep names, but for endings of their own (``_int8``), and numbers that keep joined names
apart. Where no name helps, operators of one type that give one shape in the same order are taken
for the same, as far as everything before them is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

import numpy as np

from mizzen.analysis.comparison.pairs import Pair, scale_of
from mizzen.analysis.comparison.tflm import MicroReference
from mizzen.artifact.interface import Array, TensorInfo
from mizzen.artifact.steps import read_network
from mizzen.compiler.proof.stimuli import plausible
from mizzen.compiler.tflite_stimuli import network_stimulus, values_bytes
from mizzen.data.fitting import fitted, real
from mizzen.diagnostics import fail
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model, Operator, Tensor
from mizzen.package.tflite.real_weights import with_real_weights

EDGES = ("QUANTIZE", "DEQUANTIZE")
"""Operators that only a quantised network has."""

_ENDING = re.compile(r"(_int8|_int16|_uint8|_quantized|_dequantize|_requantized|:\d+|\d+)+$")


class TfliteNetworks:
    """A quantised network and its floating-point one, both on TensorFlow Lite Micro."""

    def __init__(self, model: Model, floating: Model) -> None:
        record = with_real_weights(floating.record)
        if record is not None:
            floating = read_network(write(record, SCHEMA), floating.name)
        self.model, self.floating = model, floating
        main = model.main
        self.inputs = tuple(_info(row) for row in main.present(main.inputs))
        self._taken = floating.main.present(floating.main.inputs)
        shapes = [row.shape for row in self.inputs], [row.shape for row in self._taken]
        if shapes[0] != shapes[1]:
            raise fail(
                "E495",
                f"{floating.name} must take what {model.name} does, {shapes[0]}, and takes "
                f"{shapes[1]}",
                help="give the network that was quantised",
            )
        self.pairs: Sequence[Pair] = tuple(self._pairs())
        self.values_bytes = values_bytes(model) + values_bytes(floating)
        found = {pair.index for pair in self.pairs}
        self.unmatched: Sequence[tuple[int, str, str]] = tuple(
            (row.index, row.kind, _result(model, row).name)
            for row in main.operators
            if row.index not in found and row.kind not in EDGES and row.outputs
        )

    @property
    def example(self) -> None:
        """A file has no inputs."""
        return None

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs of the quantised network, `[count, *shape]` each."""
        main = self.model.main
        given = [network_stimulus(self.model, row) for row in main.present(main.inputs)]
        return plausible(given, count, seed)

    def infer(
        self, arrays: Sequence[Array]
    ) -> tuple[Mapping[object, Array], Mapping[object, Array]]:
        """Return the tensors of both, of inputs `[N, *shape]`: real numbers, or integers."""
        ours = [
            fitted(array, info, _silent) for array, info in zip(arrays, self.inputs, strict=True)
        ]
        theirs = [
            real(array, info).astype(row.dtype or np.float32).reshape(-1, *row.shape)
            for array, info, row in zip(arrays, self.inputs, self._taken, strict=True)
        ]
        (one,) = MicroReference(self.model).infer([ours], [])
        (other,) = MicroReference(self.floating).infer([theirs], [])
        return {**one}, {**other}

    def _pairs(self) -> Iterator[Pair]:
        for ours, theirs in sorted(_alike(self.model, self.floating).items()):
            operator = self.model.main.operators[ours]
            tensor = _result(self.model, operator)
            other = _result(self.floating, self.floating.main.operators[theirs])
            scale = None if tensor.dtype is None else scale_of(tensor.quantization, tensor.dtype)
            if scale is not None:
                yield Pair(
                    ours, operator.kind, tensor.name, other.name, tensor.index, other.index, *scale
                )


def _silent(text: str) -> None:
    """Say nothing: noise of the inputs' rounding is part of what is measured."""


def _info(tensor: Tensor) -> TensorInfo:
    dtype = tensor.dtype or np.dtype(np.uint8)
    return TensorInfo(tensor.name, tensor.shape, dtype, tensor.quantization)


def _result(model: Model, operator: Operator) -> Tensor:
    return model.main.tensors[operator.outputs[0]]


Form = Callable[[Model, Operator], Hashable]
"""What operators of two networks are the same by."""


def by_name(model: Model, operator: Operator) -> Hashable:
    """Return the name of an operator's result."""
    return _result(model, operator).name


def by_plain_name(model: Model, operator: Operator) -> Hashable:
    """Return the name without what converters add."""
    return _ENDING.sub("", _result(model, operator).name)


def by_parts_of_name(model: Model, operator: Operator) -> Hashable:
    """Return the names that the converter joined, in any order."""
    parts = _result(model, operator).name.split(";")
    return frozenset(_ENDING.sub("", part) for part in parts)


def _alike(model: Model, floating: Model) -> dict[int, int]:
    """Return the operators that are the same in both, by index."""
    found: dict[int, int] = {}
    for form in (by_name, by_plain_name, by_parts_of_name):
        left, right = (_unique(row, form, taken) for row, taken in _left(model, floating, found))
        for name, index in left.items():
            if name in right and _shape(model, index) == _shape(floating, right[name]):
                found[index] = right[name]
    return found | _in_order(model, floating, found)


def _left(
    model: Model, floating: Model, found: Mapping[int, int]
) -> tuple[tuple[Model, set[int]], tuple[Model, set[int]]]:
    return (model, set(found)), (floating, set(found.values()))


def _unique(model: Model, form: Form, taken: set[int]) -> dict[Hashable, int]:
    """Return operators by a form that only one of them has."""
    rows: dict[Hashable, list[int]] = {}
    for row in model.main.operators:
        if row.outputs and row.kind not in EDGES and row.index not in taken:
            rows.setdefault(form(model, row), []).append(row.index)
    return {name: members[0] for name, members in rows.items() if len(members) == 1}


def _shape(model: Model, index: int) -> tuple[int, ...]:
    return _result(model, model.main.operators[index]).shape


def _in_order(model: Model, floating: Model, found: Mapping[int, int]) -> dict[int, int]:
    """Return operators between those that are known, of one type and shape in the same order."""
    ours, theirs = (
        [row for row in network.main.operators if row.outputs and row.kind not in EDGES]
        for network in (model, floating)
    )
    names = {index: place for place, index in enumerate(found)}
    others = {index: names[ours_index] for ours_index, index in found.items()}
    left = [names.get(row.index, (row.kind, _shape(model, row.index))) for row in ours]
    right = [others.get(row.index, (row.kind, _shape(floating, row.index))) for row in theirs]
    more: dict[int, int] = {}
    for block in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        for place in range(block.size):
            one, other = ours[block.a + place].index, theirs[block.b + place].index
            if one not in found:
                more[one] = other
    return more
