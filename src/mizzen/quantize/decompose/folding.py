"""Less to do: what parameters alone give is computed once, and what does nothing goes."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.fx import Node
from torch.utils._pytree import tree_map

from mizzen.frontends.torch.operators import Role, row_of
from mizzen.quantize.decompose.attention import finite
from mizzen.quantize.decompose.rewriting import Rewriter, shape_of, writes_first_operand
from mizzen.quantize.nodes import operator_name, role_of, row_name

ELEMENTS = 1 << 24
"""The most elements of a folded constant: 64 MiB."""

COPIES = ("alias", "to", "_to_copy", "type_as")
# clone and contiguous stay: a view behind them may need the order of elements that they give.


def fold(rewriter: Rewriter) -> None:
    """Replace every node whose operands are all constants by its value."""
    for node in rewriter.nodes():
        if node.op != "call_function" or not _is_constant(rewriter, node):
            continue

        def real(argument: object) -> object:
            return _operand(rewriter, argument) if isinstance(argument, Node) else argument

        arguments: Any = tree_map(real, (node.args, dict(node.kwargs)))
        with torch.no_grad():
            value: object = cast(Any, node.target)(*arguments[0], **arguments[1])
        if isinstance(value, torch.Tensor) and value.numel() <= ELEMENTS:
            replacement = rewriter.at(node).constant(value.contiguous(), "folded")
            node.replace_all_uses_with(replacement)
            rewriter.module.graph.erase_node(node)


def _is_constant(rewriter: Rewriter, node: Node) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or not operator_name(node):
        return False
    if torch.Tag.nondeterministic_seeded in cast(Any, node.target).tags:
        return False
    operands = node.all_input_nodes
    row = row_of(node)
    if row is not None and row.is_source and row.name != "empty_like":
        return True
    return bool(operands) and all(_is_frozen(rewriter, operand) for operand in operands)


def _operand(rewriter: Rewriter, node: Node) -> torch.Tensor:
    """Return an operand's value, or a tensor of its shape where only that is asked for."""
    value = rewriter.value(node)
    if value is None:
        fake = node.meta["val"]
        return torch.empty(tuple(fake.shape), dtype=fake.dtype)
    return value


def _is_frozen(rewriter: Rewriter, node: Node) -> bool:
    """Whether a node is a constant that training does not change."""
    value = rewriter.value(node)
    if value is None:
        return False
    return not rewriter.is_qat or not node.meta["val"].requires_grad


def bound(rewriter: Rewriter) -> None:
    """Make masks of minus infinity finite, where they are added to scores."""
    for node in rewriter.nodes():
        if row_name(node) not in ("add", "where"):
            continue
        for operand in node.all_input_nodes:
            value = rewriter.value(operand)
            if value is not None and value.is_floating_point() and bool(torch.isinf(value).any()):
                replacement = rewriter.at(node).constant(finite(value), "mask")
                node.replace_input_with(operand, replacement)


def remove_idle(rewriter: Rewriter) -> None:
    """Remove dropout that is switched off, and copies of tensors that nobody writes to."""
    written = any(writes_first_operand(node) for node in rewriter.nodes())
    for node in rewriter.nodes():
        idle = _is_idle(node) or (not written and _is_copy(node))
        if idle and isinstance(node.args[0], Node):
            node.replace_all_uses_with(node.args[0])
            rewriter.module.graph.erase_node(node)


def _is_idle(node: Node) -> bool:
    if role_of(node) is not Role.TRANSPARENT:
        return False
    training = node.args[2] if len(node.args) > 2 else False
    return not training


def _is_copy(node: Node) -> bool:
    """Whether a node gives what it is given, of the same type and shape."""
    if operator_name(node) not in COPIES or not isinstance(node.args[0], Node):
        return False
    before, after = node.args[0].meta.get("val"), node.meta.get("val")
    if before is None or after is None or isinstance(after, (list, tuple)):
        return False
    return before.dtype == after.dtype and shape_of(node.args[0]) == shape_of(node)
