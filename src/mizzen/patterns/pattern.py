"""Patterns, what guards say of them, and what their nodes are where they match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import getdoc
from typing import Any, overload

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
    parts,
)
from mizzen.patterns.text import equation


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
        """Return what a node is; of a chain, its operations, the last one first.

        Raises KeyError for what is in a choice that was not taken.
        """
        return self._bound[node]

    def __contains__(self, node: Node) -> bool:
        """Whether a node is part of the way that matched."""
        return node in self._bound

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations matched, without constants; each once, the last one first."""
        found: dict[Operation, None] = {}
        for bound in self._bound.values():
            if isinstance(bound, tuple):
                found.update(dict.fromkeys(bound))
            elif isinstance(bound, Operation):
                found[bound] = None
        return tuple(found)

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
