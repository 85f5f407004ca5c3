"""Hold an artifact's constants against those of the model, as it is compiled now.

A weight that is wrong by one may hide in the rounding of every input that is tried; here nothing
hides. What is compiled now is proved. Operations that are others, because a compiler or its options
are, have their constants otherwise with good reason: they are counted, and say nothing. Where many
are others, an operation in the same place may be another slice, or another layer's, of the same
shape: it has to hold much the same to be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
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

OF_ALL = (SETTINGS, OPERANDS)
"""What operations have that hold no constants, too."""

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
        alike, odd = _apart(pairs)
        if len(odd) * OPERATIONS_FOR_ONE > len(pairs):
            alike, odd = [pair for pair in alike if pair.is_same], []
        found = sum(pair.operations for pair in alike)
        others += (len(pairs) or len(one)) - found - len(odd)
        compared += found
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
    """An operation of each side in the same place, and the model's operator that it is of.

    operations  of each side, where they are several slices
    """

    ours: Mapping[str, Array]
    theirs: Mapping[str, Array]
    origin: Origin
    operations: int = 1

    @property
    def is_alike(self) -> bool:
        """Whether both have constants of the same names and shapes."""
        one, other = (
            [(name, array.shape) for name, array in constants.items()]
            for constants in (self.ours, self.theirs)
        )
        return one == other

    @property
    def is_same(self) -> bool:
        """Whether each of the constants of a pair that is alike has much in common.

        Numbers of a small range, such as shifts, have that by chance: so all of them count.
        """
        names = [name for name in self.ours if name not in OF_ALL]
        found = [difference(self.ours[name][np.newaxis], self.theirs[name][np.newaxis])
                 for name in names]  # fmt: skip
        return all(odd is None or odd.share <= SAYS_SOMETHING for odd in found)

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


def _apart(pairs: Sequence[_Pair]) -> tuple[list[_Pair], list[_Pair]]:
    """Return the pairs that are alike, and those that are not.

    Neighbours that are not, and hold the same together, are slices that were cut in other places:
    they are one pair.
    """
    alike: list[_Pair] = []
    odd: list[_Pair] = []
    for are_alike, run in groupby(pairs, key=lambda pair: pair.is_alike):
        neighbours = list(run)
        whole = None if are_alike else _joined(neighbours)
        if are_alike:
            alike += neighbours
        elif whole is not None and whole.is_alike and whole.is_same:
            alike.append(whole)
        else:
            odd += neighbours
    return alike, odd


def _joined(slices: Sequence[_Pair]) -> _Pair | None:
    """Return slices of a depth as one pair; None for operations that differ in more than depth."""
    sides = [[pair.ours for pair in slices], [pair.theirs for pair in slices]]
    forms = {_form(constants) for side in sides for constants in side}
    if len(slices) < 2 or len(forms) > 1:
        return None
    names = [name for name in slices[0].ours if name not in OF_ALL]
    ours, theirs = (
        {name: np.concatenate([constants[name] for constants in side]) for name in names}
        for side in sides
    )
    return _Pair(ours, theirs, slices[0].origin, len(slices))


def _form(constants: Mapping[str, Array]) -> tuple[object, ...]:
    return tuple(
        (name, array.shape if name in OF_ALL else array.shape[1:])
        for name, array in constants.items()
    )


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
