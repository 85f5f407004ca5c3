"""What a pattern is made of: operations, values, constants, and ways to choose between them.

A pattern is a directed acyclic graph of nodes, written from its last operation inwards::

    x = Var("x")
    convolution = op(Conv2d, x, weight=Const("w"), once=True)
    pattern = Pattern("convolution with an activation", op(Clamp, op(Rescale, convolution)))

Nodes are told apart by identity: the same node at two places is the same value or operation. Two
nodes may stand for the same thing. Patterns hold no state, and print as they read.

As text a node is an equation of what is matched: an operand that may be anything is ``_``; an
operation or value that stands at several places is written out at the first, after its letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mizzen.graph import Array, DType, Value
from mizzen.ops import DEFINITIONS, Definition, TosaOperation

T = TypeVar("T")
OperationT = TypeVar("OperationT", bound=TosaOperation)


@dataclass(frozen=True, slots=True, eq=False)
class Is(Generic[T]):
    """What must hold of something, in words and as a test: ``Is("one pixel wide", test)``."""

    words: str
    test: Callable[[T], bool]

    def __str__(self) -> str:
        return self.words


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
class Op(Generic[OperationT]):
    """An operation, and as a value its first result; built by `op`, bound to one of its classes.

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

    operation: Op[Any]
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

    step: Op[Any]
    inner: Node
    most: int | None


Node = Var | Const | Op[Any] | Result | Either | Through


def op(
    kinds: type[OperationT] | tuple[type[OperationT], ...],
    *operands: Node,
    having: Mapping[str, object] | None = None,
    result: Is[Value] | None = None,
    once: bool = False,
    **named: Node,
) -> Op[OperationT]:
    """Return a pattern of an operation of one of some classes.

    operands  what the first operands are; those that are left out may be anything
    named     what other operands are, by their names in TOSA (``weight=Const("w")``)
    having    attributes and their values, or what must `Is` hold of them
    result    what must hold of the first result
    once      whether nothing but one user may take a result: then it may go when the user goes

    Raises ValueError if an operand or an attribute is not one of TOSA's.
    """
    classes = kinds if isinstance(kinds, tuple) else (kinds,)
    definitions = {each.definition.kind: each.definition for each in classes}
    having = having or {}
    for kind, definition in definitions.items():
        unknown = [name for name in having if name not in definition.names]
        if unknown:
            raise ValueError(f"{kind} must have an attribute {unknown[0]}, and has none")
    places = {kind: _places(each, operands, named) for kind, each in definitions.items()}
    swaps = frozenset(kind for kind, each in definitions.items() if _swaps(each, places[kind]))
    return Op(tuple(definitions), places, having, result, once, swaps)


def either(*choices: Node) -> Either:
    """Return a pattern of a value that one of several takes, the first in order."""
    return Either(choices)


def maybe(step: Op[Any]) -> Through:
    """Return a pattern of an operation that may be there, or just what its first operand is."""
    return Through(step, _inner(step), 1)


def chain(step: Op[Any]) -> Through:
    """Return a pattern of any number of operations in a row behind what the first operand is."""
    return Through(step, _inner(step), None)


def of(*dtypes: DType) -> Is[Value]:
    """Say that a value's elements are of one of some types."""
    return Is(f"of {' or '.join(each.value for each in dtypes)}", lambda v: v.dtype in dtypes)


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


def _inner(step: Op[Any]) -> Node:
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


def expects(wanted: object, value: Any) -> bool:
    """Whether an attribute is what a pattern says."""
    return wanted.test(value) if isinstance(wanted, Is) else bool(value == wanted)  # pyright: ignore[reportUnknownMemberType] - isinstance cannot tell of what an Is is


def equation(node: Node) -> str:
    """Return a node in words, with everything before it."""
    return _Writer(node).node(node)


class _Writer:
    """Writes nodes; knows which operations stand at several places and were written before."""

    def __init__(self, root: Node) -> None:
        counts: dict[Node, int] = {}
        _count(root, counts)
        several = [node for node, times in counts.items() if times > 1 and isinstance(node, Op)]
        self.letters = {node: chr(ord("A") + index) for index, node in enumerate(several)}
        self.written: set[Node] = set()

    def node(self, node: Node) -> str:
        """Return a node in words, with everything before it."""
        match node:
            case Var():
                return self.leaf(node, node.name, node.value)
            case Const():
                return self.leaf(node, f"const {node.name}", node.elements)
            case Op():
                return self.operation(node)
            case Result():
                return f"{self.operation(node.operation)}#{node.index}"
            case Either():
                return f"({' | '.join(map(self.node, node.choices))})"
            case Through():
                return f"{'maybe' if node.most == 1 else 'chain'} {self.operation(node.step)}"

    def leaf(self, node: Var | Const, name: str, holds: Is[Value] | Is[Array] | None) -> str:
        if node in self.written or holds is None:
            return name
        self.written.add(node)
        return f"{name}: {holds}"

    def operation(self, node: Op[Any]) -> str:
        letter = self.letters.get(node)
        if node in self.written and letter is not None:
            return letter
        self.written.add(node)
        kind = node.kinds[0]
        text = f"{'|'.join(node.kinds)}{_attributes(node)}({self.operands(node, kind)})"
        if node.result is not None:
            text = f"{text} {node.result}"
        if node.once:
            text = f"{text} once"
        return text if letter is None else f"{letter} = {text}"

    def operands(self, node: Op[Any], kind: str) -> str:
        """Return the operands up to the last that is not just anything."""
        places = dict(node.operands[kind])
        if not places:
            return "..." if DEFINITIONS[kind].operands else ""
        last = max(places)
        texts = [self.node(places[i]) if i in places else "_" for i in range(last + 1)]
        definition = DEFINITIONS[kind]
        if definition.variadic or last + 1 < len(definition.operands):
            texts.append("...")
        return ", ".join(texts)


def _attributes(node: Op[Any]) -> str:
    if not node.attributes:
        return ""
    texts = [
        f"{name} {wanted}" if isinstance(wanted, Is) else f"{name} = {wanted}"
        for name, wanted in node.attributes.items()
    ]
    return f"{{{', '.join(texts)}}}"


def _count(node: Node, counts: dict[Node, int]) -> None:
    counts[node] = counts.get(node, 0) + 1
    if counts[node] == 1:
        for part in parts(node):
            _count(part, counts)
