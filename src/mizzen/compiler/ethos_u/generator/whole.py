"""A whole network as one NPU operator, by our own rules and without Vela.

The file is a network of one custom operator, as Vela's are: payload, constants, scratch memory,
then what it takes, and its state as variable tensors, which a runtime keeps where they lie and sets
to the number for zero at first.

Ref: Vela 5.2, tflite_writer.py; TFLite Micro, kernels/ethos_u/ethosu.cc and micro_allocator.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.compiler.ethos_u.generator.candidates import WORK, Budget, arranged, rounds
from mizzen.compiler.ethos_u.generator.costs import with_costs
from mizzen.compiler.ethos_u.generator.judging import Judged
from mizzen.compiler.ethos_u.generator.search import cycles, maps_bytes, scheduled
from mizzen.compiler.ethos_u.generator.sequences import BY_RULES, MOST_OPERATIONS
from mizzen.compiler.ethos_u.generator.written import Written, written
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model, Tensor, macs
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.frontends.tflite.memory_plan import ALLOCATION, NOT_IN_ARENA
from mizzen.graph import Graph, Operation, Value
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.code import CodeChoice, Verdict
from mizzen.targets.ethos_u.generator.lower import Lowered, State, lower
from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.generator.schedule import Effort, Limits, plain
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Optimise
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex
from mizzen.targets.ethos_u.vela.generate import Compiled, Estimate, StreamCommand, Work
from mizzen.targets.families import ETHOS_U


@dataclass(frozen=True, slots=True)
class NotWhole:
    """Why a network is not one NPU operator, in words, by operator of the network."""

    reasons: tuple[tuple[int | None, str], ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """What a network takes or gives, as its file has it; numbers without scales have none."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A network to be compiled: a graph, and what whoever reads the file knows of it.

    unsigned  inputs and outputs of the graph whose bytes are unsigned in the file
    macs      of each operator, by its index; origins of the graph's operations have that
    """

    name: str
    graph: Graph
    unsigned: tuple[Value, ...]
    inputs: tuple[Edge, ...]
    outputs: tuple[Edge, ...]
    macs: dict[int, int]


def whole_model(model: Model) -> Whole:
    """Return a TFLite network to be compiled. Raises as the front-end does."""
    found, main = lower_with_state(model), model.main
    graph = found.graph
    return Whole(
        model.name,
        graph,
        tuple(row for row in (*graph.inputs, *graph.outputs) if found.is_unsigned(row)),
        tuple(_edge(main.tensors[index]) for index in main.inputs),
        tuple(_edge(main.tensors[index]) for index in main.outputs),
        {row.index: macs(main, row) for row in main.operators},
    )


def _edge(tensor: Tensor) -> Edge:
    assert tensor.dtype is not None
    found = tensor.quantization
    if found is None:
        return Edge(tensor.name, tensor.shape, tensor.dtype)
    return Edge(tensor.name, tensor.shape, tensor.dtype, found.scale, found.zero_point)


def compiled_whole(
    network: Whole, configuration: EthosUConfiguration, verdict: Verdict, reason: str
) -> Written | NotWhole:
    """Compile a network for U55 or U65 by our own rules, variables and all.

    verdict, reason  why it is not Vela's code

    What came is judged, not proved: whoever asks executes it. Raises as scheduling does.
    """
    lowered = lower(network.graph, network.unsigned)
    reasons = _reasons(lowered)
    if reasons or lowered.sequence is None:
        return NotWhole(reasons)
    count = len(lowered.sequence.operations)
    if count > MOST_OPERATIONS:
        return NotWhole(((None, f"it has {count} operations, of at most {MOST_OPERATIONS}"),))
    made = _found(lowered.sequence, configuration)
    if isinstance(made, str):
        return NotWhole(((None, made),))
    file = _file(network, lowered.states, made.program)
    choice = CodeChoice(verdict, reason, None, made.cost, operations=BY_RULES)
    return _compiled(network, file, made, configuration, choice)


def _compiled(
    network: Whole,
    file: bytes,
    found: Judged,
    configuration: EthosUConfiguration,
    choice: CodeChoice,
) -> Written:
    """Return a compiled network as Vela's are, with the estimates of our own program."""
    program = found.program
    commands = tuple(
        StreamCommand(0, offset, origin.operator)
        for offset, origin in sorted(program.origins.items())
    )
    work = tuple(Work(index, False, 0, macs) for index, macs in network.macs.items())
    nothing = Estimate(0, 0, (), {})
    compiled = Compiled(file, "", work, commands, nothing, (), "")
    compiled = with_costs(compiled, [program], [found.timed], configuration)
    return written(compiled, (choice,))


