"""Products of matrices that are both computed. Ref: TOSA 1.0, 2.3.8 MATMUL."""

from __future__ import annotations

from math import prod

from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_rescale import requantize
from mizzen.frontends.torch.int_lowering.int_terms import Pending, Target
from mizzen.frontends.torch.shapes import reshape
from mizzen.graph import Value


def matmul(call: IntCall) -> Pending:
    """[..., H, C] times [..., C, W]; leading dimensions must be the same."""
    names = ("self", "mat2" if "mat2" in call.arguments else "other")
    x, y = (call.real(name) for name in names)
    left, right = x.value.shape, y.value.shape
    call.need(
        len(left) >= 2 and len(right) >= 2 and left[:-2] == right[:-2],
        "its operands are no stacks of as many matrices",
        "expand the smaller operand to the other's leading dimensions",
    )
    call.need(x.value.dtype is y.value.dtype, "its operands have different types")

    def emit(target: Target) -> Value:
        b = call.b
        count = prod(left[:-2])
        value = b(
            "MATMUL",
            reshape(b, x.value, (count, *left[-2:])),
            reshape(b, y.value, (count, *right[-2:])),
            b.constant([x.zero_point], x.value.dtype),
            b.constant([y.zero_point], y.value.dtype),
        )
        value = requantize(b, value, x.scale * y.scale, target)
        return reshape(b, value, call.shape)

    return Pending(emit, call.shape)
