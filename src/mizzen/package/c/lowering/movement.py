"""Operators that only move elements: all are the kernel `move`, with strides worked out here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mizzen.package.c.lowering.context import Given, Rule, Shape, elements
from mizzen.package.c.lowering.strides import (
    View,
    broadcast_strides,
    copy,
    dense,
    fill,
    move,
    whole,
)


def same_elements(name: str) -> Rule:
    """Return the rule of what keeps all elements in order: views, copies; of constants, none."""

    def rule(given: Given) -> None:
        source, output = given.tensor(name), given.output()
        tensor, data = given.row(output), given.row(source).data
        if data is None or given.is_kept(output):
            copy(given, source, output)
        else:
            given.lowering.tensors[output] = replace(tensor, data=data.reshape(tensor.shape))

    return rule


def first_input(given: Given) -> None:
    """Copy the first of TFLite's inputs: RESHAPE and its like."""
    source = given.tensors()[0]
    given.must(source is not None, "the first input must be given")
    copy(given, source or 0, given.output())


def taken(select: Callable[[Given, Shape], View]) -> Rule:
    """Return the rule of an operator whose output is a view of its input, made dense."""

    def rule(given: Given) -> None:
        source = given.tensor("self")
        view = select(given, given.row(source).shape)
        move(given, source, given.output(), view, whole(view.shape))

    return rule


def permuted(given: Given, shape: Shape) -> View:
    """Return the axes in another order."""
    return _permuted(shape, given.wholes("dims"))


def transposed(given: Given, shape: Shape) -> View:
    """Return two axes exchanged."""
    order = list(range(len(shape)))
    if order:
        one, other = (_axis(given, name, shape) for name in ("dim0", "dim1"))
        order[one], order[other] = order[other], order[one]
    return _permuted(shape, order)


def _permuted(shape: Shape, order: Sequence[int]) -> View:
    strides = dense(shape)
    axes = [axis % len(shape) for axis in order]
    return View(tuple(shape[axis] for axis in axes), tuple(strides[axis] for axis in axes))


def expanded(given: Given, shape: Shape) -> View:
    """Return the elements read as often as a larger shape says."""
    target = given.row(given.output()).shape
    return View(target, broadcast_strides(shape, target))


def sliced(given: Given, shape: Shape) -> View:
    """Return every so many elements of a range along an axis."""
    axis = _axis(given, "dim", shape)
    start = _clamped(given.whole("start", 0), shape[axis])
    step = given.whole("step", 1)
    count = given.row(given.output()).shape[axis]
    strides = list(dense(shape))
    first = start * strides[axis]
    strides[axis] *= step
    return View((*shape[:axis], count, *shape[axis + 1 :]), tuple(strides), first)


def selected(given: Given, shape: Shape) -> View:
    """Return one element along an axis, which goes."""
    axis = _axis(given, "dim", shape)
    strides = dense(shape)
    first = given.whole("index") % shape[axis] * strides[axis]
    return View((*shape[:axis], *shape[axis + 1 :]), (*strides[:axis], *strides[axis + 1 :]), first)


def flipped(given: Given, shape: Shape) -> View:
    """Return some axes backwards."""
    strides = list(dense(shape))
    first = 0
    for axis in {axis % len(shape) for axis in given.wholes("dims")}:
        first += strides[axis] * (shape[axis] - 1)
        strides[axis] = -strides[axis]
    return View(shape, tuple(strides), first)


def repeated(given: Given) -> None:
    """Write the input to each of its places in the output."""
    source, output = given.tensor("self"), given.output()
    shape, target = given.row(source).shape, given.row(output).shape
    times = given.wholes("repeats")
    padded = (1,) * (len(times) - len(shape)) + shape
    # Each axis becomes two: how often, and what is repeated.
    pairs = [axis for pair in zip(times, padded, strict=True) for axis in pair]
    strides = [axis for stride in dense(padded) for axis in (0, stride)]
    given.must(elements(target) == elements(pairs), "the output must be all repetitions")
    move(given, source, output, View(tuple(pairs), tuple(strides)), whole(tuple(pairs)))


def joined(given: Given) -> None:
    """Write each input to its part of the output along an axis."""
    output = given.output()
    shape = given.row(output).shape
    axis = given.whole("dim", 0) % max(1, len(shape))
    _join(given, [i for i in given.present("tensors") if given.row(i).shape != (0,)], axis)


def stacked(given: Given) -> None:
    """Write each input to its place along a new axis."""
    output = given.output()
    shape = given.row(output).shape
    axis = given.whole("dim", 0) % len(shape)
    part = (*shape[:axis], 1, *shape[axis + 1 :])
    strides = dense(shape)
    for place, source in enumerate(given.present("tensors")):
        move(given, source, output, whole(part), View(part, strides, place * strides[axis]))


