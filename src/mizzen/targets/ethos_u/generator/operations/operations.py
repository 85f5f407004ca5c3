"""Operations of the NPU: everything that a command takes from registers but addresses and blocks.

Ref: the register headers of Arm's Ethos-U core driver, whose words the fields follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations.maps import Map
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ClipRange,
    ElementwiseMode,
    IfmScaleMode,
    PoolingMode,
    RoundMode,
    UpscaleMode,
)


@dataclass(frozen=True, slots=True)
class Scale:
    """A multiplier (32 bits) and a right shift (6 bits)."""

    multiplier: int
    shift: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """The window: sizes without dilation, strides and dilations in elements, padding per side."""

    height: int = 1
    width: int = 1
    stride_y: int = 1
    stride_x: int = 1
    dilation_y: int = 1
    dilation_x: int = 1
    pad_top: int = 0
    pad_left: int = 0
    pad_bottom: int = 0
    pad_right: int = 0

    @property
    def dilated_height(self) -> int:
        """Rows from the first to the last row of the kernel."""
        return (self.height - 1) * self.dilation_y + 1

    @property
    def dilated_width(self) -> int:
        """Columns from the first to the last column of the kernel."""
        return (self.width - 1) * self.dilation_x + 1

    @property
    def pads(self) -> tuple[int, int, int, int]:
        """Padding above, left, below, right."""
        return self.pad_top, self.pad_left, self.pad_bottom, self.pad_right


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A lookup table; `data` as it lies in the NPU's own memory: 256, 1,024 or 2,048 bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Activation:
    """What follows scaling: the clip, then a function.

    minimum, maximum  bounds of what is stored, with the zero point; before the function
    function          ``RELU`` for none, ``TANH``, ``SIGMOID``; not looked at with a table
    """

    minimum: int
    maximum: int
    table: Table | None = None
    function: str = "RELU"
    clip_range: ClipRange = ClipRange.OFM_PRECISION


@dataclass(frozen=True, slots=True, eq=False)
class ChannelScales:
    """Bias (signed), multiplier and shift of each channel, of 40, 32 and 6 bits: int64 [O]."""

    biases: npt.NDArray[np.int64]
    multipliers: npt.NDArray[np.int64]
    shifts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WrittenWeights:
    """Weights that operations before write, as streams in a tensor.

    block_depth  channels of a block of the output, for which the streams are in order; input
                 channels come first in them
    streams      of each core: offset and length in the tensor, in bytes, multiples of 16
    """

    tensor: int
    block_depth: int
    streams: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """CONV, or DEPTHWISE where `depthwise`.

    weights      int16 [O, kernel height, kernel width, I] with the zero point taken off
                 (-255 .. 255); I is 1 where depthwise
    part_kernel  the traversal that is preferred; None for no preference
    written      where the weights are, if they are no constants; of `weights`, then, only the shape
                 counts
    """

    origin: Origin
    ifm: Map
    ofm: Map
    kernel: Kernel
    weights: npt.NDArray[np.int16]
    scales: ChannelScales
    activation: Activation
    depthwise: bool = False
    upscale: UpscaleMode = UpscaleMode.NONE
    rounding: RoundMode = RoundMode.DBL
    accumulators: AccFormat = AccFormat.I32
    part_kernel: bool | None = None
    written: WrittenWeights | None = None


@dataclass(frozen=True, slots=True)
class Pooling:
    """POOL; `scale` is OFM_SCALE."""

    origin: Origin
    mode: PoolingMode
    ifm: Map
    ofm: Map
    kernel: Kernel
    scale: Scale
    activation: Activation
    upscale: UpscaleMode = UpscaleMode.NONE
    rounding: RoundMode = RoundMode.DBL
    accumulators: AccFormat = AccFormat.I32


@dataclass(frozen=True, slots=True)
class Scalar:
    """An operand that is one number, as the register holds it, and its type and zero point."""

    value: int
    dtype: np.dtype[np.integer[Any]]
    zero_point: int = 0


@dataclass(frozen=True, slots=True)
class Elementwise:
    """ELEMENTWISE; an axis of `ifm2` of extent 1 is broadcast where the output's is longer.

    ifm2           None where the operation has one operand
    reversed       whether `ifm2` is the first operand
    scale          OFM_SCALE; None where the output's scale mode is not global
    scale_a        OPA_SCALE and OPB_SCALE; None where they are not written
    """

    origin: Origin
    mode: ElementwiseMode
    ifm: Map
    ifm2: Map | Scalar | None
    ofm: Map
    activation: Activation
    reversed: bool = False
    scale: Scale | None = None
    scale_a: Scale | None = None
    scale_b: Scale | None = None
    scale_mode: IfmScaleMode = IfmScaleMode.OPA_OPB_16
    rounding: RoundMode = RoundMode.DBL
    ifm_rounding: RoundMode = RoundMode.DBL


@dataclass(frozen=True, slots=True)
class Copy:
    """A transfer of `length_bytes` contiguous bytes from one tensor into another."""

    origin: Origin
    source: int
    source_offset_bytes: int
    destination: int
    destination_offset_bytes: int
    length_bytes: int


Computation = Convolution | Pooling | Elementwise
Operation = Computation | Copy


def maps_read(operation: Operation) -> tuple[Map, ...]:
    """Return the maps that an operation reads; a copy reads none."""
    match operation:
        case Elementwise(ifm=ifm, ifm2=Map() as second):
            return ifm, second
        case Copy():
            return ()
        case _:
            return (operation.ifm,)


def tensors_read(operation: Operation) -> tuple[int, ...]:
    """Return the indices of the tensors that an operation reads."""
    match operation:
        case Copy(source=source):
            return (source,)
        case Convolution(ifm=ifm, written=WrittenWeights(tensor=streams)):
            return ifm.tensor, streams
        case _:
            return tuple(map_.tensor for map_ in maps_read(operation))


def tensor_written(operation: Operation) -> int:
    """Return the index of the tensor that an operation writes."""
    return operation.destination if isinstance(operation, Copy) else operation.ofm.tensor
