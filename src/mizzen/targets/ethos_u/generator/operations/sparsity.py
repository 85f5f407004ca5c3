"""Weights of which U85 multiplies half: of four input channels in a row at most two have one."""

from __future__ import annotations

import weakref

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations.operations import Convolution
from mizzen.targets.ethos_u.machine.commands import Arch

OF_CHANNELS, MOST_WEIGHTS = 4, 2
FEW = 64
"""Kernel elements of output channels that are looked at first: most weights are not so."""

_known: dict[int, bool] = {}
"""Whether weights are so, by the identity of their array, while it lives."""

AT_ONCE = 8
"""Weights of an output channel that are multiplied in one cycle. Ref: blocks of weights of U85."""


def is_sparse(operation: Convolution, arch: Arch) -> bool:
    """Tell whether a convolution is done with half of its weights: all that gain by it are.

    Single weights of few channels are multiplied at once in any way, and only their stream grows.

    The array of weights must not be written meanwhile.
    """
    if arch is not Arch.U85 or operation.depthwise or operation.written is not None:
        return False
    weights = operation.weights
    if weights[0].size <= AT_ONCE:
        return False
    if id(weights) not in _known:
        _known[id(weights)] = _has_pairs(weights)
        weakref.finalize(weights, _known.pop, id(weights), None)
    return _known[id(weights)]


def _has_pairs(weights: npt.NDArray[np.int16]) -> bool:
    flat = weights.reshape(-1, weights.shape[-1])
    return all(_are_sparse(part) for part in (flat[:FEW], flat))


def _are_sparse(weights: npt.NDArray[np.int16]) -> bool:
    lines, depth = weights.shape
    present = np.zeros((lines, depth + -depth % OF_CHANNELS), np.bool_)
    present[:, :depth] = weights != 0
    counts = present.reshape(-1, OF_CHANNELS).sum(axis=1, dtype=np.uint8)
    return bool(counts.max(initial=0) <= MOST_WEIGHTS)
