"""Constants: what a program computes from its parameters alone is computed once, beforehand."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.fx import Node
from torch.utils._pytree import tree_map

from mizzen.quantize.decompose.attention import finite
from mizzen.quantize.decompose.rewriting import Rewriter
from mizzen.quantize.operators import operator_name

ELEMENTS = 1 << 24
"""The most elements of a folded constant: 64 MiB."""

SOURCES = {
    "arange", "eye", "full", "full_like", "linspace", "ones", "ones_like", "scalar_tensor",
    "tril_indices", "zeros", "zeros_like", "new_zeros", "new_ones", "new_full",
}  # fmt: skip
"""Operators that give a constant whatever the values of their operands are."""


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
    if operator_name(node) in SOURCES:
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
    """Return masks of minus infinity a finite value, where they are added to scores."""
    for node in rewriter.nodes():
        if operator_name(node) not in ("add", "where"):
            continue
        for operand in node.all_input_nodes:
            value = rewriter.value(operand)
            if value is not None and value.is_floating_point() and bool(torch.isinf(value).any()):
                replacement = rewriter.at(node).constant(finite(value), "mask")
                node.replace_input_with(operand, replacement)
