"""Operators along axes: reductions, sums so far, order, softmax; and lookups by an index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mizzen.package.c.layout import Reduction
from mizzen.package.c.lowering.context import Array, Given, Rule, elements, ref
from mizzen.package.c.lowering.strides import View, copy, dense, folded, move, whole


def reduced(operation: Reduction) -> Rule:
    """Return the rule of a reduction over some axes, or all."""

    def rule(given: Given) -> None:
        source = given.tensor("self")
        rank = len(given.row(source).shape)
        named = given.arguments.get("dim")
        axes = range(rank) if named in (None, ()) else given.wholes("dim")
        reduce_axes(
            given, operation, source, [axis % max(1, rank) for axis in axes], given.output()
        )

    return rule


def extreme_with_index(value: Reduction, index: Reduction) -> Rule:
    """Return the rule of an extreme along an axis, and where it is."""

    def rule(given: Given) -> None:
        source = given.tensor("self")
        axes = [given.whole("dim") % max(1, len(given.row(source).shape))]
        for place, operation in enumerate((value, index)):
            output = given.wanted(place)
            if output is not None:
                reduce_axes(given, operation, source, axes, output)

    return rule


def reduce_axes(
    given: Given, operation: Reduction, source: int, axes: Sequence[int], output: int
) -> None:
    """Add a call of the kernel `reduce`; axes that are not neighbours are brought together."""
    tensor = given.row(source)
    given.must(tensor.dtype != np.float64, "numbers must have 32 bits, not 64")
    mean_of_whole = operation is Reduction.MEAN and tensor.dtype.kind != "f"
    given.must(not mean_of_whole, "a mean must be of real numbers")
    reduced_axes = sorted(set(axes))
    length = math.prod(tensor.shape[axis] for axis in reduced_axes)
    given.must(length > 0, "there must be something to reduce")
    if not reduced_axes:
        copy(given, source, output)
        return
    together = reduced_axes == list(range(reduced_axes[0], reduced_axes[-1] + 1))
    inner = elements(tensor.shape[reduced_axes[-1] + 1 :])
    if not together:
        source, inner = _at_end(given, source, reduced_axes), 1
    given.emit("reduce", (int(operation), ref(source), length, max(1, inner)), (output,))


def _at_end(given: Given, source: int, axes: Sequence[int]) -> int:
    tensor = given.row(source)
    order = [axis for axis in range(len(tensor.shape)) if axis not in axes] + list(axes)
    strides = dense(tensor.shape)
    view = View(tuple(tensor.shape[axis] for axis in order), tuple(strides[axis] for axis in order))
    target = given.lowering.temporary(view.shape, tensor.dtype)
    move(given, source, target, view, whole(view.shape))
    return target


def summed_so_far(given: Given) -> None:
    """PyTorch's cumsum; integers are summed in the output's type."""
    source = given.tensor("self")
    output = given.row(given.output())
    if given.row(source).dtype != output.dtype:
        target = given.lowering.temporary(output.shape, output.dtype)
        given.emit("cast", (ref(source), 0), (target,))
        source = target
    lines = rows_along(given, source, given.whole("dim"))
    given.emit("scan", (ref(source), *lines, 0, 0), (given.output(),))


def ordered(count: str | None) -> Rule:
    """Return the rule of sort, or of the first few of it."""

    def rule(given: Given) -> None:
        source = given.tensor("self")
        length, inner = rows_along(given, source, given.whole("dim", -1))
        kept = length if count is None else given.whole(count)
        name = "descending" if count is None else "largest"
        largest = int(bool(given.get(name, count is not None)))
        shape = given.row(source).shape
        total = elements(shape) // length * kept
        wanted = [given.wanted(place) for place in (0, 1)]
        types = (given.row(source).dtype, np.dtype(np.int64))
        outputs = [
            given.lowering.temporary((total,), dtype) if index is None else index
            for index, dtype in zip(wanted, types, strict=True)
        ]
        given.emit("sort", (ref(source), length, inner, kept, largest), outputs)

    return rule


def softmax(*, logarithm: bool) -> Rule:
    """Return the rule of PyTorch's softmax, or of its logarithm."""

    def rule(given: Given) -> None:
        source = given.tensor("self")
        given.must(given.row(source).dtype == np.float32, "numbers must be float32")
        lines = rows_along(given, source, given.whole("dim"))
        given.emit("softmax", (ref(source), *lines, 1.0, int(logarithm)), (given.output(),))

    return rule


