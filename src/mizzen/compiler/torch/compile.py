"""Compile an exported PyTorch program: place it, generate code, put the artifact together.

The artifact is the steps of the host and the NPU, the tensors between them, and the report of what
went where. A region's network gets the names, shapes and scales of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.artifact.archive import pack
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.execution import Contents
from mizzen.artifact.host_steps import (
    DequantizeStep,
    NarrowStep,
    QuantizeStep,
    TorchStep,
    WidenStep,
)
from mizzen.artifact.interface import Carried, TensorInfo
from mizzen.artifact.steps import Step
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.codegen import RegionCode, step_of
from mizzen.compiler.edges import edges_of_graph
from mizzen.compiler.placement import Placement
from mizzen.compiler.report import NOTHING_COMPILED, compile_report, with_diagnostics
from mizzen.compiler.torch.levels import few_levels
from mizzen.compiler.torch.numbering import numbered, operator_numbers
from mizzen.compiler.torch.placement import (
    DEQUANTIZE,
    NARROW,
    WIDEN,
    Checks,
    is_edge,
    lowered_program,
    place,
    require_quantized,
)
from mizzen.diagnostics import ProgressCallback
from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Quantization as TensorQuantization
from mizzen.frontends.torch.int_lowering.int_context import signed_offset
from mizzen.frontends.torch.int_lowering.int_extract import extract as extract_torch
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.frontends.torch.narrowing import SOURCE
from mizzen.graph import Operation, Value
from mizzen.ops.control_flow import Constant, Custom
from mizzen.partition import Device, Partition, Region, in_order
from mizzen.report import CompileReport, OperatorPlacement

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def report_of(
    lowered: Lowered,
    placed: Placement,
    target: ResolvedTarget,
) -> CompileReport:
    """Return the report of a program's compilation."""
    partition, code = placed.partition, placed.code
    used = [code[region.groups] for region in partition.regions if region.device is Device.NPU]
    return compile_report(
        lowered.program.name,
        target.configuration,
        _placements(lowered, partition, used),
        [region.costs for region in used],
        compiler=used[0].compiler if used else NOTHING_COMPILED,
        flash_bytes=sum(len(region.network) for region in used),
        origins=[region.origins for region in used],
        log="".join(region.log for region in used),
        proof=placed.proof,
    )


def _placements(
    lowered: Lowered, partition: Partition, used: Sequence[RegionCode]
) -> tuple[OperatorPlacement, ...]:
    cycles: dict[int, int] = {}
    for region in used:
        cycles.update(region.cycles)
    numbers = operator_numbers(lowered, partition)
    placements = [partition.groups[group] for group in numbers]
    indices: dict[int | None, int] = {**numbers}
    before = edges_of_graph(lowered.graph, lambda operation: indices.get(operation.group))
    return tuple(
        OperatorPlacement(
            index=index,
            kind=lowered.origins[placement.group].kind or "",
            name=_name(lowered, placement.group),
            device=placement.device,
            macs=placement.macs,
            cycles=cycles.get(placement.group, 0),
            reasons=tuple(placement.reasons),
            after=before.get(index, ()),
        )
        for index, placement in enumerate(placements)
    )


def _name(lowered: Lowered, group: int) -> str:
    """Say where an operator is: its module and line, else the name in the exported graph."""
    origin = lowered.origins[group]
    place = ", ".join(part for part in (origin.module, origin.source) if part)
    return place or origin.name or ""


def assemble(
    lowered: Lowered,
    placed: Placement,
    chosen: ResolvedTarget,
) -> Artifact:
    """Return the artifact of a placed program."""
    artifact, _ = assembled(lowered, placed, chosen)
    return with_diagnostics(artifact, few_levels(lowered.program))


def assembled(
    lowered: Lowered,
    placed: Placement,
    chosen: ResolvedTarget,
) -> tuple[Artifact, Mapping[object, int]]:
    """Return the artifact of a placed program, and its tensors by the values that they are."""
    placed = numbered(lowered, placed)
    assembly = _Assembly(lowered, placed.partition, placed.code)
    return _artifact(lowered, placed, chosen, assembly.contents()), assembly.tensors


