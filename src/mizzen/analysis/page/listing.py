"""The command streams: every command, by the operation that it sets up, with a way back."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.analysis.findings import Findings, Stream, Work
from mizzen.analysis.page import anchors
from mizzen.report.page import Block, Link, Listing, Note, Paragraph, Section
from mizzen.report.words import count, short_name


def commands(findings: Findings) -> Section:
    """Return the section: a listing for each step on the NPU."""
    if not findings.streams:
        return Section("Commands", (Note("Nothing is on the NPU."),))
    names = _operators(findings)
    blocks = tuple(block for stream in findings.streams for block in _blocks(stream, names))
    return Section("Commands", blocks)


def _operators(findings: Findings) -> dict[int, str]:
    report = findings.compilation
    placements = () if report is None else report.placements
    return {
        placement.index: (
            f"operator {placement.index} {placement.kind}, {short_name(placement.name)}"
        )
        for placement in placements
    }


def _blocks(stream: Stream, names: dict[int, str]) -> Iterator[Block]:
    total = sum(len(work.commands) for work in stream.work)
    operations = count(sum(work.starts for work in stream.work), "operation")
    title = f"Step {stream.step}: {count(total, 'command')}, {operations}"
    yield Listing(title, tuple(_paragraph(work, names) for work in stream.work))
    if stream.stopped_by is not None:
        yield Note(f"The stream cannot be read further: {stream.stopped_by.message}")


def _paragraph(work: Work, names: dict[int, str]) -> Paragraph:
    last = work.commands[-1]
    told = None if work.operator is None else names.get(work.operator)
    heading = f"{work.offset_words:,}  {last.name}" if work.starts else "End of the stream"
    link = None
    if told is not None and work.operator is not None:
        heading += f"  {told}"
        link = Link(f"Layer: {told}", anchors.of_layer(work.operator))
    lines = "\n".join(str(line) for line in work.commands)
    return Paragraph(anchors.of_commands(work.step, work.offset_words), heading, lines, link)
