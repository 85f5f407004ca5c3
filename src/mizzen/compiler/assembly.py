"""Put an artifact together of a placed graph, whatever framework the graph was lowered from.

The artifact is the steps of the host and the NPU, the tensors between them, and the report of what
went where. A front-end says of its network what only it knows (`Lowering`): which operations are
the edge between integers and real numbers, which steps compute them, and how its operators are
called. A region's network gets the names, shapes and scales of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard

import numpy as np

from mizzen.artifact.archive import pack
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.execution import Contents
from mizzen.artifact.interface import Array, Carried, TensorInfo
from mizzen.artifact.steps import Step
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.codegen import RegionCode, step_of
from mizzen.compiler.edges import edges_of_graph
from mizzen.compiler.kept import with_state_in_integers
from mizzen.compiler.numbering import Numbered, edges_of, numbered, operator_numbers
from mizzen.compiler.placement import Placement
from mizzen.compiler.report import NOTHING_COMPILED, compile_report, with_time
from mizzen.compiler.shapes import shapes_of_graph
from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Quantization as TensorQuantization
from mizzen.graph import Operation, Value
from mizzen.ops.control_flow import Constant, Custom
from mizzen.partition import Device, Partition, Region, in_order
from mizzen.report import CompileReport, OperatorPlacement

Number = Callable[[Value], int]
"""Returns the index of a value among the artifact's tensors."""


@dataclass(frozen=True, slots=True)
class HostPart:
    """A part of a network that the framework computes.

    groups   in order, edges among them
    outputs  what is taken of it elsewhere
    kinds    types of its operators, without edges
    """

    groups: tuple[int, ...]
    outputs: tuple[Value, ...]
    kinds: tuple[str, ...]


class Lowering(Numbered, Protocol):
    """A network as a graph, and what its front-end knows of it besides."""

    @property
    def name(self) -> str:
        """What the network is called, without what says its form."""
        ...

    @property
    def file(self) -> str:
        """What reports call it: the name of its file, if it has one."""
        ...

    @property
    def states(self) -> Sequence[Array]:
        """What the graph's last inputs are at first; its last outputs are what they are next."""
        ...

    @property
    def output_names(self) -> Sequence[str]:
        """What the network's outputs are called."""
        ...

    def is_edge(self, operation: Operation) -> TypeGuard[Custom]:
        """Whether an operation only brings numbers into the form that an NPU takes, or gives."""
        ...

    def is_taken_before(self, edge: Custom) -> bool:
        """Whether the framework takes what an edge takes, and not what the edge gives."""
        ...

    def edge_step(self, edge: Custom, number: Number) -> Step:
        """Return the step that computes an edge."""
        ...

    def host_step(self, part: HostPart, number: Number) -> Step:
        """Return the step of a part that the framework computes."""
        ...

    def title(self, group: int) -> str:
        """Say where the operator of a group is in the user's model."""
        ...


def report_of(lowering: Lowering, placed: Placement, target: ResolvedTarget) -> CompileReport:
    """Return the report of a network's compilation."""
    partition, code = placed.partition, placed.code
    used = [code[region.groups] for region in partition.regions if region.device is Device.NPU]
    return compile_report(
        lowering.file,
        target.configuration,
        _placements(lowering, partition, used),
        [region.costs for region in used],
        compiler=used[0].compiler if used else NOTHING_COMPILED,
        flash_bytes=sum(len(region.network) for region in used),
        origins=[region.origins for region in used],
        log="".join(region.log for region in used),
        proof=placed.proof,
    )


def _placements(
    lowering: Lowering, partition: Partition, used: Sequence[RegionCode]
) -> tuple[OperatorPlacement, ...]:
    numbers = operator_numbers(lowering, partition)
    placements = [partition.groups[group] for group in numbers]
    indices: dict[int | None, int] = {**numbers}

    def index_of(operation: Operation) -> int | None:
        return indices.get(operation.group)

    before = edges_of_graph(lowering.graph, index_of)
    shapes = shapes_of_graph(lowering.graph, index_of)
    return tuple(
        OperatorPlacement(
            index=index,
            kind=lowering.origins[placement.group].kind or "",
            name=lowering.title(placement.group),
            device=placement.device,
            macs=placement.macs,
            reasons=tuple(placement.reasons),
            after=before.get(index, ()),
            shape=shapes.get(index, ""),
        )
        for index, placement in enumerate(placements)
    )


