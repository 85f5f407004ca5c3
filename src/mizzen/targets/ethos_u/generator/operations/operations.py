"""Operations of the NPU: everything that a command takes from registers but addresses and blocks.

Ref: the register headers of Arm's Ethos-U core driver, whose words the fields follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations.maps import Map, Shape
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ClipRange,
    ClipRangeU85,
    ElementwiseMode,
    ElementwiseModeU85,
    IfmScaleMode,
    PoolingMode,
    PoolingModeU85,
    ResizeModeU85,
    ReverseU85,
    RoundMode,
    RoundModeOfmU85,
    TransposeU85,
    UpscaleMode,
)

Rounding = RoundMode | RoundModeOfmU85
"""How a result rounds; U85 has modes that U55 and U65 have not."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A multiplier (32 bits) and a right shift (6 bits)."""

    multiplier: int
    shift: int


@dataclass(frozen=True, slots=True)
class OperandScale:
    """How U85 scales an operand of an elementwise operation before it is combined.

    left  bits of 31 by which DBL rounds earlier, as if the operand was shifted left before
    """

    multiplier: int
    shift: int
    rounding: RoundMode = RoundMode.NATURAL
    left: int = 0


PERMUTATIONS: dict[TransposeU85, tuple[int, int, int]] = {
    TransposeU85.HWC: (0, 1, 2),
    TransposeU85.WHC: (1, 0, 2),
    TransposeU85.HCW: (0, 2, 1),
    TransposeU85.WCH: (1, 2, 0),
    TransposeU85.CHW: (2, 0, 1),
    TransposeU85.CWH: (2, 1, 0),
}
"""The axis of the result that each axis of the stored map is."""


@dataclass(frozen=True, slots=True)
class Order:
    """How U85 stores a result: its axes permuted, one axis of the result backwards.

    What the operation computes has height, width and depth of its inputs' sense; `ofm` has the
    shape that is stored.
    """

    transpose: TransposeU85 = TransposeU85.HWC
    reverse: ReverseU85 = ReverseU85.NONE

    def computed(self, stored: Shape) -> Shape:
        """Return the shape of what is computed, of the shape that is stored."""
        shape = [0, 0, 0]
        for axis, size in zip(PERMUTATIONS[self.transpose], stored, strict=True):
            shape[axis] = size
        return shape[0], shape[1], shape[2]


AS_COMPUTED = Order()


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
    """A lookup table; `data` as it lies in the NPU's own memory.

    256 bytes for 8 bits of 8, 2,048 for 16 of 16; of U85 512 for 16 bits of 8, 1,024 for 32 of 8
    and 2,048 for 32 of 16 too. Which one it is, the type of the output says.
    """

    data: bytes


@dataclass(frozen=True, slots=True)
class Activation:
    """What follows scaling: the clip, then a function.

    minimum, maximum  bounds of what is stored, with the zero point; before the function
    function          ``RELU`` for none, ``TANH``, ``SIGMOID``; not looked at with a table
    clip_range        NONE of U85, without a table: results lose their high bits, and have no bounds
    """

    minimum: int
    maximum: int
    table: Table | None = None
    function: str = "RELU"
    clip_range: ClipRange | ClipRangeU85 = ClipRange.OFM_PRECISION


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
    rounding: Rounding = RoundMode.DBL
    accumulators: AccFormat = AccFormat.I32
    part_kernel: bool | None = None
    written: WrittenWeights | None = None
    order: Order = AS_COMPUTED


