"""What a data set showed, where one was evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mizzen.analysis.findings import Findings
from mizzen.report.page import Block, Facts, Section, Table


def accuracy(findings: Findings) -> Iterator[Section]:
    """Return the section, if there is an evaluation: metrics, agreement, confusions, mistakes."""
    evaluation = findings.evaluation
    if evaluation is not None:
        yield Section("Accuracy", tuple(evaluation_blocks(evaluation)))


def evaluation_blocks(evaluation: Mapping[str, Any]) -> Iterator[Block]:
    """Return the blocks about an evaluation, of its JSON-ready data."""
    facts = [("Data", str(evaluation["data"])), ("Samples", f"{evaluation['samples']:,}")]
    facts += [(name, f"{value:.6g}") for name, value in evaluation["metrics"].items()]
    yield Facts(tuple(facts))
    reference = evaluation.get("reference")
    if reference is not None:
        yield _reference(reference, evaluation["metrics"])
    if evaluation.get("confusion") is not None:
        yield _confusion(evaluation["confusion"])
    if evaluation.get("mistakes"):
        names = tuple((str(name),) for name in evaluation["mistakes"])
        yield Table(
            f"Samples with a wrong answer, the first of {evaluation['wrong']:,}",
            ("sample",),
            names,
        )


def _reference(reference: Mapping[str, Any], metrics: Mapping[str, float]) -> Table:
    agreement = reference["agreement"]
    names = dict.fromkeys((*metrics, *reference["metrics"]))
    lines = [(name, metrics.get(name), reference["metrics"].get(name)) for name in names]
    lines.append((f"outputs that are equal, of {agreement['judged']:,}", agreement["equal"], None))
    lines.append(("largest difference", agreement["largest_difference"], None))
    lines.append(("mean difference", agreement["mean_difference"], None))
    headings = ("", "artifact", str(reference["name"]))
    return Table("Beside the reference", headings, tuple(lines))


def _confusion(confusion: Mapping[str, Any]) -> Table:
    classes = tuple(str(name) for name in confusion["classes"])
    lines = tuple(
        (name, *counts) for name, counts in zip(classes, confusion["counts"], strict=True)
    )
    return Table("Labels (rows) and outputs (columns)", ("label", *classes), lines)
