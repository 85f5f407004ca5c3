"""How a rule says that it does not take an operation."""

from __future__ import annotations


class NoFormError(Exception):
    """No rule has a form of an operation: why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def need(holds: bool, reason: str) -> None:
    """Refuse the operation unless a condition holds."""
    if not holds:
        raise NoFormError(reason)
