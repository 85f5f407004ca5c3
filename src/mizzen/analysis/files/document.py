"""All that is known of an artifact as one JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, cast

from mizzen.analysis.findings import Findings
from mizzen.report.compilation import as_dict, time_data
from mizzen.report.cost import CostReport

VERSION = 2
"""Of the document's form. It counts up when a key goes or changes its meaning, not for new ones."""


def findings_document(findings: Findings) -> dict[str, Any]:
    """Return the document; what is not known is null, and what `document_schema` says holds."""
    cost, report = findings.cost, findings.compilation
    return {
        "version": VERSION,
        "artifact": findings.name,
        "model": findings.model,
        "accelerator": findings.accelerator,
        "compilation": None if report is None else as_dict(report),
        "cost": None if cost is None else {**plain(cost), **sums(cost)},
        "memory": None if findings.memory is None else plain(findings.memory),
        "layers": [layer.as_dict() for layer in findings.layers],
        "evaluation": None if findings.evaluation is None else dict(findings.evaluation),
    }


def sums(cost: CostReport) -> dict[str, Any]:
    """Return the sums of a cost report, which are no fields of it."""
    return {
        **time_data(cost.time),
        "causes": plain(cost.causes),
        "traffic": plain(cost.traffic),
    }


def plain(value: Any) -> Any:
    """Return dataclasses, enumerations and mappings as objects, words and objects of JSON."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        mapping = cast(Mapping[Any, Any], value)
        return {plain(key): plain(item) for key, item in mapping.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in cast(tuple[Any, ...], value)]
    return value
