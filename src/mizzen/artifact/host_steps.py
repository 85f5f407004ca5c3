"""Steps of a compiled network that the host computes for PyTorch's part of it.

Numbers are made integers, and real again, exactly as PyTorch does it, without PyTorch.
"""

from __future__ import annotations

import io
import os
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail

Array = npt.NDArray[Any]
Values = MutableMapping[int, Array]
"""Tensor index to a batch of values, `[N, *shape]`."""

PROCESS = os.getpid()
"""The one that imported this; another is a fork of it."""


@dataclass(frozen=True, slots=True)
class OfOneTensor:
    """A step that makes one tensor, `output`, of another, `input`."""

    on_npu: ClassVar = False

    input: int
    output: int

    @property
    def inputs(self) -> tuple[int, ...]:
        """The tensor that it takes."""
        return (self.input,)

    @property
    def outputs(self) -> tuple[int, ...]:
        """The tensor that it gives."""
        return (self.output,)


@dataclass(frozen=True, slots=True)
class QuantizeStep(OfOneTensor):
    """Real numbers to integers: times the inverse scale in float32, half to even, clamped.

    Ref: PyTorch, quantized_decomposed.quantize_per_tensor.
    """

    kinds: ClassVar = ("quantize",)

    scale: float
    zero_point: int
    low: int
    high: int
    dtype: np.dtype[Any]

    def run(self, values: Values, batch: int) -> None:
        """Compute the output for a batch."""
        scaled = values[self.input].astype(np.float32) * np.float32(1.0 / self.scale)
        shifted = np.nan_to_num(np.rint(scaled), nan=0.0) + np.float32(self.zero_point)
        values[self.output] = np.clip(shifted, self.low, self.high).astype(self.dtype)


@dataclass(frozen=True, slots=True)
class DequantizeStep(OfOneTensor):
    """Integers to the real numbers that they stand for, float32."""

    kinds: ClassVar = ("dequantize",)

    scale: float
    zero_point: int

    def run(self, values: Values, batch: int) -> None:
        """Compute the output for a batch."""
        centred = values[self.input].astype(np.float32) - np.float32(self.zero_point)
        values[self.output] = centred * np.float32(self.scale)


@dataclass(frozen=True, slots=True)
class NarrowStep(OfOneTensor):
    """Integers of 64 bits in 32, cut as PyTorch does it.

    size         what each must be below, where they are indices; None where they are numbers
    counts_back  whether -1 is the last of `size`
    """

    kinds: ClassVar = ("narrow",)

    size: int | None
    counts_back: bool

    def run(self, values: Values, batch: int) -> None:
        """Compute the output for a batch. E724 for an index that there is not."""
        given = values[self.input]
        if self.size is not None:
            lowest = -self.size if self.counts_back else 0
            wrong = given[(given < lowest) | (given >= self.size)]
            if wrong.size:
                raise fail(
                    "E724",
                    f"an index must be in {lowest} to {self.size - 1}, and {wrong[0]} came",
                    help="PyTorch refuses it too: look at what computes the index",
                )
            given = np.where(given < 0, given + self.size, given)
        values[self.output] = given.astype(np.int32)


@dataclass(frozen=True, slots=True)
class WidenStep(OfOneTensor):
    """Integers of 32 bits in 64."""

    kinds: ClassVar = ("widen",)

    def run(self, values: Values, batch: int) -> None:
        """Compute the output for a batch."""
        values[self.output] = values[self.input].astype(np.int64)


@dataclass(frozen=True, slots=True)
class OrderStep(OfOneTensor):
    """The dimensions of a tensor in another order: the input's, as the output has them."""

    kinds: ClassVar = ("permute",)

    order: tuple[int, ...]

    def run(self, values: Values, batch: int) -> None:
        """Compute the output for a batch."""
        axes = (0, *(1 + axis for axis in self.order))
        values[self.output] = values[self.input].transpose(axes)


class TorchStep:
    """Operators that PyTorch computes: a module, the tensors that it takes and gives."""

    on_npu = False

    def __init__(
        self,
        module: Any,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        operators: tuple[str, ...],
        examples: tuple[Any, ...] | None = None,
    ) -> None:
        self.module = module
        self.inputs = inputs
        self.outputs = outputs
        self.kinds = operators
        self.examples = examples

    def saved(self) -> bytes:
        """Return the module as an exported program's file."""
        import torch
        from torch._dynamo import convert_frame

        if self.examples is None:
            raise ValueError("the step was read from a file, which has it")
        buffer = io.BytesIO()
        with convert_frame.compile_lock:  # torch.export changes classes of all threads
            exported = torch.export.export(self.module, self.examples)
        torch.export.save(exported, buffer)
        return buffer.getvalue()

    def run(self, values: Values, batch: int) -> None:
        """Compute the outputs, one inference after the other."""
        import torch

        if os.getpid() != PROCESS:  # PyTorch's threads do not come along when a process is forked
            torch.set_num_threads(1)
        collected: list[list[Array]] = [[] for _ in self.outputs]
        with torch.no_grad():
            for index in range(batch):
                given = [
                    torch.as_tensor(_writable(values[tensor][index])) for tensor in self.inputs
                ]
                results = self._results(given)
                for place, result in zip(collected, results, strict=True):
                    place.append(result.numpy())
        for tensor, arrays in zip(self.outputs, collected, strict=True):
            values[tensor] = np.stack(arrays)

    def _results(self, given: list[Any]) -> Any:
        try:
            return self.module(*given)
        except (RuntimeError, ValueError, IndexError, AssertionError, MemoryError) as error:
            reason = str(error).strip() or type(error).__name__
            raise fail(
                "E718",
                f"PyTorch must compute {', '.join(self.kinds)}, but says: {reason.splitlines()[0]}",
                help="the values do not suit the operators, or the artifact is damaged",
            ) from error


def _writable(array: Array) -> Array:
    """Copy what PyTorch could not write to, such as an initial state; it warns of such arrays."""
    return np.require(array, requirements="W")


HostStep = QuantizeStep | DequantizeStep | NarrowStep | WidenStep | OrderStep | TorchStep
