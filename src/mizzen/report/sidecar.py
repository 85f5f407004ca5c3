"""The report as a file beside the artifact, so that later runs can name the model's operators."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mizzen.diagnostics import Diagnostic, Origin, Severity
from mizzen.report.compilation import CompileReport, Measure, OperatorPlacement, Reason, Region

VERSION = 1
"""Of the file's layout; files of another version are passed over."""


def sidecar_path(artifact: Path) -> Path:
    """Give the place of an artifact's report: its name with ``.json``."""
    return artifact.with_suffix(".json")


def write_sidecar(report: CompileReport, artifact: Path) -> Path:
    """Write the report of the artifact in file `artifact`, and give the report's path."""
    path = sidecar_path(artifact)
    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
    document = {"version": VERSION, "artifact_sha256": digest, **as_dict(report)}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def read_sidecar(artifact: Path, data: bytes) -> CompileReport | None:
    """Read the report beside an artifact; None if there is none of exactly these bytes."""
    try:
        document = json.loads(sidecar_path(artifact).read_text(encoding="utf-8"))
        if document["version"] != VERSION:
            return None
        if document["artifact_sha256"] != hashlib.sha256(data).hexdigest():
            return None
        return from_dict(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # the artifact works without; a stray .json is not our file to judge


def as_dict(report: CompileReport) -> dict[str, Any]:
    """Give a report as JSON-ready data."""
    return {
        "model": report.model,
        "configuration": report.configuration,
        "compiler": report.compiler,
        "operators": [
            {**asdict(row), "region": row.region.value, "reasons": [asdict(r) for r in row.reasons]}
            for row in report.placements
        ],
        "totals": {
            "operators": len(report.placements),
            "operators_on_npu": len(report.on_npu),
            "macs": report.macs,
            "macs_on_npu": report.macs_on_npu,
        },
        "arena_bytes": report.arena_bytes,
        "flash_bytes": report.flash_bytes,
        "memories": [asdict(row) for row in report.memories],
        "estimated_cycles": report.cycles,
        "origins": [
            {str(offset): asdict(origin) for offset, origin in stream.items()}
            for stream in report.origins
        ],
        "diagnostics": [diagnostic.as_dict() for diagnostic in report.diagnostics],
    }


def from_dict(document: dict[str, Any]) -> CompileReport:
    """Take a report out of JSON data; KeyError, TypeError or ValueError if it is none."""
    return CompileReport(
        model=document["model"],
        configuration=document["configuration"],
        compiler=document["compiler"],
        placements=tuple(_placement(row) for row in document["operators"]),
        arena_bytes=document["arena_bytes"],
        flash_bytes=document["flash_bytes"],
        memories=tuple(Measure(**row) for row in document["memories"]),
        cycles=document["estimated_cycles"],
        origins=tuple(
            {int(offset): Origin(**origin) for offset, origin in stream.items()}
            for stream in document["origins"]
        ),
        diagnostics=tuple(_diagnostic(row) for row in document["diagnostics"]),
    )


def _placement(row: dict[str, Any]) -> OperatorPlacement:
    reasons = tuple(Reason(**reason) for reason in row["reasons"])
    region = Region(row["region"])
    return OperatorPlacement(
        row["index"], row["kind"], row["name"], region, row["macs"], row["cycles"], reasons
    )


def _diagnostic(row: dict[str, Any]) -> Diagnostic:
    return Diagnostic(
        row["code"],
        row["message"],
        Severity(row["severity"]),
        rule=row.get("rule"),
        help=row.get("help"),
    )
