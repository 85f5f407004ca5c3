"""Whether masks hide the scores that they are meant to hide.

A mask adds a number before a softmax that calibration cannot make larger: a score that was further
above the others than that is still seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torch.fx import GraphModule, Node

from mizzen.diagnostics import Diagnostic, Origin, Severity
from mizzen.quantize.nodes import MASKED, origin_of, row_name

SEEN = math.log(255)
"""How far a score must be below the greatest for a weight under a step of 8 bits."""

WIDEST = -MASKED - SEEN
"""How far apart scores may lie for each that is masked to be below every other by that."""


def seen_scores(prepared: GraphModule) -> Iterator[Diagnostic]:
    """Warn of masked scores, in a program that was calibrated, that lie further apart (W872)."""
    for node in prepared.graph.nodes:
        if row_name(node) != "add":
            continue
        if not any(_range(prepared, row)[0] == MASKED and _is_constant(row) for row in node.args):
            continue
        for user in node.users:
            least, most = _range(prepared, user)
            span = most - (least - MASKED)  # the least is one that was masked
            if span > WIDEST:
                yield _warning(span, origin_of(node))


def _range(prepared: GraphModule, node: object) -> tuple[float, float]:
    """Return the least and greatest number that the observer of a value has seen."""
    if not isinstance(node, Node) or node.op != "call_module":
        return 0.0, 0.0
    observer: Any = prepared.get_submodule(str(node.target))
    least, most = getattr(observer, "min_val", None), getattr(observer, "max_val", None)
    if least is None or most is None or least.numel() != 1 or most.numel() != 1:
        return 0.0, 0.0
    return float(least), float(most)


def _is_constant(node: object) -> bool:
    if not isinstance(node, Node):
        return False
    source = node.args[0] if node.args else None
    return isinstance(source, Node) and source.op == "get_attr"


def _warning(span: float, origin: Origin | None) -> Diagnostic:
    return Diagnostic(
        "W872",
        f"scores that a mask hides must lie at most {WIDEST:.1f} apart, and lie up to {span:.1f} "
        "apart in calibration: the greatest of them are still seen",
        Severity.WARNING,
        origin,
        help="divide the scores by the root of their depth, or compare the artifact's outputs with "
        "the model's",
    )
