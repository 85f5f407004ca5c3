"""Takes away what another system does not have, as MIZZEN_LACKS names it, before anything runs.

Modules are never found; attributes, `module.name`, are deleted. Workers inherit both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

LACKS = os.environ.get("MIZZEN_LACKS", "").split()
MODULES = frozenset(name for name in LACKS if "." not in name)


class Lacking:
    """A finder of modules that does not find some."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if name in MODULES else self._finder.find_spec(name, path, target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


sys.meta_path[:] = [Lacking(finder) for finder in sys.meta_path]
for name in MODULES:
    sys.modules.pop(name, None)
for name in LACKS:
    module, _, attribute = name.rpartition(".")
    if module and hasattr(import_module(module), attribute):
        delattr(import_module(module), attribute)
