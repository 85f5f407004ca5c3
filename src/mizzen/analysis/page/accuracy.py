"""What a data set showed, where one was evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mizzen.analysis.findings import Findings
from mizzen.report.page import Block, Facts, Section, Table


def accuracy(findings: Findings) -> Iterator[Section]:
    """Return the section, if there is an evaluation: metrics, agreement, confusions, mistakes."""
    found = findings.evaluation
    if found is not None:
        yield Section("Accuracy", tuple(evaluation_blocks(found)))


def evaluation_blocks(found: Mapping[str, Any]) -> Iterator[Block]:
    """Return what an evaluation says, of its JSON-ready data."""
    rows = [("Data", str(found["data"])), ("Samples", f"{found['samples']:,}")]
    rows += [(name, f"{value:.6g}") for name, value in found["metrics"].items()]
    yield Facts(tuple(rows))
    reference = found.get("reference")
    if reference is not None:
        yield _reference(reference, found["metrics"])
    if found.get("confusion") is not None:
        yield _confusion(found["confusion"])
    if found.get("mistakes"):
        names = tuple((str(name),) for name in found["mistakes"])
        yield Table(
            f"Samples whose label did not come, the first of {found['wrong']:,}", ("sample",), names
        )


def _reference(reference: Mapping[str, Any], metrics: Mapping[str, float]) -> Table:
    agreement = reference["agreement"]
    names = dict.fromkeys((*metrics, *reference["metrics"]))
    rows = [(name, metrics.get(name), reference["metrics"].get(name)) for name in names]
    rows.append((f"outputs that are equal, of {agreement['judged']:,}", agreement["equal"], None))
    rows.append(("largest difference", agreement["largest_difference"], None))
    rows.append(("mean difference", agreement["mean_difference"], None))
    headings = ("", "artifact", str(reference["name"]))
    return Table("Beside the reference", headings, tuple(rows))


def _confusion(confusion: Mapping[str, Any]) -> Table:
    classes = tuple(str(name) for name in confusion["classes"])
    rows = tuple((name, *counts) for name, counts in zip(classes, confusion["counts"], strict=True))
    return Table("Labels (rows) and what came (columns)", ("label", *classes), rows)
