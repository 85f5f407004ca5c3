"""The NPU families that there are, each joined with the front-ends."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from mizzen.compiler.backend import (
    Backend,
    CompileOptions,
    ConfigFiles,
    Configuration,
    ConfigurationLine,
    MappedTensor,
    MemoryRegion,
    ProgramView,
    ProgressCallback,
    ResolvedTarget,
)
from mizzen.diagnostics import fail

__all__ = [
    "Backend",
    "CompileOptions",
    "ConfigFiles",
    "Configuration",
    "ConfigurationLine",
    "MappedTensor",
    "MemoryRegion",
    "ProgramView",
    "ProgressCallback",
    "ResolvedTarget",
    "backend_for",
    "backend_of",
    "backends",
    "choose",
]

FAMILIES = ("mizzen.compiler.ethos_u.backend", "mizzen.compiler.ethos_n.backend")
"""Modules, each with a `BACKEND`."""


@cache
def _backend(family: str) -> Backend[Any]:
    return import_module(family).BACKEND


def backends() -> Iterator[Backend[Any]]:
    """Return every backend."""
    return map(_backend, FAMILIES)


def backend_for(accelerator: str) -> Backend[Any]:
    """Return the backend of an accelerator. E210 if there is no accelerator of that name."""
    for backend in backends():
        if accelerator.lower() in backend.accelerators:
            return backend
    known = [name for backend in backends() for name in backend.accelerators]
    close = difflib.get_close_matches(accelerator.lower(), known, n=1)
    raise fail(
        "E210",
        f"the accelerator must be {', '.join(known[:-1])} or {known[-1]}, not {accelerator!r}",
        help=f"did you mean {close[0]}?" if close else None,
    )


def backend_of(code: str) -> Backend[Any] | None:
    """Return the backend whose compiled parts are custom operators of this code."""
    return next((backend for backend in backends() if backend.code == code), None)


def choose(asked: CompileOptions) -> ResolvedTarget:
    """Return the backend and the configuration in force. Raises E2xx for what cannot be."""
    backend = backend_for(asked.accelerator)
    return ResolvedTarget(backend, backend.resolve(asked))
