"""Compile a TFLite network by Vela as it is, and prove what comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.execution import Contents
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import CpuStep, NpuStep, Step, read_network
from mizzen.compiler.ethos_u.bounds import bounds_of
from mizzen.compiler.ethos_u.file_run import FileRun, Mistake
from mizzen.compiler.ethos_u.vela.report import origins_of, report_of
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.tflite_reference import why_not
from mizzen.compiler.tflite_truth import NetworkTruth
from mizzen.diagnostics import Diagnostic, MizzenError, Origin, ProgressCallback, Severity, fail
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.lower import lower
from mizzen.frontends.tflite.subgraphs import CALLERS
from mizzen.frontends.tflite.variables import VARIABLE_KINDS
from mizzen.report.proof import NOT_PROVED, Proof
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.generate import LEAVE_IT_OUT, Compiled, Stopped, generate


def compile_network(
    model: Model,
    data: bytes,
    configuration: EthosUConfiguration,
    options: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Artifact:
    """Compile a network that was read from the file `data`, and prove what comes.

    Raises E301 to E305 if Vela stops, E307 if its code is wrong, E308 for what it is not given.
    """
    _require_one_graph(model)
    compiled = generate(data, configuration, on_progress=on_progress)
    if isinstance(compiled, Stopped):
        raise MizzenError(_stopped(model, compiled))
    network, origins = _read(model, compiled), origins_of(model, compiled)
    contents = contents_of(network, origins)
    proof, warnings = _proved(model, network, contents, options)
    report = report_of(model, network, configuration, compiled, origins, proof, warnings)
    name = f"{Path(model.name).stem}_vela.tflite"
    return Artifact(compiled.network, name, contents, report)


def _require_one_graph(model: Model) -> None:
    """Refuse what Vela reads out of order: it orders operators by the tensors they share. E308."""
    for operator in model.main.operators:
        if operator.kind in VARIABLE_KINDS or operator.kind in CALLERS:
            raise fail(
                "E308",
                "Vela must get a network without variables and other subgraphs, and this one has "
                f"{operator.kind}",
                origin=model.origin(operator),
                help=LEAVE_IT_OUT,
            )


def _stopped(model: Model, stopped: Stopped) -> Diagnostic:
    """Return the error of a compiler that stopped, at the operator that it names."""
    named = (
        row
        for row in model.main.operators
        if any(f"'{tensor.name}'" in stopped.said for tensor in model.main.present(row.outputs))
    )
    operator = next(named, None)
    origin = Origin(model.name) if operator is None else model.origin(operator)
    return replace(stopped.diagnostic, origin=origin)


def _read(model: Model, compiled: Compiled) -> Model:
    try:
        return read_network(compiled.network, model.name)
    except MizzenError as error:
        said = error.diagnostic.message
        raise _wrong(model, Mistake(f"its file cannot be read: {said}")) from None


def _wrong(model: Model, mistake: Mistake) -> MizzenError:
    operator = maker_of(model, mistake.tensor)
    kind = "the network" if operator is None else f"{operator.kind}, or for an operator before it,"
    origin = Origin(model.name) if operator is None else model.origin(operator)
    return fail(
        "E307",
        f"Vela's code must compute what the network does, and that for {kind} does not: "
        f"{mistake.said}",
        origin=origin,
        help=f"{LEAVE_IT_OUT}, or compile with --allow-inexact",
    )


def maker_of(model: Model, tensor: int | None) -> Operator | None:
    """Return the operator that gives a tensor."""
    return next((row for row in model.main.operators if tensor in row.outputs), None)


def _proved(
    model: Model, network: Model, contents: Contents, options: ProofOptions
) -> tuple[Proof, list[Diagnostic]]:
    """Execute what was compiled beside the reference. E307 if it differs and may not."""
    if not options.inputs or not any(isinstance(step, NpuStep) for step in contents.steps):
        return NOT_PROVED, []
    try:
        lowered = lower(model)
    except MizzenError as error:  # tensors that are no arrays of numbers
        said = f"all that the NPU gives because {error.diagnostic.message}"
        return Proof(0, options.seed, unproved=(said,)), []
    truth = NetworkTruth(model, lowered, options, bounds_of(model))
    run = VelaRun(truth, network, contents, tensors_of(model, network))
    mistake = run.mistake()
    if mistake is None:
        return run.proof(), []
    wrong = _wrong(model, mistake)
    if not options.allow_inexact:
        raise wrong
    operator = maker_of(model, mistake.tensor)
    name = "an output" if operator is None else f"{operator.kind} {operator.index}"
    warning = replace(wrong.diagnostic, code="W306", severity=Severity.WARNING, help=LEAVE_IT_OUT)
    return replace(run.proof(), differing=(name,)), [warning]


def tensors_of(model: Model, network: Model) -> dict[int, int]:
    """Return the network's tensors by those of a file that Vela made of it.

    Vela keeps the order of inputs and outputs, and the names of tensors; those without a name of
    their own, or of another size, are not known.
    """
    names = Counter(row.name for row in model.main.tensors)
    by_name = {row.name: row.index for row in model.main.tensors if names[row.name] == 1}
    places = {row.index: by_name[row.name] for row in network.main.tensors if row.name in by_name}
    places |= dict(zip(network.main.inputs, model.main.inputs, strict=True))
    places |= dict(zip(network.main.outputs, model.main.outputs, strict=True))

    def is_same(index: int, place: int) -> bool:
        ours, theirs = network.main.tensors[index], model.main.tensors[place]
        return (ours.dtype, ours.elements) == (theirs.dtype, theirs.elements)

    return {index: place for index, place in places.items() if is_same(index, place)}


class VelaRun(FileRun):
    """One execution of a file of Vela's, in which operators on the CPU are executed too.

    They may read another tensor than in the network.
    """

    def __init__(
        self, truth: NetworkTruth, network: Model, contents: Contents, tensors: dict[int, int]
    ) -> None:
        super().__init__(truth, network, contents, tensors)
        self._digest = sha256()
        self._parts = self._equal = 0
        self._bounded: dict[str, None] = {}
        self._unproved: dict[str, None] = {}
        for array in truth.inputs:
            self._digest.update(np.ascontiguousarray(array).data)

    def proof(self) -> Proof:
        """Return what the execution has shown."""
        return Proof(
            inputs=self.count if self._parts else 0,
            seed=self.truth.options.seed,
            digest=self._digest.hexdigest(),
            parts=self._parts,
            equal=self._equal,
            bounded=tuple(self._bounded),
            unproved=tuple(self._unproved),
        )

    def on_cpu(self, step: Step) -> Mistake | None:
        """Compute operators of the CPU, and go on with what the reference says of them."""
        wrong = None
        if isinstance(step, CpuStep) and not step.keeps_state and self.has(step.inputs):
            wrong = self._computed(step)
        self.give(step.outputs)
        return wrong

    def _computed(self, step: CpuStep) -> Mistake | None:
        try:
            results = step.kernels.run([self.values[index] for index in step.inputs], self.count)
        except MizzenError as error:
            if any(self.reference(index) is None for index in step.outputs):
                return None  # nothing here computes it
            return Mistake(error.diagnostic.message, self.first(step.outputs))
        self.values.update(zip(step.outputs, results, strict=True))
        return self.differing(step.outputs, "differs from the reference")

    def unknown(self, step: NpuStep) -> None:
        """Note that nothing says what an NPU operator takes."""
        for index in step.outputs:
            self._leave_out(index)

    def equal(self, outputs: Sequence[int]) -> None:
        """Count what is equal, and go on with what the reference says."""
        self._parts += 1
        for index in outputs:
            array, wanted = self.values[index], self.reference(index)
            self._digest.update(np.ascontiguousarray(array).data)
            if wanted is None:
                self._leave_out(index)
            elif np.array_equal(array, wanted):
                self._equal += 1
            else:
                self._bounded[self._maker(index)] = None
        self.give(outputs)

    def _leave_out(self, index: int) -> None:
        stopped = self.truth.first.stopped
        why = "it is not known which tensor of the model it is"
        if stopped is not None:
            why = why_not(stopped)
        self._unproved[f'"{self.network.main.tensors[index].name}" because {why}'] = None

    def _maker(self, index: int) -> str:
        operator = maker_of(self.truth.model, self.tensors[index])
        assert operator is not None, "what the NPU gives is an operator's"
        return f"{operator.kind} {operator.index}"
