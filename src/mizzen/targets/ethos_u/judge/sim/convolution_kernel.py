"""CONV and DEPTHWISE: exact integer sums, by matrix products of floats where these are exact.

Products of 8-bit inputs and weights are integers below 2**16; a float32 sum of them is exact while
the sum of absolute values stays below 2**24, a float64 sum below 2**53, in any order of addition.
The bound is computed from the real weights, so the choice is never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.judge.sim.accumulators import Sums, initial_bound
from mizzen.targets.ethos_u.judge.sim.finish import INNER_LOOP, Finish, channel_scaling
from mizzen.targets.ethos_u.judge.sim.memory import MapView, Memory, OutputView, Run, Workspace
from mizzen.targets.ethos_u.judge.sim.operations import Convolution, Upscale, Where
from mizzen.targets.ethos_u.judge.sim.rounding import Scaling
from mizzen.targets.ethos_u.judge.sim.scales import ChannelScales
from mizzen.targets.ethos_u.judge.sim.window import PaddedInput, extent, images_per_block, windows

Array = npt.NDArray[Any]

FLOAT32_EXACT = 1 << 24
FLOAT64_EXACT = 1 << 53
BLOCK_ELEMENTS = 1 << 16
"""Elements of unrolled input that are multiplied at once."""


@dataclass(frozen=True, slots=True, eq=False)
class AccumulatorCheck:
    """The run-time check of accumulators that the weights do not prove small enough."""

    bits: int
    bias: npt.NDArray[np.int64]
    where: Where

    def __call__(self, sums: Array) -> None:
        """Raise E641 if a sum plus its bias leaves the accumulator."""
        reached = sums.astype(np.int64) + self.bias
        limit = 1 << (self.bits - 1)
        if reached.size and (reached.min() < -limit or reached.max() >= limit):
            raise fail(
                "E641",
                f"{self.where.name}: an accumulator must fit {self.bits} bits, and reaches "
                f"{int(reached.min())}..{int(reached.max())}",
                origin=self.where.origin,
                help="the network computes beyond the machine's integers; its quantisation is "
                "broken",
            )


@dataclass(frozen=True, slots=True, eq=False)
class ConvolutionKernel:
    """A convolution with its weights `[O, kh, kw, I]` and scales; `table` for TABLE activation."""

    operation: Convolution
    weights: npt.NDArray[np.int16]
    scaling: Scaling
    bound: int
    excess: AccumulatorCheck | None
    table: npt.NDArray[np.uint8] | None

    def bind(self, memory: Memory, workspace: Workspace) -> Run:
        """Prepare to run over `memory`."""
        bound = _DepthwiseRun if self.operation.depthwise else MatrixRun
        return bound(self, memory, workspace).run


def prepare(
    op: Convolution,
    weights: npt.NDArray[np.int16],
    scales: ChannelScales,
    table: npt.NDArray[np.uint8] | None,
) -> ConvolutionKernel:
    """Bound the accumulators by the weights, and fix how they are summed and scaled."""
    sums = np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3))
    magnitude = int(sums.max()) * op.ifm.magnitude + initial_bound(op.accumulators)
    if magnitude >= FLOAT64_EXACT:
        raise fail(
            "E602",
            f"{op.where.name}: sums must stay below 2**53, and can reach {magnitude}",
            origin=op.where.origin,
            help="this is beyond what the simulator computes exactly; please report the network",
        )
    with_bias = magnitude + int(np.abs(scales.bias).max())
    excess = None
    if with_bias >= 1 << (op.accumulators.bits - 1):
        excess = AccumulatorCheck(op.accumulators.bits, scales.bias, op.where)
    prepared = channel_scaling(op.output, scales)
    return ConvolutionKernel(op, weights, prepared, magnitude, excess, table)


def exact_float(bound: int) -> type[np.float32 | np.float64]:
    """Return the type whose sums of integers up to `bound` are exact."""
    return np.float32 if bound < FLOAT32_EXACT else np.float64


class _Bound:
    """What both kinds share: input, output, the finishing stage."""

    def __init__(self, kernel: ConvolutionKernel, memory: Memory, workspace: Workspace) -> None:
        op = kernel.operation
        self.op = op
        self.batch = memory.batch
        self.workspace = workspace
        self.dtype = exact_float(kernel.bound)
        view = MapView(op.ifm, memory, workspace, "ifm")
        self.output = OutputView(op.output, memory, workspace)
        self.height, self.width, self.depth = self.output.shape
        self.input = PaddedInput(
            view,
            op.ifm.zero_point,
            op.kernel,
            op.upscale,
            extent(op.kernel, self.height, self.width),
            self.dtype,
            workspace,
        )
        self.excess = kernel.excess
        self.sums = None
        if not op.accumulators.is_plain:
            self.sums = Sums(op.accumulators, op.output.shape, memory, workspace)
        self.finish = Finish(
            op.output,
            kernel.scaling,
            kernel.bound,
            kernel.table,
            workspace,
            op.where,
        )

    def write(self, sums: Array, start: int, stop: int, rows: slice) -> None:
        """Finish the sums of some rows of images `start:stop`, or keep them."""
        total = self.sums(sums, start, stop, rows) if self.sums else sums
        if total is None:
            return
        if self.excess:
            self.excess(total)
        self.finish(total, self.output.target(start, stop)[:, rows])

    def commit(self, start: int, stop: int) -> None:
        """Move what was finished to memory."""
        if self.op.accumulators.written:
            self.output.commit(start, stop)


class MatrixRun(_Bound):
    """A convolution over a batch's memory as products of matrices."""

    def __init__(self, kernel: ConvolutionKernel, memory: Memory, workspace: Workspace) -> None:
        super().__init__(kernel, memory, workspace)
        self.take_weights(kernel.weights)
        row_elements = self.width * max(len(self.matrix), self.depth)
        self.rows = min(self.height, max(1, BLOCK_ELEMENTS // row_elements))
        whole = self.rows == self.height
        self.images = images_per_block(row_elements * self.height, BLOCK_ELEMENTS) if whole else 1
        self.unrolled = not op_is_pointwise(self.op)

    def take_weights(self, weights: npt.NDArray[np.int16]) -> None:
        """Multiply by these weights `[O, kh, kw, I]` from here on."""
        self.matrix = np.ascontiguousarray(weights.reshape(self.depth, -1).T.astype(self.dtype))

    def run(self) -> None:
        """Execute for the whole batch, block by block."""
        self.over(0, self.batch)

    def over(self, first: int, last: int) -> None:
        """Execute for images `first:last`, block by block."""
        for start in range(first, last, self.images):
            stop = min(start + self.images, last)
            padded = self.input.load(start, stop)
            for top in range(0, self.height, self.rows):
                bottom = min(top + self.rows, self.height)
                sums = self._sums(padded, top, bottom)
                self.write(sums, start, stop, slice(top, bottom))
            self.commit(start, stop)

    def _sums(self, padded: Array, top: int, bottom: int) -> Array:
        shape = (len(padded), bottom - top, self.width)
        columns = self._columns(padded, top, bottom)
        sums = self.workspace.take("sums", (len(columns), self.depth), self.dtype)
        np.matmul(columns, self.matrix, out=sums)
        return sums.reshape(*shape, self.depth)

    def _columns(self, padded: Array, top: int, bottom: int) -> Array:
        length = len(self.matrix)
        if not self.unrolled:
            return padded[:, top:bottom].reshape(-1, length)
        seen = windows(padded[:, top * self.op.kernel.stride_y :], self.op.kernel,
                       bottom - top, self.width)  # fmt: skip
        columns = self.workspace.take("columns", seen.shape, self.dtype)
        np.copyto(columns, seen)
        return columns.reshape(-1, length)


def op_is_pointwise(op: Convolution) -> bool:
    """Whether the input itself is the matrix to multiply."""
    return op.kernel.is_pointwise and op.upscale is Upscale.NONE


class _DepthwiseRun(_Bound):
    """Sums tap by tap: one multiplication and one addition of whole rows for each weight.

    Columns are split by their phase modulo the stride, so that a tap reads contiguous rows.
    """

    def __init__(self, kernel: ConvolutionKernel, memory: Memory, workspace: Workspace) -> None:
        super().__init__(kernel, memory, workspace)
        k = self.op.kernel
        self.phases = k.stride_x
        self.images = images_per_block(self.height * self.width * self.depth)
        # [O, kh, kw, 1] -> one row of weights per tap, repeated along the row of the map
        taps = kernel.weights[..., 0].transpose(1, 2, 0).astype(self.dtype)
        repeat = self.width if self.depth < INNER_LOOP else 1
        self.repeat = repeat
        self.taps = [
            (y * k.dilation_y, x * k.dilation_x, np.tile(taps[y, x], repeat))
            for y in range(k.height)
            for x in range(k.width)
        ]

    def run(self) -> None:
        """Execute for the whole batch, block by block."""
        for start in range(0, self.batch, self.images):
            stop = min(start + self.images, self.batch)
            sums = self._sums(self._by_phase(self.input.load(start, stop)))
            self.write(sums, start, stop, slice(None))
            self.commit(start, stop)

    def _by_phase(self, padded: Array) -> Array:
        """Rearrange `[n, H, W, C]` as `[n, H, phases, W / phases, C]`."""
        n, height, width, depth = padded.shape
        if self.phases == 1:
            return padded.reshape(n, height, 1, width, depth)
        columns = -(-width // self.phases)
        split = self.workspace.take("phases", (n, height, self.phases, columns, depth), self.dtype)
        for phase in range(self.phases):
            part = padded[:, :, phase :: self.phases]
            split[:, :, phase, : part.shape[2]] = part
        return split

    def _sums(self, split: Array) -> Array:
        n = len(split)
        shape = (n, self.height, self.width, self.depth)
        flat = (n, self.height, self.width // self.repeat, self.repeat * self.depth)
        sums = self.workspace.take("sums", flat, self.dtype)
        products = self.workspace.take("products", flat, self.dtype)
        step = self.op.kernel.stride_y
        for index, (y, x, weights) in enumerate(self.taps):
            column, phase = divmod(x, self.phases)
            last = y + (self.height - 1) * step + 1
            seen = split[:, y:last:step, phase, column : column + self.width]
            np.multiply(seen.reshape(flat), weights, out=products if index else sums)
            if index:
                np.add(sums, products, out=sums)
        return sums.reshape(shape)
