"""The Ethos-N weight stream: what its writer and its reader must both know.

Every output feature map (OFM) is computed by one output generator (OG), which reads one stream of
bits, least significant bit first. Weights that a pass takes in several parts of input channels
(`WeightLayout.iteration_size`) make one such stream for each part. A stream is

* the OFM header: LENGTH, BIAS, SCALE_FOLLOWS, and if that is 1 MULTIPLIER, SHIFT, ZERO_POINT;
* the payload header: SYMBOL_COUNT, PARAMETERS_FOLLOW, and if that is 1 ZERO_DIVISOR,
  WEIGHT_DIVISOR, TRUNCATED, OFFSET, PALETTE_FOLLOWS, and if that is 1 PALETTE_SIZE_LESS_1 (0: no
  palette), PALETTE_BITS (the bits of an entry less 2) and the entries, each a sign (top bit) and a
  magnitude;
* the symbols, Golomb-Rice coded in chunks.

A symbol is twice a weight's magnitude, less 1 if the weight is negative. A weight in the palette
is coded as its index, another as its symbol + the palette's size - OFFSET. With a ZERO_DIVISOR
zeros are coded apart, as the length of the run before each other weight and after the last.

A chunk is: first unary bits of weights, unary bits of runs, second unary bits of weights, then
remainders of the chunk before it: of weights, of runs. A weight's quotient q is q//2 + 1 first
bits, all but the last 1, the last q % 2; each 1 among them has a second bit that says whether
another 1 is counted. Truncated: one first and perhaps one second bit, q at most 2. A run's quotient
is q times 1 and a 0. Unused bits are 0. Without a WEIGHT_DIVISOR weights are remainders only, of
PALETTE_BITS + 2 bits, or of as many as an index of the palette needs. Weights are held back while
they are `half` or more ahead of runs, runs while weights are behind them.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation, McePle
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.tensors import Shape

# Widths of the header's fields, bits.
LENGTH = 16
BIAS = 32
SCALE_FOLLOWS = 1
MULTIPLIER = 16
SHIFT = 6
ZERO_POINT = 8
SYMBOL_COUNT = 17
PARAMETERS_FOLLOW = 1
ZERO_DIVISOR = 3
WEIGHT_DIVISOR = 3
TRUNCATED = 1
OFFSET = 5
PALETTE_FOLLOWS = 1
PALETTE_SIZE_LESS_1 = 5
PALETTE_BITS = 3

NO_RUNS = 7
"""The ZERO_DIVISOR of a stream whose zeros are coded as the other weights."""
UNCODED = 7
"""The WEIGHT_DIVISOR of a stream of plain symbols."""
LARGEST_ZERO_DIVISOR = 3
LARGEST_WEIGHT_DIVISOR = 5
LARGEST_QUOTIENT = 31
LARGEST_OFFSET = (1 << OFFSET) - 1
LARGEST_PALETTE = 1 << PALETTE_SIZE_LESS_1
LEAST_ENTRY_BITS = 2
LARGEST_SYMBOL = 511
"""A symbol has 9 bits: a weight less the zero point is -255 to 255."""

LENGTH_UNIT_BYTES = 16
"""Of the LENGTH field: from the unit that the stream starts in to the end of its last."""
BANK_ROW_BYTES = 16
"""The DMA gives each SRAM bank in turn so many bytes."""
BRICK = 1024
"""Input channels of a fully connected layer come in so many."""
PATCH = 16
"""Elements of a patch, 4x4, and of its channel in memory."""
WIDE_TAPS = 3
"""Larger kernels are tiles of so many rows and columns."""
LARGEST_KERNEL = {Algorithm.DIRECT: 7, Algorithm.WINOGRAD: 1}
"""Rows or columns from which on a kernel is cut into tiles."""


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """First unary bits of a chunk, from the input generators: 3/4 and 1/2 as many.

    three_quarters  of weights, and of runs
    half            of uncoded weights of more than 5 bits, and of runs with divisor 3
    """

    three_quarters: int
    half: int

    @classmethod
    def of(cls, capabilities: Capabilities) -> ChunkSizes:
        """Return those of a variant."""
        return cls(3 * capabilities.igs // 4, capabilities.igs // 2)


WIDEST_IN_LARGE_CHUNK = 5
"""Bits of uncoded weights from which on a chunk is `half`."""


@dataclass(frozen=True, slots=True)
class WeightLayout:
    """A pass's weights and how it takes them; E940 if that cannot be.

    shape           H, W, I, O; of a depthwise convolution H, W, I, M, output m * I + i
    stripe_depth    OFMs that are made at a time
    iteration_size  input channels that are read at a time, of an interleaved input counted there
    pad_top, ...    of the convolution: with a stride they say which taps meet which submap
    """

    shape: Shape
    stripe_depth: int
    iteration_size: int
    operation: MceOperation = MceOperation.CONVOLUTION
    algorithm: Algorithm = Algorithm.DIRECT
    stride_y: int = 1
    stride_x: int = 1
    pad_top: int = 0
    pad_left: int = 0

    def __post_init__(self) -> None:
        for holds, rule in self._rules():
            if not holds:
                raise fail("E940", f"{rule}; the weights are {self}")

    def _rules(self) -> Iterator[tuple[bool, str]]:
        height, width, inputs, _ = self.shape
        sizes = (*self.shape, self.stripe_depth, self.iteration_size, self.stride_y, self.stride_x)
        yield min(sizes) > 0, "extents, stripe depth, iteration size and strides must be 1 or more"
        yield min(self.pad_top, self.pad_left) >= 0, "padding must not be negative"
        if self.operation is MceOperation.FULLY_CONNECTED:
            yield (
                (height, width, inputs % BRICK, self.iteration_size % BRICK) == (1, 1, 0, 0),
                f"a fully connected layer must have a 1x1 kernel and inputs in {BRICK}s",
            )
            yield self.submaps == 1, "a fully connected layer must have stride 1"
        if self.is_wide:
            yield self.submaps == 1, "a kernel that is cut into tiles must have stride 1"
        if self.algorithm is Algorithm.WINOGRAD:
            yield (
                self.operation is MceOperation.CONVOLUTION and self.submaps == 1,
                "the Winograd algorithm is for convolutions with stride 1, not depthwise",
            )
            yield self.iterations == 1, "the Winograd algorithm takes all input channels at once"

    @classmethod
    def of(cls, command: McePle) -> WeightLayout:
        """Return the layout of a command's weights; E940 if that cannot be."""
        mce, weights = command.mce, command.weights
        depth = weights.stripe_shape[3]
        if mce.operation is MceOperation.DEPTHWISE_CONVOLUTION:
            depth = depth * weights.stripe_shape[2] // max(1, mce.stride_x * mce.stride_y)
        return cls(
            weights.shape, depth, weights.stripe_shape[2], mce.operation, mce.algorithm,
            mce.stride_y, mce.stride_x, mce.pad_top, mce.pad_left,
        )  # fmt: skip

    @property
    def is_depthwise(self) -> bool:
        """Whether each OFM has the weights of one input channel."""
        return self.operation is MceOperation.DEPTHWISE_CONVOLUTION

    @property
    def is_wide(self) -> bool:
        """Whether the kernel is cut into tiles."""
        limit = LARGEST_KERNEL[self.algorithm]
        return not self.is_depthwise and max(self.shape[:2]) > limit

    @property
    def ofms(self) -> int:
        """The number of output feature maps."""
        return self.shape[3] * (self.shape[2] if self.is_depthwise else 1)

    @property
    def submaps(self) -> int:
        """Parts that a strided convolution's input and kernel are taken apart into."""
        return self.stride_y * self.stride_x

    @property
    def iterations(self) -> int:
        """Parts that the input channels are taken in."""
        if self.is_depthwise:
            return 1
        return -(-self.shape[2] * self.submaps // self.iteration_size)
