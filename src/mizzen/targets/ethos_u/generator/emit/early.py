"""Loads of lookup tables as early in the stream as they hinder nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mizzen.targets.ethos_u.generator.emit.order import OUTSTANDING_TRANSFERS, conflict, wait_for
from mizzen.targets.ethos_u.generator.emit.steps import Purpose, Step, TransferStep
from mizzen.targets.ethos_u.generator.tuned import TABLE_LOOK_BACK_STEPS
from mizzen.targets.ethos_u.machine.commands_values import Arch


def with_early_tables(steps: Iterable[Step], arch: Arch) -> list[Step]:
    """Return the steps with loads of tables before operations that they do not disturb.

    A load stays where the front end would wait for a transfer before it may start. Behind an
    operation that uses its slots it leaves room for one more, if there is one, so that the front
    end need not wait until the array stands still.
    """
    moved: list[Step] = []
    for step in steps:
        place = len(moved)
        if isinstance(step, TransferStep) and step.purpose is Purpose.TABLE:
            place = _earliest(moved, step, OUTSTANDING_TRANSFERS[arch])
        moved.insert(place, step)
    return moved


def _earliest(before: Sequence[Step], load: TransferStep, most: int) -> int:
    place = len(before)
    while place > len(before) - TABLE_LOOK_BACK_STEPS and place:
        other = before[place - 1]
        if isinstance(other, TransferStep):
            break
        if conflict(other, load):
            place = min(place + 1, len(before))
            break
        place -= 1
    counts = _outstanding(before, most)
    return next((at for at in range(place, len(before)) if counts[at] < most), len(before))


def _outstanding(steps: Sequence[Step], most: int) -> dict[int, int]:
    """Return how many transfers may be outstanding before a step.

    Of the steps after the last `most` transfers: of these alone can some be outstanding there.
    """
    starts = [place for place, step in enumerate(steps) if isinstance(step, TransferStep)]
    first = starts[-most] if len(starts) >= most else 0
    transfers: list[TransferStep] = []
    counts: dict[int, int] = {}
    for place in range(first, len(steps)):
        step = steps[place]
        counts[place] = len(transfers)
        if isinstance(step, TransferStep):
            transfers.append(step)
        else:
            wait_for(transfers, step)
    return counts
