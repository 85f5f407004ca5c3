"""Which rewrites a network allows: what a search may try."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.compiler.rewrites.apply import allows
from mizzen.compiler.rewrites.draft import Draft
from mizzen.compiler.rewrites.fold import first_window, padded_convolution
from mizzen.compiler.rewrites.table import named
from mizzen.frontends.tflite import Model

LONGEST = 8
"""Operators that are folded at most."""

MADE = (1, 2, 4)
"""Columns of results that are folded."""

WIDEST = 8
"""Columns of the input that are folded at most."""

Ladder = tuple[str, ...]
"""Rewrites of which each goes further than the one before."""


def candidates(model: Model) -> tuple[tuple[Ladder, ...], ...]:
    """Return the rewrites that a network allows, in the order in which they are applied.

    Groups of ladders: of a group one rewrite at most is applied.
    """
    if not allows(model):
        return ()
    groups: tuple[tuple[Ladder, ...], ...] = (
        (("prune",),),
        (("sort",),),
        (("same",),),
        (("pads",),),
        tuple(_folds(model)),
        (("swap",),),
        (("pool2",), ("pool8",)),
    )
    allowed = (tuple(_allowed(model, ladder) for ladder in group) for group in groups)
    kept = (tuple(ladder for ladder in group if ladder) for group in allowed)
    return tuple(group for group in kept if group)


def _folds(model: Model) -> Iterator[Ladder]:
    draft = Draft(model)
    step = first_window(draft)
    _, convolution = (None, None) if step is None else padded_convolution(draft, step)
    if convolution is None:
        return
    for made in MADE:
        given = made * convolution.stride_w
        if given == 1 or given > WIDEST:
            continue
        counts = range(1, LONGEST + 1) if made > 1 else (1,)
        yield tuple(_fold_name(given, made, count) for count in counts)


def _fold_name(given: int, made: int, count: int) -> str:
    return f"fold{given}x{made}" if count == 1 else f"fold{given}x{made}x{count}"


def _allowed(model: Model, ladder: Ladder) -> Ladder:
    return tuple(name for name in ladder if named(name).rewrite(Draft(model)))
