"""What a pattern matches, what its nodes are then, and what it does not match."""

from __future__ import annotations

import pytest

from mizzen.graph import DType, Graph, Operation, TensorType, Value
from mizzen.ops import Builder
from mizzen.ops.data_layout import Reshape
from mizzen.ops.elementwise import Abs, Add, Binary, BitwiseNot, Clz, Exp, Maximum, Mul, Sub
from mizzen.ops.reduction import ReduceSum
from mizzen.ops.tensor import Fft2d
from mizzen.patterns import (
    Const,
    Is,
    Match,
    Node,
    Op,
    Pattern,
    Reject,
    Var,
    chain,
    either,
    find,
    maybe,
    of,
    op,
)

I32 = TensorType((2, 4), DType.INT32)


def match(graph: Graph, root: Node, value: Value) -> Match | None:
    producer = value.producer
    assert producer is not None
    return find(graph, Pattern("sought", root), producer)


def made(value: Value) -> Operation:
    assert value.producer is not None
    return value.producer


@pytest.fixture
def b() -> Builder:
    return Builder(Graph())


@pytest.fixture
def x(b: Builder) -> Value:
    return b.graph.add_input(I32, "x")


@pytest.fixture
def y(b: Builder) -> Value:
    return b.graph.add_input(I32, "y")


def test_an_operation_is_found_with_its_operands(b: Builder, x: Value, y: Value) -> None:
    total = b("ADD", b("ABS", x), y)
    first, second = Var("first"), Var("second")
    absolute = op(Abs, first)
    root = op(Add, absolute, second)
    found = match(b.graph, root, total)
    assert found is not None
    assert (found[first], found[second]) == (x, y)
    assert found[absolute] is made(total).operands[0].producer
    assert found.operations == (found[root], found[absolute])
    assert found.inputs == (x, y)


def test_the_same_node_is_the_same_value(b: Builder, x: Value, y: Value) -> None:
    same = Var("same")
    square, product = b("SUB", x, x), b("SUB", x, y)
    assert match(b.graph, op(Sub, same, same), square)
    assert match(b.graph, op(Sub, same, same), product) is None
    assert match(b.graph, op(Sub, Var("a"), Var("b")), square)


def test_the_same_node_is_the_same_operation(b: Builder, x: Value) -> None:
    first, second = b("ABS", x), b("ABS", x)
    shared = op(Abs, Var("x"))
    root = op(Sub, op(Clz, shared), shared)
    assert match(b.graph, root, b("SUB", b("CLZ", first), first))
    assert match(b.graph, root, b("SUB", b("CLZ", first), second)) is None


@pytest.mark.parametrize(("operation", "commutes"), [(Add, True), (Maximum, True), (Sub, False)])
def test_operands_change_places_where_the_definition_lets_them(
    b: Builder, x: Value, y: Value, operation: type[Binary], commutes: bool
) -> None:
    kind, value = operation.definition.kind, Var("value")
    root = op(operation, op(Abs, value), Var("other"))
    assert match(b.graph, root, b(kind, b("ABS", x), y))
    found = match(b.graph, root, b(kind, y, b("ABS", x)))
    assert (found is not None and found[value] is x) == commutes


def test_an_order_is_given_up_where_something_later_fails(b: Builder, x: Value, y: Value) -> None:
    """The product's operands fit in either order; the sum's other operand says which is right."""
    shift = b.constant([0], DType.INT8)
    product = b("MUL", b("ABS", x), b("ABS", y), shift)
    one, other = Var("one"), Var("other")
    root = op(Add, op(Mul, op(Abs, one), op(Abs, other)), op(Clz, one))
    for source in (x, y):
        found = match(b.graph, root, b("ADD", product, b("CLZ", source)))
        assert found is not None
        assert found[one] is source


def test_kinds_may_be_several(b: Builder, x: Value, y: Value) -> None:
    root = op((Add, Sub), Var("a"), Var("b"))
    assert match(b.graph, root, b("SUB", x, y))
    assert match(b.graph, root, b("MAXIMUM", x, y)) is None


def test_an_operand_is_named_as_tosa_names_it(b: Builder, x: Value, y: Value) -> None:
    shift = Const("shift", Is("nothing", lambda array: not array.any()))
    root = op(Mul, shift=shift)
    nothing = b.constant([0], DType.INT8)
    found = match(b.graph, root, b("MUL", x, y, nothing))
    assert found is not None
    assert found[shift] is nothing
    assert match(b.graph, root, b("MUL", x, y, b.constant([3], DType.INT8))) is None


def test_a_constant_is_not_any_value(b: Builder, x: Value, y: Value) -> None:
    root = op(Add, Var("x"), Const("c"))
    assert match(b.graph, root, b("ADD", x, y)) is None
    assert match(b.graph, root, b("ADD", b.constant([[1]], DType.INT32), x))


def test_attributes_are_equal_or_hold(b: Builder, x: Value) -> None:
    total = b("REDUCE_SUM", x, axis=1)
    assert match(b.graph, op(ReduceSum, having={"axis": 1}), total)
    assert match(b.graph, op(ReduceSum, having={"axis": 0}), total) is None
    positive: Is[int] = Is("positive", lambda axis: axis > 0)
    assert match(b.graph, op(ReduceSum, having={"axis": positive}), total)


def test_results_and_values_are_of_types(b: Builder, x: Value) -> None:
    absolute = b("ABS", x)
    assert match(b.graph, op(Abs, result=of(DType.INT32)), absolute)
    assert match(b.graph, op(Abs, result=of(DType.FP16)), absolute) is None
    assert match(b.graph, op(Abs, Var("x", of(DType.FP16))), absolute) is None


