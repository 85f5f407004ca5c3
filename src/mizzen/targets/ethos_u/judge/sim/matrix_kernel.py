"""CONV with weights from a feature map: products of two matrices that both depend on the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.judge.sim.convolution_kernel import (
    FLOAT64_EXACT,
    AccumulatorCheck,
    exact_float,
)
from mizzen.targets.ethos_u.judge.sim.finish import Finish, output_scaling
from mizzen.targets.ethos_u.judge.sim.memory import MapView, Memory, OutputView, Run, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import MatrixProduct
from mizzen.targets.ethos_u.judge.sim.window import PaddedInput, extent, images_per_block

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class MatrixProductKernel:
    """A product of two maps; `table` for a function that has one."""

    operation: MatrixProduct
    table: npt.NDArray[np.uint8] | None

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        return _MatrixProductRun(self, memory, workspace).run


def check(op: MatrixProduct) -> None:
    """Raise E614 for what a product of matrices is not known to do."""
    if not op.kernel.is_pointwise:
        raise fail(
            "E614",
            f"{op.where.name}: weights from a feature map must have a kernel of 1 x 1",
            origin=op.where.origin,
        )
    if not op.accumulators.is_plain:
        raise fail(
            "E614",
            f"{op.where.name}: a product of matrices must start from zero and write its result",
            origin=op.where.origin,
        )
    if op.output.scale is None:
        raise fail(
            "E614",
            f"{op.where.name}: a product of matrices must have one scale for all",
            origin=op.where.origin,
        )
    if bound(op) >= FLOAT64_EXACT:
        raise fail(
            "E602",
            f"{op.where.name}: a product of matrices must stay below 2**53, and can reach "
            f"{bound(op)}",
            origin=op.where.origin,
        )


def bound(op: MatrixProduct) -> int:
    """Largest absolute value of an element of the product."""
    return op.ifm.magnitude * op.weights.magnitude * op.ifm.depth


class _MatrixProductRun:
    def __init__(self, kernel: MatrixProductKernel, memory: Memory, workspace: Workspace) -> None:
        op = self.op = kernel.operation
        self.batch = memory.batch
        self.workspace = workspace
        self.dtype = exact_float(bound(op))
        self.output = OutputView(op.output, memory, workspace)
        self.height, self.width, self.depth = self.output.shape
        self.input = PaddedInput(
            MapView(op.ifm, memory, workspace, "ifm"),
            op.ifm.zero_point,
            op.kernel,
            op.upscale,
            extent(op.kernel, self.height, self.width),
            self.dtype,
            workspace,
        )
        self.weights = MapView(op.weights, memory, workspace, "ifm2")
        limit = 1 << (op.accumulators.bits - 1)
        self.excess = None
        if bound(op) >= limit:
            self.excess = AccumulatorCheck(op.accumulators.bits, np.zeros(1, np.int64), op.where)
        prepared = output_scaling(op.output)
        self.finish = Finish(op.output, prepared, bound(op), kernel.table, workspace, op.where)
        self.images = images_per_block(self.height * self.width * max(op.ifm.depth, self.depth))

    def run(self) -> None:
        """Execute for the whole batch, block by block."""
        for start in range(0, self.batch, self.images):
            stop = min(start + self.images, self.batch)
            sums = self._product(start, stop)
            if self.excess:
                self.excess(sums)
            self.finish(sums, self.output.target(start, stop))
            self.output.commit(start, stop)

    def _product(self, start: int, stop: int) -> Array:
        n, lines = stop - start, self.height * self.width
        left = self.input.load(start, stop).reshape(n, lines, -1)
        right = self.weights.load(start, stop).astype(self.dtype)
        right -= self.op.weights.zero_point
        right = right.reshape(n, self.depth, -1).transpose(0, 2, 1)
        product = self.workspace.take("sums", (n, lines, self.depth), self.dtype)
        np.matmul(left, right, out=product)
        return product.reshape(n, self.height, self.width, self.depth)
