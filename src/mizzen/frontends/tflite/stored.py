"""The contents of constants as operators take them: all elements, none packed with another.

A file may hold only some elements of a tensor, the others being zero, and two or four elements in a
byte. Neither compilers nor TensorFlow Lite Micro's kernels read all of these forms, so that a
network has dense constants of whole bytes once it is read.

Ref: TensorFlow Lite schema, SparsityParameters; LiteRT, sparsity_format_converter.cc and
portable_tensor_utils.cc.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail
from mizzen.flatbuffer import Member, Record
from mizzen.flatbuffer.tflite import DTYPES, PACKED_BITS, TensorType

Bytes = npt.NDArray[np.uint8]
Moving = tuple[str, Sequence[int], Sequence[int]]
Integers = npt.NDArray[np.int64]


WIDENED = {
    TensorType.INT2: TensorType.INT8,
    TensorType.INT4: TensorType.INT8,
    TensorType.UINT4: TensorType.UINT8,
}
"""Types whose elements share bytes, and the type that has the same numbers in a byte each."""

MOVERS = frozenset(
    (
        "CONCATENATION", "DENSIFY", "EXPAND_DIMS", "GATHER", "PACK", "RESHAPE", "REVERSE_V2",
        "SLICE", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK",
    )
)  # fmt: skip
"""Operators whose results hold what their inputs hold, in other places."""


class DimensionType(IntEnum):
    """How the elements along a dimension are stored."""

    DENSE = 0
    SPARSE_CSR = 1


@dataclass(frozen=True, slots=True)
class _Level:
    """A dimension in the order of traversal, of a tensor or of the blocks that it is cut into.

    extent    how many indices it has; `stride` elements of the dense tensor lie between two
    segments  for each place of the levels before, where its indices begin, and where the last end;
              None if all indices are there
    indices   those that are there
    """

    extent: int
    stride: int
    segments: Integers | None = None
    indices: Integers | None = None


def dense(
    tensor: Record, data: Bytes | None, place: str, most_bytes: int
) -> tuple[Record, Bytes] | None:
    """Return the changes to a tensor's record, and its contents; None where nothing does.

    data        its contents in the file
    place       what diagnostics call the tensor. E140 for sparse contents that do not fit it
    most_bytes  that the contents may take
    """
    sparsity: Record | None = tensor["sparsity"]
    packed = TensorType(tensor["type"])
    kind = WIDENED.get(packed, packed)
    bits = PACKED_BITS.get(packed, 0)
    if sparsity is None:
        if data is None or kind is packed:
            return None
        count = _elements(tensor)
        if count < 0 or data.nbytes != -(-count * bits // 8):
            return None  # the reader says so of every type
        if count > most_bytes:
            raise _too_large(place, most_bytes)
        return {"type": int(kind)}, _bytes(unpacked(data, packed, count))
    dtype = DTYPES.get(kind)
    shape = [int(extent) for extent in _array(tensor["shape"])]
    if dtype is None:
        names = ", ".join(each.name for each in WIDENED)
        raise _wrong(place, f"must be of {names} or a type of whole bytes, not {kind.name}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > most_bytes:
        raise _too_large(place, most_bytes)
    values = np.zeros(0, np.uint8) if data is None else data
    bits = 8 * dtype.itemsize if kind is packed else bits
    most = 8 * values.nbytes // bits
    places = _places(_levels(sparsity, shape, place), most, place)
    if values.nbytes != -(-places.size * bits // 8):
        needed = f"{places.size} elements, as its dimensions say"
        raise _wrong(place, f"must have contents of {needed}, not {values.nbytes} bytes")
    elements = np.zeros(math.prod(shape), dtype)
    stored = values.view(dtype) if kind is packed else unpacked(values, packed, places.size)
    elements[places] = stored
    return {"sparsity": None, "type": int(kind)}, _bytes(elements)


def moved(tensors: Sequence[Record], constants: Set[int], operators: Iterable[Moving]) -> Set[int]:
    """Return the packed tensors that hold those of constants in other places.

    Their elements have a byte each too, since the constants have.

    constants  packed tensors that are constants
    rows       operators in order: the kind, the inputs, the outputs
    """
    known, reached = set(constants), set[int]()
    packed = {index for index, tensor in enumerate(tensors) if tensor["type"] in WIDENED}
    for kind, inputs, outputs in operators:
        taken = packed & set(inputs)
        if kind in MOVERS and taken and taken <= known:
            made = packed & set(outputs) - known
            known |= made
            reached |= made
    return reached


def unpacked(data: Bytes, packed: TensorType, count: int) -> npt.NDArray[Any]:
    """Return elements that share bytes, the first in the lowest bits, as whole bytes."""
    bits = PACKED_BITS[packed]
    whole = DTYPES[WIDENED[packed]]
    parts = [data << (8 - bits - low) for low in range(0, 8, bits)]
    raised: npt.NDArray[Any] = np.stack(parts, axis=-1).reshape(-1)[:count].view(whole)
    return np.right_shift(raised, 8 - bits)


def _bytes(values: npt.NDArray[Any]) -> Bytes:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _elements(tensor: Record) -> int:
    return math.prod(int(extent) for extent in _array(tensor["shape"]))


def _places(levels: Iterable[_Level], values: int, place: str) -> Integers:
    """Return which elements of the dense tensor the stored ones are, in the order of the file.

    values  stored elements at most: more places are more than the file can be of
    """
    places = np.zeros(1, np.int64)
    dimensions = list(levels)
    most = max(
        [values, *(0 if each.segments is None else each.segments.size for each in dimensions)]
    )
    for number, level in enumerate(dimensions):
        if level.segments is None or level.indices is None:
            if places.size * level.extent > most:
                said = f"must have contents for {places.size} times {level.extent} elements"
                raise _wrong(place, f"{said} in dimension {number}, not for {most}")
            places = (places[:, np.newaxis] + np.arange(level.extent) * level.stride).reshape(-1)
            continue
        counts = np.diff(level.segments)
        if level.segments.size != places.size + 1 or level.segments[0] or np.any(counts < 0):
            said = f"must have {places.size + 1} segments from 0 on in dimension {number}"
            raise _wrong(place, f"{said}, none smaller than the one before it")
        if level.segments[-1] != level.indices.size:
            said = f"must have {level.segments[-1]} indices in dimension {number}"
            raise _wrong(place, f"{said}, as its segments say, not {level.indices.size}")
        if (
            level.indices.size
            and not 0 <= level.indices.min() <= level.indices.max() < level.extent
        ):
            said = f"must have indices in 0..{level.extent - 1} in dimension {number}"
            raise _wrong(place, f"{said}, not {level.indices.min()}..{level.indices.max()}")
        places = np.repeat(places, counts) + level.indices * level.stride
    return places


def _levels(sparsity: Record, shape: list[int], place: str) -> Iterator[_Level]:
    """Read the dimensions in the order of traversal. E140 for those that do not fit the shape."""
    order = [int(each) for each in _array(sparsity["traversal_order"])]
    cut = [int(each) for each in _array(sparsity["block_map"])]
    metadata: list[Record] = sparsity["dim_metadata"] or []
    rank = len(shape)
    if len(metadata) != rank + len(cut) or sorted(order) != list(range(len(metadata))):
        said = f"must traverse {rank} dimensions and {len(cut)} of blocks once each"
        raise _wrong(place, f"{said}, not {order} of {len(metadata)}")
    if len(set(cut)) != len(cut) or not set(cut) <= set(range(rank)):
        raise _wrong(place, f"must have blocks of other dimensions of {rank} each, not {cut}")
    row_of = dict(zip(order, metadata, strict=True))
    blocks = {axis: int(row_of[rank + at]["dense_size"]) for at, axis in enumerate(cut)}
    for axis, size in blocks.items():
        form = row_of[rank + cut.index(axis)]["format"]
        if form != DimensionType.DENSE or size < 1 or shape[axis] % size:
            said = f"must be cut into whole dense blocks along axis {axis} of {shape}"
            raise _wrong(place, f"{said}, not into blocks of {size}")
    strides = [math.prod(shape[axis + 1 :]) for axis in range(rank)]
    for number, dimension in enumerate(order):
        if dimension >= rank:
            axis = cut[dimension - rank]
            extent, stride = blocks[axis], strides[axis]
        else:
            size = blocks.get(dimension, 1)
            extent, stride = shape[dimension] // size, strides[dimension] * size
        yield _level(row_of[dimension], extent, stride, f"{place}, dimension {number},")


def _level(record: Record, extent: int, stride: int, place: str) -> _Level:
    match record["format"]:
        case DimensionType.DENSE:
            if record["dense_size"] != extent:
                raise _wrong(place, f"must have {extent} indices, not {record['dense_size']}")
            return _Level(extent, stride)
        case DimensionType.SPARSE_CSR:
            segments, indices = (
                _vector(record[name]) for name in ("array_segments", "array_indices")
            )
            if not segments.size:
                raise _wrong(place, "must have segments where it is sparse, and has none")
            return _Level(extent, stride, segments, indices)
        case other:
            raise _wrong(place, f"must be dense (0) or sparse (1), not {other}")


def _vector(member: Member | None) -> Integers:
    return _array(None if member is None else member.fields["values"])


def _array(values: Any) -> Integers:
    return np.asarray(() if values is None else values, np.int64)


def _too_large(place: str, most_bytes: int) -> MizzenError:
    return fail(
        "E140",
        f"{place} and the other sparse and packed constants must take at most {most_bytes} bytes "
        "more when their elements are bytes and all there",
        help="no memory beside an NPU has room for them; convert the network again",
    )


def _wrong(place: str, message: str) -> MizzenError:
    return fail(
        "E140",
        f"{place} is sparse, and {message}",
        rule="TensorFlow Lite schema, SparsityParameters",
        help="convert the network again, or without sparse tensors",
    )
