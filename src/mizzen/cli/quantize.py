"""Quantise a floating-point ONNX, TFLite or PyTorch file with your own data.

The result is a quantised file of the same format. Reported are the accuracy
before and after, if there are labels, and the quantisation noise of each layer.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.configuration import add_shape_option, names_list, positive_number
from mizzen.cli.console import Answer, Console, counted
from mizzen.cli.evaluate import condition, failures_of
from mizzen.cli.quantization import quantization_text
from mizzen.cli.samples import add_form_options, forms_of
from mizzen.diagnostics import Diagnostic, fail

if TYPE_CHECKING:
    from mizzen.calibration.quantizing import Work
    from mizzen.calibration.scheme import Scheme
    from mizzen.report.evaluation import Evaluation

SUMMARY = "floating-point ONNX, TFLite, .pt2 -> quantised file; accuracy"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "model", metavar="MODEL", help="a floating-point .onnx, .tflite or .pt2 file"
    )
    parser.add_argument(
        "--data",
        metavar="[NAME=]PATH",
        nargs="+",
        required=True,
        help="real inputs, some dozens: a .npz with an array for each input, a .npy, or a folder "
        "of .npy, .bin, .wav or image files, as for `mizzen evaluate`",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the quantised file (default: MODEL_int8, or MODEL_int16, here)",
    )
    add_scheme_options(parser)
    add_shape_option(parser)
    _add_accuracy_options(parser)
    add_form_options(parser)


def add_scheme_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a network is quantised."""
    group = parser.add_argument_group("quantisation")
    group.add_argument(
        "--calibration",
        choices=("minmax", "percentile", "entropy", "search"),
        help="how a tensor's range is found: minmax of all values; percentile, without outliers; "
        "entropy, least change of the distribution (ONNX); search, least error (PyTorch) "
        "(default: minmax; PyTorch: search)",
    )
    group.add_argument(
        "--activation-type",
        choices=("int8", "int16"),
        default="int8",
        help="type of activations; weights are int8 (default: %(default)s)",
    )
    group.add_argument(
        "--keep-float",
        metavar="NODE",
        action="append",
        default=[],
        help="an operator to keep in floating point, by its name, its output or its number; may be"
        " given several times",
    )
    group.add_argument(
        "--cut",
        metavar="NODE",
        action="append",
        default=[],
        help="an operator to end the network at, for instance before the decoding of boxes; may be"
        " given several times",
    )
    group.add_argument(
        "--samples",
        metavar="N",
        type=positive_number,
        default=256,
        help="number of calibration samples, taken at equal distances (default: %(default)s, or "
        "all)",
    )


