"""Rewrite a graph by rules: a pattern, and what is to be there instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mizzen.graph import Graph
from mizzen.patterns.match import Matcher
from mizzen.patterns.pattern import Match, Pattern

Rewriting = Callable[[Graph, Match], None]
"""Edits the graph at a match so that the graph still computes the same."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern and how a graph is rewritten where it matches."""

    pattern: Pattern
    becomes: Rewriting


class Rules:
    """Rules in the order in which they are tried, ready to be used on graphs."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self._matcher = Matcher([rule.pattern for rule in rules])
        self._becomes = {id(rule.pattern): rule.becomes for rule in rules}

    def rewrite(self, graph: Graph) -> bool:
        """Rewrite each operation there is once, by the first rule that matches; True on changes.

        Operations that rewriting adds are not looked at. What nobody needs any more goes.
        """
        changed = False
        for operation in graph:
            if operation not in graph:
                continue
            found = self._matcher.first(graph, operation)
            if found is not None:
                self._becomes[id(found.pattern)](graph, found)
                changed = True
        if changed:
            graph.erase_dead()
        return changed