def _reasons(lowered: Lowered) -> tuple[tuple[int | None, str], ...]:
    rows = [(_operator(row.operation), row.reason) for row in lowered.refusals]
    for state in lowered.states:
        if state.initial is None:
            rows.append((None, f"variable {state.name} has no initial value"))
        elif (state.initial != _zero(state)).any():
            rows.append((None, f"variable {state.name} starts with other numbers than zero"))
    return tuple(rows)


def _operator(operation: Operation) -> int | None:
    return None if operation.origin is None else operation.origin.operator


def _zero(state: State) -> int:
    """Return the number that a runtime sets a variable tensor to."""
    found = state.type.quantization
    return 0 if found is None else found.zero_point


def _found(sequence: Sequence, configuration: EthosUConfiguration) -> Judged | str:
    """Return the best program that was found, or the hazard in all of them, in words.

    It takes no more memory than tensors do without a search, where one does not.
    """
    limit_bytes = plain(sequence, configuration).region_bytes[RegionIndex.SCRATCH]
    order = maps_bytes if configuration.optimise is Optimise.SIZE else cycles
    budget = Budget(WORK[configuration.search], granted=True)
    rows = arranged(sequence, configuration)
    hazard = ""
    for sequences in rounds(rows, configuration, limit_bytes):
        granted = [row for row in sequences if budget.grants(row)]
        found = list(_scheduled(granted, configuration, Limits(limit_bytes)))
        for row in sorted(found, key=lambda row: order(row.cost)):
            hazard = _hazard(row.program)
            if not hazard:
                return row
    last = scheduled(sequence, configuration, Limits(), Effort.FAST)
    return _hazard(last.program) or last


def _scheduled(
    sequences: Iterable[Sequence], configuration: EthosUConfiguration, limits: Limits
) -> Iterator[Judged]:
    for row in sequences:
        try:
            yield scheduled(row, configuration, limits, Effort.FAST)
        except MizzenError:  # it needs more memory than its tensors do without a search
            continue


def _hazard(program: Program) -> str:
    found = find_hazards(program).findings
    return f"a hazard: {found[0].diagnostic.message}" if found else ""


def _file(network: Whole, states: tuple[State, ...], program: Program) -> bytes:
    """Write the network's file."""
    net = NetworkBuilder(network.name)
    offsets: list[int] = []

    def place(tensor: int, offset: int) -> int:
        assert tensor == len(offsets)
        offsets.append(offset)
        return tensor

    payload = np.frombuffer(driver.build(program.words, program.hardware), np.uint8)
    constants = program.constants[RegionIndex.READ_ONLY]
    sizes = program.region_bytes
    memories = [
        place(net.constant("payload", payload), NOT_IN_ARENA),
        place(net.constant("read_only", np.asarray(constants, np.uint8)), NOT_IN_ARENA),
        place(net.tensor("scratch", (sizes[RegionIndex.SCRATCH],), np.uint8), 0),
    ]
    fast = sizes.get(RegionIndex.SCRATCH_FAST, 0)
    memories.append(
        place(net.tensor("scratch_fast", (fast,), np.uint8), 0) if fast else memories[-1]
    )
    rows = iter(program.inputs)
    inputs = [place(_tensor(net, row), next(rows).offset) for row in network.inputs]
    for state, row in zip(states, rows, strict=True):
        inputs.append(place(_variable(net, state), row.offset))
    outputs = [
        place(_tensor(net, edge), row.offset)
        for edge, row in zip(network.outputs, program.outputs, strict=True)
    ]
    net.operator(ETHOS_U.code, [*memories, *inputs], outputs, custom_options=b"")
    words = np.array([0, 0, len(offsets), *offsets], "<i4")
    net.metadata(ALLOCATION, words.tobytes())
    return net.finish(inputs[: len(network.inputs)], outputs)


def _tensor(net: NetworkBuilder, edge: Edge) -> int:
    if not edge.scales:
        return net.tensor(edge.name, edge.shape, edge.dtype)
    return net.tensor(edge.name, edge.shape, edge.dtype, edge.scales, edge.zero_points)


def _variable(net: NetworkBuilder, state: State) -> int:
    """Add a variable tensor; its bytes are the graph's integers, whoever reads them."""
    type, found = state.type, state.type.quantization
    dtype = type.dtype.numpy
    if found is None:
        return net.tensor(state.name, type.shape, dtype, variable=True)
    return net.tensor(state.name, type.shape, dtype, found.scales, found.zero_points, variable=True)
