"""Operations that are one, cut in rows: so that maps between them are never whole.

Whoever schedules cuts them anew. Stripes are put together only where it is certain that nothing
else sees a map before it is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mizzen.targets.ethos_u.generator.operations import (
    Convolution,
    Copy,
    Elementwise,
    Kernel,
    Map,
    Pooling,
)
from mizzen.targets.ethos_u.lift.footprints import Grid, grids, view_of
from mizzen.targets.ethos_u.lift.stream import Step, maps_of, with_maps
from mizzen.targets.ethos_u.lift.values import Values
from mizzen.targets.ethos_u.machine.commands_values import UpscaleMode


def whole(steps: list[Step], values: Values) -> list[Step]:
    """Return steps in which stripes of one operation are one, in the place of the first."""
    groups = _groups(steps, values)
    while groups:
        joined = {places[0]: made for places, made in groups}
        gone = {place for places, _ in groups for place in places[1:]}
        found = [joined.get(place, step) for place, step in enumerate(steps) if place not in gone]
        early = _incomplete(
            found, {tensor for _, made in groups for tensor in _seen(made, values)}, values
        )
        if not early:
            return found
        groups = [row for row in groups if not _seen(row[1], values) & early]
    return steps


def families(steps: Sequence[Step]) -> list[list[int]]:
    """Return the places of operations that may be stripes of one, wherever their maps lie."""
    found: dict[object, list[int]] = {}
    for place, step in enumerate(steps):
        if not isinstance(step.operation, Copy):
            found.setdefault(_kind(step), []).append(place)
    return [places for places in found.values() if len(places) > 1]


def follows(first: Step, second: Step) -> bool:
    """Return whether the rows of an output come right below those of another."""
    one, other = (view_of(maps_of(step)[-1][1]) for step in (first, second))
    below = one.offset_bytes + one.shape[0] * one.strides_bytes[0]
    same = one.tensor == other.tensor and one.tiles is None
    return same and other.offset_bytes == below


def inputs(stripes: Sequence[Step], values: Values) -> list[tuple[int | None, Map]] | None:
    """Return what stripes read together; None if they are not of one operation after all."""
    maps = [maps_of(step) for step in stripes]
    heights = [row[-1][1].shape[0] for row in maps]
    tops = [sum(heights[:index]) for index in range(len(heights))]
    windows = [
        step.operation for step in stripes if isinstance(step.operation, Convolution | Pooling)
    ]
    found: list[tuple[int | None, Map]] = []
    for place, (piece, _) in enumerate(maps[0][:-1]):
        pieces = [row[place][0] for row in maps]
        if len({None if seen is None else values.of(seen) for seen in pieces}) > 1:
            return None
        rows = [row[place][1] for row in maps]
        made = _window(rows, windows, tops) if windows else _operand(rows, heights)
        if made is None or len({view_of(row).tensor for row in rows}) > 1:
            return None
        found.append((piece, made))
    return found


def _seen(step: Step, values: Values) -> set[int]:
    return {values.of(piece) for piece in (*step.reads, step.written) if piece is not None}


def _groups(steps: list[Step], values: Values) -> list[tuple[list[int], Step]]:
    """Return stripes of each operation that is cut, and what they are together."""
    found: list[tuple[list[int], Step]] = []
    for family in families(steps):
        groups = [[family[0]]]
        for place in family[1:]:
            if follows(steps[groups[-1][-1]], steps[place]):
                groups[-1].append(place)
            else:
                groups.append([place])
        for group in groups:
            made = _together([steps[place] for place in group], values)
            if made:
                found.append((group, made))
    return found


def _together(stripes: Sequence[Step], values: Values) -> Step | None:
    """Return the operation that stripes are; None if they are not one after all."""
    read = inputs(stripes, values) if len(stripes) > 1 else None
    tensors = {values.of(step.written) for step in stripes}
    if read is None or len(tensors) > 1:
        return None
    ofms = [maps_of(step)[-1][1] for step in stripes]
    height = sum(row.shape[0] for row in ofms)
    found = with_maps(stripes[0], [*read, (stripes[0].written, _tall(ofms[0], height))])
    last = stripes[-1].operation
    if isinstance(found.operation, Convolution | Pooling):
        assert isinstance(last, Convolution | Pooling)
        kernel = replace(found.operation.kernel, pad_bottom=last.kernel.pad_bottom)
        found.operation = replace(found.operation, kernel=kernel)
    return _with_whole_first(found)


def _with_whole_first(step: Step) -> Step | None:
    """Return an operation whose first map is as large as its output, if it is elementwise.

    Registers say of the second map alone that its rows are repeated; where it is the first one of
    all stripes that stays, operands change places. None if both are repeated.
    """
    operation = step.operation
    if not isinstance(operation, Elementwise) or operation.ifm.shape == operation.ofm.shape:
        return step
    first, second = operation.ifm, operation.ifm2
    if not isinstance(second, Map) or second.shape != operation.ofm.shape:
        return None
    turned = replace(operation, ifm=second, ifm2=first, reversed=not operation.reversed)
    return Step(turned, step.reads[::-1], step.written, step.constant)


def _kind(step: Step) -> object:
    """Return all that stripes of one operation have in common."""
    operation = step.operation
    assert not isinstance(operation, Copy)
    activation = operation.activation
    clip = activation.minimum, activation.maximum, activation.function, activation.clip_range
    maps = tuple(_columns(row) for _, row in maps_of(step))
    common = operation.origin, type(operation), maps, clip, id(activation.table)
    match operation:
        case Convolution():
            return (
                *common,
                _without_ends(operation.kernel),
                id(operation.weights),
                id(operation.scales),
                (operation.depthwise, operation.upscale, operation.accumulators),
                (operation.part_kernel, operation.rounding),
            )
        case Pooling():
            padded = any(operation.kernel.pads)
            kernel = _without_ends(operation.kernel)
            rest = operation.mode, operation.upscale, operation.accumulators, operation.scale
            return (*common, kernel, padded, rest, operation.rounding)
        case Elementwise():
            scales = operation.scale, operation.scale_a, operation.scale_b, operation.scale_mode
            second = None if isinstance(operation.ifm2, Map) else operation.ifm2
            rest = operation.mode, operation.reversed, operation.rounding, operation.ifm_rounding
            return (*common, scales, second, rest)


def _columns(row: Map) -> tuple[object, ...]:
    """Return all of a map but where its rows are and how many."""
    view = view_of(row)
    return view.shape[1:], view.strides_bytes, view.layout, row.dtype, row.zero_point


def _without_ends(kernel: Kernel) -> Kernel:
    return replace(kernel, pad_top=0, pad_bottom=0)


def _tall(row: Map, height: int) -> Map:
    view = view_of(row)
    return replace(row, view=replace(view, shape=(height, *view.shape[1:])))


def _operand(rows: Sequence[Map], heights: Sequence[int]) -> Map | None:
    """Return an operand of all stripes: rows of it for each, or the same row for all.

    A row that is repeated within each stripe, but another one for each, is no operand of them all.
    """
    views = [view_of(row) for row in rows]
    if any(view.tiles for view in views):
        return None
    start, down = views[0].offset_bytes, views[0].strides_bytes[0]
    places = [view.offset_bytes for view in views]
    own = [view.shape[0] for view in views]
    if all(place == start for place in places) and all(height == 1 for height in own):
        return rows[0]
    tops = [sum(heights[:index]) for index in range(len(heights))]
    if own == [*heights] and places == [start + top * down for top in tops]:
        return _tall(rows[0], sum(heights))
    return None


def _window(
    rows: Sequence[Map], operations: Sequence[Convolution | Pooling], tops: Sequence[int]
) -> Map | None:
    """Return the input of all stripes; None if one of them sees other rows than it should.

    Rows count after the input was doubled, where it is.
    """
    views = [view_of(row) for row in rows]
    if any(view.tiles for view in views):
        return None
    first, last = operations[0].kernel, operations[-1].kernel
    stride, reach = first.stride_y, first.dilated_height
    factor = 1 if operations[0].upscale is UpscaleMode.NONE else 2
    height = tops[-1] + operations[-1].ofm.shape[0]
    extent = (height - 1) * stride + reach - first.pad_top - last.pad_bottom
    for view, operation, top in zip(views, operations, tops, strict=True):
        start = top * stride - first.pad_top
        end = start + (operation.ofm.shape[0] - 1) * stride + reach
        kernel, seen = operation.kernel, max(0, start)
        expected = max(0, -start), max(0, end - extent)
        down = seen // factor * view.strides_bytes[0]
        if (kernel.pad_top, kernel.pad_bottom) != expected or seen % factor:
            return None
        if view.offset_bytes != views[0].offset_bytes + down:
            return None
    return _tall(rows[0], -(-extent // factor))


def _incomplete(steps: Sequence[Step], tensors: set[int], values: Values) -> set[int]:
    """Return the tensors that are not written once everywhere, all of them before they are read."""
    reads: dict[int, int] = {}
    writes: dict[int, list[int]] = {}
    for place, step in enumerate(steps):
        for piece in step.reads:
            if piece is not None:
                reads.setdefault(values.of(piece), place)
        writes.setdefault(values.of(step.written), []).append(place)
    return {
        tensor
        for tensor in tensors & writes.keys()
        if writes[tensor][-1] >= reads.get(tensor, len(steps))
        or not _is_written_once([steps[place] for place in writes[tensor]], tensor, values)
    }


def _is_written_once(steps: Sequence[Step], tensor: int, values: Values) -> bool:
    if any(values.is_given(piece) for piece in values.members(tensor)):
        return False
    if len(steps) == 1:
        return True
    rows = [grid for step in steps for grid in _grids(step)]
    low = min(row.extent[0] for row in rows)
    known = np.zeros(max(row.extent[1] for row in rows) - low, np.bool_)
    for row in rows:
        seen = replace(row, start=row.start - low).within(known)
        if seen.any():
            return False
        seen[...] = True
    return True


def _grids(step: Step) -> list[Grid]:
    operation = step.operation
    if isinstance(operation, Copy):
        runs = (1, 1, 1), (0, 0, 0)
        return [Grid(operation.destination_offset_bytes, operation.length_bytes, *runs)]
    return grids(view_of(operation.ofm), operation.ofm.dtype.itemsize)
