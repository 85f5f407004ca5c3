"""The rewrites there are, by the names that the command line takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mizzen.compiler.rewrites.draft import Draft
from mizzen.compiler.rewrites.fold import Fold, fold
from mizzen.compiler.rewrites.pads import pads_as_same, pads_as_weights
from mizzen.compiler.rewrites.pool_view import view_pools
from mizzen.compiler.rewrites.prune import prune
from mizzen.compiler.rewrites.sort import sort_channels
from mizzen.compiler.rewrites.swap import swap
from mizzen.diagnostics import fail

Rewrite = Callable[[Draft], bool]
"""Changes a network; False where it cannot, and has changed nothing."""


@dataclass(frozen=True, slots=True)
class Named:
    """A rewrite, its name, and what it needs of a network in a sentence."""

    name: str
    rewrite: Rewrite
    needs: str


@dataclass(frozen=True, slots=True)
class Form:
    """How the names of one kind of rewrite are written, and what makes one of its numbers."""

    form: str
    pattern: re.Pattern[str]
    make: Callable[..., Rewrite]
    needs: str


def _plain(rewrite: Rewrite) -> Callable[[], Rewrite]:
    return lambda: rewrite


def _fold(given: int, made: int, count: int = 1) -> Rewrite:
    return partial(fold, wanted=Fold(given, made, count))


def _pool(columns: int) -> Rewrite:
    return partial(view_pools, columns=columns)


FORMS = (
    Form(
        "prune", re.compile("prune"), _plain(prune),
        "a channel must be constant, or have zero weights wherever it is taken",
    ),
    Form(
        "sort", re.compile("sort"), _plain(sort_channels),
        "maps must stand between convolutions or FULLY_CONNECTED with constant weights and biases",
    ),
    Form(
        "same", re.compile("same"), _plain(pads_as_same),
        "a PAD must pad what SAME of the convolution after it does",
    ),
    Form(
        "pads", re.compile("pads"), _plain(pads_as_weights),
        "a PAD of channels must stand between convolutions and additions",
    ),
    Form(
        "foldIxO, foldIxOxN", re.compile(r"fold([1-9]\d?)x([1-9]\d?)(?:x([1-9]\d?))?"), _fold,
        "N operators from the first must be int8 convolutions and additions, whose columns divide "
        "by I and O",
    ),
    Form(
        "swap", re.compile("swap"), _plain(swap),
        "every operator on maps must treat height and width alike, or have a form for swapped ones",
    ),
    Form(
        "poolK", re.compile(r"pool([1-9]\d?)"), _pool,
        "an average pool over a whole map must have channels that the number of columns divides",
    ),
)  # fmt: skip
"""Every kind of rewrite, in the order in which they are best applied."""


def named(name: str) -> Named:
    """Return the rewrite of a name. E261 if there is not one."""
    for form in FORMS:
        if match := form.pattern.fullmatch(name):
            numbers = (int(group) for group in match.groups() if group is not None)
            return Named(name, form.make(*numbers), form.needs)
    raise fail(
        "E261",
        f"a rewrite must be of {', '.join(each.form for each in FORMS)}, not {name!r}",
        help="`mizzen tune` finds those that a network gains by",
    )


def require_known(names: Sequence[str]) -> None:
    """Refuse names of rewrites that there are not. E261."""
    for name in names:
        named(name)
