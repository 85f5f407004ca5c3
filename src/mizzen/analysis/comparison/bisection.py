"""The first operation of a command stream whose result is not what the network means.

Each NPU operator is executed operation by operation on the network's own tensors, and what each
operation writes is looked for among them, whoever compiled the stream and however it is cut. What
is nowhere among them, and is on no way to what is, is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any

from mizzen.analysis.comparison.accusing import Accused, Evidence
from mizzen.analysis.comparison.executing import Execution, Isolated, Stop
from mizzen.analysis.comparison.recognising import Library, Reference
from mizzen.analysis.comparison.searching import Search, nearest, unseen
from mizzen.analysis.comparison.truth import Truth, truth_of
from mizzen.analysis.comparison.twins import Twins, are_twins
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.batching import Batch, Form
from mizzen.artifact.execution import execute
from mizzen.artifact.interface import Array
from mizzen.diagnostics import Diagnostic, MizzenError, Origin

INPUTS = 4
"""Inferences that are looked at together: numbers that are equal in all are the same tensor."""

SEED = 1


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first operation of a command stream whose result is wrong.

    step          place of the NPU operator among the artifact's
    index         among the operations of its stream, transfers included
    word          where its command lies in the stream, in words of 32 bits
    offset_bytes  likewise in bytes
    kind          the command, ``OP_CONV``
    operator      the operator of the user's network
    evidence      what says that it is wrong
    tensor        of the network that it should have written; empty where that is not known
    differing, elements  how many of its elements are wrong over all inputs, of how many
    where         the first: index in what it writes, of one inference; `[H, W, C]`
    expected, came  what must be there, and what is; None where it is not known what must be
    largest       the largest difference
    fault         what stops the stream there
    """

    step: int
    index: int
    word: int
    offset_bytes: int
    kind: str
    operator: Origin
    evidence: Evidence
    tensor: str = ""
    differing: int = 0
    elements: int = 0
    where: tuple[int, ...] = ()
    expected: int | None = None
    came: int | None = None
    largest: int | None = None
    fault: Diagnostic | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        data = asdict(self)
        fault = None if self.fault is None else self.fault.as_dict()
        return {**data, "evidence": self.evidence.value, "fault": fault}


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
    right    an artifact of the same network that is known to be right: what its operations write
             is known then, too, and tells apart those inside of an operator

    Raises what reading the network does, and E831 for an artifact that takes something else.
    """
    truth = network if isinstance(network, Truth) else truth_of(network)
    arrays = truth.stimuli(count, seed) if inputs is None else list(inputs)
    values = truth.values(arrays)
    library = Library(list(truth.references(values)))
    beside: Mapping[int, Execution] = {}
    if right is not None:
        beside, _, _ = _execute(right, truth, values, library)
        library = Library([*library.references, *_inside(right, beside)])
    executions, fault, outputs = _execute(artifact, truth, values, library)
    if fault is None and truth.holds(artifact, outputs, values):
        return None
    for step, execution in sorted(executions.items()):
        found = _first(step, execution, beside.get(step), library)
        if found is not None:
            return found
    return None


def _first(
    step: int, execution: Execution, right: Execution | None, library: Library
) -> FirstDifference | None:
    """Return the first wrong operation of an NPU operator."""
    accused: Accused | None
    if right is not None and are_twins(execution, right):
        accused = Twins(execution, right).accused()
    else:
        accused = Search(execution, library, is_complete=right is not None).accused()
    told = Telling(step, library, right)
    if accused is not None:
        return told.accused(accused, execution)
    return None if execution.stopped is None else told.stopped(execution.stopped)


def _execute(
    artifact: Artifact, truth: Truth, values: Mapping[int, Array], library: Library
) -> tuple[dict[int, Execution], Diagnostic | None, Sequence[Array]]:
    """Execute an artifact; return what was seen, why it stopped, and its outputs."""
    state = Isolated(artifact, library)
    state.right = truth.tensors_of(artifact, values)
    arrays = [state.right[index] for index in artifact.contents.inputs]
    size = len(arrays[0]) if arrays else 1
    try:
        outputs = execute(artifact.contents, Batch(size, Form.STACKED, tuple(arrays)), state)
    except MizzenError as error:
        return state.executions, error.diagnostic, ()
    return state.executions, None, outputs


def _inside(right: Artifact, executions: Mapping[int, Execution]) -> Iterator[Reference]:
    """Yield what operations of an artifact that is right write besides the network's tensors."""
    origins = () if right.report is None else right.report.origins
    for step, execution in executions.items():
        known = origins[step] if step < len(origins) else {}
        for each in execution.operations:
            if each.map is not None and not each.is_known:
                yield Reference("", known.get(each.trace.offset_bytes, Origin()), each.map)


@dataclass(frozen=True)
class Telling:
    """Says of an operation what a person wants to know.

    step   place of its NPU operator
    right  one that is right
    """

    step: int
    library: Library
    right: Execution | None

    def stopped(self, stop: Stop) -> FirstDifference:
        """Say where the stream stops."""
        place = stop.index, stop.offset_bytes // 4, stop.offset_bytes, stop.kind
        return FirstDifference(self.step, *place, Origin(), Evidence.FAULT, fault=stop.fault)

    def accused(self, accused: Accused, execution: Execution) -> FirstDifference:
        """Say which operation is wrong, and how what it writes differs."""
        executed, trace = accused.executed, accused.executed.trace
        place = trace.index, trace.offset_bytes // 4, trace.offset_bytes, trace.kind
        fault = None if execution.stopped is None else execution.stopped.fault
        told = FirstDifference(self.step, *place, Origin(), accused.evidence, fault=fault)
        if executed.parts:
            reference = executed.parts[0].reference
            return replace(told, operator=reference.origin, tensor=reference.name)
        if executed.map is None:
            return told
        found = nearest(executed.map, unseen(execution, self.library))
        if found is None:
            return told
        reference, differs = found
        return replace(
            told,
            operator=reference.origin,
            tensor=reference.name,
            differing=differs.differing,
            elements=differs.elements,
            where=differs.where,
            expected=differs.reference,
            came=differs.npu,
            largest=differs.steps,
        )
