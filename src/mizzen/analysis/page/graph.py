"""The network as a graph: each operator a box, coloured and lettered by where it executes."""

from __future__ import annotations

from mizzen.analysis.findings import Findings
from mizzen.analysis.page import anchors
from mizzen.analysis.page.colours import DEVICES
from mizzen.diagnostics import Device
from mizzen.report import OperatorPlacement
from mizzen.report.cost import CostReport, OperationCost, Purpose
from mizzen.report.page import Box, Graph, Note, Section
from mizzen.report.words import count, short_name

NAME_LETTERS = 24
"""Of a name in a box; the rest is told with the box."""

LEGEND = (DEVICES[Device.NPU], "NPU"), (DEVICES[Device.CPU], "CPU")


def network(findings: Findings) -> Section:
    """Return the section: the graph of the model's operators, or else the operations in order."""
    report = findings.compilation
    if report is None and findings.cost is not None:
        return Section("Network", (_in_order(findings.cost),))
    if report is None or not report.placements:
        return Section("Network", (Note("The model's operators are not known."),))
    places = {placement.index: place for place, placement in enumerate(report.placements)}
    shares = {layer.index: layer.share for layer in findings.layers}
    boxes = tuple(
        _box(placement, place, places, shares.get(placement.index, 0.0))
        for place, placement in enumerate(report.placements)
    )
    text = f"{count(len(report.on_npu), 'operator')} on the NPU (N), {len(report.on_cpu):,} on the "
    text += "CPU (C). A line leads down to the reader of a result."
    text += " The bar in a box is its share of the time." if shares else ""
    if len(boxes) > 1 and not any(box.after for box in boxes):
        text += " The inputs of each are not known for this artifact: compile it again."
    return Section("Network", (Graph("Operators of the model", text, boxes, LEGEND),))


def _in_order(cost: CostReport) -> Graph:
    """Return the operations of an artifact that names no operators, without transfers."""
    shown = [operation for operation in cost.operations if not _is_transfer(operation)]
    boxes = tuple(
        Box(
            name=f"{operation.index} {operation.name}",
            detail=operation.shape
            if len(operation.shape) <= NAME_LETTERS
            else f"{operation.shape[:21]}...",
            letter=operation.device.value[0],
            colour=DEVICES[operation.device],
            title=f"Operation {operation.index} {operation.name} on the {operation.device.value}: "
            f"{operation.shape}.",
            after=(place - 1,) if place else (),
            anchor=anchors.of_operation(operation.index),
        )
        for place, operation in enumerate(shown)
    )
    text = "The model's operators are not known: these are the artifact's operations without "
    text += "transfers. A line leads to the next operation, not to the reader of a result."
    return Graph("Operations of the artifact", text, boxes, LEGEND)


def _is_transfer(operation: OperationCost) -> bool:
    return any(part.purpose is Purpose.TRANSFER for part in operation.traffic)


def _box(operator: OperatorPlacement, own: int, places: dict[int, int], share: float) -> Box:
    name = short_name(operator.name)
    why = "".join(f" {reason.message}." for reason in operator.reasons)
    macs = f", {count(operator.macs, 'MAC')}" if operator.macs else ""
    told = f", {100 * share:.1f} % of the time" if share else ""
    title = (
        f"Operator {operator.index} {operator.kind} on the {operator.device.value}{macs}{told}: "
    )
    title += f"{short_name(operator.name)}.{why}"
    return Box(
        name=f"{operator.index} {operator.kind}",
        detail=name if len(name) <= NAME_LETTERS else f"...{name[3 - NAME_LETTERS :]}",
        letter=operator.device.value[0],
        colour=DEVICES[operator.device],
        title=title,
        after=tuple(places[index] for index in operator.after if places.get(index, own) < own),
        anchor=anchors.of_layer(operator.index),
        share=share,
    )
