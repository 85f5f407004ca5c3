"""What an operation of U85 demands of the memories inside the NPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Bytes,
    Computation,
    Convolution,
    Elementwise,
    Map,
    MatrixProduct,
    Operation,
    Order,
    Pooling,
    Resize,
    Shape,
    is_sparse,
)
from mizzen.targets.ethos_u.generator.shared_buffer.arrays_u85 import (
    EVERY_INPUT,
    Array,
    Unit,
    Work,
)
from mizzen.targets.ethos_u.generator.shared_buffer.fit import rounded, subkernel_side
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    Layout,
    PoolingMode,
    TransposeU85,
    UpscaleMode,
)

BRICK_CHANNELS = 16
SLAB, SPARSE_SLAB, WORD_SLAB, PART_KERNEL_SLAB = 64, 128, 32, 16
"""Input channels of a job: depth first, of sparse weights and 8-bit input, of 32-bit input or
halved, kernel part by kernel part."""
ROUND, SHORTEST_ROUND = 5, 2
LONG_ROUND, SHORTEST_LONG_ROUND = 10, 4
"""Kernel elements of a round of the array, and the least that a last one takes the time of; with
sparse weights."""


@dataclass(frozen=True, slots=True)
class DemandU85:
    """What of an operation of U85 decides which blocks fit; equal ones have the same blocks.

    shape, ifm                   of the result as it is computed, of the input
    kernel_height, kernel_width  of the part of the kernel that is under way at once, dilated
    is_point                     whether the kernel has one element
    upscale, replicates          factor by which the input is enlarged; by its nearest element
    wide                         whether accumulators have 48 bits
    part_kernel                  whether input channels come kernel part by kernel part
    sparse                       whether two of four weights are zeros, and left out
    operands                     shapes of the inputs of an elementwise operation
    order, bricks                how the result is stored; whether that may be in bricks
    columns                      of a resize: scale and step along width
    """

    work: Work
    shape: Shape
    ifm: Shape
    ifm_bytes: int
    kernel_height: int = 1
    kernel_width: int = 1
    is_point: bool = True
    stride_y: int = 1
    stride_x: int = 1
    upscale: int = 1
    replicates: bool = False
    wide: bool = False
    part_kernel: bool = False
    sparse: bool = False
    operands: tuple[Shape, ...] = ()
    order: Order = AS_COMPUTED
    bricks: bool = True
    columns: tuple[int, int] = (1, 1)

    def slab(self, part_kernel: bool, unit: Unit, array: Array) -> int | None:
        """Return the input channels of a job; None for those of the output's block."""
        if self.work not in EVERY_INPUT:
            return None
        if part_kernel and self.work is Work.CONVOLUTION:
            return PART_KERNEL_SLAB
        if self.sparse:
            return SPARSE_SLAB if self.ifm_bytes == 1 else SLAB
        halved = array.halves_slabs and unit.shape[2] == BRICK_CHANNELS
        return WORD_SLAB if halved or self.ifm_bytes == 4 else SLAB


def is_part_kernel_u85(channels: int, elements: int, *, sparse: bool = False) -> bool:
    """Whether kernel first leaves less of the array idle than depth first.

    Of a whole number of rounds the rule counts another round, as Vela 5.2 does.
    """
    size, least = (LONG_ROUND, SHORTEST_LONG_ROUND) if sparse else (ROUND, SHORTEST_ROUND)
    whole, rest = divmod(elements, size)
    rounds = size * whole + max(rest, least)
    part = channels / rounded(channels, PART_KERNEL_SLAB) * elements / rounds
    return part >= channels / rounded(channels, SPARSE_SLAB if sparse else SLAB)


def demand_u85_of(operation: Computation) -> DemandU85:
    """Return the demand of an operation on U85's memories, whatever its block."""
    match operation:
        case Elementwise(ifm=ifm, ifm2=second):
            operands = (ifm.shape, second.shape) if isinstance(second, Map) else (ifm.shape,)
            return replace(_demand(operation, Work.ELEMENTWISE), operands=operands)
        case Resize(columns=columns):
            return replace(_demand(operation, Work.RESIZE), columns=(columns.scale, columns.step))
        case MatrixProduct(accumulators=accumulators):
            wide = accumulators is AccFormat.I40
            return replace(_demand(operation, Work.PRODUCT), wide=wide)
        case Convolution(depthwise=depthwise):
            return _windowed(operation, Work.DEPTHWISE if depthwise else Work.CONVOLUTION)
        case Pooling(mode=mode):
            # U55's REDUCE_SUM and U85's are one number.
            sums = mode == PoolingMode.REDUCE_SUM
            return _windowed(operation, Work.REDUCE_SUM if sums else Work.POOL)


def _demand(operation: Computation, work: Work) -> DemandU85:
    view = operation.ofm.view
    return DemandU85(
        work,
        operation.order.computed(operation.ofm.shape),
        operation.ifm.shape,
        operation.ifm.dtype.itemsize,
        order=operation.order,
        bricks=view.layout is Layout.NHCWB16
        if isinstance(view, Bytes)
        else may_store_bricks(operation),
    )


def may_store_bricks(operation: Operation) -> bool:
    """Whether what an operation stores may lie in bricks, for all that its order says.

    Blocks of resizes and of what is broadcast are not as tall and wide as bricks are deep, which
    rows or columns become.
    """
    match operation:
        case Elementwise(ifm=ifm, ifm2=Map() as second, ofm=ofm, order=order):
            is_whole = ifm.shape == second.shape == order.computed(ofm.shape)
            return is_whole or order.transpose is TransposeU85.HWC
        case Resize(order=order):
            return order.transpose is TransposeU85.HWC
        case _:
            return True


def _windowed(operation: Convolution | Pooling, work: Work) -> DemandU85:
    kernel = operation.kernel
    elements = kernel.height * kernel.width
    part = sparse = False
    if isinstance(operation, Convolution) and work is Work.CONVOLUTION:
        preferred = operation.part_kernel
        sparse = is_sparse(operation, Arch.U85)
        fills = is_part_kernel_u85(operation.ifm.shape[2], elements, sparse=sparse)
        part = fills if preferred is None else preferred
    return replace(
        _demand(operation, work),
        kernel_height=subkernel_side(kernel.dilated_height),
        kernel_width=subkernel_side(kernel.dilated_width),
        is_point=elements == 1,
        stride_y=kernel.stride_y,
        stride_x=kernel.stride_x,
        upscale=1 if operation.upscale is UpscaleMode.NONE else 2,
        replicates=operation.upscale is UpscaleMode.NEAREST,
        wide=operation.accumulators is AccFormat.I40,
        part_kernel=part,
        sparse=sparse,
    )
