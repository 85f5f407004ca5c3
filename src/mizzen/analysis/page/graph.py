"""The network as a graph: each operator a box, coloured and lettered by where it executes."""

from __future__ import annotations

from mizzen.analysis.findings import Findings
from mizzen.analysis.page import anchors
from mizzen.analysis.page.colours import DEVICES
from mizzen.diagnostics import Device
from mizzen.report import OperatorPlacement
from mizzen.report.page import Box, Graph, Note, Section
from mizzen.report.words import count, short_name

NAME_LETTERS = 24
"""Of a name in a box; the rest is told with the box."""


def network(findings: Findings) -> Section:
    """Return the section: the graph of the model's operators."""
    report = findings.compilation
    if report is None or not report.placements:
        return Section("Network", (Note("The model's operators are not known."),))
    places = {row.index: place for place, row in enumerate(report.placements)}
    boxes = tuple(_box(row, places) for row in report.placements)
    text = f"{count(len(report.on_npu), 'operator')} on the NPU (N), {len(report.on_cpu):,} on the "
    text += "CPU (C). A line leads down to what takes a result."
    if len(boxes) > 1 and not any(box.after for box in boxes):
        text += " Which results they take is not known of this artifact: compile it again."
    legend = (DEVICES[Device.NPU], "NPU"), (DEVICES[Device.CPU], "CPU")
    return Section("Network", (Graph("Operators of the model", text, boxes, legend),))


def _box(row: OperatorPlacement, places: dict[int, int]) -> Box:
    name = short_name(row.name)
    why = "".join(f" {reason.message}." for reason in row.reasons)
    macs = f", {count(row.macs, 'MAC')}" if row.macs else ""
    title = f"Operator {row.index} {row.kind} on the {row.device.value}{macs}: {row.name}.{why}"
    return Box(
        name=f"{row.index} {row.kind}",
        detail=name if len(name) <= NAME_LETTERS else f"...{name[3 - NAME_LETTERS :]}",
        letter=row.device.value[0],
        colour=DEVICES[row.device],
        title=title,
        after=tuple(
            places[index]
            for index in row.after
            if places.get(index, len(places)) < places[row.index]
        ),
        anchor=anchors.of_layer(row.index),
    )
