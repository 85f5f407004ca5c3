"""Where a node of an exported program comes from in the user's model."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from mizzen.diagnostics import Origin, source_line
from mizzen.quantize.operators import operator_name


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
