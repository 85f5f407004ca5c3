"""Where FX nodes come from in the user's program."""

from __future__ import annotations

from typing import Any

from mizzen.diagnostics import Origin, source_line

GETITEM = "<built-in function getitem>"
"""The target, as it prints, of a node that takes one of another's several results."""


def origin_of(node: Any, model: str | None, index: int) -> Origin:
    """Say where an FX node comes from: operator, module path, line of the user's file."""
    return Origin(
        model=model,
        operator=index,
        kind=kind_of(node),
        name=node.name,
        module=_module(node),
        source=source_line(node.meta.get("stack_trace") or ""),
    )


def kind_of(node: Any) -> str:
    """Return the operator's name in the user's words, ``aten.conv2d``."""
    target = node.target
    name = str((getattr(target, "_schema", None) and target._schema.name) or target)
    return name.replace("::", ".")


def _module(node: Any) -> str | None:
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return None
    path, kind = list(stack.values())[-1]
    name = kind if isinstance(kind, str) else kind.__qualname__
    short = name.rpartition(".")[2]
    return f"{path} ({short})" if path else f"({short})"