def test_once_is_a_single_user_and_no_output(b: Builder, x: Value) -> None:
    inner = b("ABS", x)
    outer = b("CLZ", inner)
    root = op(Clz, op(Abs, once=True))
    assert match(b.graph, root, outer)
    b.graph.set_outputs([outer, inner])
    assert match(b.graph, root, outer) is None
    b.graph.set_outputs([outer])
    b("CLZ", inner)
    assert match(b.graph, root, outer) is None


def test_once_does_not_speak_of_the_last_operation(b: Builder, x: Value) -> None:
    outer = b("ABS", x)
    b("CLZ", outer)
    b("CLZ", outer)
    assert match(b.graph, op(Abs, once=True), outer)


def test_results_go_by_index(b: Builder) -> None:
    plane = b.graph.add_input(TensorType((1, 8, 8), DType.FP32))
    real, imaginary = b.many("FFT2D", plane, plane, inverse=False, local_bound=False)
    transform = op(Fft2d)
    second = op(Exp, transform.output(1))
    assert match(b.graph, second, b("EXP", imaginary))
    assert match(b.graph, second, b("EXP", real)) is None
    assert match(b.graph, op(Exp, transform), b("EXP", imaginary)) is None
    assert match(b.graph, op(Exp, transform), b("EXP", real))
    both = op(Add, op(Exp, transform.output(1)), op(Exp, transform.output(0)))
    assert match(b.graph, both, b("ADD", b("EXP", real), b("EXP", imaginary)))


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("way", [maybe, chain])
def test_operations_may_be_left_out(b: Builder, x: Value, steps: int, way: object) -> None:
    value = b("ABS", x)
    for _ in range(steps):
        value = b("CLZ", value)
    source = op(Abs, Var("x"))
    between = maybe(op(Clz, source)) if way is maybe else chain(op(Clz, source))
    found = match(b.graph, op(BitwiseNot, between), b("BITWISE_NOT", value))
    assert (found is not None) == (way is chain or steps <= 1)
    if found is not None:
        assert len(found.operations) == steps + 2
        assert (between in found) == (steps > 0)
        assert steps == 0 or len(found[between]) == steps


@pytest.mark.parametrize("steps", [0, 1])
def test_the_last_operation_may_be_left_out(b: Builder, x: Value, steps: int) -> None:
    source = op(Abs, Var("x"))
    value = b("CLZ", b("ABS", x)) if steps else b("ABS", x)
    found = match(b.graph, maybe(op(Clz, source)), value)
    assert found is not None
    assert [each.kind for each in found.operations] == ["CLZ", "ABS"][1 - steps :]


def test_what_a_step_needs_besides_holds_for_each(b: Builder, x: Value) -> None:
    """The second RESHAPE of the chain has another user, so the chain ends before it."""
    source, sizes = Var("source"), b.shape((8,))
    first = b("RESHAPE", x, sizes)
    second = b("RESHAPE", first, sizes)
    b("ABS", first)
    between = chain(op(Reshape, source, once=True))
    found = match(b.graph, op(Abs, between), b("ABS", second))
    assert found is not None
    assert found[source] is first
    assert found[between] == (made(second),)


def test_a_value_may_be_one_of_several(b: Builder, x: Value, y: Value) -> None:
    left, right = op(Abs, Var("x")), op(Clz, Var("x"))
    root = op(Sub, either(left, right), Var("other"))
    found = match(b.graph, root, b("SUB", b("CLZ", x), y))
    assert found is not None
    assert right in found
    assert left not in found
    with pytest.raises(KeyError):
        found[left]
    assert match(b.graph, root, b("SUB", b("BITWISE_NOT", x), y)) is None


def test_a_guard_sees_the_match_and_may_send_it_back(b: Builder, x: Value, y: Value) -> None:
    """The guard takes only the order that has y first, which is not the first to match."""
    first, second = Var("first"), Var("second")

    def second_is_x(found: Match) -> Reject | None:
        return None if found[second] is x else Reject("the second must be x")

    pattern = Pattern("guarded", op(Add, first, second), (second_is_x,))
    found = find(b.graph, pattern, made(b("ADD", x, y)))
    assert found is not None
    assert found[first] is y
    assert find(b.graph, pattern, made(b("ADD", y, y))) is None


def test_outputs_are_what_others_take(b: Builder, x: Value) -> None:
    inner = b("ABS", x)
    outer = b("CLZ", inner)
    found = match(b.graph, op(Clz, op(Abs)), outer)
    assert found is not None
    assert found.outputs == ()
    b.graph.set_outputs([outer])
    assert found.outputs == (outer,)
    b("BITWISE_NOT", inner)
    assert found.outputs == (outer, inner)


def wrong() -> list[tuple[object, str]]:
    x = Var("x")
    return [
        (lambda: op(Abs, x, x), "ABS must have 1 operands, not 2"),
        (lambda: op(Abs, x, input1=x), "ABS must have one more operand named input1"),
        (lambda: op(Abs, weight=x), "ABS must have one more operand named weight"),
        (lambda: op(Abs, having={"axis": 1}), "ABS must have an attribute axis, and has none"),
        (lambda: maybe(op(Abs)), "an operation that may be left out must say what its first"),
        (lambda: Pattern("p", x), "the last of a pattern must be an operation, not x"),
        (lambda: Pattern("p", twice()), "a choice must stand at one place of a pattern"),
    ]


def twice() -> Op[Binary]:
    choice = maybe(op(Abs, Var("x")))
    return op(Add, choice, choice)


@pytest.mark.parametrize(("make", "text"), wrong(), ids=lambda each: str(each)[:20])
def test_a_pattern_of_nothing_there_is_is_refused_where_it_is_written(
    make: object, text: str
) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=text):
        make()
