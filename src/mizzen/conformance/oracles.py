"""What other hands compute: TensorFlow Lite Micro, and LiteRT where that has no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy.typing as npt

from mizzen.conformance.networks import Case
from mizzen.cpu.litert import NOT_LIKE_TFLM, LiteRtKernels
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError

Array = npt.NDArray[Any]


class Oracle(Enum):
    """Whose kernels a case is compared with; the value is what people call them."""

    TFLM = "TensorFlow Lite Micro"
    LITERT = "LiteRT"


NO_KERNEL = frozenset({"E702", "E703"})
"""Codes that say that TFLite Micro does not take a network: it refuses it, or ends the process."""


def expected(case: Case, network: bytes, inputs: Sequence[Array]) -> tuple[list[Array], Oracle]:
    """Infer a batch, arrays `[N, *shape]`, on TFLite Micro's kernels, else on LiteRT's.

    E701 or E721 if a package is not installed, E702 to E704 or E722 if none takes the network.
    """
    try:
        return CpuKernels(network).run(inputs), Oracle.TFLM
    except MizzenError as error:
        wrong = (case.operator, case.dtype.upper()) in NOT_LIKE_TFLM
        if error.diagnostic.code not in NO_KERNEL or wrong:
            raise
    return litert(network, inputs), Oracle.LITERT


def litert(network: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Infer a batch, arrays `[N, *shape]`, one by one on LiteRT's reference kernels."""
    return LiteRtKernels(network).run(inputs)
