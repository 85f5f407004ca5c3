"""What other hands compute: TensorFlow Lite Micro, and LiteRT where that has no kernel."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.conformance.networks import Case
from mizzen.cpu.tflm import CpuKernels
from mizzen.cpu.tflm_process import receive, send
from mizzen.diagnostics import fail

Array = npt.NDArray[Any]

SCRIPT = Path(__file__).with_name("litert_process.py")


class Oracle(Enum):
    """Whose kernels a case is compared with; the value is what people call them."""

    TFLM = "TensorFlow Lite Micro"
    LITERT = "LiteRT"


LITERT_ONLY = frozenset({"EXP", "GELU", "LOG", "NEG", "RELU_0_TO_1", "RELU_N1_TO_1", "TILE"})
"""Operators that TFLite Micro has no kernel for, or not for quantised data.

LiteRT is no oracle for the others: it rounds FULLY_CONNECTED once where TFLite Micro, and the NPU,
round twice, and its reference kernel of int8 SUM is broken.
"""


def oracle_of(case: Case) -> Oracle:
    """Give the kernels that know a case's operator and type."""
    litert = case.operator in LITERT_ONLY or case.dtype == "uint8"
    return Oracle.LITERT if litert else Oracle.TFLM


def expected(case: Case, network: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Infer a batch, arrays `[N, *shape]`, on the case's oracle.

    E701 or E721 if its package is not installed, E702 to E704 or E722 if it does not take the
    network.
    """
    match oracle_of(case):
        case Oracle.TFLM:
            return CpuKernels(network).run(inputs)
        case Oracle.LITERT:
            return litert(network, inputs)


def litert(network: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Infer a batch, arrays `[N, *shape]`, one by one on LiteRT's reference kernels.

    E721 without the package ai-edge-litert, E722 for a network that the kernels do not take.
    """
    _require_litert()
    command = [sys.executable, "-P", str(SCRIPT)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            send(worker.stdin, {}, [np.frombuffer(network, np.uint8), *inputs])
            answer, outputs = receive(worker.stdout)
        except (EOFError, BrokenPipeError):
            answer, outputs = {"text": "the process ended"}, []
        worker.stdin.close()
    if answer:
        said = " ".join(str(answer["text"]).split())
        raise fail("E722", f"LiteRT's kernels must take the network, but say: {said}")
    return outputs


def _require_litert() -> None:
    if find_spec("ai_edge_litert") is None:
        raise fail(
            "E721",
            "operators that TensorFlow Lite Micro has no kernel for are compared with LiteRT's, "
            "but the package ai-edge-litert is not installed",
            help="pip install 'mizzen[conformance]'",
        )
