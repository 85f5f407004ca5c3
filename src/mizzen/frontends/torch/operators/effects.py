"""What nodes do besides giving a tensor: updates in place that other tensors see, assertions.

Programs are executed and rewritten tensor by tensor; an update that reaches another tensor by way
of shared memory is lost there. Ref: PyTorch's schemas, which name what shares memory: "Tensor(a!)".
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import getitem
from typing import Any


def shared_writes(graph: Any) -> list[Any]:
    """Return the nodes that write to memory which is read later by another tensor's name."""
    places = {node: place for place, node in enumerate(graph.nodes)}
    roots = _roots(graph)
    sharing: dict[Any, list[Any]] = {}
    for node, root in roots.items():
        sharing.setdefault(root, []).append(node)
    return [
        node
        for node in graph.nodes
        if (written := written_by(node)) is not None
        and any(_is_read_later(other, node, places) for other in sharing[roots[written]])
    ]


def written_by(node: Any) -> Any:
    """Return the node whose tensor a node changes in place, None for other nodes."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or not schema.is_mutable:
        return None
    for argument, value in zip(schema.arguments, node.args, strict=False):
        alias = argument.alias_info
        if alias is not None and alias.is_write and hasattr(value, "meta"):
            return value
    return None


def _is_read_later(other: Any, writer: Any, places: dict[Any, int]) -> bool:
    if places[other] >= places[writer]:
        return False
    return any(places[user] > places[writer] for user in other.users)


def _roots(graph: Any) -> dict[Any, Any]:
    """Return, for each node, the first node whose memory it shares."""
    attributes: dict[str, Any] = {}
    roots: dict[Any, Any] = {}
    for node in graph.nodes:
        source = next(_shared(node), None)
        if source is not None:
            roots[node] = roots[source]
        elif node.op == "get_attr":
            roots[node] = attributes.setdefault(str(node.target), node)
        else:
            roots[node] = node
    return roots


def _shared(node: Any) -> Iterator[Any]:
    """Yield the operand whose memory a node's result may share."""
    if node.target is getitem:
        yield node.args[0]
        return
    schema = getattr(node.target, "_schema", None)
    if schema is None or not any(result.alias_info is not None for result in schema.returns):
        return
    for argument, value in zip(schema.arguments, node.args, strict=False):
        if argument.alias_info is not None and hasattr(value, "meta"):
            yield value


def only_asserts(node: Any) -> bool:
    """Whether a node gives nothing and changes nothing: export's checks of types and numbers."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None:
        return False
    return not schema.returns and not schema.is_mutable