def assembled(
    lowering: Lowering, placed: Placement, chosen: ResolvedTarget
) -> tuple[Artifact, Mapping[object, int]]:
    """Return the artifact of a placed network, and its tensors by the values that they are."""
    placed = numbered(lowering, placed)
    assembly = _Assembly(lowering, placed.partition, placed.code)
    contents = with_state_in_integers(assembly.contents())
    artifact = _artifact(lowering, placed, chosen, contents)
    return with_time(artifact, chosen.board_figures), assembly.tensors


def _artifact(
    lowering: Lowering, placed: Placement, chosen: ResolvedTarget, contents: Contents
) -> Artifact:
    partition, code = placed.partition, placed.code
    report = report_of(lowering, placed, chosen)
    regions = [code[region.groups] for region in partition.regions if region.device is Device.NPU]
    names = _edge_names(lowering)
    mains = [_named_subgraph(region, names) for region in regions]
    name = lowering.name
    if len(mains) == 1 and _only_edges(lowering, partition) and not contents.carried:
        network = _network_of(regions[0], _in_order(mains[0], regions[0], names))
        return Artifact(network, chosen.backend.artifact_name(name, ".tflite"), contents, report)
    networks = [_network_of(*each) for each in zip(regions, mains, strict=True)]
    data = pack(name, contents, networks)
    return Artifact(data, chosen.backend.artifact_name(name, ".zip"), contents, report)


def _only_edges(lowering: Lowering, partition: Partition) -> bool:
    """Whether the host only makes integers of the inputs and real numbers of the outputs."""
    edges = edges_of(lowering)
    on_host = (region for region in partition.regions if region.device is not Device.NPU)
    return all(group in edges for region in on_host for group in region.groups)


def _edge_names(lowering: Lowering) -> dict[Value, str]:
    """Name the integers at the edge as the network's inputs and outputs are named."""
    names: dict[Value, str] = {}
    for value in lowering.graph.inputs:
        names.setdefault(value, value.name)
        for user in value.uses:
            if lowering.is_edge(user):
                names[user.result] = value.name
    for value, name in zip(lowering.graph.outputs, lowering.output_names, strict=False):
        producer = value.producer
        edge = producer if producer is not None and lowering.is_edge(producer) else None
        names.setdefault(value if edge is None else edge.input_list[0], name)
    return names


