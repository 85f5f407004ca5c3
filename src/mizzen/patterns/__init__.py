"""Patterns over graphs: a language for them, matching, rewriting, grouping, explaining."""

from mizzen.patterns.composites import Composite, Cover
from mizzen.patterns.language import (
    Const,
    Either,
    Guard,
    Is,
    Node,
    Op,
    Pattern,
    Reject,
    Result,
    Through,
    Var,
    chain,
    either,
    maybe,
    of,
    op,
)
from mizzen.patterns.match import Match, Matcher, Miss, explain, find
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
