"""Patterns, where they match, and rewriting there.

A pattern is found from its last operation backwards. The first way to match wins: operands in the
order in which the pattern has them before the other order, choices in theirs, more operations in a
chain before fewer. What a way that fails got furthest with is kept if somebody asks why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import getdoc
from typing import Any, TypeAlias, overload

from mizzen.graph import Graph, Operation, Value
from mizzen.patterns.language import (
    Const,
    Either,
    Node,
    Op,
    OperationT,
    Result,
    Through,
    Var,
    equation,
    expects,
    parts,
)


@dataclass(frozen=True, slots=True)
class Reject:
    """Why a guard does not take a match: what must hold and what came, and of which operation."""

    reason: str
    at: Operation | None = None


Guard = Callable[["Match"], Reject | None]
"""Returns None where the match will do. A pure function; the first line of its docstring prints."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A name, the last operation of what is sought, and guards on what is found."""

    name: str
    root: Node
    guards: tuple[Guard, ...] = ()
    anchors: tuple[Op[Any] | Through, ...] = field(init=False)
    """The nodes that the last operation may be of, in the order in which they are tried."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "anchors", tuple(_anchors(self.root)))
        _check_choices(self.root)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that the last operation may have."""
        ops = [each.step if isinstance(each, Through) else each for each in self.anchors]
        return tuple(dict.fromkeys(kind for each in ops for kind in each.kinds))

    def __str__(self) -> str:
        """Return its name and equation on one line, each guard on another."""
        lines = [f"{self.name}: {equation(self.root)}"]
        lines += [f"  where {_words(guard)}" for guard in self.guards]
        return "\n".join(lines)


class Match:
    """What a pattern's nodes are in a graph."""

    __slots__ = ("_bound", "graph", "pattern", "root")

    def __init__(
        self,
        graph: Graph,
        pattern: Pattern,
        root: Operation,
        bound: dict[Node, Operation | Value | tuple[Operation, ...]],
    ) -> None:
        self.graph = graph
        self.pattern = pattern
        self.root = root
        self._bound = bound

    @overload
    def __getitem__(self, node: Op[OperationT]) -> OperationT: ...
    @overload
    def __getitem__(self, node: Var | Const) -> Value: ...
    @overload
    def __getitem__(self, node: Through) -> tuple[Operation, ...]: ...
    def __getitem__(
        self, node: Op[Any] | Var | Const | Through
    ) -> Operation | Value | tuple[Operation, ...]:
        """Return the match of a node; of a chain, its operations, the last one first.

        Raises KeyError for what is in a choice that was not taken.
        """
        return self._bound[node]

    def __contains__(self, node: Node) -> bool:
        """Whether a node is part of the way that matched."""
        return node in self._bound

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations matched, without constants; each once, the last one first."""
        operations: dict[Operation, None] = {}
        for bound in self._bound.values():
            if isinstance(bound, tuple):
                operations.update(dict.fromkeys(bound))
            elif isinstance(bound, Operation):
                operations[bound] = None
        return tuple(operations)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """What the operations take from outside, constants included; each once."""
        operations = self.operations
        taken = dict.fromkeys(value for each in reversed(operations) for value in each.operands)
        return tuple(value for value in taken if value.producer not in operations)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The results that are taken outside, the last operation's first."""
        inside = set(self.operations)
        results = [result for operation in self.operations for result in operation.results]
        outputs = self.graph.outputs
        return tuple(r for r in results if not inside.issuperset(r.uses) or r in outputs)


def _words(guard: Guard) -> str:
    text = getdoc(guard) or getattr(guard, "__name__", "a guard holds").replace("_", " ").strip()
    first = text.splitlines()[0].rstrip(".")
    return first[:1].lower() + first[1:]


def _check_choices(root: Node) -> None:
    """See that every choice stands at one place: what is chosen is known by its operations."""
    seen: set[Node] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node in seen:
            if isinstance(node, (Either, Through)):
                raise ValueError("a choice must stand at one place of a pattern")
            continue
        seen.add(node)
        waiting += parts(node)


