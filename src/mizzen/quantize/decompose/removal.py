"""Operators that do nothing in inference."""

from __future__ import annotations

from torch.fx import Node

from mizzen.quantize.decompose.rewriting import Rewriter, shape_of, writes_first_operand
from mizzen.quantize.operators import Role, operator_name, role_of

COPIES = ("alias", "to", "_to_copy", "type_as")
# clone and contiguous stay: a view behind them may need the order of elements that they give.


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
