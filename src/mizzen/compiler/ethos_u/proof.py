"""Prove code of our own for a TFLite network: beside what the reference says of every tensor.

Each region starts from the tensors that the reference computed, so one that is wrong does not spoil
the next. What the reference cannot compute is proved on inputs of the region's own, beside the
region's graph. The compiled file, in which all share one arena, is executed once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.execution import Contents
from mizzen.artifact.interface import Array
from mizzen.artifact.reading import contents_of
from mizzen.artifact.region_step import RegionStep
from mizzen.artifact.steps import NpuStep
from mizzen.compiler.codegen import RegionCode
from mizzen.compiler.ethos_u.agreement import held, operation_of
from mizzen.compiler.ethos_u.constants import Judged
from mizzen.compiler.ethos_u.file_run import FileRun
from mizzen.compiler.ethos_u.inside import Differing, Inside
from mizzen.compiler.ethos_u.regions import OwnCode
from mizzen.compiler.ethos_u.witness import witness_of
from mizzen.compiler.proof.difference import difference
from mizzen.compiler.proof.findings import RegionFindings
from mizzen.compiler.proof.options import Effort, ProofOptions
from mizzen.compiler.proof.regions import (
    compared,
    computed,
    graph_stimuli,
    prove_graph,
    region_step,
)
from mizzen.compiler.tflite_reference import Kernels
from mizzen.compiler.tflite_truth import NetworkTruth
from mizzen.cpu.device import device_kernels
from mizzen.cpu.softmax import exponentials
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.lower import Lowered, lower
from mizzen.frontends.tflite.tflite_tensors import from_graph, to_graph
from mizzen.frontends.tflite.variables import handles
from mizzen.graph import Graph, Operation, Value, other_sign
from mizzen.ops.control_flow import Variable
from mizzen.package.tflite.extract import extract
from mizzen.partition import Extracted
from mizzen.reference import evaluate
from mizzen.report.proof import Proof
from mizzen.targets.ethos_u.generator.operations import Schedule
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.judge.witness import Witness, mismatches

NOT_ALONE = "E130"
"""The code of operators whose state others work on too."""


class RegionProof:
    """Proves regions of a network, and the network that is made of them.

    lowered  the network with its state as variables of the graph
    """

    def __init__(self, model: Model, lowered: Lowered, options: ProofOptions) -> None:
        self.model = model
        self.lowered = lowered
        self.options = options
        keeps = any(isinstance(operation, Variable) for operation in lowered.graph)
        self._truth = NetworkTruth(model, lower(model) if keeps else lowered, options, {})

    def prove(self, code: RegionCode, part: Extracted, options: ProofOptions) -> RegionFindings:
        """Execute a region's code beside the reference; `part` is it as it was at first."""
        assert isinstance(code, OwnCode), "it is our own"
        if code.states:
            return prove_steps(code, part, options, self._kernel_steps(code, part), self.model)
        return self.executed(code, region_step(code), part, options)

    def executed(
        self, code: OwnCode, step: RegionStep, part: Extracted, options: ProofOptions
    ) -> RegionFindings:
        """Prove what executes a region's code, which keeps no state."""
        told = told_of(code, step, options, self.model)
        if isinstance(told, RegionFindings):
            return told
        inputs, outputs = self._known(part.inputs), self._known(part.outputs)
        if inputs is None or outputs is None:
            return told.prove(part, options, self._truth.kernels)
        return self._compared(told, part, inputs, outputs)

    def _kernel_steps(self, code: OwnCode, part: Extracted) -> Infer:
        """Return what infers a region on TensorFlow Lite Micro's kernels, which keep its state.

        Operators that only give handles of variables, or fill them, belong to it. Where others
        work on variables too, which kernels keep together, it is the region's graph.
        """
        main, tensor_of = self.model.main, self.lowered.tensor_of
        groups = {each.group for each in code.operations if each.group is not None}
        names = dict(handles(main))
        used = {names.get(tensor) for group in groups for tensor in main.operators[group].inputs}
        groups |= {
            operator.index
            for operator in main.operators
            if operator.kind == "CALL_ONCE"
            or (operator.kind == "VAR_HANDLE" and names.get(operator.outputs[0]) in used)
        }
        try:
            network = extract(self.model.record, sorted(groups))
        except MizzenError as error:
            if error.diagnostic.code != NOT_ALONE:
                raise
            return graph_steps(part.graph)
        session = device_kernels(network.network).session()
        takes = [tensor_of[value] for value in part.inputs]
        gives = [tensor_of[value] for value in part.outputs]
        tensors = main.tensors

        def infer(arrays: Sequence[Array]) -> list[Array]:
            given = {
                place: from_graph(tensors[place], array[np.newaxis])
                for place, array in zip(takes, arrays, strict=True)
            }
            results = session.run([given[place] for place in network.inputs])
            made = dict(zip(network.outputs, results, strict=True))
            return [to_graph(tensors[place], made[place])[0] for place in gives]

        return infer

    def _known(self, values: Sequence[Value]) -> list[Array] | None:
        """Return values as the reference has them, as the graph's integers; None without them."""
        known, tensors = self._truth.first.values, self.model.main.tensors
        places = [self.lowered.tensor_of[value] for value in values]
        if any(place not in known for place in places):
            return None
        return [to_graph(tensors[place], known[place]) for place in places]

    def _compared(
        self, told: WitnessedCode, part: Extracted, inputs: list[Array], expected: list[Array]
    ) -> RegionFindings:
        """Compare outputs, and what is seen inside."""
        inside = Inside(told.witness, told.simulator.plan, told.code.operations, self._reference)
        try:
            outputs = told.computed(inputs, self._truth.count, inside.simulator(told.simulator))
        except MizzenError as error:
            return RegionFindings(Proof(0, self.options.seed), error)
        seen = inside.compared()
        if isinstance(seen, Differing):
            operation = operation_of(seen.origin, told.code.operations)
            group = None if operation is None else operation.group
            return RegionFindings(Proof(0, self.options.seed), seen.difference, group)
        findings = compared(lambda: outputs, inputs, expected, self.options)
        if findings.wrong is not None:
            return RegionFindings(Proof(0, self.options.seed), findings.wrong)
        watched = len(seen - {value.name for value in part.outputs})
        return replace(findings, proof=told.told(replace(findings.proof, watched=watched)))

    @cached_property
    def _reference(self) -> Mapping[str, Array]:
        """What the reference says of values of the graph, by names that are theirs alone."""
        known, tensors = self._truth.first.values, self.model.main.tensors
        places = self._places_by_name
        return {
            name: to_graph(tensors[place], known[place])
            for name, place in places.items()
            if place in known
        }

    @cached_property
    def _places_by_name(self) -> dict[str, int]:
        names = Counter(value.name for value in self.lowered.tensor_of)
        return {
            value.name: place
            for value, place in self.lowered.tensor_of.items()
            if value.name and names[value.name] == 1
        }

    def prove_streams(self, contents: Contents, schedules: Sequence[Schedule]) -> str:
        """Hold the streams of a compiled file to their schedules; say what differs.

        schedules  of the NPU operators at their places in the arena, in the order of execution
        """
        operators = [step for step in contents.steps if isinstance(step, NpuStep)]
        for step, schedule in zip(operators, schedules, strict=True):
            plan = step.simulator.plan
            wrong = next(mismatches(witness_of(schedule), step.program, plan), None)
            if wrong is not None:
                return str(wrong)
        return ""

    def prove_file(self, network: Model, contents: Contents, tensors: dict[int, int]) -> str:
        """Execute the steps of a compiled file in its one arena; say what is wrong.

        What the CPU gives is what the reference says. Each tensor that a step takes must still be
        what was given, and what NPU operators give must be the reference's.

        tensors  of the file to those of the network
        """
        if contents.arena is None:
            return ""
        mistake = FileRun(self._truth, network, contents, tensors).mistake()
        return "" if mistake is None else mistake.said


