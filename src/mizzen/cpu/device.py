"""The kernels that stand for a device's: the best that this machine has.

TensorFlow Lite Micro's own where their package is installed; Mizzen's C kernels where something can
compile these; else the integers of the graph's reference, in NumPy. All give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import numpy.typing as npt

from mizzen.cpu import tflm
from mizzen.cpu.c_kernels import CKernels
from mizzen.cpu.c_library import c_library
from mizzen.cpu.graph import ReferenceKernels
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import Diagnostic, Origin, Severity, warn

Array = npt.NDArray[Any]

IN_NUMPY = Diagnostic(
    "W709",
    "operators on the CPU are computed in NumPy, which has not all of them: the package "
    "tflite-micro is not installed, and nothing here compiles Mizzen's C kernels",
    Severity.WARNING,
    help="install a C compiler, or pip install ziglang",
)


class Runs(Protocol):
    """What infers on arrays `[batch, *shape]`."""

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Return the outputs of an inference for each element."""
        ...


class DeviceKernels(Runs, Protocol):
    """A network on a device's kernels. E702 as `KernelRefusalError` for what they do not take."""

    def session(self, batch: int = 1) -> Runs:
        """Open a session, in which each of `batch` elements keeps its state."""
        ...


def device_kernels(network: bytes, operators: Sequence[Origin] = ()) -> DeviceKernels:
    """Return a network on the best kernels that are here; `operators` are its operators' places."""
    if tflm.is_installed():
        return CpuKernels(network, operators)
    library = c_library()
    if library is not None:
        return CKernels(library, network, operators)
    _say_once()
    return ReferenceKernels(network, operators)


def kernels_name() -> str:
    """Return whose kernels `device_kernels` gives, for people."""
    if tflm.is_installed():
        return "TensorFlow Lite Micro"
    return "the integer reference in NumPy" if c_library() is None else "Mizzen's C runtime"


@cache
def _say_once() -> None:
    """Say once what is missing, and what to do."""
    warn([IN_NUMPY], above=2)
