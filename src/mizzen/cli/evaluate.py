"""Measure the accuracy of an artifact on a data set, on the simulated NPU."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mizzen.cli.artifacts import add_data_option, load_artifact
from mizzen.cli.configuration import names_list, positive_number
from mizzen.cli.console import Answer, Console, counted
from mizzen.cli.layout import count, duration, fields, share, table
from mizzen.cli.placement import artifact_text
from mizzen.cli.samples import add_form_options, forms_of
from mizzen.diagnostics import Diagnostic, fail
from mizzen.escaping import one_line
from mizzen.workers import use_one_thread

if TYPE_CHECKING:
    from mizzen.report.evaluation import Confusion, Evaluation, Metric, Reference

SUMMARY = "accuracy of an artifact on a data set"
LARGEST_TABLE = 20
"""Classes of which the terminal shows every pair; the JSON document has all of them always."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "artifact", metavar="ARTIFACT", help="a compiled .tflite, .zip or .pte, or Vela's raw .npz"
    )
    add_data_option(parser)
    parser.add_argument(
        "--data",
        metavar="[NAME=]PATH",
        nargs="+",
        required=True,
        help="the samples: a .npz with an array for each input (and the labels), a .npy, or a "
        "folder of .npy, .bin, .wav or image files; floats are quantised with the input's "
        "scale and zero point",
    )
    parser.add_argument(
        "--labels",
        metavar="FILE|KEY",
        help="a CSV file (label; file,label; or MLPerf Tiny's y_labels.csv), a .npy file, or the "
        "name of an array of the .npz (default: an array called labels, label or y; y_labels.csv "
        "or labels.csv of the folder; names of sub-folders)",
    )
    parser.add_argument(
        "--classes",
        metavar="NAME,...|FILE",
        help="names of the classes in the order of the outputs, or a file with one in each line",
    )
    parser.add_argument(
        "--reference",
        metavar="NET",
        help="a .tflite, .onnx or .pt2 to run on the same data, for instance the float network; "
        "reports its metrics and how often both agree (same-class), which needs no labels",
    )
    parser.add_argument(
        "--accelerator-config", metavar="NAME", help="fail if the artifact is for another NPU"
    )
    add_form_options(parser)
    _add_judging_options(parser)
    add_worker_options(parser)
    conditions = parser.add_argument_group("conditions (exit status 1 when they do not hold)")
    for name, what in (("--at-least", "reach"), ("--at-most", "not exceed")):
        conditions.add_argument(
            name,
            metavar="[METRIC=]VALUE",
            type=condition,
            action="append",
            default=[],
            help=f"what a metric must {what}, for instance "
            f"{'top1=0.9' if name == '--at-least' else 'mean-error=0.05'}; a number alone is for "
            "the first metric; may be given several times",
        )


def _add_judging_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("metrics")
    group.add_argument(
        "--task",
        choices=("classes", "detection", "anomaly", "values"),
        help="the task of the network (default: by the labels)",
    )
    group.add_argument(
        "--metrics",
        metavar="METRIC[,METRIC...]",
        type=names_list,
        default=(),
        help="top1, top5 (any number), balanced, auc; accuracy of a detection; mean-error, "
        "rms-error, largest-error; or your own module:function of outputs and labels "
        "(default: by the labels)",
    )
    group.add_argument("--output", metavar="NAME", help="the output to judge (default: the first)")
    group.add_argument(
        "--join",
        choices=("each", "mean", "highest", "last"),
        help="how to judge a sample of several inferences (default: their mean; in a stream the "
        "last; each, if each has a label)",
    )
    group.add_argument(
        "--streaming",
        action="store_true",
        help="keep the network's state from one inference of a sample to the next; without it "
        "every inference starts anew",
    )


def add_worker_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say who infers; the answer does not depend on them."""
    group = parser.add_argument_group("parallel processes")
    group.add_argument(
        "--jobs", metavar="N", type=positive_number, help="processes of this machine (default: 1)"
    )
    group.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="a Ray cluster (extra cluster); uses --jobs processors of it, or all; 'local' starts "
        "one on this machine",
    )


def condition(text: str) -> tuple[str | None, float]:
    """Read a metric and the value that it is held to."""
    name, equals, value = text.rpartition("=")
    try:
        return (name or None if equals else None), float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"METRIC=VALUE or a number is needed, not {text!r}"
        ) from None


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Evaluate the artifact on the data set."""
    use_one_thread()
    from mizzen.analysis.evaluation import Judgement, Listener, Task, judge
    from mizzen.analysis.evaluation.evaluate import engine_of, output_of
    from mizzen.analysis.evaluation.judging import Join
    from mizzen.analysis.evaluation.reference import doubts_of, open_reference
    from mizzen.analysis.evaluation.samples import Stored
    from mizzen.data.labels import classes_from
    from mizzen.data.opening import open_data

    artifact = load_artifact(options, options.artifact)
    console.note(artifact_text(artifact, width=console.width))
    opened = open_data(
        options.data,
        artifact.inputs,
        options.labels,
        classes=classes_from(options.classes) if options.classes else (),
        sequences=options.streaming,
        forms=forms_of(options),
    )
    console.note(_data_text(opened.name, opened.data.size, console))
    for note in opened.notes:
        console.note(note)
    judgement = Judgement(
        output_of(artifact, options.output),
        None if options.task is None else Task(options.task),
        tuple(options.metrics),
        None if options.join is None else Join(options.join),
        options.streaming,
    )
    reference = None
    if options.reference is not None:
        reference = options.reference, open_reference(options.reference)
    warnings: list[Diagnostic] = [] if reference is None else [*doubts_of(reference[1])]
    samples = Stored(opened.name, opened.data, opened.labels)
    with console.progress(f"evaluating {options.artifact}") as show:
        listener = Listener(
            counted(show, opened.data.size, "sample"), console.note, warnings.append
        )
        evaluation = judge(
            artifact,
            samples,
            judgement,
            reference=reference,
            engine=engine_of(options.jobs, options.ray),
            listener=listener,
        )
    return Answer(
        {"artifact": str(options.artifact), **_document(evaluation)},
        _text(evaluation, console),
        failures=failures_of(evaluation, options),
        diagnostics=(*artifact.notes, *warnings),
    )


