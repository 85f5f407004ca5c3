"""What the blocks and the cost of an operation follow from, without addresses and layouts.

Operations of equal facts have equal candidates and equal costs, so that facts are the key of
whatever is remembered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

import numpy as np

from mizzen.targets.ethos_u.generator.operations import (
    PERMUTATIONS,
    Activation,
    Blockwise,
    Chain,
    Computation,
    Convolution,
    Elementwise,
    Kernel,
    Map,
    MatrixProduct,
    Pooling,
    Resize,
    Scalar,
    Shape,
    maps_read,
    views_read,
)
from mizzen.targets.ethos_u.generator.shared_buffer import (
    DemandU85,
    demand_on,
    microblock_for,
    slab_for,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    ElementwiseMode,
    IfmScaleMode,
    PoolingMode,
    ReverseU85,
    TransposeU85,
    UpscaleMode,
)
from mizzen.targets.ethos_u.machine.config import Accelerator

SUBKERNEL = 8
"""Kernels are done in parts of at most so many positions along each axis."""
UNARY = {ElementwiseMode.LRELU, ElementwiseMode.ABS, ElementwiseMode.CLZ}
"""Elementwise operations that have one operand."""


class Kind(Enum):
    """How the array works on an operation."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    REDUCE_SUM = "reduce sum"
    POOL = "pool"
    ELEMENTWISE = "elementwise"
    RESIZE = "resize"


ALONE = (Kind.ELEMENTWISE, Kind.RESIZE)
"""Kinds whose array goes over no kernel."""
EVERY_CHANNEL = (Kind.CONVOLUTION, Kind.REDUCE_SUM)
"""Kinds of which an output channel needs all input channels."""
HAS_WEIGHTS = (Kind.CONVOLUTION, Kind.DEPTHWISE)


TURNING = (TransposeU85.WHC, TransposeU85.WCH, TransposeU85.CWH)
"""Ways of storing by which height and width change places, which takes U85 longer."""


