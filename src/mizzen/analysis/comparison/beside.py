"""What a network costs by Mizzen's code beside what an artifact of any compiler costs.

Both are of one accelerator and one system, so that only the code differs. An artifact without a
report does not say which operator an operation is of: its operations are executed, and what they
write is looked for among the network's tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mizzen.analysis.comparison.executing import Isolated
from mizzen.analysis.comparison.recognising import Library
from mizzen.analysis.comparison.truth import Truth, truth_of
from mizzen.analysis.comparison.versions import cost_of
from mizzen.analysis.cost import cost_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.batching import Batch, Form
from mizzen.artifact.execution import execute
from mizzen.artifact.interface import Origins
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.compile import compile_file, source_of
from mizzen.diagnostics import Origin, ProgressCallback
from mizzen.report.cost import Bound, OperationCost
from mizzen.report.versions import Version
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

INPUTS, SEED = 2, 1
"""Inferences by which operations are recognised, and what they are made of."""


@dataclass(frozen=True, slots=True)
class LayerBeside:
    """An operator of the network: its cycles by both, and what most of them are waited for.

    ours, theirs  cycles of an inference; of operators that are computed with another one, 0
    our_bound, their_bound  empty where there are no cycles
    """

    index: int
    kind: str
    name: str
    ours: int
    theirs: int
    our_bound: str
    their_bound: str

    @property
    def slower(self) -> int:
        """By how many cycles Mizzen's code is slower; below 0 where it is faster."""
        return self.ours - self.theirs


@dataclass(frozen=True, slots=True)
class Beside:
    """The costs of an artifact and of Mizzen's code of the same network.

    unknown  cycles of the artifact's operations of which no operator is known
    """

    theirs: Version
    ours: Version
    layers: tuple[LayerBeside, ...]
    unknown: int

    @property
    def by_difference(self) -> list[LayerBeside]:
        """The operators, those first in which Mizzen's code is slowest beside the other."""
        return sorted(self.layers, key=lambda layer: -layer.slower)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON-ready data."""
        return {
            "layers_beside": [{**asdict(layer), "slower": layer.slower} for layer in self.layers],
            "unknown_cycles": self.unknown,
        }


def beside(
    model: str,
    artifact: Artifact,
    target: ResolvedTarget,
    on_progress: ProgressCallback | None = None,
) -> Beside:
    """Compile a model for a configuration, and say what both cost in it.

    Raises what compiling does, E570 for an artifact of another accelerator, E831 for one of another
    network, E832 for one without a report of a network that is neither TFLite nor TOSA.
    """
    source = source_of(model)
    own = compile_file(source, target, on_progress)
    report = own.report
    assert report is not None, "a compilation always reports"
    named = _named(artifact, model)
    asked, figures = target.configuration, target.board_figures
    system = asked if isinstance(asked, EthosUConfiguration) else None
    ours = cost_report(own, configuration=system, figures=figures)
    theirs = cost_report(named, configuration=system, figures=figures)
    words = {"accelerator": target.accelerator}
    spent = [_by_operator(each.operations) for each in (ours, theirs)]
    layers = [
        LayerBeside(place.index, place.kind, place.name, *_cycles(place.index, place.name, spent))
        for place in report.placements
    ]
    known = sum(layer.theirs for layer in layers)
    return Beside(
        cost_of(named, None, words, figures, system).named(artifact.name),
        cost_of(own, report, words, figures, system).named("mizzen compile"),
        tuple(layer for layer in layers if layer.ours or layer.theirs),
        sum(operation.cycles for operation in theirs.operations) - known,
    )


def _cycles(
    index: int, name: str, spent: Sequence[dict[int | str, list[OperationCost]]]
) -> tuple[int, int, str, str]:
    found = [each.get(index) or each.get(name) or [] for each in spent]
    mine, others = (sum(each.cycles for each in operations) for operations in found)
    return mine, others, _bound(found[0]), _bound(found[1])


def _by_operator(operations: Sequence[OperationCost]) -> dict[int | str, list[OperationCost]]:
    """Return operations by their operator's index on the NPU, else by what it computes."""
    owned: dict[int | str, list[OperationCost]] = {}
    for operation in operations:
        origin = operation.origin
        if origin is None:
            continue
        on_npu = operation.name.startswith("OP_") and origin.operator is not None
        key = origin.operator if on_npu else origin.name
        if key is not None:
            owned.setdefault(key, []).append(operation)
    return owned


def _bound(operations: Sequence[OperationCost]) -> str:
    """Return what most cycles are waited for."""
    waited: dict[Bound, int] = {}
    for operation in operations:
        for cause, cycles in operation.causes.items():
            waited[cause] = waited.get(cause, 0) + cycles
    return max(waited, key=lambda cause: waited[cause]).value if waited else ""


def _named(artifact: Artifact, model: str) -> Artifact:
    """Return the artifact with the network's operators for its operations."""
    if artifact.report is not None:
        return artifact
    origins = tuple(origins_of(artifact, truth_of(model)))
    return artifact_of(artifact.data, artifact.name, origins=origins)


def origins_of(artifact: Artifact, truth: Truth) -> Iterator[Origins]:
    """Return the operator of the network that each operation is of, by byte offset of its command.

    What writes no tensor of the network is of the operator whose tensor comes next. Of an NPU whose
    operations cannot be watched none is known.
    """
    values = truth.values(truth.stimuli(INPUTS, SEED))
    library = Library(list(truth.references(values)))
    right = truth.tensors_of(artifact, values)
    state = Isolated(artifact, library, right)
    arrays = tuple(right[index] for index in artifact.contents.inputs)
    execute(artifact.contents, Batch(INPUTS, Form.STACKED, arrays), state)
    for place, step in enumerate(s for s in artifact.steps if isinstance(s, NpuStep)):
        known: dict[int, Origin] = dict(getattr(step.program, "origins", {}))
        waiting: list[int] = []
        seen = None if known else state.executions.get(place)
        for each in () if seen is None else seen.operations:
            waiting.append(each.trace.offset_bytes)
            if each.parts and each.parts[0].reference.origin.operator is not None:
                known |= dict.fromkeys(waiting, each.parts[0].reference.origin)
                waiting = []
        yield known