@dataclass(frozen=True, slots=True, eq=False)
class WitnessedCode:
    """A region's code that is what its generator says, and what executes it."""

    code: OwnCode
    step: NpuStep
    witness: Witness
    constants: Judged

    @property
    def simulator(self) -> Simulator:
        """The simulator of its program."""
        return self.step.simulator

    def computed(
        self, inputs: Sequence[Array], count: int, simulator: Simulator | None = None
    ) -> list[Array]:
        """Return what it computes, in a simulator of the same program or its own."""
        assert isinstance(self.step, RegionStep), "what keeps state is executed step by step"
        return computed(self.code, inputs, count, step=self.step, simulator=simulator)

    def prove(
        self, part: Extracted, options: ProofOptions, custom: Kernels | None
    ) -> RegionFindings:
        """Execute it on inputs of its own beside the region's graph."""
        findings = prove_graph(part.graph, self.computed, options, custom=custom)
        return replace(findings, proof=self.told(findings.proof))

    def told(self, proof: Proof) -> Proof:
        """Return a proof with what is known of the constants."""
        return replace(proof, constants=self.constants.held, own=self.constants.own)


def told_of(
    code: OwnCode, step: NpuStep, options: ProofOptions, model: Model | None = None
) -> WitnessedCode | RegionFindings:
    """Hold a region's program to what its generator says, and that to the graph.

    Returns what differs, if anything does.

    model  whose operators groups are
    """
    witness = witness_of(code.program.schedule)
    try:
        simulator = step.simulator
    except MizzenError as error:
        return RegionFindings(Proof(0, options.seed), error)
    constants = held(
        witness, simulator, code.operations, options.seed, partial(_exponentials, model)
    )
    if isinstance(constants, RegionFindings):
        return constants
    return WitnessedCode(code, step, witness, constants)


