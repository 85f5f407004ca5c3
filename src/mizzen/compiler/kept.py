"""State that stays integers from one inference to the next.

A program's buffers are real numbers, so a cache is quantised where an NPU's part takes it, and made
real again where it leaves. Both undo each other: what is carried on is the integers between them, a
quarter of the memory, and no work for the host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mizzen.artifact.execution import Contents
from mizzen.artifact.host_steps import DequantizeStep, QuantizeStep
from mizzen.artifact.interface import Array, Carried
from mizzen.artifact.steps import Step

MOST_BYTES = 2
"""Of an integer: float32 does not hold all wider ones, and trying each takes too long."""


def with_state_in_integers(contents: Contents) -> Contents:
    """Return the same steps without those that make state real and integers again."""
    carried: list[Carried] = []
    needless: list[Step] = []
    for state in contents.carried:
        edges = _edges(contents, state)
        if edges is None:
            carried.append(state)
            continue
        quantize, dequantize = edges
        needless += edges
        initial = _quantized(quantize, state.initial)
        carried.append(Carried(quantize.output, dequantize.input, initial))
    steps = tuple(step for step in contents.steps if not _is_among(step, needless))
    return replace(contents, steps=steps, carried=tuple(carried))


def _is_among(step: Step, steps: Iterable[Step]) -> bool:
    return any(step is each for each in steps)


def _edges(contents: Contents, state: Carried) -> tuple[QuantizeStep, DequantizeStep] | None:
    """Return what quantises a state and what makes it real, where nothing else has to do with it
    and the second undoes the first.
    """
    takers = [step for step in contents.steps if state.read in step.inputs]
    givers = [step for step in contents.steps if state.write in step.outputs]
    users = [step for step in contents.steps if state.write in step.inputs]
    outside = {
        *contents.outputs,
        *(other.write for other in contents.carried if other is not state),
    }
    match takers, givers:
        case [QuantizeStep() as quantize], [DequantizeStep() as dequantize] if (
            not users and outside.isdisjoint((state.read, state.write))
        ):
            return (quantize, dequantize) if _undoes(quantize, dequantize) else None
        case _:
            return None


def _undoes(quantize: QuantizeStep, dequantize: DequantizeStep) -> bool:
    """Whether every integer of the type comes back as itself; not tried beyond 16 bits."""
    if quantize.dtype.itemsize > MOST_BYTES:
        return False
    limits = np.iinfo(quantize.dtype)
    integers = np.arange(limits.min, limits.max + 1).astype(quantize.dtype)
    values = {dequantize.input: integers}
    dequantize.run(values, 1)
    return np.array_equal(_quantized(quantize, values[dequantize.output]), integers)


def _quantized(quantize: QuantizeStep, real: Array) -> Array:
    values = {quantize.input: real}
    quantize.run(values, 1)
    return values[quantize.output]