@dataclass(frozen=True, slots=True)
class Pooling:
    """POOL; `scale` is OFM_SCALE.

    mode  what U85 has alone is of `PoolingModeU85`. AVERAGE without padding is a sum with `scale`;
          with padding it divides by how many elements are no padding
    """

    origin: Origin
    mode: PoolingMode | PoolingModeU85
    ifm: Map
    ofm: Map
    kernel: Kernel
    scale: Scale
    activation: Activation
    upscale: UpscaleMode = UpscaleMode.NONE
    rounding: Rounding = RoundMode.DBL
    accumulators: AccFormat = AccFormat.I32
    order: Order = AS_COMPUTED

    @property
    def moves(self) -> bool:
        """Whether it gives the numbers of 8 or 16 bits that it reads, in whatever order."""
        modes = PoolingMode.MAX, PoolingMode.AVERAGE
        return self.mode in modes and self.ofm.dtype.itemsize <= 2 and self.keeps_numbers

    @property
    def keeps_numbers(self) -> bool:
        """Whether it gives the numbers that it reads, of whatever width, in whatever order.

        Those of 32 bits are not clipped where the bounds are all that registers hold.
        """
        ifm, ofm, activation = self.ifm, self.ofm, self.activation
        info = np.iinfo(ofm.dtype if ofm.dtype.itemsize <= 2 else np.int16)
        return (
            self.mode in (PoolingMode.MAX, PoolingMode.AVERAGE, PoolingModeU85.SUM)
            and self.kernel == Kernel()
            and self.upscale is UpscaleMode.NONE
            and (self.mode is PoolingMode.MAX or self.scale == Scale(1, 0))
            and (ifm.dtype, ifm.zero_point) == (ofm.dtype, ofm.zero_point)
            and activation.table is None
            and activation.function == "RELU"
            and activation.clip_range is ClipRange.OFM_PRECISION
            and activation.minimum <= info.min
            and activation.maximum >= info.max
        )


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """CONV of U85 with weights from a map: each pixel of `ifm` times the columns of `ifm2`.

    ifm     [H, W, C]
    ifm2    [1, D, C] in NHCWB16: what a pixel is multiplied with for each channel of the result
    ofm     [H, W, D] if it is stored as it is computed
    scale   OFM_SCALE
    """

    origin: Origin
    ifm: Map
    ifm2: Map
    ofm: Map
    scale: Scale
    activation: Activation
    rounding: Rounding = RoundMode.DBL
    accumulators: AccFormat = AccFormat.I32
    order: Order = AS_COMPUTED


@dataclass(frozen=True, slots=True)
class Steps:
    """Where RESIZE reads along an axis for element i: `(i * step + offset) / scale`."""

    scale: int
    step: int
    offset: int


@dataclass(frozen=True, slots=True)
class Resize:
    """RESIZE of U85; `scale` is OFM_SCALE."""

    origin: Origin
    mode: ResizeModeU85
    ifm: Map
    ofm: Map
    rows: Steps
    columns: Steps
    scale: Scale
    activation: Activation
    rounding: Rounding = RoundMode.DBL
    order: Order = AS_COMPUTED


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
    mode           what U85 has alone is of `ElementwiseModeU85`
    ifm            on U85 an axis of extent 1 is broadcast too
    reversed       whether `ifm2` is the first operand
    scale          OFM_SCALE; None where the output's scale mode is not global
    scale_a        OPA_SCALE and OPB_SCALE; None where they are not written
    operand_scales of `ifm` and `ifm2`, as only U85 has them; None for what the fields above say
    """

    origin: Origin
    mode: ElementwiseMode | ElementwiseModeU85
    ifm: Map
    ifm2: Map | Scalar | None
    ofm: Map
    activation: Activation
    reversed: bool = False
    scale: Scale | None = None
    scale_a: Scale | None = None
    scale_b: Scale | None = None
    scale_mode: IfmScaleMode = IfmScaleMode.OPA_OPB_16
    rounding: Rounding = RoundMode.DBL
    ifm_rounding: RoundMode = RoundMode.DBL
    operand_scales: tuple[OperandScale | None, OperandScale | None] | None = None
    order: Order = AS_COMPUTED


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that a transfer of U85 moves; integers of 32 bits name those of one side.

    indices        tensor in which these are from `offset_bytes` on, one after the other
    count          lines
    strides_bytes  between lines of the source, and of the destination
    greatest       index
    scatters       whether lines of the destination are named, not of the source
    """

    indices: int
    offset_bytes: int
    count: int
    strides_bytes: tuple[int, int]
    greatest: int
    scatters: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """A transfer of `length_bytes` contiguous bytes from one tensor into another.

    lines  of so many bytes each that are moved one by one; None for one piece
    """

    origin: Origin
    source: int
    source_offset_bytes: int
    destination: int
    destination_offset_bytes: int
    length_bytes: int
    lines: Lines | None = None

    @property
    def moved_bytes(self) -> int:
        """All bytes that are moved."""
        return self.length_bytes * (1 if self.lines is None else self.lines.count)

    @property
    def spans_bytes(self) -> tuple[int, int]:
        """Bytes of source and of destination between the first and the last that it may touch."""
        if self.lines is None:
            return self.length_bytes, self.length_bytes
        last = self.lines.greatest, self.lines.count - 1
        places = last[::-1] if self.lines.scatters else last
        source, destination = (
            place * stride + self.length_bytes
            for place, stride in zip(places, self.lines.strides_bytes, strict=True)
        )
        return source, destination


