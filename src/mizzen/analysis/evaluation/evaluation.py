"""A data set through the simulated NPU, and what it shows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.analysis.evaluation.agreement import agreement
from mizzen.analysis.evaluation.inference import Inference, Inferred, Judged
from mizzen.analysis.evaluation.judging import (
    Join,
    Scores,
    class_labels,
    flattened,
    is_anomaly,
    is_binary,
    joined,
    require_suitable,
    task_of,
)
from mizzen.analysis.evaluation.metrics import (
    MIDDLE,
    Function,
    Task,
    compute,
    confusion,
    usual,
)
from mizzen.analysis.evaluation.reference import Network, Subject, referred
from mizzen.analysis.evaluation.samples import PART, Samples, peeked
from mizzen.artifact.fitting import real
from mizzen.diagnostics import Diagnostic, MizzenError, fail
from mizzen.report.evaluation import Confusion, Evaluation, Metric, Reference

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.analysis.evaluation.spreading import Done, Engine
    from mizzen.artifact.interface import TensorInfo
    from mizzen.data.columns import DataSet
    from mizzen.data.labels import Labels

    Array = npt.NDArray[Any]

SHOWN_MISTAKES = 10
PARTS_EACH = 4
"""Of a worker, at least: who is done early has something left to do."""
REHEARSED = 1 << 22
"""Numbers of outputs up to which labels are tried on zeros first."""
MANY = 16
"""Workers, where a cluster decides."""
SETTINGS = ("system_config", "memory_mode", "optimise")


@dataclass(frozen=True)
class Judgement:
    """How outputs are judged.

    output     place of the output that is judged
    task       what the network is for; None for what the labels say
    metrics    names, ``module:function``, or functions of scores and labels; empty for the usual
    join       what of a sample's several inferences is judged; None for each where there are labels
               for each, else their mean, in a stream the last
    streaming  a sample's inferences follow one another, and state goes on
    """

    output: int = 0
    task: Task | None = None
    metrics: tuple[str | Function, ...] = ()
    join: Join | None = None
    streaming: bool = False


def _nowhere(_: object) -> None:
    """Nothing listens."""


@dataclass(frozen=True, eq=False)
class Listener:
    """Who is told what happens: samples that are done, notes, warnings."""

    progress: Callable[[int], None] = _nowhere
    note: Callable[[str], None] = _nowhere
    warn: Callable[[Diagnostic], None] = _nowhere


SILENT = Listener()


def judge(
    artifact: Subject,
    samples: Samples,
    judgement: Judgement,
    *,
    reference: tuple[str, Network] | None = None,
    engine: Engine | None = None,
    listener: Listener = SILENT,
) -> Evaluation:
    """Infer all samples and judge the outputs.

    engine  who infers; None for this process

    Raises E24x and E25x for what does not fit.
    """
    parts = peeked(samples.parts(_part_size(samples.size, engine)))
    labels = samples.labels
    if labels is None and reference is None:
        raise fail(
            "E241",
            f"{samples.name} must have labels, and none were found",
            help="--labels FILE names a CSV or .npy file, or an array of the .npz; sub-folders "
            "named by class are labels too; without any, --reference compares networks",
        )
    if reference is not None:
        examples = [np.zeros((1, *info.shape), info.dtype) for info in artifact.inputs]
        referred(reference[1], artifact, examples)  # before anything is inferred
    inference = Inference(
        artifact,
        judgement.output,
        _judged(artifact, labels, judgement),
        judgement.streaming,
        None if reference is None else reference[1],
    )
    _rehearse(inference, samples, judgement)
    start = time.perf_counter()
    collected = _collected(inference, parts, engine, listener)
    seconds = time.perf_counter() - start
    scores = _scores(inference, collected, collected.outputs, artifact.outputs, judgement, samples)
    truth = _truth(scores, samples, judgement, inference.judged)
    mistakes = [] if truth is None else _mistakes(scores, truth, samples)
    return Evaluation(
        artifact=artifact.name,
        configuration=_configuration(artifact),
        data=samples.name,
        samples=len(collected.counts),
        inferences=sum(collected.counts),
        metrics=_metrics(scores, truth, judgement),
        confusion=_confusion(scores, truth),
        mistakes=tuple(mistakes[:SHOWN_MISTAKES]),
        wrong=len(mistakes),
        reference=_reference(inference, collected, scores, truth, judgement, samples, reference),
        seconds=seconds,
    )


def _rehearse(inference: Inference, samples: Samples, judgement: Judgement) -> None:
    """Refuse labels that cannot be right before anything is inferred, as far as that is known."""
    if samples.labels is None:
        return
    labels = _finite(samples.labels.values, samples)
    info = inference.artifact.outputs[judgement.output]
    if samples.inferences is not None and len(labels) not in (samples.size, samples.inferences):
        raise _wrong_count(samples, samples.size or 0, len(labels))
    shape = (1,) if inference.judged is Judged.RECONSTRUCTION else info.shape
    if samples.size != len(labels) or len(labels) * math.prod(shape) > REHEARSED:
        return
    values = flattened(np.zeros((len(labels), *shape), np.float32))
    if inference.judged is Judged.RECONSTRUCTION:
        values = values[:, 0]
    _truth(Scores(values, np.arange(len(labels))), samples, judgement, inference.judged)


def _part_size(samples: int | None, engine: Engine | None) -> int:
    """Return how many samples are inferred at once: of few, so many that every worker gets some."""
    if engine is None or samples is None:
        return PART
    return min(PART, max(1, samples // (PARTS_EACH * (engine.jobs or MANY))))


def _judged(artifact: Subject, labels: Labels | None, judgement: Judgement) -> Judged:
    output = artifact.outputs[judgement.output]
    anomaly = judgement.task is Task.ANOMALY
    if judgement.task is None and labels is not None:
        anomaly = is_anomaly(artifact.inputs[0], output, labels.values)
    if anomaly and artifact.inputs[0].shape != output.shape:
        raise fail(
            "E242",
            f"an anomaly is how far output {output.name} is from the input, which must have the "
            f"same shape: {list(output.shape)}, not {list(artifact.inputs[0].shape)}",
            help="--task says what the network is for",
        )
    return Judged.RECONSTRUCTION if anomaly else Judged.OUTPUT


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """What came of all parts, in their order."""

    outputs: Array
    reference: Array | None
    counts: tuple[int, ...]


def _collected(
    inference: Inference, parts: Iterator[DataSet], engine: Engine | None, listener: Listener
) -> _Found:
    said: set[str] = set()
    samples = 0

    def done(size: int, answer: Inferred) -> None:
        nonlocal samples
        samples += size
        for note in answer.notes:
            if note not in said:
                said.add(note)
                listener.note(note)
        listener.progress(samples)

    if engine is None:
        answers = [_here(inference, part, done) for part in parts]
    else:
        from mizzen.analysis.evaluation.spreading import spread

        answers = spread(inference, parts, engine, done, listener.warn)
    theirs = [answer.reference for answer in answers if answer.reference is not None]
    return _Found(
        np.concatenate([answer.outputs for answer in answers]),
        np.concatenate(theirs) if theirs else None,
        tuple(count for answer in answers for count in answer.counts),
    )


def _here(inference: Inference, part: DataSet, done: Done) -> Inferred:
    answer = inference(part)
    if isinstance(answer, Diagnostic):
        raise MizzenError(answer)
    done(part.size, answer)
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class _Truth:
    """What the scores should be: labels of the form that the task's metrics take."""

    task: Task
    labels: Array
    classes: tuple[str, ...]


