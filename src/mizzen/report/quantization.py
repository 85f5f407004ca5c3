"""What became of a floating-point network that was quantised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mizzen.report.evaluation import SAME_CLASS, Evaluation
from mizzen.report.precision import LayerPrecision, Precision, as_dict

NOISY_DB = 20.0
"""A layer with less signal to noise has errors of a tenth of its numbers, and is named."""


@dataclass(frozen=True, slots=True)
class InFloat:
    """An operator that computes in floating point."""

    index: int
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class QuantizationReport:
    """What was done, and what it costs.

    form         of the files: ONNX, TFLite or PyTorch
    data         what it was calibrated with, as it was given
    samples      of the data that were used
    method       how ranges were found
    activations  their integers
    floating     operators that compute in floating point
    said         what was decided for the user
    precision    layer by layer beside the floating-point network; None where nothing computes both
    evaluation   of the quantised network, with the floating-point one as its reference
    remedies     what to do about noisy layers, by the names of their results
    """

    model: str
    form: str
    data: str
    samples: int
    method: str
    activations: str
    floating: tuple[InFloat, ...]
    said: tuple[str, ...]
    precision: Precision | None
    evaluation: Evaluation | None
    remedies: dict[str, str]

    @property
    def noisy(self) -> Sequence[LayerPrecision]:
        """The layers whose errors are large beside their numbers, the worst first."""
        return noisy_of(self.precision)

    def as_dict(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        evaluation = None if self.evaluation is None else self.evaluation.as_dict()
        return {
            "model": self.model,
            "form": self.form,
            "data": self.data,
            "samples": self.samples,
            "calibration": self.method,
            "activations": self.activations,
            "float_operators": [asdict(each) for each in self.floating],
            "said": list(self.said),
            "accuracy": None if self.evaluation is None else accuracy_of(self.evaluation),
            "evaluation": evaluation,
            "precision": None if self.precision is None else as_dict(self.precision),
            "remedies": self.remedies,
        }


def noisy_of(precision: Precision | None) -> Sequence[LayerPrecision]:
    """Return the layers whose errors are large beside their numbers, the worst first."""
    return [
        layer
        for layer in (() if precision is None else precision.worst_first)
        if layer.sqnr_db is not None and layer.sqnr_db < NOISY_DB
    ]


def accuracy_of(evaluation: Evaluation) -> dict[str, Any]:
    """Return each metric before and after, and how often both networks say the same class."""
    before = evaluation.reference
    told: dict[str, Any] = {
        metric.name: {
            "float": None if before is None else _value(before.metrics, metric.name),
            "quantised": metric.value,
        }
        for metric in evaluation.metrics
    }
    if before is not None and before.agreement.same_class is not None:
        told[SAME_CLASS] = before.agreement.same_class
    return told


def _value(metrics: Sequence[Any], name: str) -> float | None:
    return next((metric.value for metric in metrics if metric.name == name), None)
