"""Operations of an artifact by the operators of the user's model, whose indices differ.

An artifact's own operators are those that stay on the CPU, and one for each part on the NPU; the
report of its compilation has the model's. They have the names of what they compute in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mizzen.diagnostics import Device, Origin
from mizzen.report import CompileReport
from mizzen.report.cost import OperationCost

WORD_BYTES = 4


def of_model(row: OperationCost, report: CompileReport | None) -> OperationCost:
    """Return an operation on the CPU with its operator in the model; None where that has none.

    Without a report the artifact is all that is known, and its own indices stay.
    """
    origin = row.origin
    if report is None or origin is None or row.device is not Device.CPU:
        return row
    found = next(
        (
            place
            for place in report.placements
            if (place.kind, place.name) == (origin.kind, origin.name)
        ),
        None,
    )
    if found is None:
        return replace(row, origin=replace(origin, operator=None))
    return replace(row, origin=Origin(report.model, found.index, found.kind, found.name))


def of_commands(rows: list[OperationCost], origins: Mapping[int, Origin]) -> list[OperationCost]:
    """Return the passes of a stream with their commands, whose origins go by byte offset.

    As they are where there is not one for each.
    """
    if len(origins) != len(rows):
        return rows
    return [
        replace(row, origin=replace(origin, command=offset // WORD_BYTES))
        for row, (offset, origin) in zip(rows, sorted(origins.items()), strict=True)
    ]
