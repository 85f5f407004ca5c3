"""Takes compound operators apart, before calibration, where integers need ranges inside.

An LSTM, a softmax or a normalisation in one piece has one range for its result, but its integers
need one for every intermediate step. Rules rewrite such operators into steps that calibration can
observe (`arithmetic`, `layers`). Before, operators in place become ones that return new tensors,
and what parameters alone decide is computed once (`rewriting`), what a
position alone decides once for each position (`positions`); in programs that will be trained,
normalizations join the convolution before them (`training`).

The program computes the same in floating point afterwards. A rule sees the program only: which
ranges follow, and what becomes of them on an NPU, it must not know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from torch.fx import GraphModule, Node

from mizzen.frontends.torch.operators import row_of
from mizzen.quantize.decompose.positions import tabulate
from mizzen.quantize.decompose.rewriting import (
    Rewriter,
    Rule,
    bound,
    fold,
    forget_layouts,
    remove_idle,
    remove_writes,
)
from mizzen.quantize.decompose.training import join_normalizations
from mizzen.quantize.decompose.updates import normalize_functional, refuse_shared_writes
from mizzen.quantize.nodes import channel_axis

RECURRENT = "layers:replace_layers"
"""Taken apart before constants are computed, for it makes some."""


def decompose(
    module: GraphModule,
    selected: Callable[[Node], bool],
    *,
    is_qat: bool,
    is_wide: Callable[[Node], bool],
) -> None:
    """Rewrite a program in place so that every operator in it has one range for its result.

    Nodes that are not `selected` stay as they are; those that are `is_wide` have 16 bits. E879
    for an update in place that cannot be followed.
    """
    normalize_functional(module)
    rewriter = Rewriter(module, is_qat, is_wide)
    remove_writes(rewriter)
    refuse_shared_writes(module)
    remove_idle(rewriter)
    if is_qat:
        join_normalizations(rewriter, selected)
    fold(rewriter)
    bound(rewriter)
    tabulate(rewriter, selected)
    for node in rewriter.nodes():
        if _decomposition(node) == RECURRENT and selected(node):
            _rule(RECURRENT)(rewriter, node)
    fold(rewriter)
    separate_biases(rewriter)

    def rule_of(node: Node) -> Rule | None:
        decomposition = _decomposition(node)
        return (
            _rule(decomposition)
            if decomposition not in (None, RECURRENT) and selected(node)
            else None
        )

    rewriter.apply(rule_of)
    forget_layouts(rewriter)
    module.graph.eliminate_dead_code()
    module.recompile()


def separate_biases(rewriter: Rewriter) -> None:
    """Put a bias node of its own before each layer: its scale is that of the layer's input."""
    seen: set[Node] = set()
    for node in rewriter.nodes():
        if channel_axis(node) is None or len(node.args) < 3:
            continue
        bias = node.args[2]
        if isinstance(bias, Node) and bias in seen and bias.op == "get_attr":
            rewriter.at(node)
            node.update_arg(2, rewriter.read_again(bias))
        if isinstance(bias, Node):
            seen.add(bias)


def _decomposition(node: Node) -> str | None:
    entry = row_of(node)
    return None if entry is None else entry.decomposition


@cache
def _rule(name: str) -> Rule:
    """Return the function that a row of the registry names."""
    module, _, function = name.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), function)