Computation = Convolution | MatrixProduct | Pooling | Resize | Elementwise


@dataclass(frozen=True, slots=True)
class Chain:
    """Operations of U85 each of which hands its blocks to a later one inside the NPU.

    links  the first is any computation but a RESIZE, the others are elementwise and give as many
           elements; what a link but the last writes, only later links read, and it lies nowhere
    """

    links: tuple[Computation, ...]

    @property
    def origin(self) -> Origin:
        """Where its first link comes from."""
        return self.links[0].origin

    @property
    def ofm(self) -> Map:
        """What its last link writes."""
        return self.links[-1].ofm

    @property
    def handed_on(self) -> frozenset[int]:
        """Indices of the tensors that are never in memory."""
        return frozenset(link.ofm.tensor for link in self.links[:-1])


Blockwise = Computation | Chain
"""What is done block by block: all but copies."""
Operation = Blockwise | Copy


def links_of(operation: Operation) -> tuple[Computation, ...]:
    """Return what an operation computes: a chain's links, else itself; nothing of a copy."""
    match operation:
        case Chain(links=links):
            return links
        case Copy():
            return ()
        case _:
            return (operation,)


def convolution_of(operation: Operation) -> Convolution | None:
    """Return the convolution whose constants an operation reads: itself, or its first link."""
    for link in links_of(operation):
        return link if isinstance(link, Convolution) else None
    return None


def views_read(operation: Operation) -> Iterator[tuple[Computation, Map]]:
    """Yield the maps that an operation reads from memory, and the link that reads each."""
    inside = operation.handed_on if isinstance(operation, Chain) else frozenset[int]()
    for link in links_of(operation):
        match link:
            case Elementwise(ifm=ifm, ifm2=Map() as second) | MatrixProduct(ifm=ifm, ifm2=second):
                maps = ifm, second
            case _:
                maps = (link.ifm,)
        yield from ((link, map_) for map_ in maps if map_.tensor not in inside)


def maps_read(operation: Operation) -> tuple[Map, ...]:
    """Return the maps that an operation reads from memory; a copy reads none."""
    return tuple(map_ for _, map_ in views_read(operation))


def tensors_read(operation: Operation) -> tuple[int, ...]:
    """Return the indices of the tensors that an operation reads."""
    if isinstance(operation, Copy):
        lines = operation.lines
        return (operation.source,) if lines is None else (operation.source, lines.indices)
    convolution = convolution_of(operation)
    written = convolution.written if convolution else None
    streams = (written.tensor,) if written else ()
    return *(map_.tensor for map_ in maps_read(operation)), *streams


def tensor_written(operation: Operation) -> int:
    """Return the index of the tensor that an operation writes."""
    return operation.destination if isinstance(operation, Copy) else operation.ofm.tensor


def with_maps(operation: Computation, change: Callable[[Map], Map]) -> Computation:
    """Return an operation with others for its maps; it itself where none of them changes."""
    ifm, ofm = change(operation.ifm), change(operation.ofm)
    if isinstance(operation, Elementwise | MatrixProduct) and isinstance(operation.ifm2, Map):
        second = change(operation.ifm2)
        if second is not operation.ifm2:
            return replace(operation, ifm=ifm, ifm2=second, ofm=ofm)
    if ifm is operation.ifm and ofm is operation.ofm:
        return operation
    return replace(operation, ifm=ifm, ofm=ofm)