def _artifact(
    lowered: Lowered, placed: Placement, chosen: ResolvedTarget, contents: Contents
) -> Artifact:
    partition, code = placed.partition, placed.code
    report = report_of(lowered, placed, chosen)
    regions = [code[region.groups] for region in partition.regions if region.device is Device.NPU]
    names = _edge_names(lowered)
    networks = [named_network(region, names) for region in regions]
    name = lowered.program.name
    if len(networks) == 1 and _only_edges(contents) and not contents.carried:
        return Artifact(
            networks[0], chosen.backend.artifact_name(name, ".tflite"), contents, report
        )
    data = pack(name, contents, networks)
    return Artifact(data, chosen.backend.artifact_name(name, ".zip"), contents, report)


def _only_edges(contents: Contents) -> bool:
    """Whether the host only makes integers of the inputs and real numbers of the outputs."""
    return not any(isinstance(step, TorchStep) for step in contents.steps)


def _edge_names(lowered: Lowered) -> dict[Value, str]:
    """Name the integers at the edge as the program's inputs and outputs are named."""
    names: dict[Value, str] = {}
    for value in lowered.graph.inputs:
        for user in value.uses:
            if is_edge(user):
                names[user.result] = value.name
    for index, value in enumerate(lowered.graph.outputs):
        producer = value.producer
        if producer is not None and is_edge(producer):
            names.setdefault(producer.input_list[0], f"output_{index}")
    return names


class _Assembly:
    """Numbers the graph's values and makes the steps between them."""

    def __init__(
        self,
        lowered: Lowered,
        partition: Partition,
        code: Mapping[tuple[int, ...], RegionCode],
    ) -> None:
        self.lowered = lowered
        self.partition = partition
        self.code = code
        self.tensors: dict[object, int] = {}
        self.infos: dict[int, TensorInfo] = {}
        self.operations: dict[int, list[Operation]] = {}
        for operation in lowered.graph.sorted():
            if operation.group is not None and not isinstance(operation, Constant):
                self.operations.setdefault(operation.group, []).append(operation)

    def contents(self) -> Contents:
        """Return the tensors and steps."""
        graph, program = self.lowered.graph, self.lowered.program
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
        given = len(graph.outputs) - len(program.states)
        taken = len(graph.inputs) - len(program.states)
        return Contents(
            inputs=tuple(range(taken)),
            outputs=tuple(outputs[:given]),
            infos=self.infos,
            steps=tuple(steps),
            constants=constants,
            carried=tuple(
                Carried(taken + index, outputs[given + index], program.array(state.read).copy())
                for index, state in enumerate(program.states)
            ),
        )

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
        """Make edges steps of their own, and one step of all that PyTorch computes.

        Edges between computations of PyTorch's are part of that step.
        """
        groups = in_order(self.lowered.graph, region.groups)
        torch_groups = {group for group in groups if not self._is_edge(group)}
        late = self._reached(groups, torch_groups, self._sources)
        early = self._reached(list(reversed(groups)), torch_groups, self._users)
        inside = torch_groups | (late & early)
        before = [group for group in groups if group not in late | inside]
        after = [group for group in groups if group in late - inside]
        steps = [self._edge(self._custom(group)) for group in before if self._is_used(group)]
        if inside:
            steps.append(self._torch([group for group in groups if group in inside]))
        return steps + [self._edge(self._custom(group)) for group in after]

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
        return len(operations) == 1 and is_edge(operations[0])

    def _custom(self, group: int) -> Custom:
        (operation,) = self.operations[group]
        assert is_edge(operation)
        return operation

    def _is_used(self, group: int) -> bool:
        """Whether someone takes what an edge gives: PyTorch takes the integers before it."""
        operation = self._custom(group)
        if operation.operator_name not in (DEQUANTIZE, WIDEN):
            return True
        result = operation.result
        return result in self.lowered.graph.outputs or any(is_edge(user) for user in result.uses)

    def _edge(self, operation: Custom) -> Step:
        match operation.operator_name:
            case name if name == DEQUANTIZE:
                return self._dequantize(operation)
            case name if name == NARROW:
                return self._narrow(operation)
            case name if name == WIDEN:
                source = operation.input_list[0]
                return WidenStep(self.number(source), self.number(operation.result))
            case _:
                return self._quantize(operation)

    def _narrow(self, operation: Custom) -> Step:
        bound = self.lowered.node_of[operation.result].meta.get(SOURCE)
        return NarrowStep(
            self.number(operation.input_list[0]),
            self.number(operation.result),
            None if bound is None else bound.size,
            bound is not None and bound.counts_back,
        )

    def _quantize(self, operation: Custom) -> Step:
        node = self.lowered.node_of[operation.result]
        _, scale, zero_point, low, high = node.args[:5]
        offset = signed_offset(node)
        return QuantizeStep(
            self.number(operation.input_list[0]),
            self.number(operation.result),
            float(scale),
            int(zero_point) - offset,
            int(low) - offset,
            int(high) - offset,
            operation.result.dtype.numpy,
        )

    def _dequantize(self, operation: Custom) -> Step:
        source = operation.input_list[0]
        assert source.quantization is not None
        quantization = source.quantization
        return DequantizeStep(
            self.number(source),
            self.number(operation.result),
            quantization.scale,
            quantization.zero_point,
        )

    def _torch(self, groups: list[int]) -> Step:
        inside = set(groups)
        operations = [operation for group in groups for operation in self.operations[group]]
        given = set(self.lowered.graph.outputs)
        outputs = [
            value
            for operation in operations
            for value in operation.results
            if value in given or any(user.group not in inside for user in value.uses)
        ]
        part = extract_torch(self.lowered, groups, outputs)
        return TorchStep(
            part.module,
            tuple(self.number(value) for value in part.inputs),
            tuple(self.number(value) for value in part.outputs),
            tuple(
                str(self.lowered.origins[group].kind)
                for group in groups
                if not self._is_edge(group)
            ),
            tuple(_example(self.lowered.node_of[value]) for value in part.inputs),
        )


