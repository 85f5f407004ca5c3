"""Which nodes of a converted PyTorch program compute what nodes of its floating-point one do.

Names say nothing: conversion takes operators apart and numbers what comes of them anew. So the
converted program computes the floating-point one's own numbers, without its rounding and with the
weights before theirs, and a node whose numbers are another node's is its counterpart. A node whose
weights were changed, by the normalisation after a convolution for instance, is known by what it
takes. After a counterpart the program goes on from the floating-point numbers, so that nothing
adds up. A node of which neither says enough has no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mizzen.analysis.comparison.interpreting import Interpreter
from mizzen.analysis.comparison.nearness import Sketch, distance, nearest, sketch
from mizzen.artifact.interface import Array
from mizzen.frontends.torch.int_lowering.int_lower import (
    DEQUANTIZE,
    DEQUANTIZE_CHANNELS,
    QUANTIZE,
)
from mizzen.frontends.torch.operators import overload_of
from mizzen.frontends.torch.program import Role, TorchProgram, is_tensor, kind_of, mapped

EQUAL = 1e-4
"""Relative to the signal: float32 rounds by 2**-24, and a chain of some hundred operators that
PyTorch takes apart, with sums of some thousand terms, keeps within a thousand such roundings."""

HANDED_ON = frozenset({QUANTIZE, DEQUANTIZE, DEQUANTIZE_CHANNELS})
"""Nodes that give the real numbers that they take where nothing is rounded."""

ALIKE = 0.1
"""Relative to the signal, of nodes of one kind: 20 dB. Weights of 8 bits cost a hundredth, those of
4 bits a twentieth; a tensor that has nothing to do with another differs by its signal or more."""

HALF = 0.5 * (1 + 2.0**-16)
"""A weight is at most half a step from the number that it was, in float32."""

NORMALISATIONS = ("aten.batch_norm", "aten._native_batch_norm_legit_no_training")
"""What a convolution before it takes in."""

WEIGHTED = ("aten.conv", "aten.linear", "aten.addmm")
"""Operators with weights."""

Value = tuple[tuple[int, ...], bytes]
"""A result's shape and sketch: equal for nodes that only hand on what they take."""


@dataclass(frozen=True, eq=False)
class _Result:
    """What a node of the floating-point program gave, one tensor an inference."""

    node: Any
    tensors: Sequence[Any]
    sketch: Sketch

    @property
    def value(self) -> Value:
        """What tells it from other results."""
        return _value(self.tensors[0], self.sketch)


def counterparts(
    converted: TorchProgram, floating: TorchProgram, inputs: Sequence[Sequence[Array]]
) -> dict[Any, Any]:
    """Return nodes of the converted program with those of the floating-point one.

    inputs  for each inference its arrays
    """
    return _CounterpartSearch(converted, floating, _watched(floating, inputs)).counterparts(inputs)


def _watched(program: TorchProgram, inputs: Sequence[Sequence[Array]]) -> list[_Result]:
    """Infer with the floating-point program, and return what each node gave."""
    seen: dict[Any, list[Any]] = {}

    def keep(node: Any, result: Any) -> Any:
        if _is_real(result):
            seen.setdefault(node, []).append(result.detach().clone())
        return result

    for arrays in inputs:
        Interpreter(program).infer(arrays, keep)
    return [_Result(node, tensors, _sketch(tensors)) for node, tensors in seen.items()]


