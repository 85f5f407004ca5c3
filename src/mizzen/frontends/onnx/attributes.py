"""Attributes of a node as plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.frontends.onnx.draft import Subgraph
from mizzen.frontends.onnx.external import Beside
from mizzen.frontends.onnx.tensors import NARROW, dense, dtype_of, numbers, of_sparse, wrong
from mizzen.frontends.onnx.wire import Message

Given = Mapping[str, Message]
"""Attributes that a function was called with."""


def attributes_of(
    messages: list[Message],
    given: Given,
    names: MutableMapping[str, str],
    beside: Beside,
    origin: Origin,
) -> dict[str, Any]:
    """Read a node's attributes; those that name one of the function's are taken from `given`."""
    result: dict[str, Any] = {}
    for message in messages:
        name = message.get("name", "")
        if name in result:
            raise wrong(origin, f'attributes must have different names, and two are "{name}"')
        resolved = message
        if message.get("ref_attr_name"):
            if message["ref_attr_name"] not in given:
                continue
            resolved = given[message["ref_attr_name"]]
        result[name] = _value(resolved, names, beside, origin)
    return result


def _value(
    message: Message, names: MutableMapping[str, str], beside: Beside, origin: Origin
) -> Any:
    kind = message.get("type", 0) or _guessed(message)
    subject = f'attribute "{message.get("name", "")}"'
    match kind:
        case 4:
            return _tensor(message.get("t", {}), beside, origin)
        case 5:
            return Subgraph(message.get("g", {}), names)
        case 11:
            return of_sparse(message.get("sparse_tensor", {}), beside, origin)
        case _ if kind in _PLAIN:
            field, read = _PLAIN[kind]
            try:
                return read(message.get(field))
            except UnicodeDecodeError:
                raise wrong(origin, f"{subject} must be readable text, and is not") from None
        case _:
            raise wrong(origin, f"{subject} must be of a type that is known, and is of {kind}")


def _tensor(message: Message, beside: Beside, origin: Origin) -> Any:
    number = message.get("data_type", 0)
    if number in NARROW:
        dtype_of(number, "the attribute", origin)
    return dense(message, beside, origin)


_GUESSES = {"f": 1, "i": 2, "s": 3, "t": 4, "g": 5, "floats": 6, "ints": 7, "strings": 8}


def _guessed(message: Message) -> int:
    """Say what an attribute of an old file is, which has no type."""
    return next((kind for field, kind in _GUESSES.items() if field in message), 0)


def _text(value: Any) -> str:
    return str(value or b"", "utf-8")


def _texts(value: Any) -> tuple[str, ...]:
    texts: list[Any] = value or []
    return tuple(_text(text) for text in texts)


def _integers(value: Any) -> tuple[int, ...]:
    return tuple(int(number) for number in numbers(value or [], np.int64))


def _reals(value: Any) -> tuple[float, ...]:
    return tuple(float(number) for number in numbers(value or [], np.float32))


_PLAIN: Mapping[int, tuple[str, Callable[[Any], Any]]] = {
    1: ("f", lambda value: float(value or 0.0)),
    2: ("i", lambda value: int(value or 0)),
    3: ("s", _text),
    6: ("floats", _reals),
    7: ("ints", _integers),
    8: ("strings", _texts),
}
