"""Run ONNX networks in ONNX Runtime, on one thread.

Where numbers must depend on no processor, nothing of the graph is put together: fused kernels of 8
bits add in 16 on some processors, and saturate there. Operators that are left to the CPU are run as
ONNX Runtime's users run them, fused: that is what a network's integers are held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail

Array = npt.NDArray[Any]

NAME = "ONNX Runtime"
INSTALL = "pip install 'mizzen[onnx]'"

DTYPES = {
    "float": "float32",
    "float16": "float16",
    "double": "float64",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "bool",
}
"""NumPy's names for the types of tensors, by ONNX Runtime's."""

QUIET = 4
"""Severity of messages: those that end the process only."""


EXACT = "session.x64quantprecision"
"""ONNX Runtime's option for kernels that do not saturate sums of products in 16 bits."""


class Fusion(Enum):
    """How much of a graph is put together; the value is ONNX Runtime's name."""

    NONE = "ORT_DISABLE_ALL"
    ALL = "ORT_ENABLE_ALL"


def require_runtime(name: str) -> Any:
    """Return ONNX Runtime, to run a network of a name. E195 where it is not installed."""
    if find_spec("onnxruntime") is None:
        raise fail("E195", f"onnxruntime must be installed to run {name}, and is not", help=INSTALL)
    return import_module("onnxruntime")


def session(data: bytes, name: str, fusion: Fusion) -> Any:
    """Return what runs a network. E195 without ONNX Runtime, its own exceptions if it refuses."""
    onnxruntime: Any = require_runtime(name)
    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, fusion.value)
    options.log_severity_level = QUIET
    options.add_session_config_entry(EXACT, "1")
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output; extents that are not known are 1."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class OnnxRuntime:
    """A network in ONNX Runtime; pickled, it is read again from its bytes.

    Raises E195 without the package, E190 for a network that it does not take.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name = data, name

    def __reduce__(self) -> tuple[type[OnnxRuntime], tuple[bytes, str]]:
        """Return a constructor and its arguments that make it again in another process."""
        return OnnxRuntime, (self.data, self.name)

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """What it takes."""
        return tuple(map(port_of, self._session.get_inputs()))

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """What it gives."""
        return tuple(map(port_of, self._session.get_outputs()))

    def infer(self, arrays: Sequence[Array]) -> list[Array]:
        """Infer once, of arrays in the order of the inputs."""
        given = {port.name: array for port, array in zip(self.inputs, arrays, strict=True)}
        try:
            return self._session.run(None, given)
        except Exception as error:
            raise self._refused("compute", error) from None

    @cached_property
    def _session(self) -> Any:
        try:
            return session(self.data, self.name, Fusion.NONE)
        except MizzenError:
            raise
        except Exception as error:
            raise self._refused("read", error) from None

    def _refused(self, what: str, error: Exception) -> MizzenError:
        said = " ".join(str(error).split()) or type(error).__name__
        return fail("E190", f"{NAME} must be able to {what} {self.name}, and says: {said}")


def port_of(argument: Any) -> Port:
    """Return an input or output of a session. E190 for one of no numbers."""
    kind = str(argument.type).removeprefix("tensor(").removesuffix(")")
    if kind not in DTYPES:
        raise fail("E190", f"{argument.name} must be a tensor of numbers, and is {argument.type}")
    shape = tuple(extent if isinstance(extent, int) else 1 for extent in argument.shape)
    return Port(argument.name, shape, np.dtype(DTYPES[kind]))
