"""Which slots of the NPU's own memory lookup tables lie in, and when they are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.targets.ethos_u.generator.shared_buffer import SLOT_BYTES, TABLE_SLOTS

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class TableUse:
    """The slot of an operation's table, and whether it has to be loaded before."""

    slot: int
    is_loaded: bool


def assign(uses: Sequence[bytes | None], keeps_tables: bool) -> list[TableUse | None]:
    """Choose slots for the tables of operations in order; None stands for one without a table.

    Of tables in the way, the one that is needed latest goes; of those that are not needed, the one
    whose last use is longest ago, so that loading need not wait. A table of four or eight slots
    lies at a multiple of its size.

    keeps_tables  whether tables outlive operations without one
    """
    held: dict[int, tuple[bytes, int]] = {}  # slot -> the table from there on, and its last use
    chosen: list[TableUse | None] = []
    for position, data in enumerate(uses):
        if data is None:
            if not keeps_tables:
                held.clear()
            chosen.append(None)
            continue
        slot = next((slot for slot, (other, _) in held.items() if other == data), None)
        chosen.append(
            TableUse(_free(held, data, uses, position, keeps_tables), True)
            if slot is None
            else TableUse(slot, False)
        )
        _put(held, chosen[-1], data, position)
    return chosen


def _put(
    held: dict[int, tuple[bytes, int]], use: TableUse | None, data: bytes, position: int
) -> None:
    assert use is not None
    for slot in _overlapped(held, use.slot, data):
        del held[slot]
    held[use.slot] = data, position


def _overlapped(held: dict[int, tuple[bytes, int]], start: int, data: bytes) -> list[int]:
    stop = start + _slots(data)
    return [
        slot for slot, (other, _) in held.items() if slot < stop and start < slot + _slots(other)
    ]


def _free(
    held: dict[int, tuple[bytes, int]],
    data: bytes,
    uses: Sequence[bytes | None],
    position: int,
    keeps_tables: bool,
) -> int:
    def merit(start: int) -> tuple[int, int, int]:
        gone = [held[slot] for slot in _overlapped(held, start, data)]
        needed = min(
            (_next(uses, position, other, keeps_tables) for other, _ in gone), default=NEVER
        )
        used = max((last for _, last in gone), default=-1)
        return needed, -used, -start

    return max(range(0, TABLE_SLOTS, _slots(data)), key=merit)


def _next(uses: Sequence[bytes | None], position: int, data: bytes, keeps_tables: bool) -> int:
    """Return which operation needs a table next; NEVER if it is gone by then."""
    for later in range(position + 1, len(uses)):
        if uses[later] == data:
            return later
        if uses[later] is None and not keeps_tables:
            return NEVER
    return NEVER


def _slots(data: bytes) -> int:
    return -(-len(data) // SLOT_BYTES)
