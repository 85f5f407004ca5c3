"""A sequence with a run done in stripes."""

from __future__ import annotations

from dataclasses import replace

from mizzen.targets.ethos_u.generator.cascade.stripes import (
    Division,
    Run,
    Step,
    divide,
    input_height,
    rows_read,
    window_rows,
)
from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    Box,
    Bytes,
    Chain,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Map,
    MatrixProduct,
    Operation,
    Pooling,
    Sequence,
    Tensor,
    Tiles,
    views_read,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout


def cascaded(sequence: Sequence, run: Run) -> Sequence | None:
    """Return a sequence that computes the same, a run done in stripes; None if it cannot be."""
    division = divide(sequence, run)
    if division is None:
        return None
    tensors = list(sequence.tensors)
    for tensor, kept in division.rows_kept.items():
        tensors[tensor] = _kept(sequence, division, tensor, kept)
    done = [_step(sequence, division, tensors, step) for step in division.steps]
    operations: list[Operation] = [
        *sequence.operations[: run.first],
        *done,
        *sequence.operations[run.last + 1 :],
    ]
    return replace(sequence, tensors=tuple(tensors), operations=tuple(operations))


def usual_layout(tensor: Tensor) -> Layout:
    """Return the layout that a tensor has, or one that wastes little."""
    if tensor.layout is not None:
        return tensor.layout
    return Layout.NHWC if tensor.shape[2] <= BRICK // 2 else Layout.NHCWB16


def _kept(sequence: Sequence, division: Division, index: int, height: int) -> Tensor:
    """Return the tensor that keeps some rows of another; its layout is fixed if any map wraps."""
    tensor = sequence.tensors[index]
    shape = height, *tensor.shape[1:]
    wraps = any(
        start % height + stop - start > height
        for step in division.steps
        for start, stop in _ranges(sequence, step, index)
    )
    return replace(tensor, shape=shape, layout=usual_layout(tensor) if wraps else tensor.layout)


def _ranges(sequence: Sequence, step: Step, tensor: int) -> list[tuple[int, int]]:
    """Return the rows of a tensor that a step reads or writes."""
    operation = sequence.operations[step.operation]
    assert not isinstance(operation, Copy)
    ranges = [
        rows_read(link, view, step.start, step.stop)
        for link, view in views_read(operation)
        if view.tensor == tensor
    ]
    if operation.ofm.tensor == tensor:
        ranges.append((step.start, step.stop))
    return ranges


def _step(
    sequence: Sequence, division: Division, tensors: list[Tensor], step: Step
) -> Computation | Chain:
    operation = sequence.operations[step.operation]
    assert not isinstance(operation, Copy)
    if isinstance(operation, Chain):
        return Chain(tuple(_link(link, division, tensors, step) for link in operation.links))
    return _link(operation, division, tensors, step)


def _link(
    operation: Computation, division: Division, tensors: list[Tensor], step: Step
) -> Computation:
    """Return some rows of what an operation, or a link of a chain, computes."""

    def stripe_of(view: Map, start: int, stop: int) -> Map:
        kept = division.rows_kept.get(view.tensor)
        return _rows(view, start, stop, tensors[view.tensor], kept)

    ofm = stripe_of(operation.ofm, step.start, step.stop)
    ifm = stripe_of(operation.ifm, *rows_read(operation, operation.ifm, step.start, step.stop))
    if isinstance(operation, Elementwise | MatrixProduct) and isinstance(operation.ifm2, Map):
        second = operation.ifm2
        second = stripe_of(second, *rows_read(operation, second, step.start, step.stop))
        return replace(operation, ifm=ifm, ifm2=second, ofm=ofm)
    if not isinstance(operation, Convolution | Pooling):
        return replace(operation, ifm=ifm, ofm=ofm)
    above, below = window_rows(operation, step.start, step.stop)
    padded = replace(
        operation.kernel,
        pad_top=max(0, -above),
        pad_bottom=max(0, below - input_height(operation)),
    )
    return replace(operation, ifm=ifm, ofm=ofm, kernel=padded)


def _rows(view: Map, start: int, stop: int, tensor: Tensor, kept: int | None) -> Map:
    """Return some rows of a map of a tensor, of which perhaps only some rows are kept."""
    box = view.view
    assert isinstance(box, Box)
    shape = stop - start, *box.shape[1:]
    first = start if kept is None else start % kept
    if kept is None or first + shape[0] <= kept:
        return replace(view, view=replace(box, shape=shape, start=(first, *box.start[1:])))
    layout = tensor.layout
    assert layout is not None
    row_bytes, column, brick = tensor.strides_bytes(layout)
    _, left, low = box.start
    inner = low // BRICK * brick if layout is Layout.NHCWB16 else low * tensor.dtype.itemsize
    at = left * column + inner
    tiles = Tiles(kept - first, kept - first, shape[1], (at, at, at))
    return replace(
        view,
        view=Bytes(
            view.tensor, shape, first * row_bytes + at, (row_bytes, column, brick), layout, tiles
        ),
    )
