"""Nodes as text: an equation of what is matched.

An operand that may be anything is ``_``; an operation or value that stands at several places is
written out at the first, behind its letter.
"""

from __future__ import annotations

from typing import Any

from mizzen.graph import Array, Value
from mizzen.ops import DEFINITIONS
from mizzen.patterns.language import (
    Const,
    Either,
    Is,
    Node,
    Op,
    Result,
    Through,
    Var,
    parts,
)


def equation(node: Node) -> str:
    """Return a node in words, with everything in front of it."""
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
        """Return a node in words, with everything in front of it."""
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
