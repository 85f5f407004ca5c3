"""Make a `Model` of what the walk has left: names of outputs, and nothing that no output needs."""

from __future__ import annotations

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.frontends.onnx.batch_norms import folded_norms
from mizzen.frontends.onnx.draft import changed, made
from mizzen.frontends.onnx.model import ONNX, Model, Node
from mizzen.frontends.onnx.moving import integers_moved
from mizzen.frontends.onnx.normalising import Normalising
from mizzen.frontends.onnx.schemas import FORMS, oldest_opset
from mizzen.frontends.onnx.tensors import wrong


def finished(
    walk: Normalising, inputs: tuple[str, ...], outputs: tuple[str, ...], said: tuple[str, ...]
) -> Model:
    """Make the model; E190 where an output is made by nothing."""
    draft = walk.draft
    for name in outputs:
        if name not in draft.types:
            message = f'output "{name}" must be made by a node, and is made by none'
            raise wrong(Origin(model=draft.file, name=name), message)
    nodes = needed(_named(walk, inputs, outputs), outputs)
    with np.errstate(all="ignore"):
        nodes = folded_norms(nodes, outputs, draft)
    nodes = integers_moved(nodes, inputs, outputs, draft)
    used = {name for node in nodes for name in node.inputs} | set(outputs)
    constants = {name: value for name, value in draft.constants.items() if name in used}
    made_here = {name for node in nodes for name in node.outputs if name}
    types = {name: draft.types[name] for name in (*inputs, *constants, *made_here, *outputs)}
    opsets = [
        oldest_opset(node, draft.opset, [types.get(name) for name in node.inputs])
        for node in nodes
        if node.domain == ONNX
    ]
    opset = max([FORMS, *opsets])
    return Model(draft.file, opset, tuple(nodes), inputs, outputs, types, constants, said)


def _named(walk: Normalising, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> list[Node]:
    """Let nodes make outputs by their names, which may be other names of what nodes made."""
    makers = {name: node for node in walk.nodes for name in node.outputs}
    taken = set(outputs) | set(inputs) | set(walk.draft.constants)
    renamed: dict[str, str] = {}
    copies: list[Node] = []
    for name in outputs:
        source = walk.resolved(name)
        if source == name or name in walk.draft.constants:
            continue
        if source in taken or source in renamed:
            copies.append(
                made(walk.copies.get(name) or makers[source], "Identity", (source,), (name,))
            )
        else:
            renamed[source] = name
            walk.draft.types[name] = walk.draft.types[source]
    if not renamed and not copies:
        return walk.nodes
    return [_with_names(node, renamed) for node in (*walk.nodes, *copies)]


def _with_names(node: Node, names: dict[str, str]) -> Node:
    if not names.keys() & {*node.inputs, *node.outputs}:
        return node
    return changed(
        node,
        inputs=tuple(names.get(name, name) for name in node.inputs),
        outputs=tuple(names.get(name, name) for name in node.outputs),
    )


def needed(nodes: list[Node], outputs: tuple[str, ...]) -> list[Node]:
    """Leave out nodes whose results nothing needs; `nodes` are in order."""
    wanted = set(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        if wanted.intersection(node.outputs):
            wanted.update(name for name in node.inputs if name)
            kept.append(node)
    return kept[::-1]
