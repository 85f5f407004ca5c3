"""`evaluate`, as one calls it from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mizzen.analysis.evaluation.evaluation import SILENT, Judgement, Listener, judge
from mizzen.analysis.evaluation.judging import Join
from mizzen.analysis.evaluation.metrics import Function, Task
from mizzen.analysis.evaluation.reference import open_reference
from mizzen.analysis.evaluation.samples import Samples, Stored, Yielded
from mizzen.data.columns import array_column, data_set
from mizzen.data.labels import Labels, labels_of
from mizzen.data.opening import Opened, open_data
from mizzen.diagnostics import fail
from mizzen.report.evaluation import Evaluation

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.analysis.evaluation.spreading import Engine
    from mizzen.artifact.artifact import Artifact
    from mizzen.data.forms import Forms

    Array = npt.NDArray[Any]
    Data = str | Path | Array | Mapping[str, Array] | Iterable[Any]

LOCAL = "local"
"""In place of an address: a cluster of this machine."""


def evaluate(
    artifact: Artifact,
    data: Data,
    labels: Array | Sequence[Any] | str | Path | None = None,
    *,
    metrics: Sequence[str | Function] = (),
    task: str | None = None,
    output: str | None = None,
    join: str | None = None,
    streaming: bool = False,
    classes: Sequence[str] = (),
    forms: Forms | None = None,
    reference: str | Path | None = None,
    jobs: int = 1,
    ray: str | None = None,
    listener: Listener = SILENT,
) -> Evaluation:
    """Infer a data set on the simulated NPU, and judge the outputs.

    data       path of a .npz or .npy file or of a folder; an array `[N, ...]`; arrays by the
               inputs' names; or an iterable of `(x, label)`, of samples or of batches, such as a
               DataLoader
    labels     for each sample: an array, a path, or the name of an array of the .npz
    metrics    names, ``module:function``, or functions of scores `[N, ...]` and labels; by default
               those that suit the labels
    task       ``classes``, ``detection``, ``anomaly`` or ``values``; by default what suits labels
    output     name of the output that is judged; the first by default
    join       of a sample's several inferences: ``each``, ``mean``, ``highest`` or ``last``
    streaming  a sample's inferences follow one another, and state goes on between them
    classes    names of the classes, in the order of the outputs
    forms      how images, recordings and raw files of a folder are read
    reference  path of a TFLite network, an artifact or a PyTorch program (``.pt2``) that is
               given the same data; labels need not be there then
    jobs       processes that infer; with `ray`, its actors
    ray        address of a Ray cluster, or ``local`` for one that is started here

    The answer does not depend on `jobs`. Real numbers are quantised with the input's scale and zero
    point, outputs dequantised. Raises E240 to E254 for data, labels and metrics that do not fit,
    and what `Artifact.run` raises.
    """
    judgement = Judgement(
        output_of(artifact, output),
        None if task is None else Task(task),
        tuple(metrics),
        None if join is None else Join(join),
        streaming,
    )
    samples = _samples(artifact, data, labels, tuple(classes), streaming, forms)
    return judge(
        artifact,
        samples,
        judgement,
        reference=None if reference is None else (str(reference), open_reference(reference)),
        engine=engine_of(jobs, ray),
        listener=listener,
    )


def engine_of(jobs: int | None, ray: str | None) -> Engine | None:
    """Return who infers: None for this process."""
    if ray is None and (jobs is None or jobs < 2):
        return None
    from mizzen.analysis.evaluation.spreading import OnProcesses, OnRay

    if ray is None:
        return OnProcesses(jobs or 1)
    return OnRay(None if ray == LOCAL else ray, jobs)


def output_of(artifact: Artifact, name: str | None) -> int:
    """Return the place of an output. E254 if there is none of that name."""
    if not artifact.outputs:
        raise fail(
            "E254",
            f"{artifact.name} must have an output to judge, and has none",
            help="give the network an output where it is converted",
        )
    if name is None:
        return 0
    names = [info.name for info in artifact.outputs]
    if name not in names:
        raise fail(
            "E254", f"the output that is judged must be one of {', '.join(names)}, not {name!r}"
        )
    return names.index(name)


def _samples(
    artifact: Artifact,
    data: Data,
    labels: Array | Sequence[Any] | str | Path | None,
    classes: tuple[str, ...],
    streaming: bool,
    forms: Forms | None,
) -> Samples:
    inputs = artifact.inputs
    if isinstance(data, (str, Path)):
        said = labels if isinstance(labels, (str, Path)) or labels is None else None
        opened = open_data(
            [str(data)], inputs, said, classes=classes, sequences=streaming, forms=forms
        )
        if said is None and labels is not None:
            opened = Opened(opened.name, opened.data, _labels(labels, classes))
        return Stored(opened.name, opened.data, opened.labels)
    if isinstance(data, np.ndarray):
        array = cast("Array", data)
        return _stored(artifact, {inputs[0].name: array}, labels, classes, streaming)
    if isinstance(data, Mapping):
        arrays = cast("Mapping[str, Array]", data)
        return _stored(artifact, arrays, labels, classes, streaming)
    return Yielded(data, inputs, streaming)


def _stored(
    artifact: Artifact, arrays: Mapping[str, Array], labels: Any, classes: tuple[str, ...],
    streaming: bool,
) -> Stored:  # fmt: skip
    missing = [info.name for info in artifact.inputs if info.name not in arrays]
    if missing:
        raise fail(
            "E240",
            f"the data must have an array for each input, and has none for {', '.join(missing)}",
            help=f"its arrays are {', '.join(arrays) or 'none'}",
        )
    columns = [
        array_column(np.asarray(arrays[info.name]), info, "data", sequences=streaming)
        for info in artifact.inputs
    ]
    known = None if labels is None else _labels(labels, classes)
    return Stored("data", data_set(columns), known)


def _labels(labels: Any, classes: tuple[str, ...]) -> Labels:
    array = np.asarray(labels)
    if array.dtype.kind in "US":
        return labels_of([str(word) for word in array.tolist()], classes, "labels")
    return Labels(array, classes)
