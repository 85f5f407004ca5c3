"""What a decoded command computes with, as plain numbers: so two of them can be held beside."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import cast

import numpy as np


def numbers_of(thing: object, apart: tuple[type, ...], names: Container[str]) -> Iterator[int]:
    """Return the numbers of a value and of what it is made of, in the order of their fields.

    apart  types that say nothing about numbers: where things lie, what the command is of
    names  fields likewise, as `Type.field`
    """
    if isinstance(thing, apart):
        return
    if isinstance(thing, tuple):
        for part in cast("tuple[object, ...]", thing):
            yield from numbers_of(part, apart, names)
    elif is_dataclass(thing):
        for field in fields(thing):
            if f"{type(thing).__name__}.{field.name}" not in names:
                yield from numbers_of(getattr(thing, field.name), apart, names)
    else:
        yield _number(thing)


def _number(thing: object) -> int:
    match thing:
        case bool() | int():
            return int(thing)
        case Enum():
            return list(type(thing)).index(thing)
        case np.dtype():
            return thing.num
        case None:
            return 0
        case _:
            raise AssertionError(f"{thing!r} is no part of a command")
