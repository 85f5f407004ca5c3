"""MATMUL of two computed matrices: for each column, products in 32 bits and their sums.

The machine multiplies by weights that are encoded beforehand; two computed matrices it multiplies
element by element, with one row of the second broadcast, and sums up over channels.

Ref: TOSA 1.0, 2.3.7 MATMUL; registers of Ethos-U55, POOL REDUCE_SUM.
"""

from __future__ import annotations

import numpy as np

from mizzen.graph import DType
from mizzen.ops.tensor import Matmul
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node
from mizzen.targets.ethos_u.generator.lower.finish import NARROW_RANGE, Finish, number
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View, dense
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Elementwise,
    Kernel,
    Pooling,
    Scale,
)
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode, PoolingMode

MOST_ROWS = 4096
"""Rows or columns that one product is taken apart into at most."""

FEWEST_ROWS = 4
"""With fewer rows than this, rows are made and not columns."""

WIDE = "its operands have 16 bits, which only Ethos-U85 multiplies: quantise it to 8"
"""Why a product is refused."""


@rule(Matmul)
def product(site: Site) -> Node:
    """MATMUL of bytes, and the scale, clip and table behind it."""
    operation = site.operation
    assert isinstance(operation, Matmul)
    first, second = operation.A, operation.B
    need(first.dtype is DType.INT8, WIDE)
    finish = site.finish(scales=True)
    need(len(finish.multipliers) == 1, "its channels have scales of their own")
    zero, zero_second = number(operation.A_zp), number(operation.B_zp)
    rows = first.shape[1]
    columns = second.shape[2]
    turned = rows < FEWEST_ROWS <= columns
    need(min(rows, columns) <= MOST_ROWS, "it has too many rows and columns")

    def write(emitter: Emitter, target: View) -> None:
        left = _by_rows(emitter, site, emitter.read(first))
        right = _by_rows(emitter, site, emitter.read(second).permuted((0, 2, 1)))
        if turned:
            made = target.permuted((0, 2, 1))
            _columns(emitter, site, finish, (right, left), (zero_second, zero), made)
        else:
            _columns(emitter, site, finish, (left, right), (zero, zero_second), target)

    reads = [value for value in (first, second) if value.constant is None]
    return site.node(reads, write)


def _by_rows(emitter: Emitter, site: Site, view: View) -> View:
    """Return a view that is a whole tensor, row by row, a copy if need be.

    So the product can be made at once, as a convolution, by whoever rewrites it.
    """
    whole = dense(view.tensor, view.shape)
    if view == whole and emitter.shape(view) == view.shape:
        return view
    return emitter.copied(view, site.origin)


def _columns(
    emitter: Emitter,
    site: Site,
    finish: Finish,
    factors: tuple[View, View],
    zeros: tuple[int, int],
    target: View,
) -> None:
    """Multiply all rows [N, H, C] of the first by each of the second [N, W, C], for [N, H, W]."""
    many, few = factors
    wide = Activation(*NARROW_RANGE)
    for index in range(few.shape[1]):
        products = emitter.tensor("products", many.shape, np.dtype(np.int32))
        emitter.operations.append(
            Elementwise(
                site.origin,
                ElementwiseMode.MUL,
                emitter.map(many, zeros[0]),
                emitter.map(few.part(1, index, 1), zeros[1]),
                emitter.map(products),
                wide,
                scale=Scale(1, 0),
            )
        )
        emitter.operations.append(
            Pooling(
                site.origin,
                PoolingMode.REDUCE_SUM,
                emitter.map(products),
                emitter.map(target.part(2, index, 1), finish.zero_point),
                Kernel(),
                finish.scale,
                finish.activation,
                rounding=finish.rounding,
            )
        )
