"""How names, numbers, arrays and origins are written in texts of networks, in all their forms."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import Enum
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin

INLINE_ELEMENTS = 16
"""Arrays of at most as many elements are written out."""
HASH_DIGITS = 12

PLAIN_NAME = re.compile(r"[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class ArrayText:
    """An array's text, and if that has only a hash of its bytes: the hash, and the bytes."""

    text: str
    key: str = ""
    data: bytes = b""


def array_text(array: npt.NDArray[Any]) -> ArrayText:
    """Return an array's text: its NumPy type, shape and elements, or a hash of their bytes."""
    head = f"{array.dtype.name}{list_text(array.shape).replace(' ', '')}"
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.size <= INLINE_ELEMENTS:
        elements = ", ".join(map(scalar_text, flat.tolist()))
        return ArrayText(f"dense<{head} {elements}>" if elements else f"dense<{head}>")
    each = flat.view(np.uint8).reshape(flat.size, -1)
    if (each == each[0]).all():
        return ArrayText(f"dense<{head} splat {scalar_text(flat[0].item())}>")
    data = flat.astype(flat.dtype.newbyteorder("<")).tobytes()
    key = f"#{sha256(head.encode() + data).hexdigest()[:HASH_DIGITS]}"
    return ArrayText(f"dense<{head} {key}>", key, data)


def list_text(values: Iterable[object]) -> str:
    """Return values in brackets."""
    return f"[{', '.join(map(str, values))}]"


def scalar_text(value: object) -> str:
    """Return one value; its form says which type it is."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value)
        case bytes():
            return f'bytes "{b64encode(value).decode()}"'
        case Enum():
            return f"{type(value).__name__}.{value.value}"
        case _:
            return repr(value)


def name_text(name: str) -> str:
    """Return a name as it is, or quoted where it could be read as something else."""
    plain = PLAIN_NAME.fullmatch(name) and name.partition(".")[0] not in ("inf", "nan")
    return name if plain else json.dumps(name)


def origin_text(origin: Origin) -> str:
    """Return what is known of an origin: ``{kind = "CONV_2D", operator = 3}``."""
    parts = {field.name: getattr(origin, field.name) for field in fields(origin)}
    known = sorted((name, part) for name, part in parts.items() if part is not None)
    return f"{{{', '.join(f'{name} = {scalar_text(part)}' for name, part in known)}}}"
