"""What the user selects for a configuration: nodes by name, by operator, or as a finder says.

Nodes are found in the program as the user exported it. What is taken apart afterwards keeps the
selection of the node that it is made for.

Ref: ExecuTorch 1.5, backends/arm/quantizer (NodeFinder).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from torch.fx import GraphModule, Node

from mizzen.diagnostics import MizzenError, fail, nearest
from mizzen.quantize.configuration import Choice, Selection
from mizzen.quantize.nodes import SELECTED, module_stack


class NodeFinder(Protocol):
    """Finds nodes of a program; ExecuTorch's finders are such ones."""

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        """Return the nodes."""
        ...


@dataclass(frozen=True)
class NamedNodes:
    """Finds the nodes of some names. E881 for a name that none has."""

    names: tuple[str, ...]

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        """Return the nodes."""
        named = {node.name: node for node in model.graph.nodes}
        for name in self.names:
            if name not in named:
                calls = (node.name for node in model.graph.nodes if node.op == "call_function")
                raise _nothing("set_node_name", "node", name, calls)
            yield named[name]


@dataclass(frozen=True)
class NodesOf:
    """Finds the nodes that call some operators."""

    targets: tuple[Any, ...]

    def find_nodes(self, model: GraphModule) -> Iterator[Node]:
        """Return the nodes."""
        return (node for node in model.graph.nodes if node.target in self.targets)


def select(model: GraphModule, selection: Selection) -> None:
    """Mark the nodes that finders find; the last that finds one decides.

    E881 for a name, of a module or a node, that nothing in the program has.
    """
    _require_modules(model, selection)
    for finder, choice in selection.finders:
        for node in finder.find_nodes(model):
            node.meta[SELECTED] = choice


def leave(nodes: Iterable[Node], selection: Selection) -> None:
    """Mark nodes that another quantizer annotates, whatever was set for them."""
    choice = Choice(None, selection.turns + 1, "another quantizer annotates it")
    for node in nodes:
        node.meta[SELECTED] = choice


def _require_modules(model: GraphModule, selection: Selection) -> None:
    """Check that each module that was named is there; one of layers without operators has none."""
    if not selection.names:
        return
    paths = {path for node in model.graph.nodes for path, _ in module_stack(node)}
    held = {str(node.target) for node in model.graph.nodes if node.op == "get_attr"}
    known = {*paths, *(name.rpartition(".")[0] for name in held)}
    for name in selection.names:
        if name not in known:
            raise _nothing("set_module_name", "module", name, paths)


def _nothing(method: str, what: str, name: str, names: Iterable[str]) -> MizzenError:
    listed = sorted({each for each in names if each})
    meant = " or ".join(map(repr, nearest(name, listed)))
    return fail(
        "E881",
        f"{method} must name a {what} of the program, and none is called {name!r}",
        help=f"did you mean {meant}?" if meant else f"there are {', '.join(listed[:12])}",
    )
