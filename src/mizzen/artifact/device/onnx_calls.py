"""The host's part of an ONNX network as calls that a device's runtimes have kernels for.

ONNX divides by the scale where the kernels of runtimes multiply by its inverse, so integers are
made of real numbers with a division, a rounding and a sum of their own: the same numbers as on the
host, on every runtime.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from mizzen.artifact.device.tensors import Tensors
from mizzen.artifact.onnx_steps import DivideStep, OnnxStep, OrtStep, SignStep
from mizzen.diagnostics import MizzenError, fail
from mizzen.package.device import Argument, DeviceTensor, KernelCall, TensorArgument

FLOAT = np.dtype(np.float32)


def onnx_calls(step: OnnxStep, tensors: Tensors) -> Iterator[KernelCall]:
    """Return the calls of a step that no kernel of ONNX Runtime's is needed for."""
    match step:
        case DivideStep():
            yield from _quantize(step, tensors)
        case SignStep():
            yield from _sign(step, tensors)
        case OrtStep():
            raise AssertionError("what only ONNX Runtime computes was refused")


def _quantize(step: DivideStep, tensors: Tensors) -> Iterator[KernelCall]:
    """Return the calls that make integers of real numbers."""
    chain = _Chain(tensors, tensors.number(step.input), tensors.number(step.output))
    yield chain.real("aten::div.Scalar", ("other", step.scale))
    yield chain.real("aten::round")
    if step.zero_point:
        yield chain.real("aten::add.Scalar", ("other", float(step.zero_point)), ("alpha", 1))
    yield chain.real("aten::clamp", ("min", float(step.low)), ("max", float(step.high)))
    yield chain.last(step.dtype)


def _sign(step: SignStep, tensors: Tensors) -> Iterator[KernelCall]:
    """Return the calls that move integers by half of their range, by way of wider ones."""
    source, result = tensors.number(step.input), tensors.number(step.output)
    dtype = tensors.row(source).dtype
    wide = np.dtype(np.int16 if dtype.itemsize == 1 else np.int32)
    half = 1 << (8 * dtype.itemsize - 1)
    chain = _Chain(tensors, source, result)
    yield chain.to(wide)
    moved = half if dtype.kind == "i" else -half
    yield chain.next("aten::add.Scalar", wide, ("other", moved), ("alpha", 1))
    yield chain.last(tensors.row(result).dtype)


class _Chain:
    """Calls of which each takes what the one before gives."""

    def __init__(self, tensors: Tensors, source: int, result: int) -> None:
        self._tensors = tensors
        self._at = source
        self._result = result

    def real(self, operator: str, *arguments: tuple[str, Argument]) -> KernelCall:
        """Return a call that gives real numbers."""
        return self.next(operator, FLOAT, *arguments)

    def to(self, dtype: np.dtype[np.generic]) -> KernelCall:
        """Return a call that gives the same numbers in another type."""
        return self.next("aten::_to_copy", dtype, ("dtype", dtype.name))

    def next(
        self, operator: str, dtype: np.dtype[np.generic], *arguments: tuple[str, Argument]
    ) -> KernelCall:
        """Return a call of which the next one takes the result."""
        taken = self._tensors.row(self._at)
        name = f"{self._tensors.row(self._result).name}.{operator.partition('::')[2]}"
        target = self._tensors.add(DeviceTensor(name, taken.shape, dtype))
        return self._call(operator, target, arguments)

    def last(self, dtype: np.dtype[np.generic]) -> KernelCall:
        """Return the call that gives the result, in its type."""
        return self._call("aten::_to_copy", self._result, (("dtype", dtype.name),))

    def _call(
        self, operator: str, target: int, arguments: tuple[tuple[str, Argument], ...]
    ) -> KernelCall:
        call = KernelCall(operator, (("self", TensorArgument(self._at)), *arguments), (target,))
        self._at = target
        return call


def without_kernels(steps: Iterable[object]) -> tuple[str, ...]:
    """Return the types of operators that only ONNX Runtime computes, each once."""
    kinds = (kind for step in steps if isinstance(step, OrtStep) for kind in step.kinds)
    return tuple(dict.fromkeys(kinds))


def no_kernels(name: str, kinds: tuple[str, ...]) -> MizzenError:
    """Return the error of an artifact that no device can execute: E196."""
    return fail(
        "E196",
        f"every operator of {name} must be on the NPU to run on a device, and ONNX Runtime "
        f"computes {', '.join(kinds)}",
        help="`mizzen check MODEL` says why they are not on the NPU; change them, or cut the "
        "network there and compute the rest in the firmware",
    )
