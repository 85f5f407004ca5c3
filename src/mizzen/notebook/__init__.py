"""How things show themselves in a notebook and as text, without knowing who draws or writes them.

Artifacts and reports have the method that notebooks call for HTML, and it asks `html_of`; `str()`
of a report asks `text_of`. Who can draw says so to `drawn_by`, who can write to `written_by`, once:
Mizzen's root does, with functions that import what draws when something is to be drawn. So the
layers that are drawn stay below the one that draws, and nothing is imported for it by programs
that are no notebooks. It must not know either side.
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


Write = Callable[[object], "str | None"]
"""Returns the text of a thing; None where its `repr` is to be its text."""

_writes: list[Write] = []


def written_by(write: Write) -> None:
    """Let `write` write from now on, in place of what did before."""
    _writes[:] = [write]


def text_of(thing: object) -> str:
    """Return the text of a thing."""
    text = _writes[0](thing) if _writes else None
    return repr(thing) if text is None else text
