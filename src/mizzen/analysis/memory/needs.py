"""What a board must have for an artifact: the bytes of its memory report, by what lies there."""

from __future__ import annotations

from collections.abc import Mapping

from mizzen.boards import Role
from mizzen.report.memory import MemoryReport

ROLES = {
    "constants": Role.MODEL,
    "arena": Role.ARENA,
    "runtime": Role.ARENA,
    "cache": Role.FAST,
}
"""By the area of a memory report: a runtime's structures lie in its arena."""


def needs_of(report: MemoryReport) -> Mapping[Role, int]:
    """Return the bytes that the model, the arena and the fast memory take; all of the file is the
    model's."""
    needs: dict[Role, int] = {Role.MODEL: 0, Role.ARENA: 0, Role.FAST: 0}
    for area in report.areas:
        needs[ROLES[area.area]] += area.used_bytes
    needs[Role.MODEL] = max(needs[Role.MODEL], report.file_bytes)
    return needs
