"""How a quantisation reads in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.layout import count, fields, named_table, share, size
from mizzen.escaping import one_line
from mizzen.report.evaluation import SAME_CLASS

if TYPE_CHECKING:
    from mizzen.report.evaluation import Evaluation
    from mizzen.report.precision import LayerPrecision
    from mizzen.report.quantization import QuantizationReport

SHOWN_LAYERS = 5
SHOWN_REMEDIES = 3
SHOWN_FLOATS = 8


def quantization_text(report: QuantizationReport, output: Path, *, width: int) -> str:
    """Say what was quantised and with what, accuracy before and after, and the noisiest layers."""
    parts = [f"{one_line(report.model)}\n{fields(list(_facts(report)), width=width)}"]
    if report.evaluation is not None:
        parts.append(_accuracy(report.evaluation, width))
    if report.precision is not None and report.precision.layers:
        parts.append(_layers(report, width))
    parts += list(_remedies(report, width))
    stored = fields([(str(output), size(output.stat().st_size))], width=width)
    return "\n\n".join([*parts, f"Written\n{stored}"])


def _facts(report: QuantizationReport) -> Iterator[tuple[str, str]]:
    yield "form", report.form
    yield "calibration", f"{count(report.samples, 'sample')} of {report.data}, {report.method}"
    yield "integers", f"{report.activations} activations, int8 weights with a scale by channel"
    if report.floating:
        listed = [f'{each.kind} "{each.name}"' for each in report.floating[:SHOWN_FLOATS]]
        more = len(report.floating) - len(listed)
        yield "in float", ", ".join(listed) + (f" and {more} more" if more else "")
    else:
        yield "in float", "nothing"


def _accuracy(evaluation: Evaluation, width: int) -> str:
    before = evaluation.reference
    lines = [
        (metric.name, _number(None if before is None else _of(evaluation, metric.name)),
         _number(metric.value))
        for metric in evaluation.metrics
    ]  # fmt: skip
    if before is not None and before.agreement.same_class is not None:
        lines.append((SAME_CLASS, "", f"{before.agreement.same_class:.4f}"))
    if before is not None and not lines:
        lines.append(("mean difference", "", f"{before.agreement.mean_difference:.4g}"))
    text = named_table(
        [line[:2] for line in lines], [line[2] for line in lines], width=width,
        headings=("metric", "float", "quantised"), right=(1,),
    )  # fmt: skip
    return (
        f"Accuracy on {count(evaluation.samples, 'sample')} of {one_line(evaluation.data)}\n{text}"
    )


def _of(evaluation: Evaluation, name: str) -> float | None:
    metrics = () if evaluation.reference is None else evaluation.reference.metrics
    return next((metric.value for metric in metrics if metric.name == name), None)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.6g}"


def _layers(report: QuantizationReport, width: int) -> str:
    assert report.precision is not None, "there are layers"
    worst = report.precision.worst_first[:SHOWN_LAYERS]
    text = named_table(
        [_row(layer) for layer in worst],
        [layer.name for layer in worst],
        width=width,
        headings=("#", "type", "SQNR", "largest error", "saturated", "output"),
        right=(0, 2, 3, 4),
    )
    return f"Noisiest of {count(len(report.precision.layers), 'layer')}\n{text}"


def _row(layer: LayerPrecision) -> tuple[str, ...]:
    return (
        str(layer.index),
        layer.kind,
        "-" if layer.sqnr_db is None else f"{layer.sqnr_db:.1f} dB",
        f"{layer.largest:.3g}",
        share(round(layer.saturated * layer.elements), layer.elements),
    )


def _remedies(report: QuantizationReport, width: int) -> Iterator[str]:
    """Say what may be done about the noisiest layers."""
    noisy: Sequence[LayerPrecision] = report.noisy
    if noisy:
        lines = [
            (f"{layer.kind} {layer.index}", report.remedies[layer.name])
            for layer in noisy[:SHOWN_REMEDIES]
        ]
        title = f"What may help the {count(len(noisy), 'layer')} with errors above a tenth"
        yield f"{title}\n{fields(lines, width=width)}"
