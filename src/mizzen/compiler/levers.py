"""What of a compilation a search may change, as far as a family says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Levers:
    """Options that change what a network costs and never what it computes.

    optimise    what the compiler may try for
    disabled    features that it may be told to leave, the most promising first
    rewrites    exact rewrites that a network allows: groups of which one at most is taken, made of
                ladders in which each goes further than the one before
    """

    optimise: tuple[str, ...]
    disabled: tuple[str, ...] = ()
    rewrites: tuple[tuple[tuple[str, ...], ...], ...] = ()