def _example(node: Any) -> Any:
    """Return a tensor like a node's in the graph, to export the part with."""
    import torch

    meta = node.meta["val"]
    return torch.zeros(tuple(meta.shape), dtype=torch.int8 if signed_offset(node) else meta.dtype)


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


def named_network(region: RegionCode, names: dict[Value, str]) -> bytes:
    """Return a region's network with inputs and outputs as a runtime wants to see them.

    names  what values of the program's edge are called there; others keep the compiler's names
    """
    (subgraph,) = region.model.record["subgraphs"]
    main: Record = {**subgraph, "tensors": [dict(tensor) for tensor in subgraph["tensors"]]}
    for side, values in (("inputs", region.part.inputs), ("outputs", region.part.outputs)):
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
    return write({**region.model.record, "subgraphs": [main]}, SCHEMA)


def compile_program(
    exported: ExportedProgram,
    chosen: ResolvedTarget,
    *,
    name: str = "model",
    additional_checks: Checks = (),
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a converted program for an accelerator. E167 for one that was never quantised."""
    require_quantized(exported, name)
    return compile_lowered(
        exported,
        chosen,
        name=name,
        additional_checks=additional_checks,
        on_progress=on_progress,
    )


def compile_lowered(
    exported: ExportedProgram,
    chosen: ResolvedTarget,
    *,
    name: str = "model",
    additional_checks: Checks = (),
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a program of which what is quantised, if anything, may be on the accelerator."""
    compiler = chosen.backend.region_compiler(chosen.configuration, chosen.proof)
    lowered = lowered_program(exported, name, compiler.window_limits)
    placed = place(lowered, compiler, additional_checks, chosen.proof, on_progress)
    return assemble(lowered, placed, chosen)
