"""The JSON Schema of the document, made from the dataclasses that it is made of.

Ref: JSON Schema, draft 2020-12.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from mizzen.analysis.files.document import VERSION
from mizzen.report.cost import Bound, CostReport, Traffic
from mizzen.report.memory import MemoryReport

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

WORDS: Mapping[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
ANYTHING: Schema = {"type": "object"}


def document_schema() -> Schema:
    """Return the schema of what `findings_document` gives; a document may have more keys."""
    named: dict[str, Schema] = {}
    cost = _of_dataclass(CostReport, named)
    sums: Mapping[str, Any] = {
        "cycles": int, "npu_cycles": int, "cpu_cycles": int, "compute_cycles": int,
        "seconds": float, "inferences_per_second": float,
        "causes": Mapping[Bound, int], "traffic": tuple[Traffic, ...],
    }  # fmt: skip
    cost["properties"] |= {name: _of(kind, named) for name, kind in sums.items()}
    cost["required"] += list(sums)
    properties: dict[str, Schema] = {
        "version": {"const": VERSION},
        "artifact": {"type": "string", "description": "The artifact's name."},
        "model": {"type": "string", "description": "The user's model, where it is known."},
        "accelerator": _or_null({"type": "string"}),
        "compilation": _or_null(ANYTHING),
        "cost": _or_null(cost),
        "memory": _or_null(_of(MemoryReport, named)),
        "layers": {"type": "array", "items": ANYTHING},
        "evaluation": _or_null(ANYTHING),
    }
    return {
        "$schema": DIALECT,
        "title": "What mizzen report --json writes",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "$defs": dict(sorted(named.items())),
    }


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _of(kind: Any, named: dict[str, Schema]) -> Schema:
    """Return the schema of a type; those of dataclasses and enumerations go into `named`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(part, named) for part in arguments]}
    if kind is types.NoneType:
        return {"type": "null"}
    if origin is tuple and arguments[1:] != (Ellipsis,):
        count = len(arguments)
        parts = [_of(part, named) for part in arguments]
        return {"type": "array", "prefixItems": parts, "minItems": count, "maxItems": count}
    if origin in (tuple, list, Sequence):
        return {"type": "array", "items": _of(arguments[0], named)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _of(arguments[1], named)}
    if kind in WORDS:
        return {"type": WORDS[kind]}
    name: str = kind.__name__
    if name not in named:
        named[name] = {}  # known, before what it is made of names it again
        named[name] = _of_enum(kind) if issubclass(kind, Enum) else _of_dataclass(kind, named)
    return {"$ref": f"#/$defs/{name}"}


def _of_dataclass(kind: Any, named: dict[str, Schema]) -> Schema:
    hints = get_type_hints(kind)
    properties = {field.name: _of(hints[field.name], named) for field in fields(kind)}
    return {
        "type": "object",
        "description": _summary(kind),
        "properties": properties,
        "required": list(properties),
    }


def _of_enum(kind: type[Enum]) -> Schema:
    return {"enum": [choice.value for choice in kind], "description": _summary(kind)}


def _summary(kind: Any) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
