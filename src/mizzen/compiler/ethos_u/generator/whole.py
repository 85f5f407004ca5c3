"""A whole network as one NPU operator, by our own rules and without Vela.

The file is a network of one custom operator, as Vela's are: payload, constants, scratch memory,
then what it takes, and its state as variable tensors, which a runtime keeps where they lie and sets
to the number for zero at first.

Ref: Vela 5.2, tflite_writer.py; TFLite Micro, kernels/ethos_u/ethosu.cc and micro_allocator.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.artifact.ethos_u import ALLOCATION, NOT_IN_ARENA
from mizzen.compiler.ethos_u.generator.costs import with_costs
from mizzen.compiler.ethos_u.generator.judging import Judged, judged
from mizzen.compiler.ethos_u.generator.sequences import BY_RULES, MOST_OPERATIONS
from mizzen.compiler.ethos_u.generator.written import Written, written
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model, Tensor, macs
from mizzen.frontends.tflite.lower import Lowered as InGraph
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.code import CodeChoice, Verdict
from mizzen.targets.ethos_u import arrange, driver
from mizzen.targets.ethos_u.config import EthosUConfiguration
from mizzen.targets.ethos_u.emit import emit
from mizzen.targets.ethos_u.hazards import find_hazards
from mizzen.targets.ethos_u.lower import Lowered, State, lower
from mizzen.targets.ethos_u.operations import Sequence
from mizzen.targets.ethos_u.program import Program, RegionIndex
from mizzen.targets.ethos_u.schedule import Effort, Estimator, Limits, plain, schedule
from mizzen.targets.ethos_u.vela.generate import Compiled, Estimate, StreamCommand, Work
from mizzen.targets.families import ETHOS_U


@dataclass(frozen=True, slots=True)
class NotWhole:
    """Why a network is not one NPU operator, in words, by operator of the network."""

    reasons: tuple[tuple[int | None, str], ...]


def compiled_whole(
    model: Model, configuration: EthosUConfiguration, verdict: Verdict, reason: str
) -> Written | NotWhole:
    """Compile a network for U55 or U65 by our own rules, variables and all.

    verdict, reason  why it is not Vela's code

    What came is judged, not proved: whoever asks executes it. Raises as scheduling does.
    """
    found = lower_with_state(model)
    graph = found.graph
    unsigned = [row for row in (*graph.inputs, *graph.outputs) if found.is_unsigned(row)]
    lowered = lower(graph, unsigned)
    reasons = _reasons(found, lowered)
    if reasons or lowered.sequence is None:
        return NotWhole(reasons)
    count = len(lowered.sequence.operations)
    if count > MOST_OPERATIONS:
        return NotWhole(((None, f"it has {count} operations, of at most {MOST_OPERATIONS}"),))
    program = _program(lowered.sequence, configuration)
    hazards = find_hazards(program).findings
    if hazards:
        return NotWhole(((None, f"a hazard: {hazards[0].diagnostic.message}"),))
    network = _file(model, found, lowered.states, program)
    made = judged(program, configuration)
    choice = CodeChoice(verdict, reason, None, made.cost, operations=BY_RULES)
    return _compiled(model, network, made, configuration, choice)


def _compiled(
    model: Model,
    network: bytes,
    found: Judged,
    configuration: EthosUConfiguration,
    choice: CodeChoice,
) -> Written:
    """Return a compiled network as Vela's are, with the estimates of our own program."""
    program, main = found.program, model.main
    commands = tuple(
        StreamCommand(0, offset, origin.operator)
        for offset, origin in sorted(program.origins.items())
    )
    work = tuple(Work(row.index, False, 0, macs(main, row)) for row in main.operators)
    nothing = Estimate(0, 0, (), {})
    compiled = Compiled(network, "", work, commands, nothing, (), "")
    compiled = with_costs(compiled, [program], [found.timed], configuration)
    return written(compiled, (choice,))


def _reasons(found: InGraph, lowered: Lowered) -> tuple[tuple[int | None, str], ...]:
    rows = [(row.operation.group, row.reason) for row in lowered.refusals]
    for state in lowered.states:
        if state.initial is None or (state.initial != _zero(state)).any():
            rows.append((None, f"variable {state.name} starts with other numbers than zero"))
    return tuple(rows)


def _zero(state: State) -> int:
    """Return the number that a runtime sets a variable tensor to."""
    found = state.type.quantization
    return 0 if found is None else found.zero_point


def _program(sequence: Sequence, configuration: EthosUConfiguration) -> Program:
    arranged = arrange.best(
        sequence, configuration.accelerator, Estimator(configuration, sequence.tensors)
    )
    sizes = plain(sequence, configuration).region_bytes
    limits = Limits(sizes[RegionIndex.SCRATCH])
    for row in (arranged.sequence, sequence):
        try:
            made = schedule(row, configuration, limits, Effort.FAST)
        except MizzenError:  # it needs more memory than its tensors do without a search
            continue
        return emit(made, configuration.accelerator)
    made = schedule(sequence, configuration, Limits(), Effort.FAST)
    return emit(made, configuration.accelerator)


def _file(model: Model, found: InGraph, states: tuple[State, ...], program: Program) -> bytes:
    """Write the network's file."""
    net = NetworkBuilder(model.name)
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
    main = model.main
    given = [main.tensors[index] for index in main.inputs]
    rows = iter(program.inputs)
    inputs = [place(_tensor(net, row), next(rows).offset) for row in given]
    for state, row in zip(states, rows, strict=True):
        inputs.append(place(_variable(net, state), row.offset))
    outputs = [
        place(_tensor(net, main.tensors[index]), row.offset)
        for index, row in zip(main.outputs, program.outputs, strict=True)
    ]
    net.operator(ETHOS_U.code, [*memories, *inputs], outputs, custom_options=b"")
    words = np.array([0, 0, len(offsets), *offsets], "<i4")
    net.metadata(ALLOCATION, words.tobytes())
    return net.finish(inputs[: len(given)], outputs)


def _tensor(net: NetworkBuilder, tensor: Tensor) -> int:
    assert tensor.dtype is not None
    found = tensor.quantization
    if found is None:
        return net.tensor(tensor.name, tensor.shape, tensor.dtype)
    return net.tensor(tensor.name, tensor.shape, tensor.dtype, found.scale, found.zero_point)


def _variable(net: NetworkBuilder, state: State) -> int:
    """Add a variable tensor; its bytes are the graph's integers, whoever reads them."""
    type, found = state.type, state.type.quantization
    dtype = type.dtype.numpy
    if found is None:
        return net.tensor(state.name, type.shape, dtype, variable=True)
    return net.tensor(state.name, type.shape, dtype, found.scales, found.zero_points, variable=True)
