"""Masks of scores, whose minus infinity, or number as far below, no scale has a place for.

Found backwards from the softmax that the scores go into; elsewhere such numbers stay what they are,
and calibration refuses infinities. A mask that is an input keeps its numbers: its observer reads
them as bounded, and quantisation cuts them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from mizzen.frontends.torch.operators import Role, row_of
from mizzen.quantize.decompose.rewriting import Rewriter, aten, finite
from mizzen.quantize.nodes import HIDDEN, MASK, MASKED, row_name


def bound_masks(rewriter: Rewriter, scores: object, place: Node) -> None:
    """Bound what hides scores; the rewriter inserts before `place` again afterwards."""
    _visit(rewriter, scores, set())
    rewriter.at(place)


def _visit(rewriter: Rewriter, node: object, seen: set[Node]) -> None:
    """Bound the masks among what a value of scores is made of."""
    if not isinstance(node, Node) or node in seen:
        return
    seen.add(node)
    match row_name(node):
        case "add":
            _bound_sum(rewriter, node)
        case "mul" if _hides(node.args[1]):
            node.update_arg(1, MASKED)
        case "masked_fill":
            _bound_choice(rewriter, node, node.args[1], chosen=2, other=0)
        case "where":
            _bound_choice(rewriter, node, node.args[0], chosen=1, other=2)
            _bound_choice(rewriter, node, node.args[0], chosen=2, other=1)
        case "mul" | "div" | "sub":
            pass
        case _ if _moves(node):
            pass
        case _:
            return
    for operand in node.all_input_nodes:
        _visit(rewriter, operand, seen)


def _hides(value: object) -> bool:
    return isinstance(value, (int, float)) and value <= HIDDEN


def _moves(node: Node) -> bool:
    row = row_of(node)
    return row is not None and row.role is Role.SHARED and len(node.all_input_nodes) == 1


def _bound_sum(rewriter: Rewriter, node: Node) -> None:
    """Bound a mask that is added: a constant, or an input."""
    origins = [_origin(operand) for operand in node.args[:2]]
    for operand, origin in zip(node.args[:2], origins, strict=True):
        value = rewriter.value(operand)
        if value is not None and value.is_floating_point() and bool((value <= HIDDEN).any()):
            assert isinstance(operand, Node)
            replacement = rewriter.at(node).constant(finite(value), "mask")
            node.replace_input_with(operand, replacement)
        elif origin is not None and None in origins:
            origin.meta[MASK] = True


def _origin(node: object) -> Node | None:
    """Return the input of the program whose elements a node only moves."""
    while isinstance(node, Node) and node.op == "call_function" and _moves(node):
        node = node.all_input_nodes[0]
    return node if isinstance(node, Node) and node.op == "placeholder" else None


def _bound_choice(
    rewriter: Rewriter, node: Node, condition: object, *, chosen: int, other: int
) -> None:
    """Bound what a condition hides scores by: a constant condition becomes a mask to add."""
    value = node.args[chosen]
    constant = rewriter.value(value)
    hides = _hides(value) or (constant is not None and bool((constant <= HIDDEN).all()))
    if not hides:
        return
    rewriter.at(node)
    places, scores = rewriter.value(condition), node.args[other]
    if places is not None and isinstance(scores, Node) and rewriter.value(scores) is None:
        hidden = places if chosen < other or row_name(node) == "masked_fill" else ~places
        mask = rewriter.constant(torch.where(hidden, MASKED, 0.0), "mask")
        found = rewriter.call(aten.add.Tensor, scores, mask)
        node.replace_all_uses_with(found)
        rewriter.module.graph.erase_node(node)
    else:
        _set(rewriter, node, chosen)


def _set(rewriter: Rewriter, node: Node, place: int) -> None:
    if isinstance(node.args[place], Node):
        like: Any = rewriter.value(node.args[place])
        node.update_arg(place, rewriter.constant(torch.full_like(like, MASKED), "mask"))
    else:
        node.update_arg(place, MASKED)
