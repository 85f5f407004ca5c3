"""Steps of a compiled network that the host computes for an ONNX network's part of it.

Numbers are made integers as ONNX says it, which divides by the scale; PyTorch multiplies by its
inverse, and the two differ at some numbers. The NPU's integers are signed: bytes that ONNX calls
unsigned are moved by half of their range. What has no form on an NPU is a small ONNX network, which
ONNX Runtime computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mizzen.artifact.host_steps import OfOneTensor, Values
from mizzen.diagnostics import fail, install_extra

Array = npt.NDArray[Any]

LEAST_SEVERE = 4
"""ONNX Runtime's messages that are written: fatal ones. What it refuses is an error of ours."""

EXACT = "session.x64quantprecision"
"""ONNX Runtime's option for kernels that do not saturate sums of products in 16 bits."""

TYPES = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(float16)": np.dtype(np.float16),
    "tensor(bool)": np.dtype(np.bool_),
    **{
        f"tensor({np.dtype(kind).name})": np.dtype(kind)
        for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64,
                     np.uint64)
    },
}  # fmt: skip
"""ONNX Runtime's words for types of tensors."""

OTHER_SIGN = {
    np.dtype(one): np.dtype(other)
    for one, other in (
        (np.int8, np.uint8),
        (np.uint8, np.int8),
        (np.int16, np.uint16),
        (np.uint16, np.int16),
    )
}

INDICES = frozenset({np.dtype(np.int32), np.dtype(np.int64)})


@dataclass(frozen=True, slots=True)
class DivideStep(OfOneTensor):
    """Real numbers to integers: divided by the scale in float32, half to even, clamped.

    Ref: ONNX, QuantizeLinear.
    """

    kinds: ClassVar = ("QuantizeLinear",)

    scale: float
    zero_point: int
    low: int
    high: int
    dtype: np.dtype[Any]

    def run(self, values: Values, batch: int) -> None:
        """Compute the output for a batch."""
        with np.errstate(over="ignore"):
            scaled = values[self.input].astype(np.float32) / np.float32(self.scale)
        shifted = np.nan_to_num(np.rint(scaled), nan=0.0) + np.float32(self.zero_point)
        values[self.output] = np.clip(shifted, self.low, self.high).astype(self.dtype)


@dataclass(frozen=True, slots=True)
class SignStep(OfOneTensor):
    """Integers of 8 or 16 bits between signed and unsigned, by half of their range."""

    kinds: ClassVar = ("sign",)

    def run(self, values: Values, batch: int) -> None:
        """Compute the output for a batch."""
        values[self.output] = other_sign(values[self.input])


def other_sign(array: Array) -> Array:
    """Return unsigned integers for signed ones, less half of their range, or the way back."""
    dtype = OTHER_SIGN[array.dtype]
    unsigned = dtype if dtype.kind == "u" else array.dtype
    half = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    return (array.view(unsigned) ^ half).view(dtype)


class OrtStep:
    """Operators that ONNX Runtime computes: a network, the tensors that it takes and gives.

    dtypes  types of the tensors that it gives, where the artifact has the network's integers in
            another type: signed for unsigned, or 32 bits for 64
    """

    on_npu = False

    def __init__(
        self,
        model: bytes,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        dtypes: tuple[np.dtype[Any], ...],
        operators: tuple[str, ...],
    ) -> None:
        self.model = model
        self.inputs = inputs
        self.outputs = outputs
        self.dtypes = dtypes
        self.kinds = operators

    @cached_property
    def session(self) -> Any:
        """What computes it, on one thread. E195 without ONNX Runtime, E725 if it refuses."""
        return session_of(self.model, ", ".join(self.kinds))

    def run(self, values: Values, batch: int) -> None:
        """Compute the outputs, one inference after the other."""
        session = self.session
        taken = [(place.name, TYPES[place.type]) for place in session.get_inputs()]
        collected: list[list[Array]] = [[] for _ in self.outputs]
        for index in range(batch):
            given = {
                name: as_type(values[tensor][index], dtype)
                for tensor, (name, dtype) in zip(self.inputs, taken, strict=True)
            }
            for place, result in zip(collected, self._results(given), strict=True):
                place.append(result)
        for tensor, dtype, arrays in zip(self.outputs, self.dtypes, collected, strict=True):
            values[tensor] = np.stack([as_type(array, dtype) for array in arrays])

    def _results(self, given: dict[str, Array]) -> list[Array]:
        return results_of(self.session, given, ", ".join(self.kinds))


def results_of(session: Any, given: dict[str, Array], what: str) -> list[Array]:
    """Infer once. E725 if ONNX Runtime refuses."""
    try:
        return [np.asarray(result) for result in session.run(None, given)]
    except Exception as error:
        raise _refused(what, error) from error


def session_of(model: bytes, what: str) -> Any:
    """Return what computes a network, on one thread. E195 without ONNX Runtime, E725 if it refuses.

    what  is computed, in words
    """
    runtime = require_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = LEAST_SEVERE
    options.add_session_config_entry(EXACT, "1")
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no class of their own above them
        raise _refused(what, error) from error


def require_runtime() -> Any:
    """Return ONNX Runtime. E195 where it is not installed."""
    try:
        import onnxruntime
    except ImportError as error:
        raise fail(
            "E195",
            f"the package onnxruntime must be installed to compute operators of ONNX: {error}",
            help=install_extra("onnx"),
        ) from None
    return onnxruntime


def _refused(what: str, error: Exception) -> Exception:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return fail(
        "E725",
        f"ONNX Runtime must compute {what}, but says: {reason}",
        help="the values do not suit the operators, or the artifact is damaged",
    )


def is_convertible(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether `as_type` brings arrays of one type into another."""
    return one == other or OTHER_SIGN.get(one) == other or {one, other} <= INDICES


def as_type(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return an array in the type in which the other side has the same numbers."""
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    if OTHER_SIGN.get(array.dtype) == dtype:
        return other_sign(np.ascontiguousarray(array))
    return array.astype(dtype)


OnnxStep = DivideStep | SignStep | OrtStep
