"""How what an NPU computes differs from its reference, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from mizzen.diagnostics import Device, Diagnostic, Origin


class Outcome(Enum):
    """What was found of a layer; the value is how tables say it."""

    EQUAL = "equal"
    BOUNDED = "within its bound"
    """It differs as far as the table of exceptions says that it may."""
    ROUNDED = "rounded otherwise"
    """It differs from the kernels of the CPU, and is what the NPU's own roundings give."""
    DIFFERS = "differs"
    INHERITED = "differs, as its input does"
    """It differs, and so does what it takes."""
    UNREAD = "equal where it is read"
    """It differs only in elements that its kernel leaves unwritten, and that nothing reads."""
    FUSED = "fused"
    """Its values are never in memory: a later layer is computed in the same operation."""
    WHOLE = "judged"
    """Nothing is seen inside of its NPU operator, which is judged by what it gives."""
    UNSEEN = "not seen"
    """Nothing of it could be seen, as it is not known which of the stream's operations are its."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One element that differs.

    inference, index  of how many inferences before, and the place in the tensor of one of them
    npu, reference    what is there
    """

    inference: int
    index: tuple[int, ...]
    npu: float
    reference: float


@dataclass(frozen=True, slots=True)
class LayerComparison:
    """A layer of the user's model, and what was found of it.

    index, kind, name    of the operator, as the model has them
    elements, differing  compared elements over all inferences, and how many of them differ
    steps                the largest difference, in integers; of real numbers the difference
    first                the first element that differs
    into                 index of the layer in whose result one goes on that is not seen by itself
    bound_steps          how far it may differ, as documented; 0 for not at all
    """

    index: int
    kind: str
    name: str
    device: Device
    outcome: Outcome
    elements: int = 0
    differing: int = 0
    steps: float = 0
    first: Sample | None = None
    into: int | None = None
    bound_steps: int = 0


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """An output of the network.

    outcome  EQUAL, BOUNDED, ROUNDED or DIFFERS; whatever differs because a layer before is within
             its bound is compared with what the reference makes of that
    """

    name: str
    outcome: Outcome
    elements: int
    differing: int
    steps: float


@dataclass(frozen=True, slots=True)
class ConstantDifference:
    """Constants of an operation that are not the model's.

    origin               the operator of the model that it is of
    what                 weights, biases, multipliers, shifts, table, maps, settings or operands
    differing, elements  how many differ, of how many
    where                the first that does: its place, and what is there; of operands, which are
                         read from elsewhere, nothing
    """

    origin: Origin
    what: str
    differing: int
    elements: int
    where: tuple[int, ...]
    npu: int
    reference: int


@dataclass(frozen=True, slots=True)
class ConstantsComparison:
    """An artifact's constants beside those of its model, as it is compiled now.

    compared  operations that have the same constants as now, but for those that are wrong
    others    operations that were not compared: they are others than those of now
    """

    compared: int
    others: int
    wrong: tuple[ConstantDifference, ...]


class Evidence(Enum):
    """What says that an operation is wrong."""

    RESULT = "what it writes is not what it must be"
    READS = "it reads what was not written for it"
    PLACE = "what it writes is right, and lies where nothing reads it"
    OVERWRITES = "it writes over what others read after it"
    FAULT = "the stream stops there"


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


@dataclass(frozen=True, slots=True)
class Comparison:
    """What an artifact computes beside what its model means.

    configuration  accelerator, system configuration and memory mode, by those names
    reference      what computed the other side
    inputs         independent inputs, or streams where the network keeps state
    run            inferences in a row for each of them
    seed           of inputs that were made; None for the user's own
    constants      of an artifact that was compiled before; None for one that was compiled for this
    first          the first operation of a command stream that is wrong; None if none is known
    """

    model: str
    configuration: Mapping[str, str]
    reference: str
    inputs: int
    run: int
    seed: int | None
    layers: tuple[LayerComparison, ...]
    outputs: tuple[OutputComparison, ...]
    constants: ConstantsComparison | None = None
    first: FirstDifference | None = None

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows; None for its text."""
        from mizzen.notebook import html_of

        return html_of(self)

    @property
    def elements(self) -> int:
        """Elements of all outputs that were compared."""
        return sum(output.elements for output in self.outputs)

    @property
    def differing(self) -> int:
        """Elements of outputs that differ."""
        return sum(output.differing for output in self.outputs)

    @property
    def wrong(self) -> tuple[LayerComparison, ...]:
        """Layers that differ though what they take does not."""
        return tuple(layer for layer in self.layers if layer.outcome is Outcome.DIFFERS)

    @property
    def holds(self) -> bool:
        """Whether nothing differs but what is documented to."""
        return not (
            self.wrong
            or any(output.outcome is Outcome.DIFFERS for output in self.outputs)
            or (self.constants is not None and self.constants.wrong)
        )

    def count(self, outcome: Outcome) -> int:
        """Return how many layers have this outcome."""
        return sum(layer.outcome is outcome for layer in self.layers)


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON-ready data."""
    return {
        "model": comparison.model,
        "configuration": dict(comparison.configuration),
        "reference": comparison.reference,
        "inputs": comparison.inputs,
        "run": comparison.run,
        "seed": comparison.seed,
        "elements": comparison.elements,
        "differing": comparison.differing,
        "layers": [
            _named(asdict(layer), layer.outcome, layer.device) for layer in comparison.layers
        ],
        "outputs": [_named(asdict(output), output.outcome) for output in comparison.outputs],
        "constants": None if comparison.constants is None else asdict(comparison.constants),
        "first_difference": None if comparison.first is None else comparison.first.as_dict(),
    }


def _named(data: dict[str, Any], *enums: Enum) -> dict[str, Any]:
    """Return a row whose enums are words."""
    words: dict[Any, Any] = {value: value.value for value in enums}
    return {key: words[value] if isinstance(value, Enum) else value for key, value in data.items()}
