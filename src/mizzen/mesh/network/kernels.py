"""Operators that TOSA has no form of, carried in a network as they are in their file.

An element that has such an operator computes it by a kernel of its runtime; what it needs for that
is the operator with its constants and options, as a TFLite network of its own.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Any

from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.context import note_of
from mizzen.frontends.tflite.lower import Lowered
from mizzen.ops.control_flow import Custom
from mizzen.package.tflite.extract import extract

Places = tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """An operator as a network.

    inputs, outputs  for each of the network's, which operand or result of the operation it is, and
                     whether its 8 bits are unsigned there
    """

    network: bytes
    inputs: Places
    outputs: Places


def carry(lowered: Lowered) -> None:
    """Let every CUSTOM operation of a graph carry its operator; E130, E131 where it cannot."""
    for operation in lowered.graph:
        if isinstance(operation, Custom):
            operation.attributes["implementation_attrs"] = _written(lowered.model, operation)


def _written(model: Model, operation: Custom) -> bytes:
    note = note_of(operation)
    part = extract(model.record, [note.operator])
    document = {
        "network": b64encode(part.network).decode(),
        "inputs": _places(model, part.inputs, note.inputs),
        "outputs": _places(model, part.outputs, note.outputs),
    }
    return json.dumps(document, sort_keys=True).encode()


def _places(model: Model, wanted: tuple[int, ...], have: tuple[int, ...]) -> list[tuple[int, bool]]:
    tensors = model.main.tensors
    return [(have.index(index), tensors[index].type is TensorType.UINT8) for index in wanted]


def carried(operation: Custom) -> Carried | None:
    """Return the operator that an operation carries; None if it carries none."""
    try:
        parts: Any = json.loads(operation.implementation_attrs)
        return Carried(
            b64decode(parts["network"], validate=True),
            _read(parts["inputs"], len(operation.operands)),
            _read(parts["outputs"], len(operation.results)),
        )
    except (ValueError, KeyError, TypeError, Base64Error, MizzenError):
        return None


def _read(pairs: Any, count: int) -> Places:
    places = tuple((int(place), bool(is_unsigned)) for place, is_unsigned in pairs)
    if any(not 0 <= place < count for place, _ in places):
        raise ValueError
    return places
