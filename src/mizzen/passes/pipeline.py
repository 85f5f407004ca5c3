"""Passes in a row: what a pass is, and lists of passes that print and parse.

A pass edits a graph in place and says whether it changed anything. Its settings are its fields,
so that ``str(pipeline)`` says all there is to know: ``fold-constants,layout``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from mizzen.diagnostics import fail
from mizzen.graph import Graph


class Pass(Protocol):
    """One rewriting of a graph that keeps what the graph computes."""

    name: ClassVar[str]

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph in place; True if anything changed."""
        ...


Watch = Callable[[Pass, Graph], None]
"""Called behind every pass that changed a graph."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Passes in the order in which they run, over the graph and those inside its operations."""

    passes: tuple[Pass, ...]

    def run(self, graph: Graph, watch: Watch | None = None) -> bool:
        """Run every pass in turn; True if anything changed.

        A pass that ran before is left out where no other has changed the graph since.
        """
        changed = False
        for inner in _graphs_within(graph):
            changed |= self.run(inner, watch)
        left: dict[str, int] = {}
        for each in self.passes:
            if left.get(each.name) == graph.version:
                continue
            if each.run(graph):
                changed = True
                if watch is not None:
                    watch(each, graph)
            left[each.name] = graph.version
        return changed

    def __str__(self) -> str:
        return ",".join(each.name for each in self.passes)


def parse(text: str, known: Mapping[str, Pass]) -> Pipeline:
    """Read a pipeline from the names of its passes, as it prints."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise fail(
                "E310",
                f'a pipeline must consist of known passes, and "{name}" is none',
                help=f"the passes are {', '.join(sorted(known))}",
            )
    return Pipeline(tuple(known[name] for name in names))


def _graphs_within(graph: Graph) -> Iterator[Graph]:
    for operation in graph:
        if operation.kind in ("COND_IF", "WHILE_LOOP"):
            for attribute in operation.attributes.values():
                if isinstance(attribute, Graph):
                    yield attribute