def _data_text(name: str, size: int, console: Console) -> str:
    return fields([("data".ljust(11), f"{name}, {count(size, 'sample')}")], width=console.width)


def _document(evaluation: Evaluation) -> dict[str, object]:
    data = evaluation.as_dict()
    del data["artifact"]
    return data


def _text(evaluation: Evaluation, console: Console) -> str:
    work = count(evaluation.samples, "sample")
    if evaluation.inferences != evaluation.samples:
        work += f", {count(evaluation.inferences, 'inference')},"
    parts = [f"{work} in {duration(evaluation.seconds)}"]
    lines = [(metric.name, _value(metric)) for metric in evaluation.metrics]
    parts[0] += f"\n{table(lines, width=console.width)}" if lines else ""
    if evaluation.confusion is not None:
        parts.append(_confusion_text(evaluation.confusion, console))
    if evaluation.mistakes:
        parts.append(_mistakes_text(evaluation, console))
    if evaluation.reference is not None:
        parts.append(_reference_text(evaluation.reference, console))
    return "\n\n".join(parts)


def _value(metric: Metric) -> str:
    return f"{metric.value:.4f}" if abs(metric.value) < 10 else f"{metric.value:.6g}"


def _confusion_text(confusion: Confusion, console: Console) -> str:
    """Write which class came where which one was right; of many classes, how many were found."""
    if len(confusion.classes) > LARGEST_TABLE:
        worst = sorted(
            (counts[place] / sum(counts), name, counts[place], sum(counts))
            for place, (name, counts) in enumerate(
                zip(confusion.classes, confusion.counts, strict=True)
            )
            if sum(counts)
        )[:LARGEST_TABLE]
        cells = [(name, f"{right:,} of {total:,}") for _, name, right, total in worst]
        return f"Classes that are found least\n{table(cells, width=console.width)}"
    cells = [
        (
            name,
            *(str(number) if number else "." for number in counts),
            share(counts[place], sum(counts)),
        )
        for place, (name, counts) in enumerate(
            zip(confusion.classes, confusion.counts, strict=True)
        )
        if sum(counts)
    ]
    headings = ("label", *confusion.classes, "found")
    right = range(1, len(headings))
    lines = table(cells, width=console.width, headings=headings, right=right)
    return f"Labels by row, outputs by column\n{lines}"


def _mistakes_text(evaluation: Evaluation, console: Console) -> str:
    more = evaluation.wrong - len(evaluation.mistakes)
    lines = [(name,) for name in evaluation.mistakes] + ([(f"and {more:,} more",)] if more else [])
    return f"Mistakes\n{table(lines, width=console.width)}"


def _reference_text(reference: Reference, console: Console) -> str:
    from mizzen.report.evaluation import SAME_CLASS

    agreement = reference.agreement
    lines = [(metric.name, _value(metric)) for metric in reference.metrics]
    if agreement.same_class is not None:
        lines.append((SAME_CLASS, f"{agreement.same_class:.4f}"))
    lines += [
        ("equal", f"{agreement.equal:,} of {count(agreement.judged, 'output')}"),
        ("difference", f"{agreement.largest_difference:.4g} at most, "
         f"{agreement.mean_difference:.4g} in the mean"),
    ]  # fmt: skip
    return f"Reference {one_line(reference.name)}\n{fields(lines, width=console.width)}"


def failures_of(evaluation: Evaluation, options: argparse.Namespace) -> list[Diagnostic]:
    """Return which of `--at-least` and `--at-most` do not hold. E250 for a metric of no name."""
    failures: list[Diagnostic] = []
    wanted: Sequence[tuple[str, str | None, float]] = [
        *(("at least", *bound) for bound in options.at_least),
        *(("at most", *bound) for bound in options.at_most),
    ]
    for word, name, value in wanted:
        metric = evaluation.metric(name)
        if metric is None:
            known = ", ".join(each.name for each in evaluation.metrics) or "none"
            raise fail(
                "E250",
                f"the metric {name or ''} must have been computed; there are {known}",
                help="--metrics names what is computed",
            )
        holds = metric.value >= value if word == "at least" else metric.value <= value
        if not holds:
            failures.append(
                Diagnostic(
                    "E251", f"{metric.name} must be {word} {value:g}, and is {_value(metric)}"
                )
            )
    return failures
