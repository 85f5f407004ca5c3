"""What a network that Vela's core compiled needs, by its estimate and by the network itself."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.artifact.ethos_u import ALLOCATION, npu_operator
from mizzen.artifact.npu import is_npu
from mizzen.compiler.codegen import Costs
from mizzen.frontends.tflite import Model
from mizzen.report import Area, Measure
from mizzen.targets.ethos_u.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.compiled import Compiled

_ON_CHIP = {"shram", "lutram"}
"""Memories inside the NPU, which the compiler lists with the system's."""


def costs_of(compiled: Compiled, network: Model, configuration: EthosUConfiguration) -> Costs:
    """Return the costs of a compiled network, which is `compiled.network`, read."""
    estimate = compiled.estimate
    measures = (
        Measure(row.name, row.peak_bytes, row.access_cycles, row.accesses)
        for row in estimate.memories
        if row.name not in _ON_CHIP
    )
    return Costs(
        estimate.cycles,
        estimate.npu_cycles,
        tuple(_areas(network, configuration)),
        tuple(measures),
        estimate.figures,
    )


def arena_bytes(network: Model) -> int:
    """Return the size of the runtime's tensor arena."""
    return max(_ends(network).values(), default=0)


def _areas(network: Model, configuration: EthosUConfiguration) -> Iterator[Area]:
    """Measure what a network holds where: constants of NPU operators, feature maps, cache."""
    mode, main = configuration.mode, network.main
    parts = [npu_operator(network, row) for row in main.operators if is_npu(row)]
    constants = {part.read_only.tobytes() for part in parts}
    cache = max((part.scratch_fast_bytes or 0 for part in parts), default=0)
    of_cpu = [row for row in main.operators if not is_npu(row)]
    tensors = {index for row in of_cpu for index in (*row.inputs, *row.outputs)}
    ends = _ends(network)
    maps = [part.scratch_bytes for part in parts] + [ends[i] for i in tensors if i in ends]
    yield Area("constants", configuration.memory(mode.constants).value, sum(map(len, constants)))
    yield Area("arena", configuration.memory(mode.arena).value, max(maps, default=0))
    if mode.spills:
        yield Area("cache", configuration.memory(mode.cache).value, cache)


def _ends(network: Model) -> dict[int, int]:
    """Return the end of each tensor that the compiler placed in the runtime's arena, by index."""
    contents = network.metadata.get(ALLOCATION)
    if contents is None:
        return {}
    offsets = contents[: contents.nbytes // 4 * 4].view("<i4").tolist()[3:]
    return {
        tensor.index: offset + (tensor.size_bytes or 0)
        for offset, tensor in zip(offsets, network.main.tensors, strict=False)
        if offset >= 0
    }
