"""Say where a converted program's rounding leaves little of a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from mizzen.compiler.levels import ADDED, JOINED, RESCALED, Content, Remedy, Steps, lost
from mizzen.diagnostics import Diagnostic
from mizzen.frontends.torch.int_lowering.int_lower import DEQUANTIZE, QUANTIZE
from mizzen.frontends.torch.operators import overload_of
from mizzen.frontends.torch.program import TorchProgram, kind_of

REAL_BITS = 32
"""Of a result that was not rounded yet."""

ENDS = {
    **dict.fromkeys(("aten.sigmoid", "aten.softmax", "aten._softmax", "aten.hardsigmoid"), (0, 1)),
    "aten.tanh": (-1, 1),
}
"""Operators whose results lie between two numbers, whatever they take."""

JOINS = frozenset({"aten.cat", "aten.stack"})
_MOVES = (
    "clone constant_pad_nd contiguous expand flatten flip index_select max_pool2d pad permute "
    "repeat reshape roll select slice split squeeze transpose unflatten unsqueeze view"
)
MOVES = JOINS | {f"aten.{name}" for name in _MOVES.split()}
SUMS = frozenset({"aten.add", "aten.sub"})


def few_levels(program: TorchProgram) -> Iterator[Diagnostic]:
    """Say which roundings of a program leave a tensor too few levels: W319."""
    contents: dict[Any, tuple[Content, ...]] = {}
    for node in program.nodes:
        if node.op != "call_function":
            continue
        if overload_of(node) == QUANTIZE:
            yield from _rounded(program, node, contents)
        elif overload_of(node) == DEQUANTIZE:
            contents[node] = contents.get(node.args[0], ())
        elif kind_of(node) in ENDS:
            low, high = ENDS[kind_of(node)]
            contents[node] = (Content(node.name, low, high, REAL_BITS),)
        elif kind_of(node) in MOVES | SUMS:
            handed = {
                content for source in node.all_input_nodes for content in contents.get(source, ())
            }
            contents[node] = tuple(sorted(handed, key=lambda content: content.name))


def _rounded(
    program: TorchProgram, node: Any, contents: dict[Any, tuple[Content, ...]]
) -> Iterator[Diagnostic]:
    """Judge one rounding, and follow what is left after it."""
    source, scale, zero, low, high = node.args[:5]
    bits = math.ceil(math.log2(int(high) - int(low) + 1))
    least, most = ((int(edge) - int(zero)) * float(scale) for edge in (low, high))
    steps = Steps(float(scale), least, most, bits)
    is_sum = source.op == "call_function" and kind_of(source) in SUMS
    levels = steps.levels_of_summand if is_sum else steps.levels_of
    kept: list[Content] = []
    for content in contents.get(source, ()):
        if (left := levels(content)) >= steps.levels_wanted(content):
            kept.append(content)
        else:
            origin, way = program.origin(source), _way(source, node)
            yield lost(content, left, steps, source.name, origin, way)
    own = (Content(source.name, steps.low, steps.high, bits),)
    contents[node] = own if is_sum or not kept else tuple(kept)


def _way(source: Any, node: Any) -> Remedy:
    """Return the remedy: what is joined with others later has their scale."""
    behind = {kind_of(user) for direct in node.users for user in direct.users if _calls(user)}
    if behind & JOINS or (_calls(source) and kind_of(source) in JOINS):
        return JOINED
    return ADDED if _calls(source) and kind_of(source) in SUMS else RESCALED


def _calls(node: Any) -> bool:
    return node.op == "call_function"
