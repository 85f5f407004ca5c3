"""The first operation of a command stream whose result is not what the network means.

Each NPU operator is executed operation by operation on the network's own tensors, and what each
operation writes is looked for among them, whoever compiled the stream and however it is cut. What
is nowhere among them, and is on no way to what is, is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from mizzen.analysis.comparison.accusing import Accused
from mizzen.analysis.comparison.executing import Execution, Isolated, Stop
from mizzen.analysis.comparison.recognising import Library, Reference
from mizzen.analysis.comparison.searching import Search, nearest, unseen
from mizzen.analysis.comparison.truth import Truth, is_numbered, truth_of
from mizzen.analysis.comparison.twins import Twins, are_twins
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.batching import Batch, Form
from mizzen.artifact.execution import execute
from mizzen.artifact.interface import Array
from mizzen.diagnostics import Diagnostic, MizzenError, Origin
from mizzen.report.comparison import Evidence, FirstDifference

INPUTS = 4
"""Inferences that are looked at together: numbers that are equal in all are the same tensor."""

SEED = 1


def first_difference(
    artifact: Artifact,
    network: str | PathLike[str] | bytes | Truth,
    inputs: Sequence[Array] | None = None,
    *,
    right: Artifact | None = None,
    count: int = INPUTS,
    seed: int = SEED,
) -> FirstDifference | None:
    """Return the first operation of an artifact whose result is wrong; None if all outputs hold.

    network  the model's file, `.tflite` or `.tosa`, or its truth where several are asked for
    inputs   `[N, *shape]` each, in the network's order; None for `count` that are made of `seed`
    right    an artifact of the same network that is right: what its operations write is known then,
             too. None to compile the network where its own tensors leave open which operation it
             is, inside of a SOFTMAX for one

    Raises what reading the network does, E831 for an artifact that takes something else, E832 for a
    file of another kind.
    """
    truth = network if isinstance(network, Truth) else truth_of(network)
    values = truth.values(truth.stimuli(count, seed) if inputs is None else list(inputs))
    library = Library(list(truth.references(values)))
    if right is not None:
        return _found(artifact, truth, values, library, right)
    found = _found(artifact, truth, values, library, None)
    if found is None or found.tensor:
        return found
    compiled = truth.compiled(artifact.accelerator)
    return found if compiled is None else _found(artifact, truth, values, library, compiled)


def _found(
    artifact: Artifact,
    truth: Truth,
    values: Mapping[int, Array],
    library: Library,
    right: Artifact | None,
) -> FirstDifference | None:
    beside: Mapping[int, Execution] = {}
    if right is not None:
        beside, _, _ = _execute(right, truth, values, library)
        library = Library([*library.references, *_inside(right, beside)])
    executions, fault, outputs = _execute(artifact, truth, values, library)
    if fault is None and truth.holds(artifact, outputs, values):
        return None
    for step, execution in sorted(executions.items()):
        found = _first(step, execution, beside.get(step), library, _origins(right, step))
        if found is not None:
            return found
    return _elsewhere(artifact, truth, values, library, executions)


def _elsewhere(
    artifact: Artifact,
    truth: Truth,
    values: Mapping[int, Array],
    library: Library,
    executions: Mapping[int, Execution],
) -> FirstDifference | None:
    """Return the operation that writes an output where none is: the stream names no such place."""
    missing = set(truth.outputs) - set(truth.outputs_of(artifact).values())
    lost = [values[key] for key in missing]
    for step, execution in sorted(executions.items()):
        told = Telling(step, library, execution, {})
        for executed in reversed(execution.operations):
            if any(part.reference.array is array for part in executed.parts for array in lost):
                return told.accused(Accused(executed, Evidence.PLACE))
    return None


def _first(
    step: int,
    execution: Execution,
    right: Execution | None,
    library: Library,
    origins: Mapping[int, Origin],
) -> FirstDifference | None:
    """Return the first wrong operation of an NPU operator.

    origins  of the operations of the one that is right, by the offset of their commands
    """
    accused: Accused | None
    if right is not None and are_twins(execution, right):
        accused = Twins(execution, right).accused()
        offsets = {each.index: each.trace.offset_bytes for each in right.operations}
        origins = {index: origins[at] for index, at in offsets.items() if at in origins}
    else:
        origins = {}
        accused = Search(execution, library, is_complete=right is not None).accused()
    told = Telling(step, library, execution, origins)
    if accused is not None:
        return told.accused(accused)
    return None if execution.stopped is None else told.stopped(execution.stopped)


def _execute(
    artifact: Artifact, truth: Truth, values: Mapping[int, Array], library: Library
) -> tuple[dict[int, Execution], Diagnostic | None, Sequence[Array]]:
    """Execute an artifact; return what was seen, why it stopped, and its outputs."""
    right = truth.tensors_of(artifact, values)
    given = truth.outputs_of(artifact)
    unread = {index for index in artifact.contents.outputs if index not in given}
    state = Isolated(artifact, library, right, unread if is_numbered(artifact) else ())
    arrays = [right[index] for index in artifact.contents.inputs]
    size = len(arrays[0]) if arrays else 1
    try:
        outputs = execute(artifact.contents, Batch(size, Form.STACKED, tuple(arrays)), state)
    except MizzenError as error:
        return state.executions, error.diagnostic, ()
    return state.executions, None, outputs


def _origins(right: Artifact | None, step: int) -> Mapping[int, Origin]:
    report = None if right is None else right.report
    known = () if report is None else report.origins
    return known[step] if step < len(known) else {}


def _inside(right: Artifact, executions: Mapping[int, Execution]) -> Iterator[Reference]:
    """Yield what operations of an artifact that is right write besides the network's tensors."""
    for step, execution in executions.items():
        known = _origins(right, step)
        for each in execution.operations:
            if each.map is not None and not each.is_known:
                yield Reference("", known.get(each.trace.offset_bytes, Origin()), each.map)