class _Assembly:
    """Numbers the graph's values and makes the steps between them."""

    def __init__(
        self,
        lowering: Lowering,
        partition: Partition,
        code: Mapping[tuple[int, ...], RegionCode],
    ) -> None:
        self.lowering = lowering
        self.partition = partition
        self.code = code
        self.tensors: dict[object, int] = {}
        self.infos: dict[int, TensorInfo] = {}
        self.operations: dict[int, list[Operation]] = {}
        for operation in lowering.graph.sorted():
            if operation.group is not None and not isinstance(operation, Constant):
                self.operations.setdefault(operation.group, []).append(operation)

    def contents(self) -> Contents:
        """Return the tensors and steps."""
        graph, states = self.lowering.graph, self.lowering.states
        for value in graph.inputs:
            self.number(value)
        steps: list[Step] = []
        for region in self.partition.regions:
            steps += self._steps(region)
        outputs = [self.number(value) for value in graph.outputs]
        constants = {
            self.number(value): value.constant
            for value in graph.outputs
            if value.constant is not None
        }
        self._name_outputs(outputs)
        given = len(graph.outputs) - len(states)
        taken = len(graph.inputs) - len(states)
        return Contents(
            inputs=tuple(range(taken)),
            outputs=tuple(outputs[:given]),
            infos=self.infos,
            steps=tuple(steps),
            constants=constants,
            carried=tuple(
                Carried(taken + index, outputs[given + index], state.copy())
                for index, state in enumerate(states)
            ),
        )

    def _name_outputs(self, outputs: Sequence[int]) -> None:
        for index, name in zip(outputs, self.lowering.output_names, strict=False):
            if not self.infos[index].name:
                self.infos[index] = replace(self.infos[index], name=name)

    def number(self, value: Value) -> int:
        """Return the index of a value."""
        index = self.tensors.setdefault(value, len(self.tensors))
        if index not in self.infos:
            self.infos[index] = _info(value)
        return index

    def _steps(self, region: Region) -> list[Step]:
        if region.device is Device.NPU:
            compiled = self.code[region.groups]
            for value in (*compiled.part.inputs, *compiled.part.outputs):
                self.number(value)
            return [step_of(compiled, self.tensors)]
        return self._on_host(region)

    def _on_host(self, region: Region) -> list[Step]:
        """Make edges steps of their own, and one step of all that the framework computes.

        Edges between computations of the framework's are part of that step.
        """
        groups = in_order(self.lowering.graph, region.groups)
        computed = {group for group in groups if not self._is_edge(group)}
        late = self._reached(groups, computed, self._sources)
        early = self._reached(list(reversed(groups)), computed, self._users)
        inside = computed | (late & early)
        before = [group for group in groups if group not in late | inside]
        after = [group for group in groups if group in late - inside]
        steps = [self._edge(group) for group in before if self._is_used(group)]
        if inside:
            steps.append(self._computed([group for group in groups if group in inside]))
        return steps + [self._edge(group) for group in after]

    def _reached(
        self, groups: Sequence[int], starts: set[int], neighbours: Callable[[int], set[int]]
    ) -> set[int]:
        """Return the groups that depend on `starts`, by way of others, without those themselves."""
        reached = set(starts)
        for group in groups:
            if neighbours(group) & reached:
                reached.add(group)
        return reached - starts

    def _sources(self, group: int) -> set[int]:
        producers = (
            operand.producer
            for operation in self.operations[group]
            for operand in operation.operands
        )
        return {
            producer.group
            for producer in producers
            if producer is not None and producer.group is not None
        }

    def _users(self, group: int) -> set[int]:
        users = (
            user
            for operation in self.operations[group]
            for v in operation.results
            for user in v.uses
        )
        return {user.group for user in users if user.group is not None}

    def _is_edge(self, group: int) -> bool:
        operations = self.operations[group]
        return len(operations) == 1 and self.lowering.is_edge(operations[0])

    def _custom(self, group: int) -> Custom:
        (operation,) = self.operations[group]
        assert self.lowering.is_edge(operation)
        return operation

    def _is_used(self, group: int) -> bool:
        """Whether something takes what an edge gives: the framework may take what is before it."""
        operation = self._custom(group)
        if not self.lowering.is_taken_before(operation):
            return True
        result = operation.result
        is_edge = self.lowering.is_edge
        return result in self.lowering.graph.outputs or any(is_edge(user) for user in result.uses)

    def _edge(self, group: int) -> Step:
        return self.lowering.edge_step(self._custom(group), self.number)

    def _computed(self, groups: list[int]) -> Step:
        inside = set(groups)
        operations = [operation for group in groups for operation in self.operations[group]]
        given = set(self.lowering.graph.outputs)
        outputs = tuple(
            value
            for operation in operations
            for value in operation.results
            if value in given or any(user.group not in inside for user in value.uses)
        )
        origins = self.lowering.origins
        kinds = (str(origins[group].kind) for group in groups if not self._is_edge(group))
        return self.lowering.host_step(HostPart(tuple(groups), outputs, tuple(kinds)), self.number)


def _info(value: Value) -> TensorInfo:
    quantization = value.quantization
    return TensorInfo(
        value.name,
        value.shape,
        np.dtype(value.dtype.numpy),
        None
        if quantization is None
        else TensorQuantization(quantization.scales, quantization.zero_points),
    )


def _named_subgraph(region: RegionCode, names: Mapping[Value, str]) -> Record:
    """Return a region's subgraph with inputs and outputs as a runtime wants to see them.

    names  what values of the program's edge are called there; others keep the compiler's names
    """
    (subgraph,) = region.model.record["subgraphs"]
    main: Record = {**subgraph, "tensors": [dict(tensor) for tensor in subgraph["tensors"]]}
    for side, values in _sides(region):
        for index, value in zip(main[side], values, strict=True):
            tensor = main["tensors"][index]
            if value in names:
                tensor["name"] = names[value]
            if value.shape:
                tensor["shape"] = np.asarray(value.shape, np.int32)
            if value.quantization is not None:
                tensor["quantization"] = {
                    "scale": np.asarray(value.quantization.scales, np.float32),
                    "zero_point": np.asarray(value.quantization.zero_points, np.int64),
                }
    return main


def _in_order(main: Record, region: RegionCode, names: Mapping[Value, str]) -> Record:
    """Return a subgraph that takes and gives tensors in the order of the program's, as `names` has
    them.
    """
    places = {value: place for place, value in enumerate(names)}
    ordered: Record = dict(main)
    for side, values in _sides(region):
        indices = dict(zip(values, main[side], strict=True))
        ordered[side] = [
            indices[value]
            for value in sorted(indices, key=lambda value: places.get(value, len(places)))
        ]
    return ordered


def _sides(region: RegionCode) -> tuple[tuple[str, Sequence[Value]], ...]:
    return ("inputs", region.part.inputs), ("outputs", region.part.outputs)


def _network_of(region: RegionCode, main: Record) -> bytes:
    return write({**region.model.record, "subgraphs": [main]}, SCHEMA)