def _add_accuracy_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("accuracy, before and after")
    group.add_argument(
        "--labels",
        metavar="FILE|KEY",
        help="labels of the data, as for `mizzen evaluate`",
    )
    group.add_argument(
        "--test",
        metavar="[NAME=]PATH",
        nargs="+",
        help="other data, with labels, to measure accuracy on (default: the calibration data)",
    )
    group.add_argument(
        "--classes",
        metavar="NAME,...|FILE",
        help="names of the classes in the order of the outputs, or a file with one in each line",
    )
    group.add_argument(
        "--task",
        choices=("classes", "detection", "anomaly", "values"),
        help="the task of the network (default: by the labels)",
    )
    group.add_argument(
        "--metrics", metavar="METRIC[,METRIC...]", type=names_list, default=(),
        help="as for `mizzen evaluate`",
    )  # fmt: skip
    group.add_argument(
        "--at-least",
        metavar="[METRIC=]VALUE",
        type=condition,
        action="append",
        default=[],
        help="least value of a metric of the quantised network, else exit status 1: top1=0.9, or "
        "same-class=0.98 without labels",
    )
    group.add_argument(
        "--at-most",
        metavar="[METRIC=]VALUE",
        type=condition,
        action="append",
        default=[],
        help="largest value of a metric, else exit status 1",
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Quantise, measure, and write the file."""
    from mizzen.calibration.quantizing import or_said
    from mizzen.files import write_file

    work = begun_with(options, options.data, options.labels, console)
    output = _output(options, work)
    made = quantised(work, options.model, console)
    said = list(work.diagnostics())
    with console.progress("comparing the layers of both networks"):
        precision = or_said(work.precision, said)
    evaluation = or_said(lambda: _evaluation(options, work, console), said)
    write_file(output, made)
    report = work.report(precision, evaluation)
    return Answer(
        {"output": str(output), **report.as_dict()},
        quantization_text(report, output, width=console.table_width),
        failures=_failures(evaluation, options),
        diagnostics=tuple(said),
    )


def scheme_of(options: argparse.Namespace) -> Scheme:
    """Return how a network is quantised, of the options."""
    from mizzen.calibration.scheme import Activations, Method, Scheme

    return Scheme(
        None if options.calibration is None else Method(options.calibration),
        Activations(options.activation_type),
        tuple(options.keep_float),
        tuple(options.cut),
    )


def begun_with(
    options: argparse.Namespace, data: Sequence[str], labels: str | None, console: Console
) -> Work:
    """Open the network and its data, and say what is decided."""
    from mizzen.calibration.quantizing import Words, begun
    from mizzen.compiler.source import read_shapes
    from mizzen.data.labels import classes_from

    classes = tuple(classes_from(options.classes)) if options.classes else ()
    words = Words(tuple(data), labels, classes, forms_of(options))
    with console.progress(f"reading {options.model}"):
        work = begun(
            options.model, words, scheme_of(options), read_shapes(options.shape), options.samples
        )
    for note in (*work.source.said, *work.opened.notes):
        console.note(note)
    return work


def quantised(work: Work, model: str, console: Console) -> bytes:
    """Calibrate and quantise; return the file."""
    with console.progress(f"calibrating {model}") as show:
        work.told = counted(show, max(1, len(work.samples)), "sample")
        _ = work.seen
        show(f"quantising {model}")
        return work.made.data


def _evaluation(options: argparse.Namespace, work: Work, console: Console) -> Evaluation:
    from mizzen.analysis.evaluation import Judgement, Task
    from mizzen.calibration.quantizing import Words, opened_for
    from mizzen.data.labels import classes_from

    opened = work.opened
    if options.test:
        classes = tuple(classes_from(options.classes)) if options.classes else ()
        words = Words(tuple(options.test), None, classes, forms_of(options))
        opened = opened_for(work.source, words)
    judgement = Judgement(
        task=None if options.task is None else Task(options.task), metrics=tuple(options.metrics)
    )
    with console.progress("measuring both networks") as show:
        work.told = counted(show, opened.data.size, "sample")
        return work.evaluation(opened, judgement, console.note)


def _output(options: argparse.Namespace, work: Work) -> Path:
    """Return the path of the quantised file. E201 for one that is the network's own."""
    model = Path(options.model)
    output = Path(options.output or f"{model.stem}_{options.activation_type}{work.source.suffix}")
    if output.exists() and output.samefile(model):
        raise fail(
            "E201",
            f"-o must be another file than the network, and {output} is the network",
            help=f"-o {model.stem}_int8{work.source.suffix}",
        )
    if output.suffix.lower() != work.source.suffix:
        raise fail(
            "E201",
            f"-o must end with {work.source.suffix}, since the quantised file is "
            f"{work.source.form} as {model.name} is, and {output} does not",
        )
    return output


def _failures(evaluation: Evaluation | None, options: argparse.Namespace) -> Sequence[Diagnostic]:
    wanted = options.at_least or options.at_most
    if evaluation is not None:
        return failures_of(evaluation, options)
    if wanted:
        raise fail(
            "E250",
            "accuracy must be measured for --at-least and --at-most, and nothing computes one of "
            "both networks",
        )
    return ()
