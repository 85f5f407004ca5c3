"""Hold an artifact's constants against those of the model, as it is compiled now.

A weight that is wrong by one may hide in the rounding of every input that is tried; here nothing
hides. What is compiled now is proved. Operations that are others, because a compiler or its options
are, have their constants otherwise with good reason: they are counted, and say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Origins
from mizzen.artifact.program import SETTINGS
from mizzen.artifact.steps import NpuStep
from mizzen.compiler.proof.difference import difference
from mizzen.compiler.proof.written import SAYS_SOMETHING
from mizzen.diagnostics import MizzenError, Origin
from mizzen.report.comparison import ConstantDifference, ConstantsComparison

Array = npt.NDArray[Any]
Constants = Mapping[int, Mapping[str, Array]]
"""By the byte offset of an operation's command, and by name."""

NOTHING: Origins = {}

SETTINGS_FOR_ONE = 100
"""Numbers of commands for one that is a mistake: more are another compiler's way to compute."""


def constants_beside(artifact: Artifact, compiled: Artifact) -> ConstantsComparison:
    """Compare what two artifacts of one model hold; `compiled` is the one that is right."""
    assert compiled.report is not None, "a compilation always reports"
    ours, theirs = (
        [step for step in row.steps if isinstance(step, NpuStep)] for row in (artifact, compiled)
    )
    held = [_constants(step) for step in ours]
    if len(ours) != len(theirs):
        return ConstantsComparison(0, sum(map(len, held)), ())
    compared = others = 0
    wrong: list[ConstantDifference] = []
    for place, (one, step) in enumerate(zip(held, theirs, strict=True)):
        other = _constants(step)
        if not _is_alike(one, other):
            others += len(one)
            continue
        compared += len(one)
        origins = compiled.report.origins
        names = origins[place] if place < len(origins) else NOTHING
        wrong += _wrong(one, other, names)
    return ConstantsComparison(compared, others, tuple(wrong))


def _constants(step: NpuStep) -> Constants:
    try:
        return step.family.constants(step.simulator)
    except MizzenError:
        return {}  # executing it says why


def _is_alike(ours: Constants, theirs: Constants) -> bool:
    """Whether operations have constants of the same names and shapes, in their order."""
    one, other = (
        [[(name, array.shape) for name, array in rows[at].items()] for at in sorted(rows)]
        for rows in (ours, theirs)
    )
    return one == other


def _wrong(ours: Constants, theirs: Constants, origins: Origins) -> Iterator[ConstantDifference]:
    settings = sum(len(row[SETTINGS]) for row in theirs.values() if SETTINGS in row)
    found = list(_differences(ours, theirs, origins))
    odd = sum(row.differing for row in found if row.what == SETTINGS)
    few = odd <= max(1, settings // SETTINGS_FOR_ONE)
    yield from (row for row in found if row.what != SETTINGS or few)


def _differences(
    ours: Constants, theirs: Constants, origins: Origins
) -> Iterator[ConstantDifference]:
    for at, there in zip(sorted(ours), sorted(theirs), strict=True):
        for name, array in ours[at].items():
            found = difference(array[np.newaxis], theirs[there][name][np.newaxis])
            if found is None or found.share > SAYS_SOMETHING:
                continue
            origin = origins.get(there, Origin())
            yield ConstantDifference(origin, name, found.differing, found.elements, found.where,
                                     found.npu, found.reference)  # fmt: skip
