"""Taking compound operators apart, before calibration, where integers need ranges inside."""

from __future__ import annotations

from collections.abc import Callable

from torch.fx import GraphModule, Node

from mizzen.quantize.decompose import arithmetic, attention, normalization
from mizzen.quantize.decompose.folding import bound, fold
from mizzen.quantize.decompose.layers import LAYERS, replace_layers
from mizzen.quantize.decompose.mutation import remove_writes
from mizzen.quantize.decompose.removal import remove_idle
from mizzen.quantize.decompose.rewriting import Rewriter, Rule
from mizzen.quantize.decompose.training import join_normalizations
from mizzen.quantize.operators import CHANNEL_AXES, operator_name

RULES: dict[str, Rule] = attention.RULES | normalization.RULES | arithmetic.RULES


def decompose(module: GraphModule, selected: Callable[[Node], bool], *, is_qat: bool) -> None:
    """Rewrite a program in place so that every operator in it has one range for its result.

    Nodes that are not `selected` stay as they are.
    """
    rewriter = Rewriter(module, is_qat)
    remove_writes(rewriter)
    remove_idle(rewriter)
    if is_qat:
        join_normalizations(rewriter, selected)
    fold(rewriter)
    bound(rewriter)
    for node in rewriter.nodes():
        if operator_name(node) in LAYERS and selected(node):
            replace_layers(rewriter, node)
    fold(rewriter)
    separate_biases(rewriter)
    rewriter.apply({name: only(selected, rule) for name, rule in RULES.items()})
    module.graph.eliminate_dead_code()
    module.recompile()


def separate_biases(rewriter: Rewriter) -> None:
    """Return each layer a bias node of its own: its scale is that of the layer's input."""
    seen: set[Node] = set()
    for node in rewriter.nodes():
        if operator_name(node) not in CHANNEL_AXES or len(node.args) < 3:
            continue
        bias = node.args[2]
        if isinstance(bias, Node) and bias in seen and bias.op == "get_attr":
            rewriter.at(node)
            node.update_arg(2, rewriter.read_again(bias))
        if isinstance(bias, Node):
            seen.add(bias)


def only(selected: Callable[[Node], bool], rule: Rule) -> Rule:
    """Return a rule that leaves nodes alone that are not selected."""
    return lambda rewriter, node: rule(rewriter, node) if selected(node) else None