def quantized_multiplier(factor: float) -> tuple[int, int]:
    """Return a real factor as a multiplier of 31 bits, half away from zero, and a power of two.

    Ref: TFLite, quantization_util.cc: QuantizeMultiplier.
    """
    fraction, shift = math.frexp(factor)
    multiplier = math.floor(fraction * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    return (0, 0) if shift < -31 else (multiplier, shift)


def looked_up(table: str, indices: str) -> Rule:
    """Return the rule of a lookup of slices along an axis."""

    def rule(given: Given) -> None:
        source = given.tensor(table)
        take(given, source, given.tensor(indices), given.whole("dim", 0), given.output())

    return rule


def indexed(given: Given) -> None:
    """PyTorch's x[i] with one tensor of integers among whole axes."""
    source = given.tensor("self")
    among = [(axis, index) for axis, index in enumerate(given.tensors("indices"))
             if index is not None]  # fmt: skip
    given.must(len(among) == 1, "there must be one tensor of indices")
    ((axis, indices),) = among
    given.must(given.row(indices).dtype.kind in "iu", "indices must be integers")
    take(given, source, indices, axis, given.output())


def take(given: Given, source: int, indices: int, axis: int, output: int) -> None:
    """Add a call of the kernel `take`: slices along an axis, by indices."""
    length, inner = rows_along(given, source, axis)
    given.emit("take", (ref(source), ref(indices), length, inner), (output,))


def gathered(given: Given) -> None:
    """PyTorch's gather: an index for each element of the output."""
    source, indices = given.tensor("self"), given.tensor("index")
    shape, wanted = given.row(source).shape, given.row(indices).shape
    given.must(bool(shape), "there must be an axis")
    axis = given.whole("dim") % len(shape)
    strides = dense(shape)
    along = [0 if place == axis else stride for place, stride in enumerate(strides)]
    extents, walked = folded(wanted, along)
    given.emit(
        "gather",
        (ref(source), ref(indices), shape[axis], strides[axis], extents, walked),
        (given.output(),),
    )


def narrowed(given: Given) -> None:
    """Indices of 64 bits for a table that the NPU reads: an index that there is not is an error."""
    counts_back = int(bool(given.get("counts_back", False)))
    arguments = (ref(given.tensor("self")), given.whole("size"), counts_back)
    given.emit("narrow_index", arguments, (given.output(),))


def take_along(given: Given, source: int, picked: Mapping[int, Array]) -> None:
    """Look elements up along some axes, one after the other, by indices that are known."""
    if not picked:
        copy(given, source, given.output())
    for place, (axis, indices) in enumerate(picked.items()):
        tensor = given.row(source)
        reached = (*tensor.shape[:axis], indices.size, *tensor.shape[axis + 1 :])
        last = place == len(picked) - 1
        output = given.output() if last else given.lowering.temporary(reached, tensor.dtype)
        held = given.lowering.constant(indices, np.int32)
        take(given, source, held, axis, output)
        source = output


def rows_along(given: Given, source: int, axis: int) -> tuple[int, int]:
    """Return the length of an axis, and how many elements are after it."""
    shape = given.row(source).shape or (1,)
    place = axis % len(shape)
    given.must(math.prod(shape) > 0, "there must be elements")
    return shape[place], elements(shape[place + 1 :])


ARGUMENTS = {
    "max": (Reduction.MAXIMUM, Reduction.ARGUMENT_OF_MAXIMUM),
    "min": (Reduction.MINIMUM, Reduction.ARGUMENT_OF_MINIMUM),
}

RULES: Mapping[str, Rule] = {
    "aten::sum.dim_IntList": reduced(Reduction.SUM),
    "aten::mean.dim": reduced(Reduction.MEAN),
    "aten::mean": reduced(Reduction.MEAN),
    "aten::amax": reduced(Reduction.MAXIMUM),
    "aten::amin": reduced(Reduction.MINIMUM),
    "aten::prod.dim_int": reduced(Reduction.PRODUCT),
    "aten::argmax": reduced(Reduction.ARGUMENT_OF_MAXIMUM),
    "aten::argmin": reduced(Reduction.ARGUMENT_OF_MINIMUM),
    "aten::any": reduced(Reduction.ANY),
    "aten::any.dim": reduced(Reduction.ANY),
    "aten::any.dims": reduced(Reduction.ANY),
    "aten::max.dim": extreme_with_index(*ARGUMENTS["max"]),
    "aten::min.dim": extreme_with_index(*ARGUMENTS["min"]),
    "aten::cumsum": summed_so_far,
    "aten::sort": ordered(None),
    "aten::sort.stable": ordered(None),
    "aten::topk": ordered("k"),
    "aten::_softmax": softmax(logarithm=False),
    "aten::_log_softmax": softmax(logarithm=True),
    "aten::index_select": looked_up("self", "index"),
    "aten::embedding": looked_up("weight", "indices"),
    "aten::index.Tensor": indexed,
    "aten::gather": gathered,
    "mizzen::narrow_index": narrowed,
}
