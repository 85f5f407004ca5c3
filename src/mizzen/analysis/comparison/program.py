"""Compare a compiled PyTorch program with the converted program, as PyTorch computes it.

Each layer is judged from what the NPU gave to it: where its integers were seen, PyTorch goes on
from these, so a layer is not blamed for those before it. PyTorch rounds floating-point numbers
where the NPU has integers alone; a difference is of that rounding if the NPU's numbers are, bit for
bit, those of the program in integers, and no more than a step for each rounding. Nothing else may
differ.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.analysis.comparison.interpreting import Interpreter
from mizzen.analysis.comparison.layers import Layer, Layers
from mizzen.analysis.comparison.observing import Observer, Seen, commands_of
from mizzen.analysis.comparison.tally import Tally
from mizzen.analysis.comparison.verdict import judged, outputs_of
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.numbering import operator_numbers
from mizzen.compiler.proof.stimuli import Stimulus, stimuli, stimulus
from mizzen.compiler.proof.written import SAYS_SOMETHING, Written
from mizzen.compiler.torch.compile import assembled
from mizzen.compiler.torch.exported import load_exported
from mizzen.compiler.torch.host import TorchLowering
from mizzen.compiler.torch.placement import is_edge, lowered_program, place, require_quantized
from mizzen.diagnostics import Device, ProgressCallback, fail
from mizzen.frontends.torch.int_lowering.int_context import signed_offset
from mizzen.frontends.torch.int_lowering.int_lower import QUANTIZE, Lowered
from mizzen.frontends.torch.narrowing import SOURCE
from mizzen.frontends.torch.operators import overload_of
from mizzen.frontends.torch.program import Role
from mizzen.graph import Value
from mizzen.ops.control_flow import Custom
from mizzen.reference import evaluate_batch
from mizzen.report.comparison import (
    ConstantsComparison,
    FirstDifference,
    LayerComparison,
    OutputComparison,
)
from mizzen.targets.bounds import Bound

if TYPE_CHECKING:
    from torch.export import ExportedProgram

NAME = "the converted PyTorch program"

HOPS = 3
"""Groups of nodes after another that its commands may compute as well."""

NARROW_STEPS, WIDE_STEPS = 1, 2
"""How far a rounding may go, of 8 bits and of more. Ref: docs/explanation/pytorch.md."""

MOST_ORDERED = 4
"""Dimensions larger than 1 up to which a map may be a tensor in another order."""


def program_beside(
    data: bytes,
    name: str,
    target: ResolvedTarget,
    artifact: Artifact | None,
    on_progress: ProgressCallback | None,
) -> ProgramComparison:
    """Compile a `.pt2` and return it beside PyTorch. E167 for one that is not quantised."""
    if artifact is not None:
        raise fail(
            "E489",
            f"an artifact must be compiled now to be compared with {name}: "
            f"{artifact.name} does not say which of its tensors are the program's",
            help="leave out --artifact: the same program is compiled to the same artifact",
        )
    return beside(load_exported(data, name), name, target, on_progress)


def beside(
    exported: ExportedProgram,
    name: str,
    target: ResolvedTarget,
    on_progress: ProgressCallback | None = None,
) -> ProgramComparison:
    """Compile a converted program and return it beside PyTorch. E167 if it is not quantised."""
    require_quantized(exported, name)
    compiler = target.backend.region_compiler(target.configuration, target.proof)
    lowered = lowered_program(exported, Path(name).stem, compiler.window_limits)
    placed = place(lowered, compiler, (), target.proof, on_progress)
    made, tensors = assembled(lowered, placed, target)
    on_npu = {
        group
        for group, placement in placed.partition.groups.items()
        if placement.device is Device.NPU
    }
    numbers = operator_numbers(TorchLowering(lowered), placed.partition)
    return ProgramComparison(name, lowered, made, tensors, on_npu, numbers)


@dataclass(eq=False)
class ProgramComparison:
    """An artifact and the program that it was made of.

    tensors  of the artifact, by the values of the lowered graph
    on_npu   groups of nodes that are there
    numbers  of operators, by which streams name them, by their groups
    """

    name: str
    lowered: Lowered
    artifact: Artifact
    tensors: Mapping[Any, int]
    on_npu: set[int]
    numbers: Mapping[int, int]
    constants: ConstantsComparison | None = None
    reference: str = NAME
    _seen: dict[Any, Tally] = field(default_factory=dict[Any, Tally])

    def __post_init__(self) -> None:
        self.layers = layers_of(self.lowered, self.on_npu)
        report = self.artifact.report
        layer = {key: each.index for each in self.layers.rows for key in each.gives}
        numbered = {
            number: layer[key]
            for group, number in self.numbers.items()
            for key in _results(self.lowered.nodes.get(group, ()))
            if key in layer
        }
        origins = () if report is None else report.origins
        self.observer = Observer(self.artifact, commands_of(origins, numbered))
        value_of = self.lowered.value_of
        self._index = {
            node: self.tensors[value_of[node]]
            for node in self.layers.maker
            if node in value_of and value_of[node] in self.tensors
        }
        self._outputs = [Tally() for _ in self.lowered.program.outputs]
        self._beyond = set[Any]()
        self._inside = False

    @property
    def keeps_state(self) -> bool:
        """Whether an inference may depend on those before it."""
        return bool(self.lowered.states)

    @property
    def values_bytes(self) -> int:
        """Bytes of all tensors of one inference."""
        values = [node.meta.get("val") for node in self.lowered.program.nodes]
        return max(
            1, sum(value.numel() * value.element_size() for value in values if _is_array(value))
        )

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs that tell, `[count, *shape]` each."""
        program = self.lowered.program
        given = [node for node, role in program.roles.items() if role is Role.INPUT]
        return stimuli([input_stimulus(node) for node in given], count, seed)

    def add(self, inputs: Sequence[Sequence[Array]]) -> None:
        """Compare inferences in a row, each of a batch: for each its inputs, `[N, *shape]`."""
        seen = list(self.observer.infer(inputs))
        size = len(inputs[0][0]) if inputs[0] else 1
        integers = [self._integers(one, size) for one in seen]
        for stream in range(size):
            interpreter = Interpreter(self.lowered.program)
            for arrays, one, exact in zip(inputs, seen, integers, strict=True):
                self._infer(interpreter, [array[stream] for array in arrays], one, exact, stream)

    def _integers(self, seen: Seen, size: int) -> dict[Any, Array]:
        """Return the integers that the program gives for nodes, of what was seen between steps."""
        nodes = {value: node for node, value in self.lowered.value_of.items()}
        results: dict[Any, Array] = {}

        def seen_of(value: Value) -> Array | None:
            index = self.tensors.get(value)
            array = None if index is None else seen.tensors.get(index)
            return None if array is None else array.reshape(size, *value.shape)

        def trace(value: Value, array: Array) -> Array | None:
            if value in nodes:
                results[nodes[value]] = array
            return seen_of(value)

        def custom(operation: Custom, operands: Sequence[Array]) -> list[Array]:
            return [
                np.zeros((size, *value.shape), value.dtype.numpy)
                if (held := seen_of(value)) is None else held
                for value in operation.results
            ]  # fmt: skip

        graph = self.lowered.graph
        given = [
            np.zeros((size, *value.shape), value.dtype.numpy) if (held := seen_of(value)) is None
            else held
            for value in graph.inputs
        ]  # fmt: skip
        evaluate_batch(graph, given, size, trace=trace, custom=custom)
        return results

    def _infer(
        self,
        interpreter: Interpreter,
        arrays: Sequence[Array],
        seen: Seen,
        integers: Mapping[Any, Array],
        stream: int,
    ) -> None:
        maps = [written for inside in seen.inside.values() for written in inside]
        self._inside |= bool(maps)

        def exchange(node: Any, result: Any) -> Any:
            if node not in self.layers.maker or not _is_array(result):
                return result
            reference = _as_graph(node, result)
            exact = integers.get(node)
            expected = reference if exact is None else exact[stream : stream + 1]
            ours = self._found(node, expected.reshape(reference.shape), seen, maps, stream)
            if ours is None:
                return result
            self._seen.setdefault(node, Tally()).add(ours, reference)
            if exact is not None and not np.array_equal(ours.ravel(), expected.ravel()):
                self._beyond.add(node)
            return _tensor(node, ours, result)

        outputs = interpreter.infer(arrays, exchange)
        given = self.artifact.contents.outputs
        for tally, index, reference in zip(self._outputs, given, outputs, strict=True):
            array = seen.tensors[index][stream : stream + 1].reshape(1, *reference.shape)
            tally.add(array, reference[np.newaxis])

    def _found(
        self, node: Any, expected: Array, seen: Seen, maps: Sequence[Written], stream: int
    ) -> Array | None:
        """Return the NPU's array for a node, `[1, *shape]`; None where nothing was seen."""
        index = self._index.get(node)
        if index is not None and index in seen.tensors:
            array = seen.tensors[index][stream : stream + 1]
            return array.reshape(expected.shape).astype(expected.dtype)
        layer = self.layers.maker[node]
        best: tuple[float, Array] | None = None
        for written in maps:
            if layer not in self.layers.from_here(written.operator, HOPS):
                continue
            one = Written(
                written.operator, tuple(part[stream : stream + 1] for part in written.maps)
            )
            for array in ordered(one, expected):
                share = int(np.count_nonzero(array != expected)) / max(1, expected.size)
                if best is None or share < best[0]:
                    best = share, array
        return None if best is None or best[0] > SAYS_SOMETHING else best[1]

    def first_difference(self, inputs: Sequence[Array]) -> FirstDifference | None:
        """Return nothing: which integers single operations must give, no reference here says."""
        return None

    def result(self) -> tuple[tuple[LayerComparison, ...], tuple[OutputComparison, ...]]:
        """Return the comparisons of layers, and of outputs."""
        bounds = {key: Bound(self._steps(key), 1.0) for key in self._seen}
        bounded = {
            key: tally
            for key, tally in self._seen.items()
            if tally.differing and key not in self._beyond and tally.steps <= bounds[key].steps
        }
        layers = judged(self.layers, self._seen, {}, bounds, bounded, inside=self._inside)
        names = [info.name for info in self.artifact.outputs]
        outputs = outputs_of(names, self.lowered.program.outputs, self._outputs, {})
        return layers, outputs

    def _steps(self, node: Any) -> int:
        """Return how far integers may be from PyTorch's: a rounding, and those fused before it."""
        dtype = str(node.meta["val"].dtype)
        steps = NARROW_STEPS if dtype.endswith("int8") else WIDE_STEPS
        waiting, fused = [self.layers.maker[node]], set[int]()
        while waiting:
            makers = {self.layers.maker.get(key) for key in waiting.pop().takes}
            for maker in makers - {None}:
                assert maker is not None
                if maker.index not in fused and not any(key in self._seen for key in maker.gives):
                    fused.add(maker.index)
                    waiting.append(maker)
        return steps * (1 + len(fused))