def tflite_joined(given: Given) -> None:
    """TFLite's CONCATENATION of tensors that all have one scale."""
    output = given.row(given.output())
    sources = given.present()
    scales = {(given.row(i).scales, given.row(i).zero_points) for i in sources}
    same = scales <= {(output.scales, output.zero_points)} or output.dtype.kind == "f"
    given.must(same, "inputs and output must have one scale")
    given.must(given.whole("fused_activation_function", 0) == 0, "no activation function")
    _join(given, list(sources), given.whole("axis", 0) % len(output.shape))


def _join(given: Given, sources: Sequence[int], axis: int) -> None:
    output = given.output()
    strides = dense(given.row(output).shape)
    first = 0
    for source in sources:
        shape = given.row(source).shape
        given.must(given.row(source).dtype == given.row(output).dtype, "types must be one")
        move(given, source, output, whole(shape), View(shape, strides, first))
        first += shape[axis] * strides[axis]


def split(given: Given) -> None:
    """Take each output from its part of the input along an axis."""
    source = given.tensor("self")
    shape = given.row(source).shape
    axis = _axis(given, "dim", shape)
    strides = dense(shape)
    sizes = given.wholes("split_sizes")
    for place, size in enumerate(sizes):
        output = given.wanted(place)
        part = (*shape[:axis], size, *shape[axis + 1 :])
        first = sum(sizes[:place]) * strides[axis]
        if output is not None:
            move(given, source, output, View(part, strides, first), whole(part))


