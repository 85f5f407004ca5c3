"""How a lowering says that it has no form of an operator."""

from __future__ import annotations


class RefusedError(Exception):
    """An operator has no exact TOSA form here; `reason` says why, `help` what would change that."""

    def __init__(self, reason: str, help: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.help = help