def layers_of(lowered: Lowered, on_npu: set[int]) -> Layers:
    """Return the groups of a program's nodes that compute, numbered as reports number them."""
    edges = {
        group
        for group in lowered.nodes
        if all(is_edge(operation) for operation in lowered.graph if operation.group == group)
    }
    layers: list[Layer] = []
    maker = {
        node: group
        for group, nodes in lowered.nodes.items()
        for node in nodes
        if group not in edges
    }
    gives = {group: tuple(_results(nodes)) for group, nodes in lowered.nodes.items()}
    for group in sorted(set(lowered.nodes) - edges):
        nodes, origin = lowered.nodes[group], lowered.origins[group]
        sources = {maker[node] for node in _sources(nodes, maker) if node in maker} - {group}
        takes = itertools.chain.from_iterable(gives[source] for source in sorted(sources))
        name = f"{origin.name} in {origin.module}" if origin.module else origin.name or ""
        device = Device.NPU if group in on_npu else Device.CPU
        layers.append(
            Layer(len(layers), origin.kind or "", name, device, tuple(takes), gives[group])
        )
    return Layers(layers)


def _sources(nodes: Sequence[Any], maker: Mapping[Any, int]) -> Iterator[Any]:
    """Return the nodes that others take from, through those that are in no group."""
    waiting, done = [source for node in nodes for source in node.all_input_nodes], set[Any]()
    while waiting:
        node = waiting.pop()
        if node in done:
            continue
        done.add(node)
        if node not in maker:
            waiting += node.all_input_nodes
        yield node


