"""Where executed code and the reference differ, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Reason

Array = npt.NDArray[Any]

RULE = "proof"
"""The rule that an operator breaks whose code gives other numbers than the reference."""

PROOF = "the proof of this compilation"
"""The source of a reason that the proof found."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Elements of a tensor that differ.

    differing, elements  how many do, of how many, over all inputs
    steps                the largest difference
    where                the first: index in the tensor of one inference
    npu, reference       what is there
    """

    differing: int
    elements: int
    steps: int
    where: tuple[int, ...]
    npu: int
    reference: int

    @property
    def share(self) -> float:
        """The part that differs, 0 to 1."""
        return self.differing / max(1, self.elements)

    def __str__(self) -> str:
        place = ", ".join(map(str, self.where))
        return (
            f"{self.differing} of {self.elements} values differ, the first at [{place}]: "
            f"{self.npu} on the NPU, {self.reference} in the reference"
        )

    def reason(self, kind: str, source: str) -> Reason:
        """Return the reason for which an operator of this type is on the CPU."""
        return Reason(
            RULE,
            f"the compiler's code for this {kind} gives wrong numbers: {self}",
            help="nothing needs doing if the CPU has time for it; "
            "`--allow-inexact` leaves it on the NPU",
            source=source,
        )


def _differs(npu: Array, reference: Array) -> npt.NDArray[np.bool_]:
    """Return which elements differ; the same byte is another number in another type."""
    assert npu.dtype == reference.dtype, f"the NPU gives {npu.dtype}, not {reference.dtype}"
    return npu != reference


FEW = 2
"""Values that may differ however few there are: of one output in ten thousand, one may be met."""


def is_within(npu: Array, reference: Array, steps: int, part: float) -> bool:
    """Whether no element differs by more than `steps`, and at most a part of them at all.

    An error moves most values; a rounding that others do otherwise moves few, however often an
    input makes the machine meet these: so the part is one of all elements, or of the different
    values that the reference has.
    """
    differs = _differs(npu, reference)
    wide = npu[differs].astype(np.int64) - reference[differs].astype(np.int64)
    if not wide.size:
        return True
    if int(np.abs(wide).max()) > steps:
        return False
    if wide.size <= part * differs.size:
        return True
    moved, values = np.unique(reference[differs]).size, np.unique(reference).size
    return moved <= max(min(FEW, values - 1), part * values)


def difference(npu: Array, reference: Array) -> Difference | None:
    """Compare `[N, *shape]` arrays of one shape and type; None if they are equal."""
    differs = _differs(npu, reference)
    if not differs.any():
        return None
    first = tuple(map(int, np.argwhere(differs)[0]))
    wide = npu.astype(np.int64) - reference.astype(np.int64)
    return Difference(
        differing=int(differs.sum()),
        elements=int(differs.size),
        steps=int(np.abs(wide).max()),
        where=first[1:],
        npu=int(npu[first]),
        reference=int(reference[first]),
    )
