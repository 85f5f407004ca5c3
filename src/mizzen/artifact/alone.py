"""A subgraph of a network as the main one of a network of its own, as a file."""

from __future__ import annotations

from mizzen.artifact.sealing import NAME
from mizzen.artifact.steps import read_network
from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.subgraphs import reached_from, seen_from
from mizzen.package.tflite.replacement import compacted


def apart(model: Model, index: int) -> tuple[Model, bytes]:
    """Return the network of a subgraph and those that it executes, and its file.

    Tensors and operators have the numbers that they have in the whole.
    """
    seen = seen_from(model, reached_from(model, index))
    file = seen.record
    parts = compacted(file["subgraphs"], file["operator_codes"], file["buffers"])
    buffers: list[Record] = [*parts["buffers"]]
    metadata: list[Record] = []
    for name, data in seen.metadata.items():
        if name == NAME:  # the manifest is of the whole
            continue
        metadata.append({"name": name, "buffer": len(buffers)})
        buffers.append({"data": data})
    record = {
        **parts,
        "version": file["version"],
        "description": file["description"],
        "buffers": buffers,
        "metadata": metadata or None,
    }
    return seen, write(record, SCHEMA)


def file_alone(data: bytes, name: str, index: int) -> bytes:
    """Return the file of a subgraph of the network in the file `data`."""
    return apart(read_network(data, name), index)[1]
