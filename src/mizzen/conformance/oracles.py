"""What other hands compute: TensorFlow Lite Micro, and LiteRT where that has no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.conformance.networks import Case
from mizzen.cpu.tflm import CpuKernels
from mizzen.cpu.tflm_process import receive, send
from mizzen.diagnostics import MizzenError, fail
from mizzen.workers import Worker, Workers

Array = npt.NDArray[Any]

SCRIPT = Path(__file__).with_name("litert_process.py")


class Oracle(Enum):
    """Whose kernels a case is compared with; the value is what people call them."""

    TFLM = "TensorFlow Lite Micro"
    LITERT = "LiteRT"


NOT_LITERT = frozenset(product(("FULLY_CONNECTED", "SUM"), ("int8", "int16"))) | {
    ("FULLY_CONNECTED", "uint8")
}
"""Operators and types for which LiteRT's reference kernels are no oracle.

It rounds FULLY_CONNECTED once where TFLite Micro, and the NPU, round twice; its kernel of int8 SUM
is broken.
"""

NO_KERNEL = frozenset({"E702", "E703"})
"""Codes that say that TFLite Micro does not take a network: it refuses it, or ends the process."""


def expected(case: Case, network: bytes, inputs: Sequence[Array]) -> tuple[list[Array], Oracle]:
    """Infer a batch, arrays `[N, *shape]`, on TFLite Micro's kernels, else on LiteRT's.

    E701 or E721 if a package is not installed, E702 to E704 or E722 if nobody takes the network.
    """
    try:
        return CpuKernels(network).run(inputs), Oracle.TFLM
    except MizzenError as error:
        wrong = (case.operator, case.dtype) in NOT_LITERT
        if error.diagnostic.code not in NO_KERNEL or wrong:
            raise
    return litert(network, inputs), Oracle.LITERT


def litert(network: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Infer a batch, arrays `[N, *shape]`, one by one on LiteRT's reference kernels.

    E721 without the package ai-edge-litert, E722 for a network that the kernels do not take.
    """
    _require_litert()
    if not _workers:
        _workers.append(Worker(SCRIPT))
    requests, answers = _workers[0].pipes
    try:
        send(requests, {}, [np.frombuffer(network, np.uint8), *inputs])
        answer, outputs = receive(answers)
    except (EOFError, BrokenPipeError):
        _workers.end()
        raise _refused("the process ended") from None
    except BaseException:  # an interrupt leaves half a message behind
        _workers.end()
        raise
    if answer:
        raise _refused(str(answer["text"]))
    return outputs


_workers = Workers[Worker]()
"""The one worker, which starts with the first network and again after one that ended it."""


def _refused(said: str) -> MizzenError:
    return fail(
        "E722", f"LiteRT's kernels must take the network, but say: {' '.join(said.split())}"
    )


def _require_litert() -> None:
    if find_spec("ai_edge_litert") is None:
        raise fail(
            "E721",
            "operators that TensorFlow Lite Micro has no kernel for are compared with LiteRT's, "
            "but the package ai-edge-litert is not installed",
            help="pip install '.[conformance]' in the folder of Mizzen's sources",
        )