class _CounterpartSearch:
    """Goes through the converted program, and finds the counterpart of each node."""

    def __init__(
        self, converted: TorchProgram, floating: TorchProgram, results: Sequence[_Result]
    ) -> None:
        self._converted = converted
        self._results = {each.node: each for each in results}
        self._of_shape: dict[tuple[int, ...], list[_Result]] = {}
        for result in results:
            self._of_shape.setdefault(tuple(result.tensors[0].shape), []).append(result)
        held = {
            node: floating.tensor(node).detach()
            for node, role in floating.roles.items()
            if role is Role.CONSTANT
        }
        self._parameters = list(held.values())
        self._fixed = _fixed(converted) | _fixed(floating)
        self._values: dict[Any, Value] = {each.node: each.value for each in results}
        self._held = held
        self._floating = floating
        self._found: dict[Any, Any] = {}

    def counterparts(self, inputs: Sequence[Sequence[Array]]) -> dict[Any, Any]:
        """Infer with the converted program, the floating-point numbers after every counterpart."""
        interpreter = Interpreter(self._converted)
        inferences = [interpreter.taken(arrays) for arrays in inputs]
        for program in (self._floating, self._converted):
            taken = [node for node, role in program.roles.items() if role is Role.INPUT]
            self._values.update({node: ((place,), b"") for place, node in enumerate(taken)})
        for node, tensor in self._held.items():
            if _is_real(tensor):
                self._values[node] = _value(tensor, _sketch([tensor] * len(inputs)))
        for node in self._converted.nodes:
            if node.op != "call_function":
                continue
            results = [self._unrounded(interpreter, node, values) for values in inferences]
            if _is_real(results[0]):
                results = self._exchanged(node, results)
            for values, result in zip(inferences, results, strict=True):
                values[node] = result
        return self._found

    def _exchanged(self, node: Any, results: Sequence[Any]) -> Sequence[Any]:
        """Return the results of a node's counterpart, if it has one, else its own."""
        if overload_of(node) in HANDED_ON and node.args[0] in self._values:
            self._values[node] = self._values[node.args[0]]
            return results
        ours = _sketch(results)
        self._values[node] = _value(results[0], ours)
        counterpart = self._counterpart(node, tuple(results[0].shape), ours)
        if counterpart is None:
            return results
        self._found[node] = counterpart.node
        self._values[node] = counterpart.value
        return counterpart.tensors

    def _unrounded(self, interpreter: Interpreter, node: Any, values: Mapping[Any, Any]) -> Any:
        """Return a node's result where nothing is rounded."""
        overload = overload_of(node)
        if overload not in HANDED_ON:
            return interpreter.result(node, values)
        source = values[node.args[0]]
        if overload == QUANTIZE or source.is_floating_point():
            return source
        return self._weights(interpreter.result(node, values), _steps(node, values))

    def _weights(self, rounded: Any, steps: Any) -> Any:
        """Return the parameter that was rounded to weights; these if there is none."""
        near = [
            (float((parameter - rounded).abs().max()), index)
            for index, parameter in enumerate(self._parameters)
            if parameter.shape == rounded.shape
            and bool(((parameter - rounded).abs() <= HALF * steps).all())
        ]
        return self._parameters[min(near)[1]] if near else rounded

    def _counterpart(self, node: Any, shape: tuple[int, ...], ours: Sketch) -> _Result | None:
        candidates = self._of_shape.get(shape, [])
        distances = [distance(ours, candidate.sketch) for candidate in candidates]
        equal = [
            candidate for candidate, far in zip(candidates, distances, strict=True) if far <= EQUAL
        ]
        if equal:
            same = [candidate for candidate in equal if kind_of(candidate.node) == kind_of(node)]
            named = [candidate for candidate in same if candidate.node.name == node.name]
            return (named or same or equal)[0]
        return self._by_operands(node, ours) or self._by_numbers(node, candidates, distances)

    def _by_operands(self, node: Any, ours: Sketch) -> _Result | None:
        """Return the node that computes the same of what are counterparts, if only one does."""
        operands = self._operands(node)
        used = set(self._found.values())
        candidates = [
            self._results[ending]
            for other in self._results
            if kind_of(other) == kind_of(node) and self._operands(other) == operands
            if (ending := with_normalisation(other)) not in used and ending in self._results
        ]
        candidates = [candidate for candidate in candidates if candidate.sketch.shape == ours.shape]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        return _nearest(candidates, [distance(ours, candidate.sketch) for candidate in candidates])

    def _by_numbers(
        self, node: Any, candidates: Sequence[_Result], distances: Sequence[float]
    ) -> _Result | None:
        """Return the node of the same kind that is nearest, if it is so clearly."""
        result = _nearest(candidates, distances)
        if result is None or result.node in self._found.values():
            return None
        return result if kind_of(result.node) == kind_of(node) else None

    def _operands(self, node: Any) -> tuple[object, ...]:
        """Return the operands of a node: results, and the numbers among its arguments.

        Weights do not count, which conversion may have changed; other constants do.
        """
        operands: list[object] = []
        is_weighted = kind_of(node).startswith(WEIGHTED)

        def add(source: Any) -> Any:
            if source not in self._fixed:
                operands.append(self._values.get(source, source))
            elif not is_weighted and source in self._values:
                operands.append(self._values[source])
            return None

        literals = mapped((node.args, node.kwargs), add)
        return (*operands, str(literals).replace("None", ""))


def _fixed(program: TorchProgram) -> set[Any]:
    """Return the nodes that give the same for every inference."""
    fixed = {node for node, role in program.roles.items() if role is Role.CONSTANT}
    for node in program.nodes:
        sources = node.all_input_nodes
        if node.op == "call_function" and sources and all(source in fixed for source in sources):
            fixed.add(node)
    return fixed


def _steps(node: Any, values: Mapping[Any, Any]) -> Any:
    """Return the real number of one step of a node's integers, to be spread over its result."""
    scale = node.args[1]
    if overload_of(node) != DEQUANTIZE_CHANNELS:
        return scale
    extents = [1] * values[node.args[0]].dim()
    extents[node.args[3]] = -1
    return values[scale].reshape(extents)


def _nearest(results: Sequence[_Result], distances: Sequence[float]) -> _Result | None:
    """Return the result that is alike, and clearly nearer than all that are not the same."""
    index = nearest(distances, [result.value for result in results], ALIKE)
    return None if index is None else results[index]


def _sketch(results: Sequence[Any]) -> Sketch:
    return sketch([result.detach().cpu().numpy() for result in results])


def _value(result: Any, sketch: Sketch) -> Value:
    return tuple(result.shape), sketch.tobytes()


def _is_real(result: Any) -> bool:
    return is_tensor(result) and result.is_floating_point()


def with_normalisation(node: Any) -> Any:
    """Return the normalisation after a convolution, if nothing else takes what it gives."""
    users = list(node.users)
    if len(users) != 1 or not kind_of(node).startswith(WEIGHTED):
        return node
    (user,) = users
    if kind_of(user) not in NORMALISATIONS:
        return node
    items = [user] if is_tensor(user.meta.get("val")) else _first_of(user)
    return items[0] if items else node


def _first_of(node: Any) -> list[Any]:
    return [user for user in node.users if user.args[1:] == (0,)]
