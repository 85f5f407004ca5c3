"""Exchange height and width of operations, and of the tensors that lie between them.

The array's microblock and the largest block are wider than high, so that a map does better with
its long side across. An operation with height and width exchanged in its maps, window and weights
computes the same numbers. A tensor that only such operations see lies exchanged, in any layout;
one that others see too, or that belongs to the caller, stays, and its strides are exchanged.

Sums have the same terms: exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from mizzen.targets.ethos_u.generator.arrange.strided import freed, in_bytes
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Box,
    Bytes,
    Chain,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Kernel,
    Map,
    MatrixProduct,
    Operation,
    Pooling,
    Resize,
    Role,
    Sequence,
    Shape,
    Tensor,
    maps_read,
    replaced,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.machine.commands_values import PoolingModeU85


def swap(sequence: Sequence, operations: Collection[int]) -> Sequence | None:
    """Return a sequence with height and width of some operations exchanged.

    None where one of them is a copy, or sees a tensor that stays in tiles or in bricks.
    """
    chosen = [sequence.operations[index] for index in operations]
    turned = turned_tensors(sequence, operations)
    changes: dict[int, tuple[Operation, ...]] = {}
    for index, operation in zip(operations, chosen, strict=True):
        swapped = (
            None
            if isinstance(operation, Copy | Chain)
            else exchanged(operation, sequence.tensors, turned)
        )
        if swapped is None:
            return None
        changes[index] = (swapped,)
    tensors = tuple(
        replace(tensor, shape=_shape(tensor.shape)) if index in turned else tensor
        for index, tensor in enumerate(sequence.tensors)
    )
    return freed(replaced(sequence, changes, tensors=tensors))


def turned_tensors(sequence: Sequence, operations: Collection[int]) -> set[int]:
    """Return the tensors that only operations of a set see, as boxes: those that are exchanged."""
    inside, stays = set(operations), columns_of_products(sequence)
    for index, operation in enumerate(sequence.operations):
        if index not in inside or isinstance(operation, Copy):
            stays |= {*tensors_read(operation), tensor_written(operation)}
            continue
        for map_ in (*maps_read(operation), operation.ofm):
            if isinstance(map_.view, Bytes):
                stays.add(map_.tensor)
    own = {index for index, tensor in enumerate(sequence.tensors) if tensor.role is Role.SCRATCH}
    return own - stays - {*sequence.inputs, *sequence.outputs}


def columns_of_products(sequence: Sequence) -> set[int]:
    """Return the tensors of second operands of products, whose columns cannot be rows."""
    return {row.ifm2.tensor for row in sequence.operations if isinstance(row, MatrixProduct)}


def exchanged(
    operation: Computation, tensors: tuple[Tensor, ...], turned: Collection[int]
) -> Computation | None:
    """Return an operation with height and width exchanged; some of its tensors lie so as well.

    None where a tensor that does not is seen in tiles or in bricks, or a result is stored in
    another order.
    """
    if operation.order != AS_COMPUTED:
        return None
    ifm, ofm = _map(operation.ifm, tensors, turned), _map(operation.ofm, tensors, turned)
    if ifm is None or ofm is None:
        return None
    match operation:
        case Convolution():
            weights = np.ascontiguousarray(operation.weights.swapaxes(1, 2))
            kernel = swapped_kernel(operation.kernel)
            return replace(operation, ifm=ifm, ofm=ofm, kernel=kernel, weights=weights)
        case Pooling(mode=PoolingModeU85.ARGMAX_X | PoolingModeU85.ARGMAX_Y):
            return None
        case Pooling():
            return replace(operation, ifm=ifm, ofm=ofm, kernel=swapped_kernel(operation.kernel))
        case Resize():
            return replace(
                operation, ifm=ifm, ofm=ofm, rows=operation.columns, columns=operation.rows
            )
        case Elementwise(ifm2=Map() as map_):
            second = _map(map_, tensors, turned)
            return None if second is None else replace(operation, ifm=ifm, ifm2=second, ofm=ofm)
        case Elementwise() | MatrixProduct():
            return replace(operation, ifm=ifm, ofm=ofm)


def _map(map_: Map, tensors: tuple[Tensor, ...], turned: Collection[int]) -> Map | None:
    if map_.tensor in turned and isinstance(map_.view, Box):
        view = map_.view
        box = Box(
            tensor=view.tensor,
            shape=_shape(view.shape),
            start=_shape(view.start),
            steps=(view.steps[1], view.steps[0]),
        )
        return replace(map_, view=box)
    if map_.shape[:2] == (1, 1):
        return map_
    view = in_bytes(map_, tensors)
    if view is None:
        return None
    stride_y, stride_x, stride_c = view.strides_bytes
    strides = stride_x, stride_y, stride_c
    return replace(map_, view=replace(view, shape=_shape(view.shape), strides_bytes=strides))


def _shape(shape: Shape) -> Shape:
    return shape[1], shape[0], shape[2]


def swapped_kernel(kernel: Kernel) -> Kernel:
    """Return a window with height and width exchanged."""
    return Kernel(
        height=kernel.width,
        width=kernel.height,
        stride_y=kernel.stride_x,
        stride_x=kernel.stride_y,
        dilation_y=kernel.dilation_x,
        dilation_x=kernel.dilation_y,
        pad_top=kernel.pad_left,
        pad_left=kernel.pad_top,
        pad_bottom=kernel.pad_right,
        pad_right=kernel.pad_bottom,
    )


def regions(sequence: Sequence) -> Iterator[tuple[int, ...]]:
    """Return sets of operations to exchange: all, then those that maps of one shape connect."""
    maps = [
        index
        for index, operation in enumerate(sequence.operations)
        if not isinstance(operation, Copy) and min(operation.ofm.shape[:2]) > 1
    ]
    computed = tuple(
        index
        for index, operation in enumerate(sequence.operations)
        if not isinstance(operation, Copy)
    )
    if not maps:
        return
    yield computed
    shapes: dict[tuple[int, int], list[int]] = {}
    for index in maps:
        operation = sequence.operations[index]
        assert not isinstance(operation, Copy), "copies have no shape"
        shapes.setdefault(operation.ofm.shape[:2], []).append(index)
    if len(shapes) > 1:
        yield from (tuple(operations) for operations in shapes.values())
