"""Products that a sequence makes column by column, and what takes their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mizzen.targets.ethos_u.generator.matrix.streams import (
    Operand,
    Product,
    as_written,
    is_possible,
)
from mizzen.targets.ethos_u.generator.operations import (
    Box,
    Elementwise,
    Kernel,
    Map,
    Operation,
    Pooling,
    Scale,
    Sequence,
    tensors_read,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    AccFormat,
    Arch,
    ElementwiseMode,
    Layout,
    PoolingMode,
    RoundMode,
    UpscaleMode,
)
from mizzen.targets.ethos_u.machine.config import Accelerator

LEAST_COLUMNS = 4
LEAST_ROWS = 4
LEAST_RESULTS = 32
"""Columns, rows, and elements of a product that is worth a stream, by both models of cycles."""
AHEAD = 2
"""Operations before the product while which its stream, but for the gaps, is brought."""
UNSCALED = Scale(1, 0)


@dataclass(frozen=True, slots=True)
class _Column:
    """Two operations that make column `number` of a product."""

    multiplication: Elementwise
    sum_: Pooling
    number: int

    @property
    def is_one_product_with(self) -> tuple[object, ...]:
        """What columns of one product share."""
        first, second, whole = self.multiplication.ifm, self.multiplication.ifm2, self.sum_
        assert isinstance(second, Map)
        return (
            *(first, second.tensor, second.shape, second.dtype, second.zero_point),
            *(whole.ofm.tensor, whole.ofm.shape, whole.ofm.dtype, whole.ofm.zero_point),
            *(whole.scale, whole.rounding, whole.activation.table),
            *(whole.activation.minimum, whole.activation.maximum, whole.activation.clip_range),
        )


def with_written_products(sequence: Sequence, accelerator: Accelerator) -> Sequence:
    """Return a sequence that computes the same, products of maps as convolutions.

    Products of few rows or columns, or in other forms than those of rules, stay; on U85 all do,
    which has an operation for them.
    """
    if accelerator.arch is Arch.U85:
        return sequence
    for start, columns in _products(sequence):
        replaced = _replaced(sequence, start, columns, accelerator)
        if replaced is not None:
            return with_written_products(replaced, accelerator)
    return sequence


def _products(sequence: Sequence) -> Iterator[tuple[int, list[_Column]]]:
    """Return where products begin, and their columns, all of them."""
    users = Counter(
        tensor for operation in sequence.operations for tensor in tensors_read(operation)
    )
    index = 0
    while index < len(sequence.operations):
        columns: list[_Column] = []
        while column := _column(sequence, index + 2 * len(columns), users):
            if columns and column.is_one_product_with != columns[0].is_one_product_with:
                break
            columns.append(column)
        if len(columns) >= LEAST_COLUMNS:
            yield index, columns
        index += max(1, 2 * len(columns))


def _column(sequence: Sequence, index: int, users: Counter[int]) -> _Column | None:
    """Return the column that two operations make, if they do."""
    match sequence.operations[index : index + 2]:
        case (
            Elementwise(
                mode=ElementwiseMode.MUL,
                ifm=Map(view=Box(shape=(heads, lines, depth), steps=(1, 1))),
                ifm2=Map(view=Box(shape=(other_heads, 1, other_depth), start=(0, number, 0))),
                ofm=Map(view=Box(tensor=product)),
                reversed=False,
                scale=scale,
            ) as multiplication,
            Pooling(
                mode=PoolingMode.REDUCE_SUM,
                ifm=Map(view=Box(tensor=summed)),
                ofm=Map(view=Box(shape=(result_heads, result_rows, 1), start=(0, 0, place))),
                upscale=UpscaleMode.NONE,
                accumulators=AccFormat.I32,
            ) as sum_,
        ):
            pass
        case _:
            return None
    holds = (
        (heads, depth) == (other_heads, other_depth)
        and (heads, lines) == (result_heads, result_rows)
        and (product, number) == (summed, place)
        and users[product] == 1
        and product not in sequence.outputs
        and scale == UNSCALED
        and multiplication.activation.table is None
        and multiplication.ofm.view == sum_.ifm.view
        and {multiplication.ofm.dtype, sum_.ifm.dtype} == {np.dtype(np.int32)}
        and multiplication.ofm.zero_point == sum_.ifm.zero_point == 0
        and sum_.kernel == Kernel()
    )
    return _Column(multiplication, sum_, number) if holds else None


def _replaced(
    sequence: Sequence, start: int, columns: list[_Column], accelerator: Accelerator
) -> Sequence | None:
    """Return the sequence with one product made at once, or None if it cannot be."""
    first = columns[0]
    right = first.multiplication.ifm2
    assert isinstance(right, Map)
    left_view, result_view = first.multiplication.ifm.view, first.sum_.ofm.view
    rounding = first.sum_.rounding
    assert isinstance(left_view, Box)
    assert isinstance(result_view, Box)
    heads, lines, depth = left_view.shape
    if not isinstance(rounding, RoundMode):
        return None
    if sorted(column.number for column in columns) != list(range(len(columns))):
        return None
    if lines < LEAST_ROWS or lines * len(columns) < LEAST_RESULTS:
        return None
    if sequence.tensors[right.tensor].shape != (heads, len(columns), depth):
        return None
    if left_view.start != (0, 0, 0) or sequence.tensors[left_view.tensor].shape != left_view.shape:
        return None
    product = Product(
        first.sum_.origin,
        Operand(
            left_view.tensor, first.multiplication.ifm.dtype, first.multiplication.ifm.zero_point
        ),
        Operand(right.tensor, right.dtype, right.zero_point),
        Operand(result_view.tensor, first.sum_.ofm.dtype, first.sum_.ofm.zero_point),
        (heads, lines, len(columns), depth),
        first.sum_.scale,
        rounding,
        first.sum_.activation,
    )
    rowwise = [sequence.tensors[tensor].layout for tensor in (left_view.tensor, right.tensor)]
    if Layout.NHCWB16 in rowwise or not is_possible(product):
        return None
    new = as_written(product, len(sequence.tensors), accelerator)
    tensors = [
        replace(tensor, layout=Layout.NHWC) if index in (left_view.tensor, right.tensor) else tensor
        for index, tensor in enumerate(sequence.tensors)
    ]
    stop = start + 2 * len(columns)
    before = max(0, start - AHEAD)
    operations: list[Operation] = [
        *sequence.operations[:before],
        new.bringing,
        *sequence.operations[before:start],
        *new.operations,
        *sequence.operations[stop:],
    ]
    return replace(sequence, tensors=(*tensors, *new.tensors), operations=tuple(operations))