def _anchors(node: Node) -> Iterator[Op[Any] | Through]:
    match node:
        case Op():
            yield node
        case Result():
            yield node.operation
        case Either():
            for choice in node.choices:
                yield from _anchors(choice)
        case Through():
            yield node
            # Last in a pattern, an operation that may be left out is there if nothing else is.
            if not isinstance(node.inner, (Var, Const)):
                yield from _anchors(node.inner)
        case Var() | Const():
            raise ValueError(f"the last of a pattern must be an operation, not {node.name}")


ORDERS = ((0, 1), (1, 0))
"""Places of the first two operands as the pattern has them, and exchanged."""


@dataclass(frozen=True, slots=True)
class Miss:
    """How near a pattern came to an operation that it does not match.

    root     the operation that would be the last one
    depth    how many of the pattern's nodes had matched
    at       the operation that does not fit
    reason   what must hold and what came
    guarded  whether all nodes matched, and a guard refused
    """

    pattern: str
    root: Operation
    depth: int
    at: Operation
    reason: str
    guarded: bool

    def __str__(self) -> str:
        """Return it as a sentence: ``turn-maxima: REDUCE_MAX: axis must be 3, and is 1``."""
        return f"{self.pattern}: {self.at.kind}: {self.reason}"


_Goals: TypeAlias = "tuple[Node, Value, _Goals | None]"
"""What is still to be matched; ways that go on with the same share it."""


