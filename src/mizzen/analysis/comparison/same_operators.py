"""Which operators of a quantised TFLite network are which of its floating-point one.

An operator is known by what it takes: one of its type and shape that takes the counterparts of the
same operators, weights aside. Where several do, names decide, and where an operator in front has no
counterpart, numbers do. Names alone say nothing: converters number anew what they take apart. They
are compared without endings of converters' own (``_int8``, numbers that keep joined names apart).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mizzen.analysis.comparison.nearness import Sketch, distance, nearest, sketch
from mizzen.artifact.interface import Array
from mizzen.frontends.tflite import Model, Operator, Tensor

EDGES = ("QUANTIZE", "DEQUANTIZE")
"""Operators that only a quantised network has."""

WEIGHTED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})
"""Operators whose constants do not tell them apart: of one network's they are the weights."""

ALIKE = 0.32
"""Relative to the signal: 10 dB. Roundings add up over a network, to a tenth of the signal's power
where little is left of its accuracy; unrelated tensors differ by the signal or more."""

_ENDING = re.compile(r"(_int8|_int16|_uint8|_quantized|_dequantize|_requantized|:\d+|\d+)+$")

Form = Callable[[Model, Operator], Hashable]
"""What operators of two networks may be the same by."""

Source = tuple[str, int]
"""What an operator takes: an input of the network or an operator's result, by place."""


def result_of(model: Model, operator: Operator) -> Tensor:
    """Return the first result of an operator."""
    return model.main.tensors[operator.outputs[0]]


