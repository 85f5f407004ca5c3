"""What a model says must hold at a place of a file, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mizzen.documents.model import Must

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_SHOULD = re.compile(r"^\w+ should ")

Loc = tuple[int | str, ...]

SHOWN_CHARACTERS = 60


def known_keys(model: type[BaseModel], loc: Loc) -> list[str]:
    """Return the keys of the section that has a key which it must not have."""
    section = _section(_type_at(model, loc[:-1])[0])
    return sorted(section.model_fields) if section is not None else []


def must_be(model: type[BaseModel], loc: Loc, error: ErrorDetails) -> tuple[str, str]:
    """Return the requirement on the value that an error is about, and what came."""
    kind, marks = _type_at(model, loc)
    context = error.get("ctx", {})
    mark = next((mark for mark in marks if isinstance(mark, Must)), None)
    came = _cut(mark.spell(error["input"]) if mark and _is_spelt(error) else repr(error["input"]))
    match error["type"]:
        case "multiple_of":
            step = context["multiple_of"]
            return f"be a multiple of {mark.spell(step) if mark else step}", came
        case "too_short" | "too_long" if (limits := _lengths(marks)) != (1, None):
            return _many(*limits), str(context["actual_length"])
        case "value_error":
            return str(context["error"]), came
        case "string_too_long":
            return f"have at most {context['max_length']:,} characters", str(len(error["input"]))
        case "too_short" | "list_type" | "tuple_type":
            return "be a list of at least one", came
        case _:
            said = mark.words if mark else _words(kind, marks, loc)
            return said or _SHOULD.sub("", error["msg"]), came


def _is_spelt(error: ErrorDetails) -> bool:
    """Whether the value is of the type that it must be, so that it can be spelt as one."""
    return not error["type"].endswith(("_type", "_parsing", "_from_float"))


def _lengths(marks: Sequence[object]) -> tuple[int | None, int | None]:
    least = next((mark.min_length for mark in marks if isinstance(mark, MinLen)), None)
    most = next((mark.max_length for mark in marks if isinstance(mark, MaxLen)), None)
    return least, most if least != 1 else None


def _many(least: int | None, most: int | None) -> str:
    if least == most:
        return f"have {most} numbers"
    return f"have at most {most} entries" if most is not None else f"have at least {least}"


def _words(kind: Any, marks: Sequence[object], loc: Loc) -> str | None:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return f"be one of {', '.join(str(member.value) for member in kind)}"
    if get_origin(kind) is Literal:
        values = ", ".join(map(str, get_args(kind)))
        return f"be one of {values}" if len(get_args(kind)) > 1 else f"be {values}"
    if kind is bool:
        return "be true or false"
    if kind is int and (ends := _range(kind, marks)):
        return f"be a whole number of {ends}"
    if kind is float and (ends := _range(kind, marks)):
        return f"be a number {ends}"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        name = loc[-1] if loc and isinstance(loc[-1], str) else None
        return (
            f"be a table [{name}]" if name else f"be tables [[{loc[-2]}]]" if loc else "be a table"
        )
    return None


def _range(kind: type, marks: Sequence[object]) -> str | None:
    """Return a range in words: of whole numbers its first and last, else as the type has it."""
    ends: dict[type, Any] = {}
    for mark in marks:
        match mark:
            case Ge(value) | Gt(value) | Le(value) | Lt(value):
                ends[type(mark)] = value
            case _:
                pass
    if kind is int and Lt in ends:
        ends[Le] = ends[Lt] - 1
    low, high = ends.get(Ge, ends.get(Gt)), ends.get(Le, ends.get(Lt))
    if low is None or high is None:
        return None
    if kind is int:
        return f"{low}..{high}"
    upwards = f"above {low:g}" if Gt in ends else f"from {low:g}"
    return f"{upwards} to {'' if Le in ends else 'below '}{high:g}"


def _type_at(model: type[BaseModel], loc: Loc) -> tuple[Any, list[object]]:
    """Return the type at a place of a file, and the marks on it."""
    kind, marks = model, list[object]()
    for part in loc:
        section = _section(kind)
        if isinstance(part, str) and section is not None and part in section.model_fields:
            field: FieldInfo = section.model_fields[part]
            kind, marks = field.annotation, list(field.metadata)
        else:
            kind, marks = _item(kind, part)
        kind, more = _plain(kind)
        marks = [*marks, *more]
    return kind, marks


def _plain(kind: Any) -> tuple[Any, list[object]]:
    """Return a type without marks, and without None beside it."""
    if get_origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        plain, more = _plain(inner)
        return plain, [*more, *_unpacked(marks)]
    others = [part for part in get_args(kind) if part is not type(None)]
    if type(None) in get_args(kind) and len(others) == 1:
        return _plain(others[0])
    return kind, []


def _unpacked(marks: Sequence[object]) -> Iterator[object]:
    for mark in marks:
        yield from mark.metadata if isinstance(mark, FieldInfo) else (mark,)


def _item(kind: Any, part: int | str) -> tuple[Any, list[object]]:
    """Return the type of what a list, a tuple or a dictionary has at a place."""
    parts = [each for each in get_args(kind) if each is not Ellipsis]
    if not parts:
        return None, []
    if isinstance(part, str):
        return parts[-1], []
    return parts[part if part < len(parts) and get_origin(kind) is tuple else 0], []


def _section(kind: Any) -> type[BaseModel] | None:
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