class _Attempt:
    """Tries one pattern on one operation. What is bound is also the trail back."""

    __slots__ = ("bound", "graph", "misses", "pattern", "root")

    def __init__(
        self, graph: Graph, pattern: Pattern, root: Operation, misses: list[Miss] | None
    ) -> None:
        self.graph = graph
        self.pattern = pattern
        self.root = root
        self.misses = misses
        self.bound: dict[Node, Operation | Value | tuple[Operation, ...]] = {}

    def run(self) -> Match | None:
        """Return the first match that the guards take."""
        root = self.root
        for anchor in self.pattern.anchors:
            if isinstance(anchor, Through):
                matched = self.step(anchor, root, (), None)
            elif root.kind in anchor.operands:
                matched = self.operation(anchor, root, None, anchored=True)
            else:
                matched = False
            if matched:
                return Match(self.graph, self.pattern, root, self.bound)
            self.bound.clear()
        return None

    def solve(self, goals: _Goals | None) -> bool:
        """Match every goal; on False everything bound since is forgotten."""
        bound = self.bound
        mark = len(bound)
        while goals is not None:
            node, value, rest = goals
            if isinstance(node, Op):
                producer = value.producer
                if (
                    producer is None
                    or producer.kind not in node.operands
                    or value is not producer.results[0]
                ):
                    self.miss_producer(node, value)
                    return self.back(mark)
                return self.operation(node, producer, rest) or self.back(mark)
            if isinstance(node, (Var, Const)):
                if not self.leaf(node, value):
                    return self.back(mark)
            else:
                return self.branch(node, value, rest) or self.back(mark)
            goals = rest
        return self.guarded() or self.back(mark)

    def back(self, mark: int) -> bool:
        """Forget what was bound since; return False."""
        bound = self.bound
        while len(bound) > mark:
            bound.popitem()
        return False

    def leaf(self, node: Var | Const, value: Value) -> bool:
        """Bind a value."""
        before = self.bound.get(node)
        if before is not None:
            return before is value or self.miss(value, "{} must be one value, not two", node.name)
        if isinstance(node, Var):
            if node.value is not None and not node.value.test(value):
                return self.miss(
                    value, "{} must be {}, and is {}", node.name, node.value, value.type
                )
        else:
            array = value.constant
            if array is None:
                return self.miss(value, "{} must be a constant", node.name)
            if node.elements is not None and not node.elements.test(array):
                return self.miss(value, "{} must be {}", node.name, node.elements)
        self.bound[node] = value
        return True

    def branch(self, node: Result | Either | Through, value: Value, rest: _Goals | None) -> bool:
        """Match what may match in several ways, and all that is behind it."""
        if isinstance(node, Either):
            return any(self.solve((choice, value, rest)) for choice in node.choices)
        producer = value.producer
        if isinstance(node, Through):
            if producer is not None and self.step(node, producer, (), rest):
                return True
            return self.solve((node.inner, value, rest))
        if producer is None or producer.kind not in node.operation.operands:
            return self.miss_producer(node.operation, value)
        index = node.index
        if index >= len(producer.results) or producer.results[index] is not value:
            return self.miss(value, "must take result {} of {}", index, producer.kind)
        return self.operation(node.operation, producer, rest)

    def step(
        self,
        node: Through,
        operation: Operation,
        passed: tuple[Operation, ...],
        rest: _Goals | None,
    ) -> bool:
        """Match one more operation of a chain, then further ones or what is behind."""
        step = node.step
        places = step.operands.get(operation.kind)
        if places is None or not self.fits(step, operation, anchored=operation is self.root):
            return False
        bound = self.bound
        mark = len(bound)
        bound[node] = passed = (*passed, operation)
        bound.setdefault(step, operation)
        for index, operand in reversed(places[1:]):
            rest = (operand, operation.operands[index], rest)
        behind = operation.operand
        producer = behind.producer
        further = producer is not None and (node.most is None or len(passed) < node.most)
        if further and producer is not None and self.step(node, producer, passed, rest):
            return True
        bound[node] = passed
        return self.solve((node.inner, behind, rest)) or self.back(mark)

    def operation(
        self, node: Op[Any], operation: Operation, rest: _Goals | None, *, anchored: bool = False
    ) -> bool:
        """Match an operation of a kind that fits, what it takes, and all that is behind it."""
        before = self.bound.get(node)
        if before is not None:
            if before is not operation:
                return self.miss(operation, "must be one operation, not two")
            return self.solve(rest)
        if not self.fits(node, operation, anchored=anchored):
            return False
        self.bound[node] = operation
        places = node.operands[operation.kind]
        operands = operation.operands
        if places and places[-1][0] >= len(operands):
            return self.miss(operation, "must have more operands")
        for order in ORDERS if operation.kind in node.swaps else ORDERS[:1]:
            goals = rest
            for index, operand in reversed(places):
                value = operands[order[index] if index < 2 else index]
                if isinstance(operand, Op) and not self.plausible(operand, value):
                    break
                goals = (operand, value, goals)
            else:
                if self.solve(goals):
                    return True
        return False

    def plausible(self, node: Op[Any], value: Value) -> bool:
        """Whether a value comes from an operation of a kind that fits."""
        producer = value.producer
        if producer is not None and producer.kind in node.operands:
            return True
        return self.misses is not None and self.miss_producer(node, value)

    def fits(self, node: Op[Any], operation: Operation, *, anchored: bool) -> bool:
        """Whether attributes, result and users of an operation are as they must be."""
        for name, wanted in node.attributes.items():
            value = operation.attributes.get(name)
            if not expects(wanted, value):
                return self.miss(operation, "{} must be {}, and is {}", name, wanted, value)
        if node.result is not None and not node.result.test(operation.results[0]):
            came = operation.results[0].type
            return self.miss(operation, "the result must be {}, and is {}", node.result, came)
        return not node.once or anchored or self.has_one_user(operation)

    def has_one_user(self, operation: Operation) -> bool:
        """Whether a result is taken by one operation at most, and goes nowhere else."""
        for result in operation.results:
            users = len(result.uses)
            if users > 1:
                return self.miss(operation, "the result must have one user, and has {}", users)
            if result in self.graph.outputs:
                return self.miss(operation, "the result must have one user, and is an output")
        return True

    def guarded(self) -> bool:
        """Whether the guards take what is bound."""
        if not self.pattern.guards:
            return True
        match = Match(self.graph, self.pattern, self.root, self.bound)
        for guard in self.pattern.guards:
            reject = guard(match)
            if reject is not None:
                if self.misses is not None:
                    at = reject.at or self.root
                    self.add_miss(at, reject.reason, guarded=True)
                return False
        return True

    def miss_producer(self, node: Op[Any], value: Value) -> bool:
        """Keep that a value comes from another operation than it must; return False."""
        if self.misses is None:
            return False
        producer = value.producer
        came = "an input" if producer is None else producer.kind
        kinds = " or ".join(node.kinds)
        user = self.taker(value)
        self.add_miss(user, f"must take the result of {kinds}, and takes {came}", guarded=False)
        return False

    def miss(self, at: Operation | Value, reason: str, *parts: object) -> bool:
        """Keep what does not fit of an operation, or what takes a value; return False.

        Text is made only for who asks.
        """
        if self.misses is not None:
            operation = at if isinstance(at, Operation) else self.taker(at)
            self.add_miss(operation, reason.format(*parts), guarded=False)
        return False

    def taker(self, value: Value) -> Operation:
        """Return the operation matched that takes a value; the last one if none does."""
        bound = self.bound.values()
        takers = [each for each in bound if isinstance(each, Operation) and each in value.uses]
        return takers[-1] if takers else self.root

    def add_miss(self, at: Operation, reason: str, *, guarded: bool) -> None:
        assert self.misses is not None
        miss = Miss(self.pattern.name, self.root, len(self.bound), at, reason, guarded)
        self.misses.append(miss)


