"""How things show themselves in a notebook, without knowing who draws them.

Artifacts and reports have the method that notebooks call for HTML, and it asks `html_of`. Who
can draw says so to `drawn_by`, once: Mizzen's root does, with a function that imports what draws
when something is to be drawn. So the layers that are drawn stay below the one that draws, and
nothing is imported for it by programs that are no notebooks. It must not know either side.
"""

from __future__ import annotations

from collections.abc import Callable

Draw = Callable[[object], "str | None"]
"""Returns HTML of a thing; None where a notebook is to show its text."""

_draws: list[Draw] = []


def drawn_by(draw: Draw) -> None:
    """Let `draw` draw from now on, in place of what did before."""
    _draws[:] = [draw]


def html_of(thing: object) -> str | None:
    """Return HTML of a thing; None where nothing draws it."""
    return _draws[0](thing) if _draws else None
