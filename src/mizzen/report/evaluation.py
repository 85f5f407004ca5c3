"""What a data set showed of an artifact: metrics, confusions, agreement with a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

SAME_CLASS = "same-class"
"""The metric that is a reference's agreement."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of merit.

    higher_is_better  None for a user's own
    """

    name: str
    value: float
    higher_is_better: bool | None = True


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often each class came where which one was right.

    classes  their names; numbers where they have no names
    counts   [label][output]
    """

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How close the artifact comes to a reference, over the same samples.

    same_class           share of outputs whose highest value is at the same place; None where there
                         is one value only
    equal                outputs that are equal in every number
    judged               outputs that were compared
    largest_difference   of two numbers, dequantised
    mean_difference      mean of the differences' sizes
    """

    same_class: float | None
    equal: int
    judged: int
    largest_difference: float
    mean_difference: float


@dataclass(frozen=True, slots=True)
class Reference:
    """What the reference made of the same samples."""

    name: str
    metrics: tuple[Metric, ...]
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a data set showed of an artifact.

    configuration  accelerator, system configuration and memory mode, by those names
    data           what the samples are, as it was given
    samples        with a label, or compared with a reference
    inferences     of the artifact
    metrics        the first is the one that is meant where none is named
    confusion      of classes, where there are any
    mistakes       names of samples whose label did not come, the first ones
    wrong          how many there are of them
    seconds        that the inferences took, by the clock
    """

    artifact: str
    configuration: Mapping[str, str]
    data: str
    samples: int
    inferences: int
    metrics: tuple[Metric, ...]
    confusion: Confusion | None
    mistakes: tuple[str, ...]
    wrong: int
    reference: Reference | None
    seconds: float

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows; None for its text."""
        from mizzen.notebook import html_of

        return html_of(self)

    def metric(self, name: str | None = None) -> Metric | None:
        """Return a metric by its name, ``same-class`` with a reference, or the first."""
        if name is None:
            return self.metrics[0] if self.metrics else None
        if name == SAME_CLASS and self.reference is not None:
            share = self.reference.agreement.same_class
            return None if share is None else Metric(name, share)
        return next((metric for metric in self.metrics if metric.name == name), None)

    def as_dict(self) -> dict[str, Any]:
        """Return it as data for JSON; metrics go by their names."""
        data = asdict(self)
        data["metrics"] = {metric.name: metric.value for metric in self.metrics}
        if self.reference is not None:
            data["reference"]["metrics"] = {
                metric.name: metric.value for metric in self.reference.metrics
            }
        return data
