"""What the shape operators compute. Ref: TOSA 1.0, 2.18."""

from __future__ import annotations

from mizzen.reference.data_node import const
from mizzen.reference.kernel import Kernel

KERNELS: dict[str, Kernel] = {"CONST_SHAPE": const}
