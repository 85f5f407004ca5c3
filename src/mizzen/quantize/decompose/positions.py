"""What a position alone gives, such as a rotary embedding: a table that the position looks up.

A decoder that is given its token's position computes angles of it, and their sines. Integers of 8
bits have no room for such angles. But a position that is also an index is one of few numbers, and
PyTorch refuses all others; so what follows from each of them is computed here, once.

Truth values stay what they are: NPUs compare positions, and a mask as a table grows with the square
of the context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch.fx import Node
from torch.utils._pytree import tree_map

from mizzen.frontends.torch.narrowing import LOOKED_UP, MOVING, looked_up_by, moved_from
from mizzen.quantize.decompose.extents import is_symbolic
from mizzen.quantize.decompose.rewriting import ELEMENTS, Rewriter, aten, is_frozen, shape_of
from mizzen.quantize.nodes import row_name

MOVED = (*MOVING, *LOOKED_UP)
"""Operators whose results are numbers of a table already."""


def tabulate(rewriter: Rewriter, selected: Callable[[Node], bool]) -> None:
    """Replace what depends on nothing but one position by rows of a table."""
    for position, extent in _positions(rewriter.nodes()).items():
        known = _known(rewriter, position)
        tables = {
            node: _table(rewriter, _before(node, known), extent)
            for node in known[1:]
            if selected(node) and _leaves(node, known) and _fits(node, extent)
        }
        for node, table in tables.items():
            _look_up(rewriter, node, position, table)
    rewriter.module.graph.eliminate_dead_code()


def _positions(nodes: Iterable[Node]) -> dict[Node, int]:
    """Return inputs of one number that index dimensions, to the least extent of those."""
    extents: dict[Node, int] = {}
    for node in nodes:
        for index, bound in looked_up_by(node):
            source = moved_from(index)
            value: Any = source.meta.get("val")
            if source.op != "placeholder" or bound.counts_back or value.numel() != 1:
                continue
            if not is_symbolic((bound.size,)):
                extents[source] = min(bound.size, extents.get(source, bound.size))
    return extents


def _known(rewriter: Rewriter, position: Node) -> list[Node]:
    """Return a position and all nodes that follow from it and constants, in order."""
    known = [position]
    for node in rewriter.nodes():
        given = node.all_input_nodes
        follows = node.op == "call_function" and any(operand in known for operand in given)
        if follows and all(each in known or is_frozen(rewriter, each) for each in given):
            known.append(node)
    return known


def _before(node: Node, known: list[Node]) -> list[Node]:
    """Return those of the known nodes that one follows from, and itself, in order."""
    needed, waiting = set[Node](), [node]
    while waiting:
        each = waiting.pop()
        if each not in needed and each in known:
            needed.add(each)
            waiting += each.all_input_nodes
    return [each for each in known if each in needed]


def _leaves(node: Node, known: list[Node]) -> bool:
    """Whether something else takes a node that is computed of a position."""
    return any(user not in known for user in node.users) and _is_computed(_before(node, known))


def _is_computed(nodes: list[Node]) -> bool:
    """Whether numbers are computed of the position, and no truth values among them."""
    values = [node.meta.get("val") for node in nodes]
    return all(
        isinstance(value, torch.Tensor) and value.dtype != torch.bool for value in values
    ) and any(row_name(node) not in MOVED for node in nodes[1:])


def _fits(node: Node, extent: int) -> bool:
    value: torch.Tensor = node.meta["val"]
    return value.dtype == torch.float32 and extent * value.numel() <= ELEMENTS


def _table(rewriter: Rewriter, nodes: list[Node], extent: int) -> torch.Tensor:
    """Compute the last node for each position: [extent, elements]."""
    like: torch.Tensor = nodes[0].meta["val"]
    values: dict[Node, Any] = {}

    def real(argument: object) -> object:
        if not isinstance(argument, Node):
            return argument
        return values[argument] if argument in values else rewriter.value(argument)

    rows: list[torch.Tensor] = []
    for number in range(extent):
        values[nodes[0]] = torch.full(tuple(like.shape), number, dtype=like.dtype)
        for node in nodes[1:]:
            arguments: Any = tree_map(real, (node.args, dict(node.kwargs)))
            with torch.no_grad():
                values[node] = cast(Any, node.target)(*arguments[0], **arguments[1])
        rows.append(values[nodes[-1]].reshape(-1))
    return torch.stack(rows)


def _look_up(rewriter: Rewriter, node: Node, position: Node, table: torch.Tensor) -> None:
    rewriter.at(node)
    index = rewriter.call(aten.view.default, position, [1])
    row = rewriter.call(aten.index_select.default, rewriter.constant(table, "positions"), 0, index)
    node.replace_all_uses_with(rewriter.call(aten.view.default, row, list(shape_of(node))))
