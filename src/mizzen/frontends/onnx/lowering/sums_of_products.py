"""Einstein sums that are one product of matrices, or an order of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mizzen.frontends.arrangement.movement import permuted, reshape
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.quantized.layers import matmul
from mizzen.frontends.quantized.terms import Pending, Real, Target, Term
from mizzen.graph import Value

HELP = "write it as MatMul, ReduceSum and Transpose"


def einsum(call: OnnxCall) -> Term:
    """Multiply two tensors and sum over what the result has not, or reorder one."""
    terms, result = _labels(call)
    if len(terms) == 1:
        (given,) = terms
        call.need(sorted(given) == sorted(result), "it sums over dimensions of one tensor", HELP)
        return call.moved(
            lambda value: permuted(call.b, value, [given.index(each) for each in result])
        )
    call.need(len(terms) == 2, f"it multiplies {len(terms)} tensors", HELP)
    left, right = terms
    both = [each for each in left if each in right]
    batch = [each for each in both if each in result]
    inner = [each for each in both if each not in result]
    rows, columns = ([each for each in own if each not in both] for own in (left, right))
    call.need(
        set(rows) | set(columns) <= set(result), "it sums over a dimension of one tensor", HELP
    )
    x, y = call.real(0), call.real(1)
    call.need(x.value.dtype is y.value.dtype, "its operands have different types")
    extents = {
        label: extent
        for index, own in enumerate(terms)
        for label, extent in zip(own, call.shape_of(index), strict=True)
    }

    def size(labels: Sequence[str]) -> int:
        return prod(extents[each] for each in labels)

    def placed(real: Real, own: str, first: list[str], last: list[str]) -> Real:
        turned = permuted(call.b, real.value, [own.index(each) for each in (*batch, *first, *last)])
        return Real(reshape(call.b, turned, (size(batch), size(first), size(last))))

    def emit(target: Target) -> Value:
        order = [*batch, *rows, *columns]
        value = matmul(
            call.b,
            placed(x, left, rows, inner),
            placed(y, right, inner, columns),
            target,
            [extents[each] for each in order],
        )
        return permuted(call.b, value, [order.index(each) for each in result])

    return Pending(emit, call.shape)


def _labels(call: OnnxCall) -> tuple[list[str], str]:
    """Return the labels of each operand's dimensions, and of the result's."""
    equation = call.text("equation", "").replace(" ", "")
    given, arrow, result = equation.partition("->")
    terms = given.split(",")
    call.need("." not in equation, "its dimensions have no labels (...)", HELP)
    unique = all(len(set(own)) == len(own) for own in (*terms, result))
    call.need(unique, "it takes a diagonal: a label comes twice", HELP)
    if not arrow:
        counts = "".join(terms)
        result = "".join(sorted(each for each in set(counts) if counts.count(each) == 1))
    call.need(bool(result), "it sums over everything", HELP)
    return terms, result
