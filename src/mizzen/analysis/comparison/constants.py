"""Hold an artifact's constants against those of the model, as it is compiled now.

A weight that is wrong by one may hide in the rounding of every input that is tried; here nothing
hides. What is compiled now is proved. Operations that are others, because a compiler or its options
are, have their constants otherwise with good reason: they are counted, and say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Origins
from mizzen.artifact.program import OPERANDS, SETTINGS
from mizzen.artifact.steps import NpuStep
from mizzen.compiler.proof.difference import difference
from mizzen.compiler.proof.written import SAYS_SOMETHING
from mizzen.diagnostics import MizzenError, Origin
from mizzen.report.comparison import ConstantDifference, ConstantsComparison

Array = npt.NDArray[Any]
Constants = Mapping[int, Mapping[str, Array]]
"""By the byte offset of an operation's command, and by name."""

NOTHING: Origins = {}

OPERATIONS_FOR_ONE = 10
"""Operations for one that has other constants by mistake: more are another compiler's way."""

SETTINGS_FOR_ONE = 100
"""Numbers of commands for one that is a mistake: more are another compiler's way to compute."""

OPERANDS_OF_ONE = 8
"""Operands that one wrong address spoils, at most: more are another order of operations."""


def constants_beside(artifact: Artifact, compiled: Artifact) -> ConstantsComparison:
    """Compare what two artifacts of one model hold; `compiled` is the one that is right."""
    assert compiled.report is not None, "a compilation always reports"
    ours, theirs = (
        [_constants(step) for step in each.steps if isinstance(step, NpuStep)]
        for each in (artifact, compiled)
    )
    if len(ours) != len(theirs):
        return ConstantsComparison(0, sum(map(len, ours)), ())
    compared = others = 0
    wrong: list[ConstantDifference] = []
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        origins = compiled.report.origins
        pairs = list(_pairs(one, other, origins[place] if place < len(origins) else NOTHING))
        alike = [pair for pair in pairs if pair.is_alike]
        odd = [pair for pair in pairs if not pair.is_alike]
        if len(odd) * OPERATIONS_FOR_ONE > len(pairs):
            others += len(odd)
            odd = []
        others += 0 if pairs else len(one)
        compared += len(alike)
        wrong += [pair.as_other() for pair in odd]
        wrong += _wrong(alike)
        if not wrong:
            wrong += _strange_operands(pairs)
    return ConstantsComparison(compared, others, tuple(wrong))


def _constants(step: NpuStep) -> Constants:
    try:
        return step.family.constants(step.simulator)
    except MizzenError:
        return {}  # executing it says why


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """An operation of each side in the same place, and the model's operator that it is of."""

    ours: Mapping[str, Array]
    theirs: Mapping[str, Array]
    origin: Origin

    @property
    def is_alike(self) -> bool:
        """Whether both have constants of the same names and shapes."""
        one, other = (
            [(name, array.shape) for name, array in constants.items()]
            for constants in (self.ours, self.theirs)
        )
        return one == other

    def as_other(self) -> ConstantDifference:
        """Return how two differ that are not alike: by how many numbers they have."""
        one, other = (
            sum(array.size for array in constants.values())
            for constants in (self.ours, self.theirs)
        )
        return ConstantDifference(self.origin, "numbers of constants", 1, 1, (0,), one, other)

    def differences(self) -> Iterator[ConstantDifference]:
        """Return how they differ, by name; what has little in common says nothing."""
        for name, array in self.ours.items():
            if name == OPERANDS:
                continue
            odd = difference(array[np.newaxis], self.theirs[name][np.newaxis])
            if odd is not None and odd.share <= SAYS_SOMETHING:
                yield ConstantDifference(
                    self.origin, name, odd.differing, odd.elements, odd.where, odd.npu,
                    odd.reference,
                )  # fmt: skip


def _pairs(ours: Constants, theirs: Constants, origins: Origins) -> Iterator[_Pair]:
    """Return operations side by side; none where there are more of one side."""
    if len(ours) == len(theirs):
        for at, there in zip(sorted(ours), sorted(theirs), strict=True):
            yield _Pair(ours[at], theirs[there], origins.get(there, Origin()))


def _wrong(pairs: Sequence[_Pair]) -> Iterator[ConstantDifference]:
    settings = sum(len(pair.theirs[SETTINGS]) for pair in pairs if SETTINGS in pair.theirs)
    differences = [difference for pair in pairs for difference in pair.differences()]
    odd = sum(each.differing for each in differences if each.what == SETTINGS)
    few = odd <= max(1, settings // SETTINGS_FOR_ONE)
    yield from (each for each in differences if each.what != SETTINGS or few)


def _strange_operands(pairs: Sequence[_Pair]) -> list[ConstantDifference]:
    """Return operands that others than the model's operations make, where all else is the same."""
    strange: list[ConstantDifference] = []
    for pair in pairs:
        if not np.array_equal(pair.ours.get(SETTINGS, ()), pair.theirs.get(SETTINGS, ())):
            return []
        ours, theirs = pair.ours.get(OPERANDS), pair.theirs.get(OPERANDS)
        if ours is None or theirs is None:
            continue
        (odd,) = np.nonzero(ours != theirs)
        if len(odd):
            where = (int(odd[0]),)
            strange.append(
                ConstantDifference(pair.origin, OPERANDS, len(odd), len(ours), where, 0, 0)
            )
    return strange if sum(each.differing for each in strange) <= OPERANDS_OF_ONE else []
