"""Windows over images: padding of an operation's own, a PAD in front of it, a SLICE that cuts.

TOSA wants the last window to end where the padded image ends; front-ends cut off what no window
reaches. The Support Library leaves it out itself, so the SLICE is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.graph import Value
from mizzen.patterns import Const, Match, Var, maybe, op
from mizzen.targets.ethos_n.patterns.findings import Findings
from mizzen.targets.ethos_n.patterns.values import contents, number
from mizzen.targets.ethos_n.tensors import Padding, Stride

Pads = tuple[int, int, int, int]
"""Top, bottom, left, right."""

X = Var("x")
"""What is looked at, before it is padded or cut."""
AMOUNTS, FILLING = Const("amounts"), Const("filling")
PAD = op("PAD", X, AMOUNTS, FILLING, once=True)
START = Const("start")
PADDED = maybe(PAD)
CUT = op("SLICE", PADDED, START, once=True)
IMAGE = maybe(CUT)
"""What a window goes over, as the last operation takes it."""


@dataclass(frozen=True, slots=True)
class Window:
    """Where windows are: `padding` of the image `X`, and the step from one to the next."""

    padding: Padding
    stride: Stride


def window_of(match: Match, findings: Findings, filling: int) -> Window:
    """Read the window of a match's last windowed operation.

    filling  the number that a PAD must pad with
    """
    operation = next(row for row in match.operations if "stride" in row.attributes)
    vertical, horizontal = operation["stride"]
    top, bottom, left, right = operation["pad"]
    if PAD in match:
        more = _amounts(match, findings, filling)
        top, bottom, left, right = top + more[0], bottom + more[1], left + more[2], right + more[3]
    if CUT in match:
        rows, columns = _cut(match, findings)
        bottom, right = max(bottom - rows, 0), max(right - columns, 0)
    return Window(Padding(top, bottom, left, right), Stride(horizontal, vertical))


def _amounts(match: Match, findings: Findings, filling: int) -> Pads:
    found = number(match[FILLING])
    findings.need(
        found == filling,
        "padding-number",
        f"padding number={found}, padding number must = {filling}",
        limit=f"padding with {filling}",
        actual=str(found),
        help="pad with the number that stands for zero",
    )
    pairs = contents(match[AMOUNTS]).reshape(-1, 2).tolist()
    plane = pairs[1:3] if len(pairs) == 4 else [[0, 0], [0, 0]]
    outside = len(pairs) != 4 or any((*pairs[0], *pairs[3]))
    findings.need(
        not outside,
        "padding-dimensions",
        f"padding={pairs}, padding must be of height and width",
        limit="padding of height and width",
        help="pad nothing but height and width",
    )
    (top, bottom), (left, right) = plane
    return top, bottom, left, right


def _cut(match: Match, findings: Findings) -> tuple[int, int]:
    """Return how many rows and columns are cut off at the end."""
    start = contents(match[START]).reshape(-1)
    before, after = match[CUT].operands[0].shape, match[CUT].result.shape
    lost = np.subtract(before, after).tolist()
    only_end = not start.any() and len(lost) == 4 and not (lost[0] or lost[3])
    findings.need(
        only_end,
        "cut",
        f"slice begin={start.tolist()}, a slice must leave out only what no window reaches",
        help="let the operator that takes the slice take the whole tensor",
    )
    return (lost[1], lost[2]) if only_end else (0, 0)


def needs_extents(findings: Findings, given: tuple[int, ...], value: Value) -> None:
    """Note where windows are at other places than in the graph: more was cut than they leave."""
    findings.need(
        given == value.shape,
        "extents",
        f"output shape={list(value.shape)}, output shape must = {list(given)}",
        limit=f"an output of {'x'.join(map(str, given))}",
        actual="x".join(map(str, value.shape)),
        help="let the operator take the whole tensor, and pad as SAME or VALID do",
    )
