"""What quantisation asks of the nodes of an exported program, by the registry of operators."""

from __future__ import annotations

import operator
from typing import Any

from torch.fx import Node

from mizzen.diagnostics import Origin, source_line
from mizzen.frontends.torch.operators import Range, Role, row_of

TRANSPOSED = 6
"""Where `convolution` says whether it is transposed, and the others have their groups."""

KNOWN_RANGE = "mizzen_range"
"""Key in a node's meta: the `Range` of its result, where a rewriting knows it beforehand."""

SELECTED = "mizzen_selected"
"""Key in a node's meta: the configuration that the user set for this node."""

MASK = "mizzen_mask"
"""Key in an input's meta: whether it is added to scores, to hide some of them."""

MADE_MASK = "mizzen_made_mask"
"""Key in a node's meta: whether its result is 0 or `MASKED`, for the scores of several layers."""

HIDES = "mizzen_hides"
"""Key in a node's meta: what its result is multiplied by before the softmax, some of it hidden."""

MASKED = -(2.0**14)
"""What a mask adds instead of minus infinity: below every score, and below `HIDDEN`."""

HIDDEN = -1e4
"""What a mask hides a score by, or anything below: networks have -10000 and minus infinity."""

HIDDEN_BESIDE = -64.0, -16.0
"""A constant of which some is at least the second hides scores where it is at most the first.

Shifted windows add -100, and a weight of e**-64 is none.
"""

FAR = {8: 8.0, 16: 18.0}
"""How far below the greatest a score's weight is no step, by the bits of the weights.

Half a step is e**-6.2 and e**-11.1; what is left is for the roundings of scores, and of 16 bits,
whose small exponentials are not rounded away, for a thousand hidden scores together.
"""


def operator_name(node: Node) -> str:
    """Return the operator's name in the user's words; empty for what is not an ATen operator.

    Names are those of `torch.ops.aten`, without overload: ``relu_`` is found as ``relu``.
    """
    name = str(node.target)
    if node.op != "call_function" or not name.startswith("aten."):
        return ""
    base = name.split(".")[1]
    return base if base.startswith("__") else base.removesuffix("_")


def row_name(node: Node) -> str:
    """Return the name of the operator's row: ``mul`` for ``multiply`` too; empty without one."""
    entry = row_of(node)
    return "" if entry is None or node.op != "call_function" else entry.name


def role_of(node: Node) -> Role | None:
    """Return the operator's role, None where it has no integer form."""
    if node.target is operator.getitem:
        return Role.SHARED
    entry = row_of(node)
    return None if entry is None else entry.role


def channel_axis(node: Node) -> int | None:
    """Return the axis of the output channels in a layer's weight; None for other operators."""
    entry = row_of(node)
    if entry is not None and entry.name == "convolution" and node.args[TRANSPOSED]:
        return 1
    return None if entry is None else entry.channel_axis


def groups_of(node: Node) -> int:
    """Return the number of groups of a convolution."""
    place = TRANSPOSED + 2 if row_name(node) == "convolution" else TRANSPOSED
    groups = node.args[place] if len(node.args) > place else node.kwargs.get("groups", 1)
    return groups if isinstance(groups, int) else 1


def known_range(node: Node) -> Range | None:
    """Return the range that a node's results are known to have."""
    entry = row_of(node)
    return node.meta.get(KNOWN_RANGE) or (None if entry is None else entry.range)


def cuts_at_zero(node: Node) -> bool:
    """Whether a node is ReLU or a clamp whose lower limit is 0: an activation to fuse."""
    match row_name(node):
        case "relu" | "relu6":
            return True
        case "hardtanh" | "clamp":
            low = node.args[1] if len(node.args) > 1 else node.kwargs.get("min", -1.0)
            return isinstance(low, (int, float)) and low == 0
        case "clamp_min":
            return isinstance(node.args[1], (int, float)) and node.args[1] == 0
        case _:
            return False


def module_stack(node: Node) -> list[tuple[str, str]]:
    """Return the modules around a node, outermost first: path and full name of the type."""
    stack: dict[str, tuple[Any, Any]] = node.meta.get("nn_module_stack") or {}
    return [(str(path), _type_name(kind)) for path, kind in stack.values()]


def _type_name(kind: object) -> str:
    if isinstance(kind, type):
        return f"{kind.__module__}.{kind.__qualname__}"
    return str(kind)


def origin_of(node: Node) -> Origin:
    """Return module, line and operator of a node, as far as the program has them.

    The line is the innermost of the user's own; of the file only the name is given.
    """
    stack = module_stack(node)
    return Origin(
        kind=operator_name(node) or None,
        name=node.name,
        module=(stack[-1][0] or None) if stack else None,
        source=source_line(node.meta.get("stack_trace") or ""),
    )
