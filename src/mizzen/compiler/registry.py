"""The backends of all NPU families, and the one that an accelerator has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mizzen.compiler.backend import Backend, ResolvedTarget
from mizzen.compiler.options import CompileOptions
from mizzen.targets.families import families, family_for, loaded


def backends() -> Iterator[Backend[Any]]:
    """Return every backend."""
    return (loaded(family.compiler) for family in families())


def backend_for(accelerator: str) -> Backend[Any]:
    """Return the backend of an accelerator. E210 if there is no accelerator of that name."""
    return loaded(family_for(accelerator).compiler)


def resolve_target(options: CompileOptions) -> ResolvedTarget:
    """Return the backend and the configuration in force. Raises E2xx for what cannot be."""
    backend = backend_for(options.accelerator_name)
    return ResolvedTarget(backend, backend.resolve(options))
