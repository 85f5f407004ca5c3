"""Patterns over graphs: a language for them, matching, rewriting, grouping, explaining.

A pattern is data, written from its last operation inwards, of classes of `mizzen.ops`; what a
match has bound is of the same class, so ``match[CONVOLUTION].stride`` is typed. Being data, it can
print as an equation, and say why it does not match where somebody expected it to; a function that
searches could do neither. What cannot be said as a shape of operations is a guard, a pure function
with a docstring for its words. Matching is deterministic: the first way wins, in the order written.

Rewriting (`Rules`) and grouping (`Cover`) are two users of one matcher. Nothing here knows which
patterns there are: passes and targets bring their own.
"""

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
from mizzen.patterns.match import (
    Guard,
    Match,
    Matcher,
    Miss,
    Pattern,
    Reject,
    Rule,
    Rules,
    explain,
    find,
)

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
