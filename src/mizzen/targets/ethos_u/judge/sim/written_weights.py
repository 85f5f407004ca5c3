"""CONV with weights that the program writes itself: decoded anew for each inference.

Streams lie in memory like feature maps do, and the machine reads them when an operation starts. So
operations before it can write them, in whichever coding has weights at fixed places; what decodes
them is the codec that decodes constants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.codec import decoding
from mizzen.targets.ethos_u.judge.sim import convolution_kernel
from mizzen.targets.ethos_u.judge.sim.convolution_kernel import MatrixRun
from mizzen.targets.ethos_u.judge.sim.memory import Memory, Run, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import Convolution
from mizzen.targets.ethos_u.judge.sim.scales import ChannelScales
from mizzen.targets.ethos_u.judge.sim.weights import Weights

LARGEST_WEIGHT = 255
"""Magnitude that a stream can hold; sums are bounded as if all weights were so large."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenWeightsKernel:
    """A convolution, not a depthwise one, whose weights are known when it runs."""

    operation: Convolution
    scales: ChannelScales
    table: npt.NDArray[np.uint8] | None

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        op = self.operation
        shape = (op.output.shape[2], op.kernel.height, op.kernel.width, op.ifm.depth)
        largest = np.full(shape, LARGEST_WEIGHT, np.int16)
        kernel = convolution_kernel.prepare(op, largest, self.scales, self.table)
        return _WrittenWeightsRun(MatrixRun(kernel, memory, workspace), memory).run


class _WrittenWeightsRun:
    def __init__(self, product: MatrixRun, memory: Memory) -> None:
        self._product = product
        self._memory = memory

    def run(self) -> None:
        """Execute for each inference of the batch with the weights of its own."""
        for image in range(self._memory.batch):
            self._product.take_weights(self._weights(image))
            self._product.over(image, image + 1)

    def _weights(self, image: int) -> Weights:
        op = self._product.op
        streams = [
            self._memory.bytes(stream.region, stream.offset, stream.length)[image].tobytes()
            for stream in op.weights
        ]
        try:
            return op.layout.arrange(decoding.decode(streams))
        except MizzenError as error:
            raise MizzenError(replace(error.diagnostic, origin=op.where.origin)) from None