def _exponentials(model: Model | None, operation: Operation) -> Iterator[Array]:
    """Return the exponentials of an operation that is a SOFTMAX of a network."""
    if model is not None and operation.group is not None:
        yield from exponentials(model, model.main.operators[operation.group])


def prove_alone(code: OwnCode, part: Extracted, options: ProofOptions) -> RegionFindings:
    """Prove code of a graph without a network around it, on inputs of its own."""
    if code.states:
        return prove_steps(code, part, options, graph_steps(part.graph))
    told = told_of(code, region_step(code), options)
    return told if isinstance(told, RegionFindings) else told.prove(part, options, None)


MOST_STEPS = 16
"""Inferences one after the other, of what keeps state: one that is wrong shows in what follows."""

Infer = Callable[[Sequence[Array]], Sequence[Array]]
"""Infers once, and keeps state for the next time: the graph's integers in and out."""


def graph_steps(graph: Graph) -> Infer:
    """Return what infers a graph whose variables go on from one inference to the next."""
    variables: dict[str, Array] = {}
    return lambda arrays: evaluate(graph, arrays, variables=variables)


def prove_steps(
    code: OwnCode,
    part: Extracted,
    options: ProofOptions,
    reference: Infer,
    model: Model | None = None,
) -> RegionFindings:
    """Execute inferences one after the other beside what says what must come.

    model  whose operators groups are
    """
    graph = part.graph
    count = MOST_STEPS if options.effort is Effort.QUICK else options.inputs
    inputs = graph_stimuli(graph, count, options.seed)
    contents = contents_of(code.model)
    (step,) = (each for each in contents.steps if isinstance(each, NpuStep))
    told = told_of(code, step, options, model)
    if isinstance(told, RegionFindings):
        return told
    session = Artifact(code.network, graph.name, contents).session()
    as_file, digest = _as_file(code), sha256()
    for index in range(count):
        given = [array[index] for array in inputs]
        try:
            wanted = reference(given)
            results = session.run(*(as_file(place, array) for place, array in enumerate(given)))
        except MizzenError as error:
            return RegionFindings(Proof(0, options.seed), error)
        outputs = results if isinstance(results, tuple) else (results,)
        for ours, theirs in zip(outputs, wanted, strict=True):
            numbers = np.asarray(ours).reshape(1, *theirs.shape)
            signed = other_sign(numbers) if numbers.dtype == np.uint8 else numbers
            digest.update(np.ascontiguousarray(signed).data)
            differs = difference(signed, theirs[np.newaxis])
            if differs is not None:
                return RegionFindings(Proof(0, options.seed), differs)
    proof = Proof(count, options.seed, digest.hexdigest(), parts=1, equal=len(part.outputs))
    return RegionFindings(told.told(proof))


def _as_file(code: OwnCode) -> Callable[[int, Array], Array]:
    """Return what makes an input of the graph one of the file: unsigned bytes, its own shape."""
    tensors = [code.model.main.tensors[index] for index in code.model.main.inputs]

    def converted(place: int, array: Array) -> Array:
        tensor = tensors[place]
        numbers = other_sign(array) if tensor.dtype == np.uint8 else array
        return numbers.reshape(tensor.shape)

    return converted