def _results(nodes: Sequence[Any]) -> Iterator[Any]:
    """Return the nodes of a group that give integers, else the last one."""
    integers = [node for node in nodes if overload_of(node) == QUANTIZE]
    yield from integers or nodes[-1:]


def _is_array(value: object) -> bool:
    return hasattr(value, "element_size")


def _as_graph(node: Any, result: Any) -> Array:
    """Return a node's result as the graph has it, `[1, *shape]`."""
    array = result.detach().cpu().numpy()
    offset = signed_offset(node)
    if offset:
        array = (array.astype(np.int16) - offset).astype(np.int8)
    return array[np.newaxis]


def _tensor(node: Any, array: Array, like: Any) -> Any:
    import torch

    torch_: Any = torch
    first: Any = array[0]
    whole = first.astype(np.int16) + signed_offset(node) if signed_offset(node) else first
    return torch_.from_numpy(np.ascontiguousarray(whole)).to(like.dtype).reshape(like.shape)


def ordered(written: Written, reference: Array) -> Iterator[Array]:
    """Return maps as a tensor whose axes the NPU has in any order, the same one first."""
    count, *shape = reference.shape
    large = [axis for axis, extent in enumerate(shape) if extent > 1]
    orders = [tuple(large)]
    if len(large) <= MOST_ORDERED:
        orders = list(itertools.permutations(large))
    for order in orders:
        extents = tuple(shape[axis] for axis in order)
        back = [1 + order.index(axis) for axis in large]
        for array in written.as_tensor(extents, reference.dtype, count):
            yield array.transpose(0, *back).reshape(reference.shape)


def input_stimulus(node: Any) -> Stimulus:
    """Return the values of an input: those that the integers it is rounded to stand for."""
    value = node.meta["val"]
    shape, dtype = tuple(value.shape), np.dtype(str(value.dtype).removeprefix("torch."))
    for user in node.users:
        if overload_of(user) == QUANTIZE:
            _, scale, zero, low, high = user.args[:5]
            edges = (float(scale) * (int(edge) - int(zero)) for edge in (low, high))
            return Stimulus(shape, dtype, *edges)
        if SOURCE in user.meta:
            return Stimulus(shape, dtype, 0, max(0, user.meta[SOURCE].size - 1))
    return stimulus(shape, dtype)
