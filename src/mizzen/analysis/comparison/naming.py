"""Which layers the operations of an artifact's streams are of, where it does not say so itself.

An artifact without its report, or another compiler's, is lined up with one that was compiled now:
where a stream has as many operations of each kind, in as many bytes, they are of the same layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Origins
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError


def with_origins(artifact: Artifact, compiled: Artifact) -> Artifact:
    """Return an artifact whose operations are those of layers as far as that can be told."""
    if artifact.report is not None and any(artifact.report.origins):
        return artifact
    assert compiled.report is not None, "a compilation always reports"
    known = dict(_alike(artifact, compiled))
    steps = sum(isinstance(step, NpuStep) for step in artifact.steps)
    origins = tuple(known.get(place, {}) for place in range(steps))
    report = replace(compiled.report, origins=origins)
    return artifact_of(artifact.data, artifact.name, report, origins)


def _alike(artifact: Artifact, compiled: Artifact) -> Iterator[tuple[int, Origins]]:
    assert compiled.report is not None
    ours, theirs = (
        [step for step in each.steps if isinstance(step, NpuStep)] for each in (artifact, compiled)
    )
    if len(ours) != len(theirs):
        return
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if _form(one) == _form(other) and place < len(compiled.report.origins):
            yield place, compiled.report.origins[place]


def _form(step: NpuStep) -> object:
    try:
        view = step.view
    except MizzenError:  # a family without a listing
        return step
    return view.stream_bytes, dict(view.operations)
