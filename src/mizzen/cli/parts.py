"""Writing an instrumented artifact, and saying what each of its parts measures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mizzen.cli.layout import count, named_table
from mizzen.report.words import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mizzen.analysis.instrumenting import Instrumented
    from mizzen.artifact.artifact import Artifact
    from mizzen.cli.console import Console
    from mizzen.diagnostics import Diagnostic, Origin

INSTRUMENT = (
    "also write the artifact cut into parts at its layers: firmware that is built with COUNTERS=1 "
    "reads the NPU's counters after each"
)


@dataclass(frozen=True, slots=True)
class WrittenParts:
    """What was written of an instrumented artifact, for programs and for people."""

    files: Mapping[str, Path]
    document: Mapping[str, Any]
    text: str
    diagnostics: tuple[Diagnostic, ...]


NO_PARTS = WrittenParts({}, {}, "", ())
"""Of an artifact that is not cut."""


def write_parts(artifact: Artifact, folder: Path, console: Console) -> WrittenParts:
    """Cut an artifact, and write what comes out. E310 to E314 where it cannot be."""
    from mizzen.analysis.instrumenting import instrument
    from mizzen.files import write_files
    from mizzen.report import sidecar_path

    with console.progress(f"cutting {artifact.name} into parts"):
        made = instrument(artifact)
    path = folder / made.artifact.name
    layers = path.with_name(f"{path.stem}_layers.json")
    contents = made.artifact.files(path)
    contents[layers] = (json.dumps(made.as_dict(), indent=1) + "\n").encode()
    write_files(contents, folder)
    files = {"parts_artifact": path, "parts_layers": layers}
    if sidecar_path(path) in contents:
        files["parts_report"] = sidecar_path(path)
    return WrittenParts(
        files, {"instrumented": made.as_dict()}, _text(made, console), made.diagnostics
    )


def _text(made: Instrumented, console: Console) -> str:
    rows = [
        (
            f"{part.number}",
            f"{part.cycles:,}",
            f"{part.in_whole_cycles:,}",
            f"{part.added_cycles:,}",
        )
        for part in made.parts
    ]
    shown = named_table(
        rows,
        [", ".join(map(_layer, part.layers)) for part in made.parts],
        width=console.width,
        headings=("part", "cycles", "in whole", "added", "layers"),
        right=(0, 1, 2, 3),
    )
    more = made.cycles - made.whole_cycles
    share = f", {100 * more / made.whole_cycles:.1f} %" if made.whole_cycles else ""
    sums = (
        f"  {count(len(made.parts), 'part')}: {made.cycles:,} cycles; whole: "
        f"{made.whole_cycles:,}; added by cutting: {more:,}{share}"
    )
    same = f"  outputs equal those of the whole: {count(made.inferences, 'inference')}"
    return f"Parts (cycles are estimates)\n{shown}\n{sums}\n{same}"


def _layer(origin: Origin) -> str:
    if origin.name:
        return short_name(origin.name)
    if origin.command is not None:
        return f"{origin.kind} at word {origin.command}"
    return origin.module or str(origin)
