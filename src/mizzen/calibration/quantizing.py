"""From a file and data to a quantised file, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mizzen.calibration.opening import open_source
from mizzen.calibration.remedies import remedy
from mizzen.calibration.samples import MOST_SAMPLES, chosen, samples_of
from mizzen.calibration.scheme import Scheme
from mizzen.calibration.seen import Sample, Seen, findings
from mizzen.calibration.source import Made, Source
from mizzen.compiler.source import Extents, Shapes, checked
from mizzen.data.opening import Opened, open_data
from mizzen.diagnostics import Diagnostic, MizzenError, Severity, fail, unreadable, warn
from mizzen.files import write_file
from mizzen.report.quantization import InFloat, QuantizationReport, noisy_of

if TYPE_CHECKING:
    from mizzen.analysis.evaluation.evaluation import Judgement
    from mizzen.data.forms import Forms
    from mizzen.report.evaluation import Evaluation
    from mizzen.report.precision import Precision

COMPARED = 64
"""Samples by which the noise of layers is measured: every tensor of both networks is held."""


def _nothing(_: object) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Words:
    """Where data lies, as words of a command line, and how it is read."""

    paths: tuple[str, ...]
    labels: str | None = None
    classes: tuple[str, ...] = ()
    forms: Forms | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """A quantised file, and what became of the network.

    suffix       how the names of such files end
    diagnostics  warnings of the data, and advice
    """

    data: bytes
    suffix: str
    report: QuantizationReport
    diagnostics: tuple[Diagnostic, ...]

    def save(self, path: str | Path) -> None:
        """Write the file."""
        write_file(Path(path), self.data)


@dataclass(eq=False)
class Work:
    """A network and its calibration data, step by step.

    told  is told how many samples are done
    """

    source: Source
    opened: Opened
    scheme: Scheme
    most: int = MOST_SAMPLES
    told: Callable[[int], None] = _nothing
    names: list[str] = field(default_factory=list[str])

    @cached_property
    def samples(self) -> list[Sample]:
        """What calibrates."""
        data = self.opened.data
        pairs = list(samples_of(data, chosen(data, self.most), self.source.inputs))
        self.names = [data.name(index) for index, _ in pairs]
        return [sample for _, sample in pairs]

    @cached_property
    def seen(self) -> Seen:
        """What every tensor was."""
        return self.source.seen(self.samples, self.told)

    @cached_property
    def made(self) -> Made:
        """The quantised file."""
        return self.source.quantised(self.samples, self.scheme, self.seen)

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Return warnings of the data, and advice."""
        yield from findings(self.seen, self.names.__getitem__)
        yield from self.made.warnings
        yield from self.source.advice(self.made, self.seen)

    def precision(self) -> Precision:
        """Hold both networks against each other, layer by layer. E7xx where that cannot be."""
        compared = self.samples[:: -(-len(self.samples) // COMPARED)]
        return self.source.precision(
            self.made, [np.stack(each) for each in zip(*compared, strict=True)]
        )

    def evaluation(
        self, opened: Opened, judgement: Judgement, note: Callable[[str], None]
    ) -> Evaluation:
        """Judge both networks by labels, or by each other. E2xx, E7xx where that cannot be."""
        from mizzen.analysis.evaluation.evaluation import Listener, judge
        from mizzen.analysis.evaluation.samples import Stored

        quantised, floating = self.source.networks(self.made)
        # Labels are of what the whole network gives.
        labels = None if self.scheme.cuts else opened.labels
        stored = Stored(opened.name, opened.data, labels)
        listener = Listener(self.told, note)
        return judge(
            quantised, stored, judgement, reference=(self.source.name, floating), listener=listener
        )

    def report(
        self, precision: Precision | None = None, evaluation: Evaluation | None = None
    ) -> QuantizationReport:
        """Return what became of the network."""
        return QuantizationReport(
            self.source.name,
            self.source.form,
            self.opened.name,
            len(self.samples),
            method_of(self.source, self.scheme),
            self.scheme.activations.value,
            tuple(InFloat(each.index, each.kind, each.name) for each in self.made.floating),
            self.source.said,
            precision,
            evaluation,
            {layer.name: remedy(layer, self.seen, self.scheme) for layer in noisy_of(precision)},
        )


def method_of(source: Source, scheme: Scheme) -> str:
    """Return how ranges are found. E198 for a way that there is not for such files."""
    if scheme.method is None:
        return source.methods[0].value
    if scheme.method not in source.methods:
        names = ", ".join(method.value for method in source.methods)
        raise fail(
            "E198",
            f"ranges of {source.form} networks are found by {names}, not by {scheme.method.value}",
            help=f"leave out --calibration {scheme.method.value}",
        )
    return scheme.method.value


def begun(
    model: str | PathLike[str],
    words: Words,
    scheme: Scheme,
    shapes: Extents,
    most: int = MOST_SAMPLES,
) -> Work:
    """Open a network and its data.

    Raises E1xx for a file that is no floating-point network, E24x for data that does not fit.
    """
    source = open_source(Path(model), _bytes_of(Path(model)), scheme, shapes)
    method_of(source, scheme)
    return Work(source, opened_for(source, words), scheme, most)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def opened_for(source: Source, words: Words) -> Opened:
    """Open data for a network."""
    return open_data(
        words.paths, source.inputs, words.labels, classes=words.classes, forms=words.forms
    )


def or_said(measure: Callable[[], Any], said: list[Diagnostic]) -> Any:
    """Return what is measured; None, and a warning, where nothing can compute one of both networks.

    E7xx is that; anything else is wrong with what the user gave.
    """
    try:
        return measure()
    except MizzenError as error:
        if not error.diagnostic.code.startswith(("E7", "E13", "E495")):
            raise
        said.append(replace(error.diagnostic, severity=Severity.WARNING))
        return None


def _require_files(model: object, data: object) -> None:
    """Refuse models and tensors in place of their files. E230."""
    if not isinstance(model, str | PathLike):
        raise fail(
            "E230",
            f"a network must be a file's path, and one of type {type(model).__name__} came",
            help="PyTorch models are for mizzen.torch.compile(model, example_inputs, accelerator, "
            "calibration=inputs)",
        )
    for each in cast("Sequence[object]", data) if isinstance(data, list | tuple) else [data]:
        if not isinstance(each, str | PathLike):
            raise fail(
                "E230",
                f"data must be paths of files, and one of type {type(each).__name__} came",
                help="numpy.save('inputs.npy', inputs), an array [N, ...], and give its path",
            )


def quantize_file(
    model: str | PathLike[str],
    data: str | PathLike[str] | Sequence[str],
    *,
    labels: str | None = None,
    scheme: Scheme | None = None,
    shapes: Shapes | None = None,
    forms: Forms | None = None,
    samples: int = MOST_SAMPLES,
) -> Quantized:
    """Quantise a floating-point `.onnx`, `.tflite` or `.pt2` file with the user's data.

    data     path of a .npz, a .npy or a folder, as for `mizzen evaluate`; ``NAME=PATH`` for each of
             several inputs
    labels   as for `mizzen evaluate`; with them accuracy is measured before and after
    scheme   how; int8 activations and weights, and all operators, by default
    shapes   of inputs, or sizes of named dimensions, that an ONNX file leaves open
    samples  that calibrate at the most

    Warnings are Python's too. Raises E1xx for a file that is no such network, E198 for one that is
    quantised already, E199 for a package that is missing, E24x for data that does not fit.
    """
    from mizzen.analysis.evaluation.evaluation import Judgement

    _require_files(model, data)
    several = [str(data)] if isinstance(data, (str, PathLike)) else list(data)
    words = Words(tuple(several), labels, (), forms)
    work = begun(model, words, scheme or Scheme(), checked(shapes), samples)
    said = list(work.diagnostics())
    precision = or_said(work.precision, said)
    evaluation = or_said(lambda: work.evaluation(work.opened, Judgement(), _nothing), said)
    warn(said, 0)
    report = work.report(precision, evaluation)
    return Quantized(work.made.data, work.source.suffix, report, tuple(said))
