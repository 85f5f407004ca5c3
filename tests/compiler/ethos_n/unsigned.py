"""Networks of signed bytes as the same ones of unsigned bytes, whose integers are 128 more."""

from __future__ import annotations

import numpy as np

from mizzen.flatbuffer import Record
from mizzen.flatbuffer.reader import read
from mizzen.flatbuffer.tflite import SCHEMA, TensorType
from mizzen.flatbuffer.writer import write

OFFSET = 128


def per_tensor(network: bytes) -> bytes:
    """Return a network whose weights have one scale a tensor, as those of unsigned bytes must."""
    record = read(network, SCHEMA, "network")
    for quantization in _quantizations(record):
        quantization["scale"] = quantization["scale"][:1]
        quantization["zero_point"] = quantization["zero_point"][:1]
        quantization["quantized_dimension"] = 0
    return write(record, SCHEMA)


def as_unsigned(network: bytes) -> bytes:
    """Return a network with unsigned bytes for signed ones: the same real numbers."""
    record = read(network, SCHEMA, "network")
    tensors = [row for row in record["subgraphs"][0]["tensors"] if row["type"] == TensorType.INT8]
    for tensor in tensors:
        tensor["type"] = int(TensorType.UINT8)
        quantization = tensor["quantization"]
        quantization["zero_point"] = np.asarray(quantization["zero_point"]) + OFFSET
    for index in {row["buffer"] for row in tensors}:
        buffer = record["buffers"][index]
        if buffer.get("data") is not None:
            buffer["data"] = np.asarray(buffer["data"]) ^ np.uint8(OFFSET)
    return write(record, SCHEMA)


def _quantizations(record: Record) -> list[Record]:
    rows = [row.get("quantization") for row in record["subgraphs"][0]["tensors"]]
    return [row for row in rows if row is not None and row.get("scale") is not None]
