"""How close two networks' outputs are, over the same samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.diagnostics import fail
from mizzen.report.evaluation import Agreement

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


def agreement(ours: Array, theirs: Array) -> Agreement:
    """Compare scores `[N, ...]`, real numbers of both. E254 unless both have one shape."""
    if ours.shape != theirs.shape:
        raise fail(
            "E254",
            f"the reference must give {list(ours.shape[1:])} for each sample, as the artifact "
            f"does, and gives {list(theirs.shape[1:])}",
            help="--output names the output that is judged",
        )
    differences = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    by_sample = differences.reshape(len(differences), -1)
    several = ours.ndim > 1 and ours.shape[-1] > 1
    same = float((ours.argmax(axis=-1) == theirs.argmax(axis=-1)).mean()) if several else None
    return Agreement(
        same_class=same,
        equal=int(np.sum((by_sample == 0).all(axis=1))),
        judged=len(by_sample),
        largest_difference=float(differences.max(initial=0.0)),
        mean_difference=math.fsum(differences.ravel().tolist()) / differences.size,
    )
