"""Operators in place, as operators that give a new tensor; what is written to state stays written.

An in-place operator on a value nobody else looks at is one that gives a new value. One on a buffer,
or on a part of it, gives the buffer's new value, which is then copied there as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from mizzen.quantize.composite import StateReader
from mizzen.quantize.decompose.rewriting import Rewriter, aten, writes_first_operand
from mizzen.quantize.nodes import operator_name

PARTS = {"slice": aten.slice_scatter.default, "select": aten.select_scatter.default}
"""Views of a part of a tensor, and what replaces that part."""


@dataclass
class State:
    """A buffer, the node of its value at this point of the program, and what wrote that."""

    buffer: Node
    value: Node
    writer: Node | None = None


def remove_writes(rewriter: Rewriter) -> None:
    """Rewrite every in-place operator whose effect can be followed; others stay as they are."""
    states: dict[str, State] = {}
    for node in rewriter.nodes():
        if node.op == "get_attr" and str(node.target) in rewriter.written:
            _read(rewriter, node, states)
    for node in rewriter.nodes():
        if writes_first_operand(node):
            _rewrite(rewriter, node, states)


def _read(rewriter: Rewriter, buffer: Node, states: dict[str, State]) -> None:
    """Insert a reader behind a buffer of numbers."""
    path = str(buffer.target)
    value = rewriter.value_or_none(buffer)
    if value is None or not value.is_floating_point() or isinstance(value, torch.nn.Parameter):
        return
    if path not in states:
        rewriter.at(buffer.next)
        reader = rewriter.call_module(StateReader(value), "state", [buffer], (buffer.meta["val"],))
        for user in buffer.users:
            if user is not reader:
                rewriter.take_over(reader, user)
                break
        states[path] = State(buffer, rewriter.item(reader, 0))
        rewriter.take_over(states[path].value, reader)
    state = states[path].value
    reader = state.all_input_nodes[0]
    buffer.replace_all_uses_with(state, delete_user_cb=lambda user: user is not reader)


def _rewrite(rewriter: Rewriter, node: Node, states: dict[str, State]) -> None:
    written = node.args[0]
    operator = _functional(node)
    if not isinstance(written, Node) or operator is None:
        return
    chain = _views(written)
    base = chain[0]
    state = next((state for state in states.values() if state.value is base), None)
    if state is None and (len(chain) > 1 or not _is_private(base, node)):
        return
    rewriter.at(node)
    if operator_name(node) == "copy":
        value = _broadcast(rewriter, node)
    else:
        value = rewriter.call(operator, *node.args)
        if node.kwargs:
            value.kwargs = dict(node.kwargs)
    whole = value
    for view in chain[:0:-1]:
        scatter: Any = PARTS[operator_name(view)]
        whole = rewriter.call(scatter, view.args[0], whole, *view.args[1:])
    node.replace_all_uses_with(value)
    _replace_later(base, whole, node)
    if state is not None:
        if state.writer is not None:
            rewriter.module.graph.erase_node(state.writer)
        state.value = whole
        state.writer = rewriter.call(aten.copy_.default, state.buffer, whole)
    rewriter.module.graph.erase_node(node)


def _functional(node: Node) -> Any:
    """Return the operator that does the same on a new tensor, None where there is none."""
    packet = getattr(aten, str(node.target).split(".")[1].removesuffix("_"), None)
    return getattr(packet, str(node.target).split(".")[2], None)


def _views(node: Node) -> list[Node]:
    """Return the base of a view of a part, and the views that lead to `node`."""
    chain = [node]
    while operator_name(chain[0]) in PARTS and isinstance(chain[0].args[0], Node):
        chain.insert(0, chain[0].args[0])
    return chain


def _is_private(value: Node, writer: Node) -> bool:
    """Whether nobody else can see that a value was changed in place."""
    if value.op != "call_function" or _is_view(value):
        return False
    return not any(_is_view(user) for user in value.users if user is not writer)


def _is_view(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return False
    return any(result.alias_info is not None for result in schema.returns)


def _broadcast(rewriter: Rewriter, node: Node) -> Node:
    target, source = node.args[:2]
    assert isinstance(target, Node)
    assert isinstance(source, Node)
    shape = target.meta["val"].shape
    if source.meta["val"].shape == shape:
        return source
    return rewriter.call(aten.expand.default, source, list(shape))


def _replace_later(value: Node, replacement: Node, place: Node) -> None:
    """Let every use of `value` behind `place` use `replacement`."""
    later: set[Node] = set()
    following = place.next
    while following.op != "root":
        later.add(following)
        following = following.next
    value.replace_all_uses_with(replacement, delete_user_cb=lambda user: user in later)