class Matcher:
    """Patterns by the kind of their last operation, in the order given."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._by_kind: dict[str, tuple[Pattern, ...]] = {}
        for pattern in patterns:
            for kind in pattern.kinds:
                self._by_kind[kind] = (*self._by_kind.get(kind, ()), pattern)

    def candidates(self, operation: Operation) -> tuple[Pattern, ...]:
        """Return the patterns whose last operation could be this one, by its kind."""
        return self._by_kind.get(operation.kind, ())

    def first(self, graph: Graph, operation: Operation) -> Match | None:
        """Return the match of the first pattern that takes an operation as its last."""
        for pattern in self._by_kind.get(operation.kind, ()):
            match = _Attempt(graph, pattern, operation, None).run()
            if match is not None:
                return match
        return None


def find(graph: Graph, pattern: Pattern, operation: Operation) -> Match | None:
    """Return how a pattern matches with an operation as its last, if it does."""
    return _Attempt(graph, pattern, operation, None).run()


def explain(graph: Graph, pattern: Pattern, operation: Operation) -> Miss | None:
    """Say why a pattern does not match with an operation as its last.

    Returns the first of the ways that got furthest; a guard's refusal is further than any other.
    None if the pattern matches, or if the operation's kind alone speaks against it.
    """
    misses: list[Miss] = []
    if _Attempt(graph, pattern, operation, misses).run() is not None or not misses:
        return None
    return max(misses, key=lambda miss: (miss.guarded, miss.depth))


Rewriting = Callable[[Graph, Match], None]
"""Edits the graph at a match so that the graph still computes the same."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern and how a graph is rewritten where it matches."""

    pattern: Pattern
    becomes: Rewriting


class Rules:
    """Rules in the order in which they are tried, ready to be used on graphs."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self._matcher = Matcher([rule.pattern for rule in rules])
        self._becomes = {id(rule.pattern): rule.becomes for rule in rules}

    def rewrite(self, graph: Graph) -> bool:
        """Rewrite each operation there is once, by the first rule that matches; True on changes.

        Operations that rewriting adds are not looked at. What nothing needs any more goes.
        """
        changed = False
        for operation in graph:
            if operation not in graph:
                continue
            match = self._matcher.first(graph, operation)
            if match is not None:
                self._becomes[id(match.pattern)](graph, match)
                changed = True
        if changed:
            graph.erase_dead()
        return changed
