"""Taking compound operators apart, before calibration, where integers need ranges inside."""

from __future__ import annotations

from collections.abc import Callable

from torch.fx import GraphModule, Node

from mizzen.quantize.decompose import arithmetic, attention, normalization
from mizzen.quantize.decompose.folding import bound, fold
from mizzen.quantize.decompose.layers import LAYERS, replace_layers
from mizzen.quantize.decompose.rewriting import Rewriter, Rule
from mizzen.quantize.decompose.training import join_normalizations
from mizzen.quantize.operators import operator_name

RULES: dict[str, Rule] = attention.RULES | normalization.RULES | arithmetic.RULES


def decompose(module: GraphModule, selected: Callable[[Node], bool], *, is_qat: bool) -> None:
    """Rewrite a program in place so that every operator in it has one range for its result.

    Nodes that are not `selected` stay as they are.
    """
    rewriter = Rewriter(module, is_qat)
    if is_qat:
        join_normalizations(rewriter, selected)
    fold(rewriter)
    bound(rewriter)
    for node in rewriter.nodes():
        if operator_name(node) in LAYERS and selected(node):
            replace_layers(rewriter, node)
    fold(rewriter)
    rewriter.apply({name: only(selected, rule) for name, rule in RULES.items()})
    module.graph.eliminate_dead_code()
    module.recompile()


def only(selected: Callable[[Node], bool], rule: Rule) -> Rule:
    """Give a rule that leaves nodes alone that are not selected."""
    return lambda rewriter, node: rule(rewriter, node) if selected(node) else None