@dataclass(frozen=True)
class Telling:
    """Says of an operation what a person wants to know.

    step     place of its NPU operator
    origins  the network's operators that operations are of, by index, where that is known
    """

    step: int
    library: Library
    execution: Execution
    origins: Mapping[int, Origin]

    def stopped(self, stop: Stop) -> FirstDifference:
        """Say where the stream stops."""
        place = stop.index, stop.offset_bytes // 4, stop.offset_bytes, stop.kind
        operator = self._operator(stop.index)
        return FirstDifference(self.step, *place, operator, Evidence.FAULT, fault=stop.fault)

    def accused(self, accused: Accused) -> FirstDifference:
        """Say which operation is wrong, and how what it writes differs."""
        executed, trace = accused.executed, accused.executed.trace
        place = trace.index, trace.offset_bytes // 4, trace.offset_bytes, trace.kind
        stop, operator = self.execution.stopped, self._operator(trace.index)
        fault = None if stop is None else stop.fault
        told = FirstDifference(self.step, *place, operator, accused.evidence, fault=fault)
        if executed.parts:
            reference = executed.parts[0].reference
            return replace(told, operator=reference.origin, tensor=reference.name)
        found = None
        if executed.map is not None:
            found = nearest(executed.map, unseen(self.execution, self.library))
        if found is None:
            return told
        reference, differs = found
        return replace(
            told,
            operator=self.origins.get(trace.index, reference.origin),
            tensor=reference.name,
            differing=differs.differing,
            elements=differs.elements,
            where=differs.where,
            expected=differs.reference,
            came=differs.npu,
            largest=differs.steps,
        )

    def _operator(self, index: int) -> Origin:
        """Return the operator that an operation is of: of the first tensor that is not there yet
        when it starts, where nothing else says so."""
        if index in self.origins:
            return self.origins[index]
        numbers = {id(each): place for place, each in enumerate(self.library.references)}
        before = [each for each in self.execution.operations if each.index < index]
        seen = {numbers[id(part.reference)] for each in before for part in each.parts}
        last = max(seen, default=-1)
        for place, reference in enumerate(self.library.references):
            if place > last and reference.name and reference.origin.operator is not None:
                return reference.origin
        return Origin()