def _scores(
    inference: Inference,
    collected: _Found,
    outputs: Array,
    infos: Sequence[TensorInfo],
    judgement: Judgement,
    samples: Samples,
) -> Scores:
    """Return real numbers for each sample, or for each inference where each has a label."""
    join = judgement.join
    if join is None:
        labels, inferences = samples.labels, sum(collected.counts)
        each = labels is not None and len(labels.values) == inferences > len(collected.counts)
        join = Join.EACH if each else Join.LAST if judgement.streaming else Join.MEAN
    anomaly = inference.judged is Judged.RECONSTRUCTION
    reals = outputs if anomaly else real(outputs, infos[judgement.output])
    scores = joined(reals, collected.counts, join)
    return replace(scores, values=scores.values[:, 0] if anomaly else flattened(scores.values))


def _truth(scores: Scores, samples: Samples, judgement: Judgement, judged: Judged) -> _Truth | None:
    """Return the labels of the scores. E242 for other numbers of them, E244 for other classes."""
    labels = samples.labels
    if labels is None:
        return None
    values = _finite(labels.values, samples)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if len(values) != len(scores.samples):
        if len(values) != int(scores.samples[-1]) + 1:
            raise _wrong_count(samples, int(scores.samples[-1]) + 1, len(values))
        values = values[scores.samples]
    if judged is Judged.RECONSTRUCTION:
        return _Truth(Task.ANOMALY, _binary(values), ())
    task = judgement.task or task_of(scores.values, values)
    require_suitable(task, scores.values, values)
    if task is Task.CLASSES:
        return _Truth(task, class_labels(scores.values, values, labels.classes), labels.classes)
    if task is Task.DETECTION:
        return _Truth(task, _binary(values), labels.classes)
    return _Truth(task, values, ())


