"""Networks with constants that are stored as TensorFlow's converters may store them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer import Member, Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA, TensorType
from mizzen.package.tflite.builder import NetworkBuilder

Array = npt.NDArray[Any]

VECTORS = {"Int32Vector": np.int32, "Uint16Vector": np.uint16, "Uint8Vector": np.uint8}


@dataclass(frozen=True)
class Form:
    """How a tensor is stored.

    order   its dimensions as they are traversed; from its rank on those of the blocks
    sparse  the levels, counted from the first, of which only what is not zero is stored
    blocks  extents of the blocks, by the axes that they divide
    """

    order: Sequence[int]
    sparse: Sequence[int]
    blocks: Mapping[int, int] = field(default_factory=dict[int, int])
    segments: str = "Int32Vector"
    indices: str = "Int32Vector"


def stored(array: Array, form: Form) -> tuple[Record, Array]:
    """Return the sparsity of a tensor, and the elements that are stored."""
    shape: list[int] = []
    axes: dict[int, int] = {}
    for axis, extent in enumerate(array.shape):
        size = form.blocks.get(axis, 1)
        axes[axis] = len(shape)
        shape.append(extent // size)
        if axis in form.blocks:
            axes[array.ndim + list(form.blocks).index(axis)] = len(shape)
            shape.append(size)
    whole = array.reshape(shape).transpose([axes[row] for row in form.order])
    nodes = [whole]
    levels: list[Record] = []
    for level, extent in enumerate(whole.shape):
        if level not in form.sparse:
            levels.append({"format": 0, "dense_size": extent})
            nodes = [part for node in nodes for part in node]
            continue
        kept = [[at for at, part in enumerate(node) if np.any(part)] for node in nodes]
        segments = np.cumsum([0, *map(len, kept)])
        indices = [at for row in kept for at in row]
        levels.append(
            {
                "format": 1,
                "array_segments": vector(form.segments, segments),
                "array_indices": vector(form.indices, indices),
            }
        )
        nodes = [node[at] for node, row in zip(nodes, kept, strict=True) for at in row]
    sparsity = {
        "traversal_order": np.array(form.order, np.int32),
        "block_map": np.array(list(form.blocks), np.int32) if form.blocks else None,
        "dim_metadata": levels,
    }
    return sparsity, np.array(nodes, array.dtype)


def vector(kind: str, values: Any) -> Member:
    """Return a vector of indices of one of the schema's types."""
    return Member(kind, {"values": np.asarray(values, VECTORS[kind])})


def with_sparsity(data: bytes, tensor: int, array: Array, form: Form) -> bytes:
    """Return a file whose constant `tensor` is stored in a form."""
    record = read(data, SCHEMA, "sparse")
    sparsity, values = stored(array, form)
    row = record["subgraphs"][0]["tensors"][tensor]
    row["sparsity"] = sparsity
    record["buffers"][row["buffer"]] = {"data": np.frombuffer(values.tobytes(), np.uint8)}
    return write(record, SCHEMA)


def with_int4(data: bytes, tensor: int) -> bytes:
    """Return a file whose constant `tensor`, of small int8, is packed."""
    record = read(data, SCHEMA, "packed")
    row = record["subgraphs"][0]["tensors"][tensor]
    row["type"] = int(TensorType.INT4)
    values = record["buffers"][row["buffer"]]["data"]
    record["buffers"][row["buffer"]] = {"data": packed(values)}
    return write(record, SCHEMA)


def packed(values: Array) -> Array:
    """Return bytes that have two elements each, the first in the low half."""
    halves = np.append(values.view(np.uint8) & 0xF, np.zeros(values.size % 2, np.uint8))
    return halves[::2] | halves[1::2] << 4


def densified(array: Array, form: Form) -> bytes:
    """Return a network that gives a constant, which is stored in a form, by DENSIFY."""
    net = NetworkBuilder("densify")
    x = net.tensor("x", (1, 4), np.int8, 0.5)
    y = net.tensor("y", (1, 4), np.int8, 0.5)
    net.operator("ABS", [x], [y])
    scale = 0.5 if array.dtype == np.int8 else None
    constant = net.constant("sparse", array, scale)
    result = net.tensor("dense", array.shape, array.dtype, scale)
    net.operator("DENSIFY", [constant], [result], ("DensifyOptions", {}))
    return with_sparsity(net.finish([x], [y, result]), constant, array, form)
