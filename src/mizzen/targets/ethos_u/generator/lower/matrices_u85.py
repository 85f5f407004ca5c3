"""MATMUL of two computed matrices on U85: one operation for each of them, in the MAC array.

A pixel of the first operand is a row, and the second, in the place of weights, has a column for
each channel of the result: in both what is summed up are channels. The product of matrices that are
exchanged and transposed is the same one transposed, so that the result may lie either way.

Ref: TOSA 1.0, 2.3.7 MATMUL; registers of Ethos-U85, OP_CONV with weights from IFM2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.graph import DType, Value
from mizzen.ops.tensor import Matmul
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node
from mizzen.targets.ethos_u.generator.lower.finish import Finish, number
from mizzen.targets.ethos_u.generator.lower.movement import lies
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule_u85
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import Ints, View, pixels
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    PERMUTATIONS,
    MatrixProduct,
    Order,
    Role,
)
from mizzen.targets.ethos_u.machine.commands_values import AccFormat, TransposeU85

BY_ROWS, BY_COLUMNS = (0, 1, 2), (0, 2, 1)
"""Orders of a stack of matrices."""


@rule_u85(Matmul)
def product(site: Site) -> Node:
    """MATMUL of integers of 8 or 16 bits, and the scale, clip and table after it."""
    operation = site.operation
    assert isinstance(operation, Matmul)
    first, second = operation.A, operation.B
    need(first.dtype is second.dtype, "its operands are not alike")
    need(first.dtype in (DType.INT8, DType.INT16), "its operands have neither 8 nor 16 bits")
    finish = site.finish(scales=True)
    need(len(finish.multipliers) == 1, "its channels have scales of their own")
    zeros = number(operation.A_zp), number(operation.B_zp)
    products = _Products(site, finish, first.dtype is DType.INT16)

    def write(emitter: Emitter, target: View) -> None:
        left = products.read(emitter, emitter.read(first))
        right = products.read(emitter, emitter.read(second).permuted(BY_COLUMNS))
        made = target.permuted(BY_COLUMNS)
        if pixels(target) and not _is_lighter(emitter, left, right):
            products.write(emitter, (left, right), zeros, target)
        else:
            products.write(emitter, (right, left), (zeros[1], zeros[0]), made)

    reads = [value for value in (first, second) if value.constant is None]
    orders = dict(_orders((first, BY_ROWS), (second, BY_COLUMNS)))
    return site.node(reads, write, orders=orders, stores=_is_matrix)


def _is_matrix(view: View) -> bool:
    return pixels(view) or pixels(view.permuted(BY_COLUMNS))


def _orders(*wanted: tuple[Value, Ints]) -> Iterator[tuple[Value, Ints]]:
    """Return the values that lie in another order than is wanted, with that."""
    for value, axes in wanted:
        seen = lies(value)
        if value.constant is None and (seen is None or not pixels(seen.permuted(axes))):
            yield value, axes


def _is_lighter(emitter: Emitter, first: View, second: View) -> bool:
    """Whether of two operands only the first may lie in bricks: the second is the caller's."""
    roles = [emitter.tensors[view.tensor].role for view in (first, second)]
    return roles[0] is Role.SCRATCH is not roles[1]


@dataclass(frozen=True, slots=True, eq=False)
class _Products:
    """Adds the products of two stacks of matrices."""

    site: Site
    finish: Finish
    wide: bool

    def read(self, emitter: Emitter, view: View) -> View:
        """Return matrices whose rows are pixels, a copy if need be."""
        return view if pixels(view) else emitter.copied(view, self.site.origin)

    def write(
        self, emitter: Emitter, factors: tuple[View, View], zeros: tuple[int, int], target: View
    ) -> None:
        """Multiply rows [N, H, C] by columns [N, W, C] for [N, H, W]."""
        finish = self.finish
        for index in range(target.shape[0]):
            left, right, made = (view.part(0, index, 1) for view in (*factors, target))
            order = AS_COMPUTED if pixels(made) else Order(TransposeU85.HCW)
            made = made.permuted(PERMUTATIONS[order.transpose])
            emitter.operations.append(
                MatrixProduct(
                    self.site.origin,
                    emitter.map(left, zeros[0]),
                    emitter.map(right, zeros[1]),
                    emitter.map(made, finish.zero_point),
                    finish.scale,
                    finish.activation,
                    rounding=finish.rounding,
                    accumulators=AccFormat.I40 if self.wide else AccFormat.I32,
                    order=order,
                )
            )
