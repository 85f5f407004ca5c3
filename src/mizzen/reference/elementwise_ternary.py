"""What the elementwise ternary operator computes. Ref: TOSA 1.0, 2.7."""

from __future__ import annotations

import numpy as np

from mizzen.graph import Array, Operation
from mizzen.reference.kernel import Kernel


def select(operation: Operation, condition: Array, a: Array, b: Array) -> Array:
    """Return `a` where the condition holds, else `b`."""
    return np.where(condition, a, b)


KERNELS: dict[str, Kernel] = {"SELECT": select}
