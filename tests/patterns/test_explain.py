"""Why a pattern does not match, and how patterns print."""

from __future__ import annotations

import pytest

from mizzen.graph import DType, Graph, TensorType, Value
from mizzen.ops import Builder
from mizzen.ops.data_layout import Reshape
from mizzen.ops.elementwise import Abs, Add, Clamp, Clz, Exp, Mul, Sub
from mizzen.ops.reduction import ReduceSum
from mizzen.ops.tensor import Conv2d, Fft2d
from mizzen.patterns import (
    Const,
    Is,
    Match,
    Pattern,
    Reject,
    Var,
    chain,
    either,
    explain,
    find,
    maybe,
    of,
    op,
)

X = Var("x")
SHIFT = Const("shift", Is("of nothing", lambda array: not array.any()))
PRODUCT = op(Mul, op(Abs, X, once=True), X, shift=SHIFT)
LAST = op(ReduceSum, PRODUCT, having={"axis": 1}, result=of(DType.INT32))


def wide(match: Match) -> Reject | None:
    """There are at least four columns."""
    columns = match[X].shape[1]
    return None if columns >= 4 else Reject(f"columns must be 4, and are {columns}", match[PRODUCT])


PATTERN = Pattern("sum of squares", LAST, (wide,))


class Network:
    """Values that lead to a match; each test takes another one for one of them."""

    def __init__(self, columns: int = 4) -> None:
        self.b = Builder(Graph())
        self.x = self.b.graph.add_input(TensorType((2, columns), DType.INT32), "x")
        self.absolute = self.b("ABS", self.x)
        self.shift = 0
        self.axis = 1

    def sum(self) -> Value:
        shift = self.b.constant([self.shift], DType.INT8)
        return self.b("REDUCE_SUM", self.b("MUL", self.absolute, self.x, shift), axis=self.axis)


def why(network: Network, pattern: Pattern = PATTERN) -> str:
    producer = network.sum().producer
    assert producer is not None
    miss = explain(network.b.graph, pattern, producer)
    matched = find(network.b.graph, pattern, producer)
    assert (miss is None) == (matched is not None)
    return str(miss)


def another_axis(network: Network) -> None:
    network.axis = 0


def another_shift(network: Network) -> None:
    network.shift = 5


def another_user(network: Network) -> None:
    network.b("CLZ", network.absolute)


def an_output(network: Network) -> None:
    network.b.graph.set_outputs([network.absolute])


def another_operation(network: Network) -> None:
    network.absolute = network.b("CLZ", network.x)


def another_value(network: Network) -> None:
    network.absolute = network.b("ABS", network.b("CLZ", network.x))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (another_axis, "REDUCE_SUM: axis must be 1, and is 0"),
        (another_shift, "MUL: shift must be of nothing"),
        (another_user, "ABS: the result must have one user, and has 2"),
        (an_output, "ABS: the result must have one user, and is an output"),
        (another_operation, "MUL: must take the result of ABS, and takes CLZ"),
        (another_value, "MUL: x must be one value, not two"),
    ],
)
def test_the_reason_is_what_the_furthest_way_failed_at(change: object, reason: str) -> None:
    assert why(Network()) == "None"
    assert callable(change)
    network = Network()
    change(network)
    assert why(network) == f"sum of squares: {reason}"


def test_a_guard_gives_its_own_reason_and_place() -> None:
    assert why(Network(columns=3)) == "sum of squares: MUL: columns must be 4, and are 3"


def test_another_last_operation_is_no_near_miss() -> None:
    network = Network()
    producer = network.absolute.producer
    assert producer is not None
    assert explain(network.b.graph, PATTERN, producer) is None


def test_what_is_not_of_a_type_says_what_it_is() -> None:
    pattern = Pattern("floats", op(ReduceSum, op(Mul, Var("a", of(DType.FP32)))))
    assert why(Network(), pattern) == "floats: MUL: a must be of f32, and is tensor<2x4xi32>"
    pattern = Pattern("floats", op(ReduceSum, op(Mul), result=of(DType.FP16, DType.FP32)))
    wanted = "floats: REDUCE_SUM: the result must be of f16 or f32, and is tensor<2x1xi32>"
    assert why(Network(), pattern) == wanted


def test_a_pattern_prints_as_an_equation() -> None:
    assert str(PATTERN) == (
        "sum of squares: "
        "REDUCE_SUM{axis = 1}(MUL(ABS(x) once, x, const shift: of nothing)) of i32\n"
        "  where there are at least four columns"
    )


def test_what_stands_at_several_places_prints_once() -> None:
    shared = op(Abs, Var("x", of(DType.INT32)))
    root = op((Add, Sub), op(Clz, shared), shared)
    assert str(Pattern("shared", root)) == "shared: ADD|SUB(CLZ(A = ABS(x: of i32)), A)"


def test_choices_and_what_is_left_out_print() -> None:
    transform = op(Fft2d)
    choice = either(op(Exp, transform.output(1)), op(Exp, transform))
    named = op(Conv2d, maybe(op(Reshape, choice, once=True)), bias=Const("b"))
    root = chain(op(Clamp, named, having={"min_val": 0}))
    assert str(Pattern("choices", root)) == (
        "choices: chain CLAMP{min_val = 0}(CONV2D(maybe RESHAPE((EXP(A = FFT2D(...)#1) | EXP(A)), "
        "...) once, _, const b, ...))"
    )
