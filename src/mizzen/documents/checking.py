"""Hold the values of a file against a model, key by key, and stop at the first that is wrong."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from mizzen.documents.model import NAME, Limits, Must, Section
from mizzen.documents.words import cut, length, must_be

Place = tuple[int | str, ...]
Model = TypeVar("Model", bound=Section)

CONTROLS = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Unicode's categories of characters that show nothing, or turn what shows."""


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class WrongValue(Exception):  # noqa: N818 - not every one is an error of the value
    """The first value that is wrong.

    known  the keys that there may be, where `place` is one that there is not
    """

    place: Place
    must: str
    came: str
    known: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a section: its name in files, and what its value must be."""

    name: str
    kind: Any
    field: Field[Any]

    @property
    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.field.default is MISSING


@cache
def keys_of(model: type[Section]) -> Mapping[str, Key]:
    """Return the keys of a section, by their names in Python."""
    hints = get_type_hints(model, include_extras=True)
    return {
        each.name: Key(each.metadata.get(NAME) or each.name, hints[each.name], each)
        for each in fields(cast("Any", model))
    }


@dataclass(frozen=True, slots=True)
class Plain:
    """A type without the marks on it, which may be None beside it."""

    kind: Any
    limits: Limits = NO_LIMITS
    must: Must | None = None
    optional: bool = False


@cache
def plain(kind: Any) -> Plain:
    """Return a type apart from its marks; outer limits add to inner ones."""
    if get_origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        found = plain(inner)
        for mark in marks:
            if isinstance(mark, Limits):
                found = replace(found, limits=_joined(found.limits, mark))
            elif isinstance(mark, Must):
                found = replace(found, must=mark)
        return found
    if get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind):
        (one,) = (part for part in get_args(kind) if part is not NoneType)
        return replace(plain(one), optional=True)
    return Plain(kind)


def section_in(kind: Any) -> type[Section] | None:
    """Return the section that a key is, that its list has, or that its names lead to."""
    bare = plain(kind).kind
    parts = (bare, *(plain(part).kind for part in get_args(bare)))
    return next(
        (each for each in parts if isinstance(each, type) and issubclass(each, Section)), None
    )


def _joined(one: Limits, other: Limits) -> Limits:
    given = {each.name: getattr(other, each.name) for each in fields(other)}
    return replace(one, **{name: value for name, value in given.items() if value is not None})


def checked(model: type[Model], value: object, place: Place = ()) -> Model:
    """Return a section of the values of a table. Raises `WrongValue`."""
    if not isinstance(value, dict):
        raise WrongValue(place, must_be(model, NO_LIMITS, place), cut(repr(value)))
    values = cast("dict[str, object]", value)
    keys = keys_of(model)
    taken: dict[str, Any] = {}
    for attribute, key in keys.items():
        if key.name in values:
            taken[attribute] = _value(plain(key.kind), values[key.name], (*place, key.name))
        elif key.is_required:
            raise WrongValue((*place, key.name), "be given", "left out")
    known = {key.name for key in keys.values()}
    others = [name for name in values if name not in known]
    if others and not model.OTHERS:
        raise WrongValue((*place, others[0]), "", "", sorted(known))
    section = model(**taken)
    problem = section.problem()
    if problem is not None:
        raise WrongValue(place, problem, cut(repr(values)))
    return section


def _value(wanted: Plain, value: object, place: Place) -> Any:
    if value is None and wanted.optional:
        return None
    kind, origin = wanted.kind, get_origin(wanted.kind)
    if origin in (Union, UnionType):
        return _one_of(wanted, value, place)
    if origin is tuple:
        return _entries(wanted, value, place)
    if origin in (dict, Mapping):
        return _table(wanted, value, place)
    if isinstance(kind, type) and issubclass(kind, Section):
        return checked(kind, value, place)
    if origin is Literal:
        same = (each for each in get_args(kind) if type(each) is type(value) and each == value)
        return _known(wanted, next(same, None), value, place)
    if issubclass(kind, Enum):
        return _known(wanted, next((i for i in kind if i.value == value), None), value, place)
    if kind is str:
        return _text(wanted, value, place)
    if kind is bool:
        return _known(wanted, value if isinstance(value, bool) else None, value, place)
    return _number(wanted, value, place)


def _wrong(wanted: Plain, value: object, place: Place, *, spelt: bool = False) -> WrongValue:
    words = wanted.must.words if wanted.must else must_be(wanted.kind, wanted.limits, place)
    spell = wanted.must.spell if wanted.must and spelt else repr
    return WrongValue(place, words, cut(spell(value)))


def _known(wanted: Plain, found: object, value: object, place: Place) -> object:
    if found is None:
        raise _wrong(wanted, value, place)
    return found


def _one_of(wanted: Plain, value: object, place: Place) -> Any:
    """Return a value that may be of several types, as the one that it is of."""
    kinds = [plain(part) for part in get_args(wanted.kind)]
    kind = next((each for each in kinds if type(value) is each.kind), None)
    if kind is None:
        words = " or ".join(must_be(each.kind, each.limits, place) for each in kinds)
        raise WrongValue(place, words, cut(repr(value)))
    return _value(kind, value, place)


def _entries(wanted: Plain, value: object, place: Place) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wrong(wanted, value, place)
    entries = cast("list[object]", value)
    kinds = get_args(wanted.kind)
    if kinds[-1] is not Ellipsis:
        many = len(kinds)
        wanted = replace(wanted, limits=Limits(min_length=many, max_length=many))
    else:
        kinds = kinds[:1] * len(entries)
    _require_length(wanted, entries, place)
    pairs = zip(kinds, entries, strict=True)
    return tuple(_value(plain(kind), one, (*place, i)) for i, (kind, one) in enumerate(pairs))


def _table(wanted: Plain, value: object, place: Place) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(wanted, value, place)
    values = cast("dict[str, object]", value)
    _require_length(wanted, values, place)
    name_kind, kind = map(plain, get_args(wanted.kind))
    return {
        _text(name_kind, name, (*place, name)): _value(kind, one, (*place, name))
        for name, one in values.items()
    }


def _require_length(
    wanted: Plain, value: Sequence[object] | Mapping[str, object], place: Place
) -> None:
    least, most = wanted.limits.min_length or 0, wanted.limits.max_length
    if not value and least == 1:
        raise _wrong(wanted, value, place)
    if len(value) < least or (most is not None and len(value) > most):
        raise WrongValue(place, length(wanted.limits), str(len(value)))


def _text(wanted: Plain, value: object, place: Place) -> str:
    if not isinstance(value, str):
        raise _wrong(wanted, value, place)
    limits = wanted.limits
    if limits.max_length is not None and len(value) > limits.max_length:
        raise WrongValue(place, f"have at most {limits.max_length:,} characters", str(len(value)))
    fits = len(value) >= (limits.min_length or 0)
    fits = fits and (limits.pattern is None or bool(re.fullmatch(limits.pattern, value)))
    if not fits or _has_controls(value, limits.controls):
        raise _wrong(wanted, value, place, spelt=True)
    return value


def _has_controls(text: str, allowed: str | None) -> bool:
    """Whether a text has what it must not: halves of characters never may be."""
    categories = {unicodedata.category(letter) for letter in set(text) - set(allowed or "")}
    return "Cs" in categories or (allowed is not None and bool(categories & CONTROLS))


def _number(wanted: Plain, value: object, place: Place) -> float:
    kinds = (int,) if wanted.kind is int else (int, float)
    if type(value) not in kinds:
        raise _wrong(wanted, value, place)
    number, limits = cast("float", value), wanted.limits
    if not _is_within(number, limits):
        raise _wrong(wanted, value, place, spelt=True)
    if limits.multiple_of is not None and number % limits.multiple_of:
        spell = wanted.must.spell if wanted.must else repr
        raise WrongValue(place, f"be a multiple of {spell(limits.multiple_of)}", spell(number))
    return number if wanted.kind is int else float(number)


def _is_within(number: float, limits: Limits) -> bool:
    """Whether a number is in its range; what is no number is in none."""
    return (
        not (isinstance(number, float) and math.isnan(number))
        and (limits.ge is None or number >= limits.ge)
        and (limits.gt is None or number > limits.gt)
        and (limits.le is None or number <= limits.le)
        and (limits.lt is None or number < limits.lt)
    )
