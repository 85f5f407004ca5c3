"""Operations of an artifact by the operators of the user's model, whose indices differ.

An artifact's own operators are those that stay on the CPU, and one for each part on the NPU; the
report of its compilation has the model's. They have the names of what they compute in common.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mizzen.diagnostics import Device, Origin
from mizzen.report import CompileReport, OperatorPlacement
from mizzen.report.cost import OperationCost

WORD_BYTES = 4

Owner = tuple[str, int]
"""An operator of the model: its subgraph, where there are several, and its index."""


def by_owner(
    operations: Sequence[OperationCost], report: CompileReport
) -> dict[Owner | Device, list[OperationCost]]:
    """Return operations by the operators that they are of; by the device those that are of none."""
    known = {(placement.subgraph, placement.index) for placement in report.placements}
    titles = {report.model: ""} | {
        subgraph.model: subgraph.subgraph for subgraph in report.subgraphs
    }
    elsewhere = "another subgraph" if report.subgraph else ""
    owned: dict[Owner | Device, list[OperationCost]] = {}
    for operation in operations:
        owner: Owner | Device = operation.device
        if operation.origin is not None and operation.origin.operator is not None:
            place = titles.get(operation.origin.model or "", elsewhere), operation.origin.operator
            owner = place if place in known else owner
        owned.setdefault(owner, []).append(operation)
    return owned


def of_model(
    operations: Sequence[OperationCost], report: CompileReport | None
) -> Iterator[OperationCost]:
    """Return operations, those on the CPU with the model's operators that they are.

    Steps of PyTorch know only the types of their operators, which are in the model's order. Without
    a report the artifact is all that is known, and its own indices stay.
    """
    if report is None:
        yield from operations
        return
    named: dict[tuple[str | None, str | None], OperatorPlacement] = {}
    waiting: dict[str, deque[OperatorPlacement]] = {}
    for place in report.placements:
        named.setdefault((place.kind, place.name), place)
    for place in report.on_cpu:
        waiting.setdefault(place.kind, deque()).append(place)
    for operation in operations:
        origin = operation.origin
        if operation.device is not Device.CPU:
            yield operation
            continue
        if origin is None:
            queue = waiting.get(operation.name)
            placement = queue.popleft() if queue else None
        else:
            placement = named.get((origin.kind, origin.name))
        if placement is not None:
            yield replace(
                operation,
                origin=Origin(report.model, placement.index, placement.kind, placement.name),
            )
        elif origin is not None:
            yield replace(operation, origin=replace(origin, operator=None))
        else:
            yield operation


def of_commands(
    operations: list[OperationCost], origins: Mapping[int, Origin]
) -> list[OperationCost]:
    """Return the passes of a stream with their commands, whose origins go by byte offset.

    As they are where there is not one for each.
    """
    if len(origins) != len(operations):
        return operations
    return [
        replace(operation, origin=replace(origin, command=offset // WORD_BYTES))
        for operation, (offset, origin) in zip(operations, sorted(origins.items()), strict=True)
    ]