def computing(model: Model) -> Iterator[Operator]:
    """Return the operators that a floating-point network has as well."""
    return (
        operator
        for operator in model.main.operators
        if operator.outputs and operator.kind not in EDGES
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """A network, and what each of its tensors held in some inferences."""

    model: Model
    values: Mapping[object, Array]

    @cached_property
    def _makers(self) -> dict[int, Operator]:
        return {
            index: operator for operator in self.model.main.operators for index in operator.outputs
        }

    def sketch(self, operator: Operator) -> Sketch | None:
        """Return the real numbers that an operator gave."""
        tensor = result_of(self.model, operator)
        array = self.values.get(tensor.index)
        return None if array is None else sketch(list(_real(array, tensor)))

    def sources(self, operator: Operator) -> list[Source]:
        """Return the sources of an operator, roundings before it aside; no constants."""
        sources: list[Source] = []
        for index in map(self._before_edges, operator.inputs):
            maker = self._makers.get(index)
            if maker is not None:
                sources.append((f"result {maker.outputs.index(index)}", maker.index))
            elif index in self.model.main.inputs:
                sources.append(("input", self.model.main.inputs.index(index)))
        return sources

    def _before_edges(self, index: int) -> int:
        maker = self._makers.get(index)
        if maker is None or maker.kind not in EDGES:
            return index
        return self._before_edges(maker.inputs[0])

    def constants(self, operator: Operator) -> list[Array]:
        """Return the numbers of an operator's constants that tell it from others."""
        if operator.kind in WEIGHTED:
            return []
        tensors = self.model.main.present(operator.inputs)
        return [
            _real(tensor.values[np.newaxis], tensor)[0]
            for tensor in tensors
            if tensor.values is not None
        ]


def same_operators(
    model: Model,
    floating: Model,
    ours: Mapping[object, Array],
    theirs: Mapping[object, Array],
) -> dict[int, int]:
    """Return the operators that are the same in both, by index.

    ours, theirs  every tensor of some inferences, `[N, *shape]`, by index
    """
    search = _OperatorSearch(_Side(model, ours), _Side(floating, theirs))
    for operator in computing(model):
        search.add(operator)
    return search.found


class _OperatorSearch:
    """Goes through the quantised network, and finds the counterpart of each operator."""

    def __init__(self, ours: _Side, theirs: _Side) -> None:
        self._ours, self._theirs = ours, theirs
        self._others = list(computing(theirs.model))
        self._named = _named(ours.model, theirs.model)
        self.found: dict[int, int] = {}

    def add(self, operator: Operator) -> None:
        """Find an operator's counterpart; those before it are known."""
        shape = result_of(self._ours.model, operator).shape
        taken = set(self.found.values())
        candidates = [
            candidate
            for candidate in self._others
            if candidate.index not in taken
            and result_of(self._theirs.model, candidate).shape == shape
        ]
        same = [candidate for candidate in candidates if self._takes_the_same(operator, candidate)]
        if len(same) > 1:
            same = [
                candidate
                for candidate in same
                if self._named.get(operator.index) == candidate.index
            ] or same
        counterpart = same[0] if len(same) == 1 else self._by_numbers(operator, same or candidates)
        if counterpart is not None:
            self.found[operator.index] = counterpart.index

    def _takes_the_same(self, operator: Operator, other: Operator) -> bool:
        if operator.kind != other.kind:
            return False
        taken = [
            (what, index if what == "input" else self.found.get(index, -1))
            for what, index in self._ours.sources(operator)
        ]
        constants = self._ours.constants(operator), self._theirs.constants(other)
        return taken == self._theirs.sources(other) and _near(*constants)

    def _by_numbers(self, operator: Operator, candidates: Sequence[Operator]) -> Operator | None:
        """Return the operator that gives nearly the same, if it is of one name or type."""
        own = self._ours.sketch(operator)
        sketches = [self._theirs.sketch(candidate) for candidate in candidates]
        if own is None or any(each is None or each.shape != own.shape for each in sketches):
            return None
        far = [distance(own, each) for each in sketches if each is not None]
        index = nearest(far, [each.tobytes() for each in sketches if each is not None], ALIKE)
        if index is None:
            return None
        counterpart = candidates[index]
        is_known = (
            counterpart.kind == operator.kind
            or self._named.get(operator.index) == counterpart.index
        )
        return counterpart if is_known else None


def _real(array: Array, tensor: Tensor) -> Array:
    """Return the real numbers that a tensor's elements stand for."""
    quantization = tensor.quantization
    if quantization is None or not quantization.scale or array.dtype.kind == "f":
        return array
    shape = [1] * array.ndim
    if len(quantization.scale) > 1:
        shape[1 + quantization.axis] = -1
    scale, zero = (
        np.asarray(each, np.float64).reshape(shape if len(each) > 1 else [1])
        for each in (quantization.scale, quantization.zero_point or (0,))
    )
    return (array.astype(np.float64) - zero) * scale


def _near(ours: Sequence[Array], theirs: Sequence[Array]) -> bool:
    """Whether constants of both networks are the same but for their rounding."""
    return len(ours) == len(theirs) and all(
        one.shape == other.shape
        and (not other.any() or distance(sketch([one]), sketch([other])) <= ALIKE)
        for one, other in zip(ours, theirs, strict=True)
    )


def by_name(model: Model, operator: Operator) -> Hashable:
    """Return the name of an operator's result."""
    return result_of(model, operator).name


def by_plain_name(model: Model, operator: Operator) -> Hashable:
    """Return the name without what converters add."""
    return _ENDING.sub("", result_of(model, operator).name)


def by_parts_of_name(model: Model, operator: Operator) -> Hashable:
    """Return the names that the converter joined, in any order."""
    parts = result_of(model, operator).name.split(";")
    return frozenset(_ENDING.sub("", part) for part in parts)


def _named(model: Model, floating: Model) -> dict[int, int]:
    """Return operators with those of their name, by index: the most exact form first."""
    pairs: dict[int, int] = {}
    for form in (by_name, by_plain_name, by_parts_of_name):
        left = _unique(model, form, set(pairs))
        right = _unique(floating, form, set(pairs.values()))
        pairs |= {index: right[name] for name, index in left.items() if name in right}
    return pairs


def _unique(model: Model, form: Form, taken: set[int]) -> dict[Hashable, int]:
    """Return operators by a form that only one of them has."""
    of_form: dict[Hashable, list[int]] = {}
    for operator in computing(model):
        if operator.index not in taken:
            of_form.setdefault(form(model, operator), []).append(operator.index)
    return {name: members[0] for name, members in of_form.items() if len(members) == 1}
