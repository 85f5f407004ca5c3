"""What a pattern is made of: operations, values, constants, and ways to choose between them.

A pattern is a directed acyclic graph of nodes, written from its last operation inwards::

    x = Var("x")
    convolution = op("CONV2D", x, weight=Const("w"), once=True)
    pattern = Pattern("convolution with an activation", op("CLAMP", op("RESCALE", convolution)))

Nodes are told apart by identity: the same node at two places is the same value or operation. Two
nodes may stand for the same thing. Patterns hold no state, and print as they read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mizzen.graph import Array, DType, Operation, Value
from mizzen.ops import DEFINITIONS, Definition

if TYPE_CHECKING:
    from mizzen.patterns.match import Match

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Is(Generic[T]):
    """What must hold of something, in words and as a test: ``Is("one pixel wide", test)``."""

    words: str
    test: Callable[[T], bool]

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Reject:
    """Why a guard does not take a match: what must hold and what came, and of which operation."""

    reason: str
    at: Operation | None = None


Guard = Callable[["Match"], Reject | None]
"""Gives None where the match will do. A pure function; the first line of its docstring prints."""


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A value from anywhere: wherever the node stands, it is the same value."""

    name: str
    value: Is[Value] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A constant, perhaps one whose elements are as they must be."""

    name: str
    elements: Is[Array] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """An operation, and as a value its first result; built by `op`.

    kinds       the kinds it may be of
    operands    for each kind, the places of operands and what must be there, in TOSA's order
    attributes  what attributes must be, or what must hold of them
    result      what must hold of its first result
    once        whether each of its results has at most one user and goes nowhere else
    swaps       the kinds whose first two operands are tried in both orders
    """

    kinds: tuple[str, ...]
    operands: Mapping[str, tuple[tuple[int, Node], ...]]
    attributes: Mapping[str, object]
    result: Is[Value] | None
    once: bool
    swaps: frozenset[str]

    def output(self, index: int) -> Result:
        """Return a pattern of the operation's result at an index, from 0."""
        return Result(self, index)


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """One result of an operation that has several."""

    operation: Op
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """A value that any of some patterns takes; the first that does is chosen."""

    choices: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Through:
    """A value reached through an operation's first operand, or without it.

    step    the operation; its first operand is what is behind
    inner   what is behind
    most    how many such operations may be in a row; None for any number
    """

    step: Op
    inner: Node
    most: int | None


Node = Var | Const | Op | Result | Either | Through


@dataclass(frozen=True, slots=True)
class Pattern:
    """A name, the last operation of what is sought, and guards on what is found."""

    name: str
    root: Node
    guards: tuple[Guard, ...] = ()
    anchors: tuple[Op | Through, ...] = field(init=False)
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
        from mizzen.patterns.text import text_of

        return text_of(self)


def op(
    kinds: str | tuple[str, ...],
    *operands: Node,
    having: Mapping[str, object] | None = None,
    result: Is[Value] | None = None,
    once: bool = False,
    **named: Node,
) -> Op:
    """Return a pattern of an operation.

    operands  what the first operands are; those that are left out may be anything
    named     what other operands are, by their names in TOSA (``weight=Const("w")``)
    having    attributes and their values, or what must `Is` hold of them
    result    what must hold of the first result
    once      whether nothing but one user may take a result: then it may go when the user goes

    Raises ValueError if a kind, an operand or an attribute is none of TOSA's.
    """
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    having = having or {}
    for kind in kinds:
        unknown = [name for name in having if name not in _definition(kind).names]
        if unknown:
            raise ValueError(f"{kind} must have an attribute {unknown[0]}, and has none")
    places = {kind: _places(_definition(kind), operands, named) for kind in kinds}
    swaps = frozenset(kind for kind in kinds if _swaps(_definition(kind), places[kind]))
    return Op(kinds, places, having, result, once, swaps)


def either(*choices: Node) -> Either:
    """Return a pattern of a value that one of several takes, the first in order."""
    return Either(choices)


def maybe(step: Op) -> Through:
    """Return a pattern of an operation that may be there, or just what its first operand is."""
    return Through(step, _inner(step), 1)


def chain(step: Op) -> Through:
    """Return a pattern of any number of operations in a row behind what the first operand is."""
    return Through(step, _inner(step), None)


def of(*dtypes: DType) -> Is[Value]:
    """Say that a value's elements are of one of some types."""
    return Is(f"of {' or '.join(each.value for each in dtypes)}", lambda v: v.dtype in dtypes)


def _definition(kind: str) -> Definition:
    definition = DEFINITIONS.get(kind)
    if definition is None:
        raise ValueError(f"a pattern must be of TOSA's operations, and {kind} is none")
    return definition


def _places(
    definition: Definition, operands: tuple[Node, ...], named: Mapping[str, Node]
) -> tuple[tuple[int, Node], ...]:
    """Return the operands' places in an operation's list and the patterns for them."""
    count = len(definition.operands)
    if len(operands) > count and not definition.variadic:
        raise ValueError(f"{definition.kind} must have {count} operands, not {len(operands)}")
    places = dict(enumerate(operands))
    names = [operand.name for operand in definition.operands]
    for name, node in named.items():
        if name not in names or names.index(name) in places:
            raise ValueError(f"{definition.kind} must have one more operand named {name}")
        places[names.index(name)] = node
    return tuple(sorted(places.items(), key=lambda place: place[0]))


def _swaps(definition: Definition, places: tuple[tuple[int, Node], ...]) -> bool:
    """Whether a second order of the operands could match where the first does not."""
    return definition.commutative and any(index < 2 for index, _ in places)


def _inner(step: Op) -> Node:
    inner = {dict(places).get(0) for places in step.operands.values()}
    if len(inner) != 1 or None in inner:
        raise ValueError("an operation that may be left out must say what its first operand is")
    (node,) = inner
    assert node is not None
    return node


def parts(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a node is directly made of, each as often as it stands there."""
    match node:
        case Op():
            return tuple(part for _, part in next(iter(node.operands.values())))
        case Result():
            return (node.operation,)
        case Either():
            return node.choices
        case Through():
            return (node.step,)
        case Var() | Const():
            return ()


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


def _anchors(node: Node) -> Iterator[Op | Through]:
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


def expects(wanted: object, value: Any) -> bool:
    """Whether an attribute is what a pattern says."""
    return wanted.test(value) if isinstance(wanted, Is) else bool(value == wanted)  # pyright: ignore[reportUnknownMemberType] - isinstance cannot tell of what an Is is
