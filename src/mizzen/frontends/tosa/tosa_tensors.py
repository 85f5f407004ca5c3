"""Tensors and shapes that a TOSA file declares."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.flatbuffer import Record
from mizzen.flatbuffer.tosa import TosaType as FileType
from mizzen.flatbuffer.tosa import decode, size_bytes
from mizzen.graph import Array, DType, TensorType

MAX_TENSOR_BYTES = 1 << 30
"""More than the memory of any system around an NPU; a larger tensor is a damaged one."""

MAX_RANK = 8
"""Greatest rank that any level of TOSA has. Ref: TOSA 1.0, 1.7 MAX_RANK."""


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor that a block declares.

    data      its contents as the file has them; None if it has none
    variable  the name of the variable that it declares; None if it declares none
    """

    name: str
    type: TensorType
    data: npt.NDArray[np.uint8] | None
    variable: str | None


def tensor(record: Record, file: str) -> Tensor:
    """Take a tensor's declaration. Raises E154 for its type, E156 for its shape."""
    name: str = record["name"] or ""
    shape = _shape(record, name, file)
    data: Any = record["data"]
    if data is not None and not len(data) and prod(shape):
        data = None
    variable = (record["variable_name"] or name) if record["variable"] else None
    return Tensor(name, TensorType(shape, _type(record["type"], name, file)), data, variable)


def shape_tensor(record: Record, file: str) -> Tensor:
    """Take a shape's declaration. Raises E156 for its rank."""
    name: str = record["name"] or ""
    if record["rank"] > 2 * MAX_RANK:  # that of PAD has two elements a dimension
        raise _bad_shape(name, f"rank {record['rank']}", file)
    data = np.zeros(0, np.uint8) if record["data"] is None else record["data"]
    return Tensor(name, TensorType((record["rank"],), DType.SHAPE), data, None)


def elements(declared: Tensor, origin: Origin) -> Array:
    """Return a constant's elements, in their shape. Raises E155 if the contents are less.

    More is not an error: Arm's converters align contents, and ExecuTorch writes weights' zero
    points with a copy for each element of the weights.
    """
    type = FileType[declared.type.dtype.name]
    need = size_bytes(type, declared.type.elements)
    have = 0 if declared.data is None else len(declared.data)
    if declared.data is None or have < need:
        raise fail(
            "E155",
            f"the contents of {declared.name!r} must have {need} bytes for its type and shape, and "
            f"have {have}",
            origin=origin,
        )
    values = decode(declared.data, type, declared.type.elements)
    values = values.astype(declared.type.dtype.numpy, copy=False)
    return values.reshape(declared.type.shape)


def _type(number: int, name: str, file: str) -> DType:
    known = FileType(number).name if number in set(FileType) else str(number)
    if known not in DType.__members__:
        raise fail(
            "E154",
            f"the elements of {name!r} must be of a type of TOSA 1.0, and are of {known}",
            origin=Origin(model=file, name=name),
            rule="TOSA 1.0, 1.10 Number formats",
        )
    return DType[known]


def _shape(record: Record, name: str, file: str) -> tuple[int, ...]:
    numbers: Any = record["shape"]
    shape = () if numbers is None else tuple(map(int, numbers[: MAX_RANK + 1]))
    if record["is_unranked"]:
        raise _bad_shape(name, "no rank", file)
    if len(shape) > MAX_RANK:
        raise _bad_shape(name, f"over {MAX_RANK} dimensions", file)
    if any(size < 1 for size in shape) or prod(shape) > MAX_TENSOR_BYTES:
        raise _bad_shape(name, f"shape {shape}", file)
    return shape


def _bad_shape(name: str, came: str, file: str) -> MizzenError:
    return fail(
        "E156",
        f"a tensor must have a known shape of up to {MAX_RANK} dimensions and 1 GiB, and {name!r} "
        f"has {came}",
        origin=Origin(model=file, name=name),
        help="write the file again with static shapes",
    )
