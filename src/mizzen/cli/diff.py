"""Changes from one artifact to another, and the bytes that a device must be sent.

mizzen diff OLD NEW
    exit status 0 if both are the same to a device, 1 if anything differs
mizzen diff OLD NEW --allow constants
    exit status 0 if new constants alone make OLD the NEW: a model-only update
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mizzen.cli.console import Answer, Console
from mizzen.cli.layout import count, fields, named_table, paragraph, table
from mizzen.escaping import one_line

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.report.difference import Difference, Held, LayerChange

SUMMARY = "what changed between two artifacts; is it a model-only update"
SHOWN = 3
"""Names that are listed of a kind."""

ALLOWED = ("constants", "model", "scales")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("before", metavar="OLD", help="an artifact, whichever compiler made it")
    parser.add_argument("now", metavar="NEW", help="an artifact of the same network")
    parser.add_argument(
        "--allow",
        metavar="WHAT",
        choices=ALLOWED,
        help="what may differ, where exit status 1 says that more does: constants (a model-only "
        "update), model (another command stream or other tables, which the firmware takes), "
        "scales (model, and other scales of inputs and outputs); default: nothing",
    )
    parser.add_argument(
        "--ptd",
        metavar="FILE",
        action="append",
        default=[],
        help="data that ExecuTorch programs keep in a file of its own; may be repeated (default: "
        "those .ptd files beside a program that have what it needs)",
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Compare the artifacts."""
    from mizzen.analysis.comparison.updating import difference, failures_of, notes_of
    from mizzen.artifact.loading import load
    from mizzen.report.difference import Update

    with console.progress(f"comparing {options.before} with {options.now}"):
        before, now = (load(path, ptd=options.ptd) for path in (options.before, options.now))
        found = difference(before, now)
    allowed = Update.NOTHING if options.allow is None else Update(options.allow)
    names = options.before, options.now
    return Answer(
        {
            "old": options.before,
            "new": options.now,
            "manifests": [_digest(artifact) for artifact in (before, now)],
            **found.as_dict(),
        },
        difference_text(found, names, width=console.table_width),
        failures=tuple(failures_of(found, allowed, names)),
        diagnostics=(*before.doubts, *now.doubts, *notes_of(found)),
    )


def _digest(artifact: Artifact) -> str | None:
    """Return the digest of an artifact that its manifest has, which says nothing of a change."""
    return None if artifact.manifest is None else artifact.manifest.file_sha256


def difference_text(found: Difference, names: tuple[str, str], *, width: int) -> str:
    """Say what must be sent and why, then what changed."""
    parts = [
        f"{one_line(names[0])} -> {one_line(names[1])}\n{fields([*_head(found)], width=width)}"
    ]
    if found.reasons:
        lines = (paragraph(reason, width=width, indent="  ") for reason in found.reasons)
        parts.append("Why new constants alone do not do\n" + "\n".join(lines))
    parts.append(_measures(found, width))
    if found.layers:
        parts.append(_layers(found, width))
    parts.append(_parts(found, width))
    if found.interface:
        lines = (paragraph(line, width=width, indent="  ") for line in found.interface)
        parts.append("Interface\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _head(found: Difference) -> Iterator[tuple[str, str]]:
    from mizzen.report.difference import Update

    runs = sum(len(part.ranges) for part in found.of("constants"))
    match found.update:
        case Update.NOTHING:
            yield "update", "none: a device does the same with both"
        case Update.CONSTANTS:
            yield "update", "model-only: the program is the same, and only constants differ"
            yield "to send", f"{found.send_bytes:,} bytes in {count(runs, 'range')}"
            for file in found.of("file"):
                told = f"{file.sent_bytes:,} bytes in {count(len(file.ranges), 'range')}"
                yield "of the file", f"{told}, its manifest among them"
        case Update.MODEL:
            yield "update", "the whole model; the firmware may stay"
        case Update.SCALES:
            yield "update", "the whole model; firmware may stay that takes scales from the model"
        case Update.FIRMWARE:
            yield "update", "model and firmware"
    if found.update.rank > Update.CONSTANTS.rank:
        yield "to send", f"{found.send_bytes:,} bytes"


def _measures(found: Difference, width: int) -> str:
    from mizzen.report.versions import GrowthMeasure, grown_where
    from mizzen.report.words import short_name

    lines: list[tuple[str, ...]] = []
    for measure in GrowthMeasure:
        before, now = (measure.of(version) for version in found.versions)
        change = f"{now - before:+,}" if now != before else "0"
        where = tuple(grown_where(measure, *found.versions)) if now > before else ()
        told = ", ".join(f"{short_name(name)} {more:+,}" for name, more in where[:SHOWN])
        lines.append((measure.value, f"{before:,}", f"{now:,}", change, told))
    headings = ("measure", "old", "new", "difference", "more in")
    return "Costs (cycles are estimates)\n" + table(
        lines, width=width, headings=headings, right=(1, 2, 3)
    )


def _layers(found: Difference, width: int) -> str:
    text = named_table(
        [_layer(each) for each in found.layers],
        [each.layer.name or str(each.layer.index) for each in found.layers],
        width=width,
        headings=("type", "old cycles", "new cycles", "change", "output"),
        right=(1, 2),
    )
    return f"Layers that changed\n{text}"


def _layer(change: LayerChange) -> tuple[str, ...]:
    before, now = change.cycles
    said = ", ".join(each.value for each in change.changes)
    return change.layer.kind, f"{before:,}", f"{now:,}", said


def _parts(found: Difference, width: int) -> str:
    lines = [
        (
            part.what,
            f"{part.before_bytes:,}",
            f"{part.now_bytes:,}",
            f"{part.differing:,}",
            str(len(part.ranges)),
            _of(part),
        )
        for part in found.parts
        if part.what != "tables" and (part.differing or part.what != "constants")
    ]
    headings = ("part", "old", "new", "differ", "ranges", "of")
    return "Bytes\n" + table(lines, width=width, headings=headings, right=(1, 2, 3, 4))


def _of(part: Held) -> str:
    more = ", ..." if len(part.told) > SHOWN else ""
    told = ", ".join(part.told[:SHOWN]) + more
    return ": ".join(text for text in (part.of, told) if text)
