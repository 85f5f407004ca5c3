"""Networks of TFLite through our rules, and what other hands say that they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.conformance.networks import Case
from mizzen.conformance.oracles import expected
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model, read
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.targets.ethos_u.generator.lower import Lowered, lower
from mizzen.targets.ethos_u.generator.operations import Sequence as Operations
from mizzen.targets.ethos_u.machine.commands_values import Arch

from .interpreter import interpret

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Rules:
    """A network and what our rules make of it."""

    model: Model
    lowered: Lowered

    @property
    def operations(self) -> Operations:
        """The sequence; there must be one."""
        reasons = [f"{row.operation.kind}: {row.reason}" for row in self.lowered.refusals]
        assert self.lowered.sequence is not None, reasons
        return self.lowered.sequence

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return what the sequence computes, in the network's shapes."""
        found = interpret(self.operations, inputs)
        main = self.model.main
        shapes = [main.tensors[index].shape for index in main.outputs]
        return [row.reshape(shape) for row, shape in zip(found, shapes, strict=True)]


def rules_for(data: bytes, name: str, arch: Arch = Arch.U55) -> Rules:
    """Read a network and lower it."""
    model = read(data, name)
    lowered = lower_with_state(model)
    graph = lowered.graph
    unsigned = [row for row in (*graph.inputs, *graph.outputs) if lowered.is_unsigned(row)]
    return Rules(model, lower(graph, unsigned, arch))


def stimuli(model: Model, seed: int, limit: int | None = None) -> list[Array]:
    """Return inputs that use the whole range of their types, or up to a limit."""
    generator = np.random.default_rng(seed)
    found: list[Array] = []
    for index in model.main.inputs:
        tensor = model.main.tensors[index]
        assert tensor.dtype is not None
        if tensor.dtype == np.bool_:
            found.append(generator.integers(0, 2, tensor.shape).astype(np.bool_))
            continue
        info = np.iinfo(tensor.dtype.str)
        low, high = int(info.min), int(info.max)
        if limit is not None and info.bits > 8:
            low, high = -limit, limit
        numbers = generator.integers(low, high, tensor.shape, np.int64, endpoint=True)
        found.append(numbers.astype(tensor.dtype))
    return found


def differing(case: Case, seeds: Sequence[int] = (0, 1), arch: Arch = Arch.U55) -> list[int] | None:
    """Return how many integers of each output differ from the kernels'; None if there are none."""
    data = case.build()
    rules = rules_for(data, case.name, arch)
    batches = [stimuli(rules.model, seed, case.limit) for seed in seeds]
    try:
        wanted, _ = expected(case, data, [np.stack(rows) for rows in zip(*batches, strict=True)])
    except MizzenError as error:
        if error.diagnostic.code != "E722":
            raise
        return None
    counts = [0] * len(wanted)
    for place, inputs in enumerate(batches):
        for index, (one, other) in enumerate(zip(rules.run(inputs), wanted, strict=True)):
            counts[index] += int((one != other[place]).sum())
    return counts
