"""Execute the commands of one operator alone, on many more inputs than the network's proof has.

Deep in a network an operator meets few numbers: the rows of a SOFTMAX that ends one mostly have one
great value. What is done here is done for operators of one small tensor that are made of several
commands and that TensorFlow Lite Micro's kernels compute. They are first given what they met in
the network; where that does not come out, nothing is said, for it is not known what they take.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.compiler.proof.difference import Difference, difference
from mizzen.compiler.tflite_reference import Kernels
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Operator, Tensor
from mizzen.frontends.tflite.lower import Lowered
from mizzen.frontends.tflite.tflite_tensors import from_graph, to_graph
from mizzen.ops.control_flow import Custom
from mizzen.targets.ethos_u.judge.sim.machine import Simulator
from mizzen.targets.ethos_u.judge.sim.memory import MapView, Memory, Workspace, pieces
from mizzen.targets.ethos_u.judge.sim.operations import Dma, FeatureMap
from mizzen.targets.ethos_u.judge.sim.plan import Step

Array = npt.NDArray[Any]

LEAST_STEPS = 5
"""An operator of fewer commands hides little from the inputs of the network's proof."""

MOST_VALUES = 1 << 14
"""Of one tensor, in all inferences."""

MOST_INPUTS = 512
KINDS = ("SOFTMAX",)
"""Operators whose results depend on differences that no single value shows."""

BYTES = (TensorType.INT8, TensorType.UINT8)


@dataclass(frozen=True, slots=True)
class Alone:
    """An operator's commands, and the maps that are its input and its output in memory."""

    simulator: Simulator
    steps: Sequence[Step]
    source: FeatureMap
    result: FeatureMap

    def run(self, values: Array) -> Array:
        """Return results `[N, H, W, C]` of inputs `[N, *shape]`."""
        memory = Memory(len(values), self._sizes(), self.simulator.program.constants)
        workspace = Workspace()
        given = MapView(self.source, memory, workspace, "given")
        given.target(0, len(values))[...] = values.reshape(len(values), *self.source.shape)
        given.commit(0, len(values))
        for run in [step.kernel.bind(memory, workspace) for step in self.steps]:
            run()
        return MapView(self.result, memory, workspace, "found").load(0, len(values)).copy()

    def _sizes(self) -> dict[int, int]:
        """Return how much of each region is used: all of it for each input takes long to clear."""
        sizes: dict[int, int] = {}
        for step in self.steps:
            assert not isinstance(step.operation, Dma)
            for fm in (*_read(step), step.operation.output.fm):
                region, _, high = _extent(fm)
                sizes[region] = max(sizes.get(region, 0), high)
        return sizes


def wrong_alone(
    simulator: Simulator,
    commands: Collection[int],
    lowered: Lowered,
    operator: Operator,
    known: Mapping[int, Array],
    kernels: Kernels,
    seed: int,
) -> Difference | None:
    """Return how an operator's results differ from the kernel's; None if they do not, or unknown.

    commands  byte offsets of its commands in the stream
    known     tensors of the network by index, `[count, *shape]`: its input and its output
    """
    tensors = lowered.model.main.tensors
    if operator.kind not in KINDS or len(operator.inputs) != 1 or len(operator.outputs) != 1:
        return None
    source, result = tensors[operator.inputs[0]], tensors[operator.outputs[0]]
    count = min(MOST_INPUTS, MOST_VALUES // max(1, source.elements))
    if not count or source.type not in BYTES or not {source.index, result.index} <= known.keys():
        return None
    alone = _alone(simulator, commands, source, result)
    value = lowered.value_of.get(result.index)
    made = None if value is None else value.producer
    if alone is None or not isinstance(made, Custom):
        return None
    values, met = _telling(source, count, seed), known[result.index]
    try:
        found = alone.run(np.concatenate([known[source.index], values]))
        (expected,) = kernels.batch(made, [to_graph(source, values)], count)
    except MizzenError:
        return None
    found = found.reshape(-1, *result.shape).view(met.dtype)
    if not np.array_equal(found[: len(met)], met):
        return None
    return difference(found[len(met) :], from_graph(result, expected))


def _telling(tensor: Tensor, count: int, seed: int) -> Array:
    """Return values that lie close together in some inferences, and all over the range in others.

    The widths grow from one step to the whole range, each twice that of some inferences before.
    """
    dtype = tensor.dtype
    assert dtype is not None
    info = np.iinfo(dtype.name)
    rng = np.random.default_rng(seed)
    bits = 8 * dtype.itemsize
    ends = (count,) + (1,) * len(tensor.shape)
    widths = np.exp2(np.arange(count) % bits + rng.random(count)).reshape(ends)
    middles = rng.integers(info.min, info.max, ends, endpoint=True)
    values = middles + rng.uniform(-0.5, 0.5, (count, *tensor.shape)) * widths
    return np.clip(np.rint(values), info.min, info.max).astype(dtype)


def _alone(
    simulator: Simulator, commands: Collection[int], source: Tensor, result: Tensor
) -> Alone | None:
    """Find an operator's steps, and its maps; None if they do not stand by themselves."""
    steps = [
        step
        for step in simulator.plan.steps
        if 4 * (step.operation.where.origin.command or 0) in commands
    ]
    if len(steps) < LEAST_STEPS:
        return None
    taken = _taken(simulator, steps)
    given = steps[-1].operation
    if not taken or isinstance(given, Dma):
        return None
    first, last = taken[0], given.output.fm
    if any(_extent(row) != _extent(first) for row in taken):
        return None
    if not (_may_be(first, source) and _may_be(last, result)):
        return None
    return Alone(simulator, steps, first, last)


def _may_be(fm: FeatureMap, tensor: Tensor) -> bool:
    height, width, depth = fm.shape
    size = tensor.dtype.itemsize if tensor.dtype is not None else 0
    return height * width * depth == tensor.elements and fm.dtype.itemsize == size


def _extent(fm: FeatureMap) -> tuple[int, int, int]:
    ends = [row.extent for row in pieces(fm)]
    return fm.region, min(low for low, _ in ends), max(high for _, high in ends)


def _taken(simulator: Simulator, steps: Sequence[Step]) -> list[FeatureMap]:
    """Return the maps that steps read and none of them has written before."""
    program = simulator.program
    sizes = program.region_bytes | simulator.plan.chain_bytes
    written = {region: np.zeros(size, np.bool_) for region, size in sizes.items()}
    found: list[FeatureMap] = []
    for step in steps:
        operation = step.operation
        if isinstance(operation, Dma):
            return []
        for fm in _read(step):
            region, low, high = _extent(fm)
            if region in program.constants:
                continue
            if not written[region][low:high].all():
                found.append(fm)
        region, low, high = _extent(operation.output.fm)
        written[region][low:high] = True
    return found


def _read(step: Step) -> list[FeatureMap]:
    operation = step.operation
    names = ("ifm", "a", "b", "weights")
    rows = [getattr(operation, name, None) for name in names]
    return [row for row in rows if isinstance(row, FeatureMap)]
