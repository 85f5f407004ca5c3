"""What a generator says that its command stream does: plain data, in the order of the stream.

One step for each command that computes, those of chains too, and for each transfer between
memories; loads of lookup tables are no steps, tables are with the operations that use them. Numbers
are the user's: shapes in elements, addresses and strides in bytes, constants decoded and never as
they are packed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ClipRange,
    ClipRangeU85,
    ElementwiseMode,
    ElementwiseModeU85,
    IfmScaleMode,
    Layout,
    PoolingMode,
    PoolingModeU85,
    ResizeModeU85,
    RoundMode,
    RoundModeOfmU85,
    UpscaleMode,
)

Array = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
Shape = tuple[int, int, int]
SaidRounding = RoundMode | RoundModeOfmU85


@dataclass(frozen=True, slots=True)
class SaidPlace:
    """Where a map lies.

    bases    of the tile at the left above, and of those right, below, and below right of it
    split    the rows of the tile at the left above, those of the one right of it, and its columns
    strides  bytes between rows, columns, and bricks of channels
    """

    region: int
    bases: tuple[int, int, int, int]
    split: tuple[int, int, int]
    strides: tuple[int, int, int]
    layout: Layout


@dataclass(frozen=True, slots=True, eq=False)
class SaidMap:
    """A feature map: height, width, depth.

    place     None for a constant, which lies wherever constants are packed, and in a chain
    link      number of the operation of a chain that hands it on inside the NPU; None elsewhere
    constant  the elements of a constant, ``[H, W, C]``; None for what is computed
    tensor    index of the tensor whose map it is
    start     where in the tensor it begins, if it is a box of it; None for another view
    """

    shape: Shape
    dtype: np.dtype[np.integer[Any]]
    zero_point: int
    place: SaidPlace | None
    constant: Array | None
    tensor: int
    start: Shape | None
    link: int | None = None


@dataclass(frozen=True, slots=True)
class SaidOrder:
    """How a result is stored.

    axes      of the result, that each axis of the map is
    reversed  axis of the result that is backwards in the map
    """

    axes: Shape = (0, 1, 2)
    reversed: int | None = None

    def computed(self, stored: Shape) -> Shape:
        """Return the shape of the result, of the shape that is stored."""
        shape = [0, 0, 0]
        for axis, size in zip(self.axes, stored, strict=True):
            shape[axis] = size
        return shape[0], shape[1], shape[2]


@dataclass(frozen=True, slots=True)
class SaidNumber:
    """An operand that is one number, with its type and zero point."""

    value: int
    dtype: np.dtype[np.integer[Any]]
    zero_point: int


@dataclass(frozen=True, slots=True)
class SaidKernel:
    """The window: sizes without dilation; strides and dilations in elements; padding per side."""

    height: int
    width: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    pad_top: int
    pad_left: int
    pad_bottom: int
    pad_right: int


@dataclass(frozen=True, slots=True)
class SaidScale:
    """A multiplier and a right shift."""

    multiplier: int
    shift: int


@dataclass(frozen=True, slots=True)
class SaidOperandScale:
    """What U85 scales an operand by; DBL rounds `left` of 31 bits earlier."""

    multiplier: int
    shift: int
    rounding: RoundMode
    left: int


@dataclass(frozen=True, slots=True, eq=False)
class SaidChannels:
    """What becomes of the sums of each output channel, int64 ``[O]`` each."""

    biases: Integers
    multipliers: Integers
    shifts: Integers


@dataclass(frozen=True, slots=True, eq=False)
class SaidActivation:
    """What follows scaling: zero point, bounds, and a function.

    function  ``RELU`` for none, ``TANH``, ``SIGMOID``; with a table, of U85 alone: how its segments
              lie
    table     entries as the machine reads them, uint8 ``[bytes]``
    """

    minimum: int
    maximum: int
    clip_range: ClipRange | ClipRangeU85
    function: str
    table: npt.NDArray[np.uint8] | None


@dataclass(frozen=True, slots=True, eq=False)
class SaidConvolution:
    """CONV, or DEPTHWISE.

    weights  int16 ``[O, H, W, I]``, zero point taken off; None where operations before write them
    streams  then region, offset and length of each core's
    """

    origin: Origin
    depthwise: bool
    ifm: SaidMap
    ofm: SaidMap
    kernel: SaidKernel
    weights: npt.NDArray[np.int16] | None
    streams: tuple[tuple[int, int, int], ...]
    channels: SaidChannels
    activation: SaidActivation
    upscale: UpscaleMode
    rounding: SaidRounding
    accumulators: AccFormat
    order: SaidOrder


@dataclass(frozen=True, slots=True, eq=False)
class SaidMatrixProduct:
    """CONV with weights from a map ``[1, O, I]``, with the one scale of its results."""

    origin: Origin
    ifm: SaidMap
    ifm2: SaidMap
    ofm: SaidMap
    scale: SaidScale
    activation: SaidActivation
    rounding: SaidRounding
    accumulators: AccFormat
    order: SaidOrder


@dataclass(frozen=True, slots=True, eq=False)
class SaidPooling:
    """POOL, with the one scale of its results.

    mode  of `PoolingModeU85` where U55 and U65 have it not
    """

    origin: Origin
    mode: PoolingMode | PoolingModeU85
    ifm: SaidMap
    ofm: SaidMap
    kernel: SaidKernel
    scale: SaidScale
    activation: SaidActivation
    upscale: UpscaleMode
    rounding: SaidRounding
    accumulators: AccFormat
    order: SaidOrder


@dataclass(frozen=True, slots=True, eq=False)
class SaidElementwise:
    """ELEMENTWISE.

    ifm2      None where there is one operand
    reversed  whether `ifm2` is the first operand
    scale     of the result, `scale_a` and `scale_b` of the operands; None where there is none
    operand_scales  of `ifm` and `ifm2` on U85; None where `scale_a` and `scale_b` say them
    """

    origin: Origin
    mode: ElementwiseMode | ElementwiseModeU85
    ifm: SaidMap
    ifm2: SaidMap | SaidNumber | None
    ofm: SaidMap
    reversed: bool
    scale: SaidScale | None
    scale_a: SaidScale | None
    scale_b: SaidScale | None
    scale_mode: IfmScaleMode
    activation: SaidActivation
    rounding: SaidRounding
    ifm_rounding: RoundMode
    operand_scales: tuple[SaidOperandScale | None, SaidOperandScale | None] | None
    order: SaidOrder


@dataclass(frozen=True, slots=True)
class SaidSteps:
    """Where RESIZE reads along an axis for element i: at ``(i * step + offset) / scale``."""

    scale: int
    step: int
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class SaidResize:
    """RESIZE."""

    origin: Origin
    mode: ResizeModeU85
    ifm: SaidMap
    ofm: SaidMap
    rows: SaidSteps
    columns: SaidSteps
    scale: SaidScale
    activation: SaidActivation
    rounding: SaidRounding
    order: SaidOrder


@dataclass(frozen=True, slots=True, eq=False)
class SaidLines:
    """Lines of a transfer, of which those of one side are named by indices.

    indices   region and offset; None for constants
    constant  the indices, where they are such
    strides   bytes between lines of the source, and of the destination
    """

    indices: tuple[int, int] | None
    constant: npt.NDArray[np.uint8] | None
    count: int
    strides: tuple[int, int]
    greatest: int
    scatters: bool


@dataclass(frozen=True, slots=True, eq=False)
class SaidTransfer:
    """A transfer.

    source        region and offset; None for constants, which lie wherever they are packed
    constant      the bytes of a constant; None for what is computed, or is encoded, which the
                  operations that read it say
    destination   region and offset
    length_bytes  to transfer at least, and `most_bytes` at most: up to the next alignment
    lines         of so many bytes each; None for one piece
    """

    origin: Origin
    source: tuple[int, int] | None
    constant: npt.NDArray[np.uint8] | None
    destination: tuple[int, int]
    length_bytes: int
    most_bytes: int
    lines: SaidLines | None = None


SaidOperation = SaidConvolution | SaidMatrixProduct | SaidPooling | SaidElementwise | SaidResize
SaidStep = SaidOperation | SaidTransfer


@dataclass(frozen=True, slots=True)
class SaidTensor:
    """What operations hand on: height, width, depth."""

    name: str
    shape: Shape
    dtype: np.dtype[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """What a stream does, step by step up to its end, and the tensors of its maps."""

    steps: tuple[SaidStep, ...]
    tensors: tuple[SaidTensor, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A field of a step in which the stream does not do what its witness says.

    step    place in the stream, transfers counted too; `command` is the simulator's name
    origin  as the witness has it
    index   of the first differing element of an array, empty for anything else
    said, read  by the witness and by the stream
    """

    step: int
    command: str
    origin: Origin
    field: str
    index: tuple[int, ...]
    said: object
    read: object

    def __str__(self) -> str:
        place = "" if not self.index else f" at [{', '.join(map(str, self.index))}]"
        return (
            f"step {self.step} ({self.command}) has {self.read} as its {self.field}{place}, and "
            f"not {self.said}"
        )
