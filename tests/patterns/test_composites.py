"""Composites cover a graph by priority, do not overlap, and can be done one after the other."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.graph import DType, Graph, Operation, TensorType, Value
from mizzen.ops import Builder
from mizzen.ops.elementwise import Abs, Add, BitwiseNot, Sub
from mizzen.patterns import Composite, Cover, Match, Pattern, Reject, Var, chain, maybe, op

I32 = TensorType((2, 4), DType.INT32)
X = Var("x")
NEGATED_SUM = Pattern("negated sum", op(BitwiseNot, op(Add, X)))
SUM = Pattern("sum", maybe(op(Abs, op(Add, X))))
ABSOLUTES = Pattern("absolutes", chain(op(Abs, X)))


class Network:
    """A builder and two inputs."""

    def __init__(self) -> None:
        self.b = Builder(Graph())
        self.x = self.b.graph.add_input(I32, "x")
        self.y = self.b.graph.add_input(I32, "y")

    def cover(self, outputs: list[Value], *patterns: Pattern) -> Cover:
        self.b.graph.set_outputs(outputs)
        return Cover(self.b.graph, patterns)


def kinds(composites: list[Composite]) -> list[tuple[str, list[str]]]:
    return [(each.name, [o.kind for o in each.operations]) for each in composites]


def test_an_earlier_pattern_takes_what_a_later_one_could() -> None:
    n = Network()
    result = n.b("BITWISE_NOT", n.b("ADD", n.x, n.y))
    found = n.cover([result], NEGATED_SUM, SUM)
    assert kinds(found.composites) == [("negated sum", ["ADD", "BITWISE_NOT"])]
    found = n.cover([result], SUM, NEGATED_SUM)
    assert kinds(found.composites) == [("sum", ["ADD"])]
    producer = result.producer
    assert producer is not None
    (miss,) = found.misses(producer)
    assert str(miss) == "negated sum: ADD: must be in one composite, and is in sum"


def test_what_may_follow_does() -> None:
    n = Network()
    result = n.b("ABS", n.b("ADD", n.x, n.y))
    assert kinds(n.cover([result], SUM).composites) == [("sum", ["ADD", "ABS"])]


def test_what_is_in_another_composite_is_left_out() -> None:
    """The last ABS may belong to the sum, but a pattern before has it."""
    n = Network()
    result = n.b("ABS", n.b("ADD", n.x, n.y))
    found = n.cover([result], ABSOLUTES, SUM)
    assert kinds(found.composites) == [("sum", ["ADD"]), ("absolutes", ["ABS"])]


def test_a_composite_says_what_it_takes_and_gives() -> None:
    n = Network()
    number = n.b.constant([[3]], DType.INT32)
    total = n.b("ADD", n.x, number)
    result = n.b("BITWISE_NOT", total)
    found = n.cover([result], NEGATED_SUM)
    (composite,) = found.composites
    assert composite.inputs == (n.x, number)
    assert composite.outputs == (result,)
    assert all(found.composite_of(each) is composite for each in composite.operations)
    assert n.cover([result, total], NEGATED_SUM).composites[0].outputs == (result, total)


def test_a_guard_keeps_operations_apart() -> None:
    def never(match: Match) -> Reject | None:
        return Reject(f"must not be {match.root.kind}")

    n = Network()
    result = n.b("BITWISE_NOT", n.b("ADD", n.x, n.y))
    pattern = Pattern("never", NEGATED_SUM.root, (never,))
    assert not n.cover([result], pattern).composites


def test_what_goes_out_and_comes_back_is_no_composite() -> None:
    n = Network()
    inner = n.b("ABS", n.x)
    result = n.b("SUB", inner, n.b("CLZ", inner))
    found = n.cover([result], Pattern("difference", op(Sub, op(Abs))))
    assert not found.composites
    producer = result.producer
    assert producer is not None
    (miss,) = found.misses(producer)
    assert miss.reason == "must not need what is made of its own composite outside"


def test_two_composites_do_not_need_each_other() -> None:
    """Neither comes back to itself, but one takes early results of the other and it of the one."""
    n = Network()
    early, other = n.b("ABS", n.x), n.b("ABS", n.y)
    first = n.b("SUB", early, n.b("CLZ", other))
    second = n.b("SUB", other, n.b("CLZ", early))
    found = n.cover([first, second], Pattern("difference", op(Sub, op(Abs))))
    assert len(found.composites) == 1
    assert found.composites[0].outputs == (second, other)


KINDS = st.sampled_from(["ABS", "ADD", "BITWISE_NOT", "SUB"])
STEPS = st.lists(st.tuples(KINDS, st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=24)
ANY = [
    Pattern("difference", op(Sub, maybe(op(Abs, op(Add))), op(BitwiseNot))),
    Pattern("sum", op(Add, chain(op(Abs, Var("a"))), Var("b"))),
    Pattern("negated", op(BitwiseNot, op((Sub, Add, Abs)))),
]


@settings(max_examples=400, deadline=None)
@given(steps=STEPS, last=st.integers(1, 3))
def test_composites_can_be_done_one_after_the_other(
    steps: list[tuple[str, int, int]], last: int
) -> None:
    n = Network()
    values = [n.x, n.y]
    for kind, first, second in steps:
        operands = [values[first % len(values)], values[second % len(values)]]
        values.append(n.b(kind, *(operands if kind in ("ADD", "SUB") else operands[:1])))
    found = n.cover(values[-last:], *ANY)
    covered = [operation for each in found.composites for operation in each.operations]
    assert len(covered) == len(set(covered))
    assert can_be_done(n.b.graph, found)


def can_be_done(graph: Graph, cover: Cover) -> bool:
    """Whether every operation, composites whole, has a turn when all that it takes is there."""
    units = {
        operation: composite.operations if composite else (operation,)
        for operation in graph
        for composite in [cover.composite_of(operation)]
    }
    waiting = set(units.values())
    there = set(graph.inputs)
    while waiting:
        ready = [unit for unit in waiting if needed(unit) <= there]
        if not ready:
            return False
        for unit in ready:
            waiting.remove(unit)
            there.update(result for operation in unit for result in operation.results)
    return True


def needed(unit: tuple[Operation, ...]) -> set[Value]:
    taken = {value for each in unit for value in each.operands}
    return {value for value in taken if value.producer not in unit}
