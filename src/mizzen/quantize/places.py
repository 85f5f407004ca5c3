"""Where a node of an exported program comes from in the user's model."""

from __future__ import annotations

import re
from typing import Any

from torch.fx import Node

from mizzen.diagnostics import Origin
from mizzen.quantize.operators import operator_name

FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def module_stack(node: Node) -> list[tuple[str, str]]:
    """Give the modules around a node, outermost first: path and full name of the type."""
    stack: dict[str, tuple[Any, Any]] = node.meta.get("nn_module_stack") or {}
    return [(str(path), _type_name(kind)) for path, kind in stack.values()]


def _type_name(kind: object) -> str:
    if isinstance(kind, type):
        return f"{kind.__module__}.{kind.__qualname__}"
    return str(kind)


def origin_of(node: Node) -> Origin:
    """Give module, line and operator of a node, as far as the program has them."""
    stack = module_stack(node)
    frames = FRAME.findall(node.meta.get("stack_trace") or "")
    return Origin(
        kind=operator_name(node) or None,
        name=node.name,
        module=(stack[-1][0] or None) if stack else None,
        source=f"{frames[-1][0]}:{frames[-1][1]}" if frames else None,
    )
