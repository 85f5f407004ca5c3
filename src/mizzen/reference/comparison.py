"""What the comparison operators compute; nothing holds of a NaN. Ref: TOSA 1.0, 2.8."""

from __future__ import annotations

import numpy as np

from mizzen.reference.kernel import Kernel, plainly

KERNELS: dict[str, Kernel] = {
    "EQUAL": plainly(np.equal),
    "GREATER": plainly(np.greater),
    "GREATER_EQUAL": plainly(np.greater_equal),
}
