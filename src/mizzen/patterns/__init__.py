"""Patterns over graphs: a language for them, matching, rewriting, grouping, explaining."""

from mizzen.patterns.composites import Composite, Cover
from mizzen.patterns.language import (
    Const,
    Either,
    Is,
    Node,
    Op,
    Result,
    Through,
    Var,
    chain,
    either,
    maybe,
    of,
    op,
)
from mizzen.patterns.match import Matcher, Miss, explain, find
from mizzen.patterns.pattern import Guard, Match, Pattern, Reject
from mizzen.patterns.rewrite import Rule, Rules

__all__ = [
    "Composite",
    "Const",
    "Cover",
    "Either",
    "Guard",
    "Is",
    "Match",
    "Matcher",
    "Miss",
    "Node",
    "Op",
    "Pattern",
    "Reject",
    "Result",
    "Rule",
    "Rules",
    "Through",
    "Var",
    "chain",
    "either",
    "explain",
    "find",
    "maybe",
    "of",
    "op",
]