class Function(Enum):
    """What an activation asks of the output unit."""

    NONE = "none"
    RELU = "relu"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Facts:
    """What an operation is to the array, the output unit and the shared buffer.

    shape           of the output, as it is computed
    inputs          shapes of the inputs as the kernel reads them, broadcast axes of extent 1
    kernel          sizes with dilation, and strides and dilations: of height, then of width
    pads            above, left
    reserves_second whether a second input, or room for one, lies in the shared buffer
    simple          of ADD and SUB, whether both operands are scaled in 16 bits
    microblock      of the output, that is computed at once
    slab            input channels of one job at most, where they come depth first
    axes            of the output that each axis of the stored map is
    turned          whether height and width change places as U85 stores, or width is reversed
    chained         whether the first input comes out of a chain, and is in no memory
    sparse          whether two of four weights are zeros, and left out
    scales          of a resize, how many positions there are between two of the input
    block_depth     the only one that a block may have, because weights are in order for it
    links           of a chain, the facts of all operations after the first, whose facts these are;
                    but inputs are those of all that come from memory, the links' last
    """

    kind: Kind
    shape: Shape
    inputs: tuple[Shape, ...]
    input_bits: int
    output_bits: int
    function: Function
    microblock: Shape
    slab: int
    mode: str = ""
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int] = (0, 0)
    upscale: UpscaleMode = UpscaleMode.NONE
    accumulators: AccFormat = AccFormat.I32
    reserves_second: bool = False
    simple: bool = False
    axes: Shape = (0, 1, 2)
    turned: bool = False
    chained: bool = False
    sparse: bool = False
    scales: tuple[int, int] = (1, 1)
    block_depth: int | None = None
    links: tuple[Facts, ...] = ()

    @property
    def channels(self) -> int:
        """Input channels that each output element needs."""
        return self.inputs[0][2] if self.kind in EVERY_CHANNEL else 1

    @property
    def stored_shape(self) -> Shape:
        """The shape of the output as it is stored."""
        height, width, depth = (self.shape[axis] for axis in self.axes)
        return height, width, depth

    @property
    def subkernels(self) -> tuple[int, ...]:
        """Kernel elements of each part of the kernel that is done by itself."""
        return (1,) if self.kind in ALONE else _parts(self.kernel, self.dilations)

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the result needs; 0 where there are no weights."""
        if self.kind not in HAS_WEIGHTS:
            return 0
        return math.prod(self.shape) * sum(self.subkernels) * self.channels


@lru_cache(maxsize=256)
def _parts(kernel: tuple[int, int], dilations: tuple[int, int]) -> tuple[int, ...]:
    """Return the elements of each part of a kernel of some size, dilation included."""
    sides: list[list[int]] = []
    for span, step in zip(kernel, dilations, strict=True):
        count, most = (span - 1) // step + 1, SUBKERNEL // step
        sides.append([min(most, count - at) for at in range(0, count, most)])
    return tuple(high * wide for high in sides[0] for wide in sides[1])


def facts_of(
    operation: Blockwise, accelerator: Accelerator, channels: tuple[int, int] | None = None
) -> Facts:
    """Return the facts of an operation, or of some channels of its output."""
    match operation:
        case Chain():
            return _chain(operation, accelerator, channels)
        case Convolution(depthwise=depthwise):
            kind = Kind.DEPTHWISE if depthwise else Kind.CONVOLUTION
            return _windowed(operation, accelerator, kind, channels)
        case Pooling(mode=mode):
            # U55's REDUCE_SUM and U85's are one number.
            sums = mode == PoolingMode.REDUCE_SUM
            kind = Kind.REDUCE_SUM if sums else Kind.POOL
            facts = _windowed(operation, accelerator, kind, channels)
            return replace(facts, mode=mode.name)
        case MatrixProduct(ifm=ifm, ifm2=second):
            facts = _alone(operation, accelerator, Kind.CONVOLUTION, (ifm.shape, second.shape))
            return replace(facts, accumulators=operation.accumulators)
        case Resize(ifm=ifm, mode=mode):
            facts = _alone(operation, accelerator, Kind.RESIZE, (ifm.shape,))
            axes = operation.rows, operation.columns
            return replace(
                facts,
                mode=mode.name,
                kernel=(axes[0].scale + 1, axes[1].scale + 1),
                strides=(axes[0].step, axes[1].step),
                pads=(-axes[0].offset, -axes[1].offset),
                scales=(axes[0].scale, axes[1].scale),
            )
        case Elementwise():
            return _elementwise(operation, accelerator, channels)


def _chain(chain: Chain, accelerator: Accelerator, channels: tuple[int, int] | None) -> Facts:
    first, *links = (facts_of(link, accelerator, channels) for link in chain.links)
    following: list[Facts] = []
    for link, facts in zip(chain.links[1:], links, strict=True):
        inputs = tuple(
            _part(map_.shape, channels) for reader, map_ in views_read(chain) if reader is link
        )
        following.append(replace(facts, microblock=first.microblock, inputs=inputs, chained=True))
    others = (shape for facts in following for shape in facts.inputs)
    return replace(first, inputs=(*first.inputs, *others), links=tuple(following))


def _part(shape: Shape, channels: tuple[int, int] | None) -> Shape:
    """Return the shape of some channels of an operand, which may have only one for all."""
    if channels is None or shape[2] == 1:
        return shape
    return *shape[:2], channels[1] - channels[0]


def _alone(
    operation: Computation, accelerator: Accelerator, kind: Kind, inputs: tuple[Shape, ...]
) -> Facts:
    """Return the facts of an operation without what its kernel says."""
    demand, order = demand_on(operation, accelerator), operation.order
    shape = order.computed(operation.ofm.shape)
    return Facts(
        kind=kind,
        shape=shape,
        inputs=inputs,
        input_bits=8 * operation.ifm.dtype.itemsize,
        output_bits=8 * operation.ofm.dtype.itemsize,
        function=_function(operation.activation, operation.ofm),
        microblock=microblock_for(demand, accelerator),
        slab=slab_for(demand, accelerator),
        sparse=isinstance(demand, DemandU85) and demand.sparse,
        axes=PERMUTATIONS[order.transpose],
        turned=order.transpose in TURNING or order.reverse is ReverseU85.W,
    )


def _windowed(
    operation: Convolution | Pooling,
    accelerator: Accelerator,
    kind: Kind,
    channels: tuple[int, int] | None,
) -> Facts:
    whole, kernel = _alone(operation, accelerator, kind, ()), operation.kernel
    height, width, depth = whole.shape
    if channels is not None:
        depth = channels[1] - channels[0]
    shape = height, width, depth
    read = operation.ifm.shape[2] if kind in EVERY_CHANNEL else depth
    tall, wide = _covered(operation, shape)
    written = operation.written if isinstance(operation, Convolution) else None
    return replace(
        whole,
        shape=shape,
        inputs=((tall, wide, read),),
        kernel=(kernel.dilated_height, kernel.dilated_width),
        strides=(kernel.stride_y, kernel.stride_x),
        dilations=(kernel.dilation_y, kernel.dilation_x),
        pads=(kernel.pad_top, kernel.pad_left),
        upscale=operation.upscale,
        accumulators=operation.accumulators,
        block_depth=None if written is None else written.block_depth,
    )


def _covered(operation: Convolution | Pooling, shape: Shape) -> tuple[int, int]:
    """Return the rows and columns of the input that the kernel passes over."""
    kernel, factor = operation.kernel, 1 if operation.upscale is UpscaleMode.NONE else 2
    return covered_side(
        shape[0], kernel.stride_y, kernel.dilated_height, _pads(kernel)[0], factor
    ), covered_side(shape[1], kernel.stride_x, kernel.dilated_width, _pads(kernel)[1], factor)


def _pads(kernel: Kernel) -> tuple[int, int]:
    return kernel.pad_top + kernel.pad_bottom, kernel.pad_left + kernel.pad_right


def covered_side(extent: int, stride: int, span: int, pads: int, factor: int) -> int:
    """Return the positions of an input along one axis, which registers say by pads only."""
    return -(-((extent - 1) * stride + span - pads) // factor)


def _elementwise(
    operation: Elementwise, accelerator: Accelerator, channels: tuple[int, int] | None
) -> Facts:
    second = operation.ifm2
    inputs = tuple(_part(map_.shape, channels) for map_ in maps_read(operation))
    in_register = (
        isinstance(second, Scalar) and second.dtype.itemsize <= np.dtype(np.int16).itemsize
    )
    whole = _alone(operation, accelerator, Kind.ELEMENTWISE, inputs)
    return replace(
        whole,
        shape=_part(whole.shape, channels),
        mode=operation.mode.name,
        reserves_second=not in_register,
        simple=operation.scale_mode is IfmScaleMode.OPA_OPB_16,
    )


def _function(activation: Activation, ofm: Map) -> Function:
    if activation.table is not None or activation.function != "RELU":
        return Function.TABLE
    if ofm.dtype.itemsize > np.dtype(np.int16).itemsize:
        return Function.NONE
    bounds = np.iinfo(ofm.dtype)
    whole = activation.minimum <= bounds.min and activation.maximum >= bounds.max
    return Function.NONE if whole else Function.RELU
