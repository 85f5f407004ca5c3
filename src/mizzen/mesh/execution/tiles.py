"""Compute tiles: a layer's operations, on boxes."""

from __future__ import annotations

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import artifact_of
from mizzen.graph import Array
from mizzen.mesh.execution.accumulators import Accumulators, accumulators
from mizzen.mesh.execution.cutting import Cut, cut
from mizzen.mesh.execution.memory import Memory
from mizzen.mesh.machine import ElementKind
from mizzen.mesh.network.boxes import shape_of
from mizzen.mesh.network.network import Network
from mizzen.mesh.program import Compute, Kernel, MeshProgram
from mizzen.reference import CustomKernel, evaluate_batch

Dtypes = dict[int, np.dtype[np.generic]]


def dtypes_of(network: Network) -> Dtypes:
    """Return the NumPy type of each tensor's elements, as the layers' operations have it."""
    dtypes: Dtypes = {}
    for layer in network.layers:
        if layer.chain is not None:
            values = zip(layer.inputs, layer.chain.inputs, strict=True)
            dtypes.update((tensor, value.dtype.numpy) for tensor, value in values)
            dtypes[layer.output] = layer.chain.outputs[0].dtype.numpy
    return dtypes


class Tiles:
    """Computes tiles; operations cut once are kept, since replicas have the same."""

    def __init__(self, program: MeshProgram, custom: CustomKernel) -> None:
        self.network = program.network
        self.dtypes = dtypes_of(program.network)
        self.custom = custom
        self.streams = program.streams
        self._artifacts: dict[tuple[str, Kernel], Artifact] = {}
        self._cuts: dict[Kernel, Cut] = {}
        self._accumulators: dict[tuple[Kernel, str], Accumulators | None] = {}

    def compute(self, instruction: Compute, kind: ElementKind, memory: Memory, count: int) -> Array:
        """Return the box that a tile gives, `[count, *box]`."""
        tile = self._cut(instruction.kernel)
        operands = list[Array]()
        for index, box in tile.takes:
            region = instruction.operands[index]
            assert region is not None, "the checker says which operands a tile needs"
            operands.append(memory.read(region, box))
        stream = self._stream(kind, instruction.kernel)
        if stream is not None:
            return _through(stream, operands, instruction.kernel, count)
        for region, value in zip(instruction.sums, tile.graph.inputs[len(operands) :], strict=True):
            sums = memory.read(region, instruction.kernel.box)
            operands.append(sums.reshape(count, *value.shape))
        held = self._held(instruction.kernel, kind, tile)
        trace = None if held is None else held.trace
        (values,) = evaluate_batch(tile.graph, operands, count, trace=trace, custom=self.custom)
        return values

    def _stream(self, kind: ElementKind, kernel: Kernel) -> Artifact | None:
        """Return the artifact of a tile on an element that is an NPU, if it has one."""
        key = kind.npu or "", kernel
        if key not in self.streams:
            return None
        if key not in self._artifacts:
            self._artifacts[key] = artifact_of(self.streams[key], "tile")
        return self._artifacts[key]

    def _cut(self, kernel: Kernel) -> Cut:
        known = self._cuts.get(kernel)
        if known is None:
            known = self._cuts[kernel] = cut(self.network, kernel)
        return known

    def _held(self, kernel: Kernel, kind: ElementKind, tile: Cut) -> Accumulators | None:
        key = kernel, kind.name
        if key not in self._accumulators:
            self._accumulators[key] = accumulators(kind.array, tile.sums)
        return self._accumulators[key]


def _through(stream: Artifact, operands: list[Array], kernel: Kernel, count: int) -> Array:
    """Return the output of a command stream, executed by the NPU's simulator, `[count, *box]`."""
    whole = [
        array.reshape(count, *info.shape[1:]) if info.shape[0] == 1 else array
        for array, info in zip(operands, stream.inputs, strict=True)
    ]
    result = stream.run(*whole)
    assert not isinstance(result, tuple), "a tile gives one box"
    return result.reshape(count, *shape_of(kernel.box))
