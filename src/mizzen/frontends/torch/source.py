"""Where FX nodes come from in the user's program."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from mizzen.diagnostics import Origin

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')

FRAMEWORK = ("/torch/", "/torchao/", "/mizzen/quantize/", "<eval_with_key>")
"""Parts of paths of files that are not the user's."""


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
    """Give the operator's name in the user's words, ``aten.conv2d``."""
    target = node.target
    name = str((getattr(target, "_schema", None) and target._schema.name) or target)
    return name.replace("::", ".")


def source_line(trace: str) -> str | None:
    """Give the innermost line of the user's own files in a stack trace, as ``file.py:12``.

    Only the file's name: where a file lies on somebody's machine is nobody's business.
    """
    frames = [
        f"{PurePath(path).name}:{line}"
        for path, line, _ in _FRAME.findall(trace)
        if not any(part in path.replace("\\", "/") for part in FRAMEWORK)
    ]
    return frames[-1] if frames else None


def _module(node: Any) -> str | None:
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return None
    path, kind = list(stack.values())[-1]
    name = kind if isinstance(kind, str) else kind.__qualname__
    short = name.rpartition(".")[2]
    return f"{path} ({short})" if path else f"({short})"