def padded(given: Given) -> None:
    """Fill the output, then write the input into the middle of it; less where padding cuts."""
    source, output = given.tensor("self"), given.output()
    pads = given.wholes("pad")
    rank = len(given.row(source).shape)
    before = [0] * rank
    after = [0] * rank
    for place in range(len(pads) // 2):
        before[rank - 1 - place], after[rank - 1 - place] = pads[2 * place : 2 * place + 2]
    fill(given, output, given.real("value", 0.0))
    _inset(given, source, output, before, after)


def tflite_padded(given: Given) -> None:
    """TFLite's PAD and PADV2, whose paddings must be constant."""
    source, paddings, *rest = given.present()
    tensor = given.row(given.output())
    value = tensor.zero_points[0] if tensor.zero_points else 0
    if rest:
        value = given.held(rest[0]).item()
    fill(given, given.output(), value)
    before, after = given.held(paddings).T.tolist()
    _inset(given, source, given.output(), before, after)


def _inset(
    given: Given, source: int, output: int, before: Sequence[int], after: Sequence[int]
) -> None:
    shape, target = given.row(source).shape, given.row(output).shape
    kept = tuple(
        extent + min(low, 0) + min(high, 0)
        for extent, low, high in zip(shape, before, after, strict=True)
    )
    if min(kept, default=1) <= 0:
        return
    pairs = (dense(shape), dense(target))
    first_in = sum(max(-low, 0) * stride for low, stride in zip(before, pairs[0], strict=True))
    first_out = sum(max(low, 0) * stride for low, stride in zip(before, pairs[1], strict=True))
    move(given, source, output, View(kept, pairs[0], first_in), View(kept, pairs[1], first_out))


def tflite_transposed(given: Given) -> None:
    """TFLite's TRANSPOSE, whose permutation must be constant."""
    source, order = given.present()
    view = _permuted(given.row(source).shape, given.held(order).tolist())
    move(given, source, given.output(), view, whole(view.shape))


def tflite_sliced(given: Given) -> None:
    """TFLite's SLICE, whose begin must be constant."""
    source, begin, _ = given.present()
    shape, target = given.row(source).shape, given.row(given.output()).shape
    strides = dense(shape)
    starts = given.held(begin).tolist()
    first = sum(start * stride for start, stride in zip(starts, strides, strict=True))
    move(given, source, given.output(), View(target, strides, first), whole(target))


def tflite_strided(given: Given) -> None:
    """TFLite's STRIDED_SLICE with constant bounds; masks of begin, end and shrunken axes."""
    source, *bounds = given.present()
    shape = given.row(source).shape
    begins, _, steps = (given.held(index).tolist() for index in bounds)
    for name in ("ellipsis_mask", "new_axis_mask"):
        given.must(given.whole(name, 0) == 0, f"{name} must be 0")
    mask, shrunken = given.whole("begin_mask", 0), given.whole("shrink_axis_mask", 0)
    strides = dense(shape)
    kept = iter(given.row(given.output()).shape)
    view: list[tuple[int, int]] = []
    first = 0
    for axis, extent in enumerate(shape):
        begin, step = (begins[axis], steps[axis]) if axis < len(begins) else (0, 1)
        if mask >> axis & 1:
            begin = 0 if step > 0 else extent - 1
        first += min(begin % extent if begin < 0 else begin, extent - 1) * strides[axis]
        if not shrunken >> axis & 1:
            view.append((next(kept), strides[axis] * step))
    extents, taken_strides = zip(*view, strict=True) if view else ((), ())
    taken_view = View(tuple(extents), tuple(taken_strides), first)
    move(given, source, given.output(), taken_view, whole(tuple(extents)))


def tflite_split(given: Given) -> None:
    """TFLite's SPLIT, whose axis must be constant."""
    place, source = given.present()
    shape = given.row(source).shape
    axis = int(given.held(place).item()) % len(shape)
    _tflite_parts(given, source, axis)


def tflite_unpacked(given: Given) -> None:
    """TFLite's UNPACK: the axis goes."""
    (source,) = given.present()
    shape = given.row(source).shape
    axis = given.whole("axis", 0) % len(shape)
    _tflite_parts(given, source, axis)


def _tflite_parts(given: Given, source: int, axis: int) -> None:
    shape = given.row(source).shape
    strides = dense(shape)
    size = shape[axis] // len(given.call.outputs)
    part = (*shape[:axis], size, *shape[axis + 1 :])
    for place, output in enumerate(given.call.outputs):
        if output is not None:
            view = View(part, strides, place * size * strides[axis])
            move(given, source, output, view, whole(part))


def tflite_packed(given: Given) -> None:
    """TFLite's PACK."""
    shape = given.row(given.output()).shape
    axis = given.whole("axis", 0) % len(shape)
    part = (*shape[:axis], 1, *shape[axis + 1 :])
    strides = dense(shape)
    for place, source in enumerate(given.present()):
        view = View(part, strides, place * strides[axis])
        move(given, source, given.output(), whole(part), view)


def full(given: Given) -> None:
    """Fill with a number."""
    fill(given, given.output(), given.real("fill_value"))


def scalar(given: Given) -> None:
    """Fill the one element."""
    fill(given, given.output(), given.real("s"))


def arange(given: Given) -> None:
    """Numbers that are known here are a constant."""
    import numpy as np

    output = given.row(given.output())
    start, step = given.real("start", 0.0), given.real("step", 1.0)
    numbers = start + step * np.arange(elements(output.shape))
    copy(
        given, given.lowering.constant(numbers.reshape(output.shape), output.dtype), given.output()
    )


def _axis(given: Given, name: str, shape: Shape) -> int:
    return given.whole(name, 0) % max(1, len(shape))


def _clamped(place: int, extent: int) -> int:
    return min(max(place + extent if place < 0 else place, 0), extent)


VIEWS = """
view view_copy reshape _unsafe_view _reshape_copy flatten.using_ints unsqueeze unsqueeze_copy
squeeze squeeze.dim squeeze.dims squeeze_copy.dim squeeze_copy.dims clone alias alias_copy detach
detach_copy contiguous lift_fresh_copy
"""

RULES: Mapping[str, Rule] = {
    **{f"aten::{name}": same_elements("self") for name in VIEWS.split()},
    "mizzen::copy": same_elements("input"),
    **{f"aten::permute{tail}": taken(permuted) for tail in ("", "_copy")},
    "aten::transpose.int": taken(transposed),
    "aten::transpose_copy.int": taken(transposed),
    **{f"aten::expand{tail}": taken(expanded) for tail in ("", "_copy")},
    **{f"aten::slice{tail}.Tensor": taken(sliced) for tail in ("", "_copy")},
    **{f"aten::select{tail}.int": taken(selected) for tail in ("", "_copy")},
    "aten::flip": taken(flipped),
    "aten::repeat": repeated,
    "aten::cat": joined,
    "aten::stack": stacked,
    "aten::split_with_sizes": split,
    "aten::split_with_sizes_copy": split,
    "aten::constant_pad_nd": padded,
    "aten::full": full,
    "aten::full_like": full,
    "aten::scalar_tensor": scalar,
    "aten::arange.start_step": arange,
    **{f"tflite::{name}": first_input for name in ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")},
    "tflite::CONCATENATION": tflite_joined,
    "tflite::TRANSPOSE": tflite_transposed,
    "tflite::SLICE": tflite_sliced,
    "tflite::STRIDED_SLICE": tflite_strided,
    "tflite::SPLIT": tflite_split,
    "tflite::UNPACK": tflite_unpacked,
    "tflite::PACK": tflite_packed,
    "tflite::PAD": tflite_padded,
    "tflite::PADV2": tflite_padded,
}
