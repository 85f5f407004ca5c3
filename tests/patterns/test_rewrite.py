"""Rules edit a graph where their patterns match, in one order, and say whether they did."""

from __future__ import annotations

from time import process_time

import pytest

from mizzen.graph import DType, Graph, TensorType, Value, print_graph
from mizzen.ops import DEFINITIONS, Builder
from mizzen.ops.elementwise import Abs, Add, BitwiseNot, Maximum, Mul
from mizzen.patterns import Const, Match, Matcher, Pattern, Rule, Rules, Var, of, op
from mizzen.reference import apply

I32 = TensorType((1, 8), DType.INT32)
X = Var("x")
TWICE = Pattern("twice negated", op(BitwiseNot, op(BitwiseNot, X)))
ONCE = Pattern("negated", op(BitwiseNot, X))
ONCE_MORE = Pattern("negated again", op(BitwiseNot, X))


def to_source(graph: Graph, match: Match) -> None:
    graph.replace(match.root.result, match[X])


def to_absolute(graph: Graph, match: Match) -> None:
    graph.replace(match.root.result, Builder(graph)("ABS", match[X]))


def negations(count: int) -> Graph:
    b = Builder(Graph())
    value = b.graph.add_input(I32, "x")
    for _ in range(count):
        value = b("BITWISE_NOT", value)
    b.graph.set_outputs([value])
    return b.graph


@pytest.mark.parametrize(("count", "left"), [(0, 0), (1, 1), (2, 0), (3, 1), (6, 0)])
def test_a_rule_rewrites_where_its_pattern_matches(count: int, left: int) -> None:
    graph = negations(count)
    rules = Rules([Rule(TWICE, to_source)])
    assert rules.rewrite(graph) == (count >= 2)
    assert len(graph) == left
    assert not rules.rewrite(graph)


def test_the_first_rule_that_matches_wins() -> None:
    for becomes, left in ((to_source, []), (to_absolute, ["ABS"])):
        graph = negations(1)
        others = [Rule(TWICE, to_absolute), Rule(ONCE, becomes), Rule(ONCE_MORE, to_absolute)]
        assert Rules(others).rewrite(graph)
        assert [each.kind for each in graph] == left


def test_an_untouched_graph_stays_untouched() -> None:
    graph = negations(1)
    before, version = print_graph(graph), graph.version
    assert not Rules([Rule(TWICE, to_source)]).rewrite(graph)
    assert (print_graph(graph), graph.version) == (before, version)


def test_commuting_operations_give_the_same_and_others_do_not() -> None:
    """Every operation of two operands of one type, on pairs of numbers that tell orders apart."""
    samples = {
        DType.BOOL: ([[True, False]], [[False, False]]),
        DType.INT32: ([[7, 3]], [[2, 5]]),
        DType.FP32: ([[7.0, 0.5]], [[2.0, 3.0]]),
    }
    different: dict[str, bool] = {}
    for definition in DEFINITIONS.values():
        elements = [operand.element for operand in definition.operands[:2]]
        if definition.section[:3] not in ("2.5", "2.8") or len(set(elements)) != 1:
            continue
        for dtype, (left, right) in samples.items():
            for row in definition.rows:
                if row.types[elements[0]] is dtype and definition.kind != "TABLE":
                    same = given(definition.kind, dtype, left, right)
                    different[definition.kind] = different.get(definition.kind, False) or not same
    commuting = {d.kind for d in DEFINITIONS.values() if d.commutative}
    assert commuting == {kind for kind, differs in different.items() if not differs}
    assert len(different) == 19


def given(kind: str, dtype: DType, left: object, right: object) -> bool:
    """Whether an operation gives the same for two constants in either order."""
    results: list[list[object]] = []
    for first, second in ((left, right), (right, left)):
        b = Builder(Graph())
        operands = [b.graph.constant(each, dtype) for each in (first, second)]  # pyright: ignore[reportArgumentType] nested lists
        if kind == "MUL":
            operands.append(b.constant([0], DType.INT8))
        round_it = {"round": False} if kind == "ARITHMETIC_RIGHT_SHIFT" else {}
        operation = b(kind, *operands, dtype=None, quantization=None, **round_it).producer
        assert operation is not None
        arrays = [each.constant for each in operands]
        (array,) = apply(operation, [each for each in arrays if each is not None])
        results.append(array.tolist())
    return results[0] == results[1]


PATTERNS = 20
OPERATIONS = 2000
LIMIT_S = 0.05


def steps(b: Builder, x: Value) -> Value:
    """Return a value behind many operations of four kinds, every product shared by a sum."""
    shift, number = b.constant([0], DType.INT8), b.constant([[5]], DType.INT32)
    while len(b.graph) < OPERATIONS:
        absolute = b("ABS", b("MUL", x, number, shift))
        x = b("MAXIMUM", number, b("ADD", b("MUL", absolute, x, shift), absolute))
    return x


def sought(index: int) -> Pattern:
    """Return a pattern of one of the four kinds, with a shared operation, that needs swaps."""
    x, number = Var("x"), Const("number")
    absolute = op(Abs, op(Mul, x, number))
    total = op(Add, absolute, op(Mul, x, absolute))
    last = op(Maximum, total, number) if index % 4 < 2 else op(Mul, number, total)
    if index % 2:
        last = op(Abs, op(Mul, Var("float", of(DType.FP32)), number))
    return Pattern(f"{index}", last)


def test_twenty_patterns_are_tried_on_two_thousand_operations_at_once(slowness: float) -> None:
    b = Builder(Graph())
    b.graph.set_outputs([steps(b, b.graph.add_input(I32))])
    matcher = Matcher([sought(index) for index in range(PATTERNS)])
    times: list[float] = []
    for _ in range(5):
        start = process_time()
        found = [matcher.first(b.graph, operation) for operation in b.graph]
        times.append(process_time() - start)
        assert sum(match is not None for match in found) == 400
    assert min(times) < LIMIT_S * slowness