def _finite(labels: Array, samples: Samples) -> Array:
    """Return labels that are numbers, one after the other. E243 for NaN and single values."""
    if not labels.ndim:
        raise fail("E243", f"{samples.name} must have a row of labels, not one value: {labels}")
    wrong = np.flatnonzero(~np.isfinite(labels).all(axis=tuple(range(1, labels.ndim))))
    if wrong.size:
        raise fail(
            "E243",
            f"every label must be a finite number, and that of {samples.sample(int(wrong[0]))} is "
            "not",
            help="leave the sample out, or label it",
        )
    return labels


def _wrong_count(samples: Samples, wanted: int, came: int) -> MizzenError:
    return fail(
        "E242",
        f"{samples.name} must have a label for each of its {wanted} samples, not {came}",
        help="give one label for each sample, in the order of the samples",
    )


def _binary(labels: Array) -> Array:
    if is_binary(labels):
        return labels
    wrong = labels[~np.isin(labels, (0, 1))].tolist()[0]
    raise fail("E244", f"every label must be 0 or 1, not {wrong}")


def _metrics(scores: Scores, truth: _Truth | None, judgement: Judgement) -> tuple[Metric, ...]:
    if truth is None:
        return ()
    if judgement.metrics:
        return compute(judgement.metrics, truth.task, scores.values, truth.labels)
    return usual(truth.task, scores.values, truth.labels)


def _confusion(scores: Scores, truth: _Truth | None) -> Confusion | None:
    """Count classes, where there are any and a table of them says something."""
    if truth is None or truth.task is not Task.CLASSES:
        return None
    return confusion(scores.values, truth.labels, truth.classes)


def _mistakes(scores: Scores, truth: _Truth, samples: Samples) -> list[str]:
    """Return the names of samples whose label did not come, where there are labels of samples."""
    values = scores.values
    match truth.task:
        case Task.CLASSES if values.ndim == 2:
            wrong = values.argmax(axis=-1) != truth.labels
        case Task.DETECTION:
            wrong = (values.ravel() > MIDDLE) != (truth.labels.ravel() == 1)
        case _:
            return []
    return [samples.sample(index) for index in dict.fromkeys(scores.samples[wrong].tolist())]


def _reference(
    inference: Inference,
    collected: _Found,
    scores: Scores,
    truth: _Truth | None,
    judgement: Judgement,
    samples: Samples,
    reference: tuple[str, Network] | None,
) -> Reference | None:
    if reference is None or collected.reference is None:
        return None
    name, network = reference
    theirs = _scores(inference, collected, collected.reference, network.outputs, judgement, samples)
    return Reference(
        name, _metrics(theirs, truth, judgement), agreement(scores.values, theirs.values)
    )


def _configuration(artifact: Subject) -> dict[str, str]:
    settings = {} if artifact.report is None else artifact.report.configuration
    named = {name: str(settings[name]) for name in SETTINGS if name in settings}
    return named if artifact.accelerator is None else {"accelerator": artifact.accelerator, **named}
