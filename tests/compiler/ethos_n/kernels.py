"""A network's operators one by one: what TFLite Micro's kernels make of them, what Ethos-N does.

Ethos-N requantises with a 16-bit multiplier and rounds half up, TFLite Micro with one of 32 bits:
an operator's result is at most one step away from the kernel's for the same inputs. Networks carry
such steps on, so each operator is held to the kernel's results at its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.cpu.tflm import CpuKernels
from mizzen.frontends.tflite import Model, Operator
from mizzen.package.tflite.extract import extract

KEEP = {"inline_non_compute_intensive_partitions": "false"}
"""So that an operator alone stays on the NPU whatever it is."""

STEP = 1


@cache
def kernels(network: bytes) -> CpuKernels:
    return CpuKernels(network, [])


def inputs_of(model: Model, batch: int, seed: int = 0) -> list[Any]:
    """Draw inputs of 8 bits, `[batch, *shape]` each."""
    generator = np.random.default_rng(seed)
    found: list[Any] = []
    for tensor in model.main.present(model.main.inputs):
        assert tensor.dtype in (np.int8, np.uint8)
        numbers = generator.integers(0, 256, (batch, *tensor.shape)).astype(np.uint8)
        found.append(numbers.view(np.dtype(tensor.dtype)))
    return found


def every_tensor(model: Model, batch: int) -> dict[int, Any]:
    """Compute every tensor of a network on TFLite Micro's kernels, operator by operator."""
    values = dict(zip(model.main.inputs, inputs_of(model, batch), strict=True))
    for operator in model.main.operators:
        part = extract(model.record, [operator.index])
        results = kernels(part.network).run([values[index] for index in part.inputs], batch)
        values.update(zip(part.outputs, results, strict=True))
    return values


def differences(
    model: Model, indices: list[int], accelerator: str, batch: int
) -> Iterator[tuple[Operator, int]]:
    """Return, for operators by index, the most that Ethos-N's result is away from the kernel's."""
    values = every_tensor(model, batch)
    for index in indices:
        part = extract(model.record, [index])
        artifact = mizzen.compile(part.network, accelerator, target_options=KEEP, prove="off")
        (step,) = artifact.steps
        assert isinstance(step, NpuStep)
        found = artifact.run(*(values[tensor] for tensor in part.inputs))
        arrays = found if isinstance(found, tuple) else (found,)
        for tensor, array in zip(part.outputs, arrays, strict=True):
            difference = np.abs(array.astype(int) - values[tensor].astype(int))
            yield model.main.operators[index], int(difference.max())
