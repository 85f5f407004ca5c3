"""Make the weights of operators on floating-point numbers floating-point.

Converters leave the weights of such networks in 8 bits on request ("dynamic range"); LiteRT rounds
the data for them as it runs, and TensorFlow Lite Micro has no such kernels. The weights stand for
real numbers, by which the operators can compute everywhere.
Ref: LiteRT, post-training dynamic range quantisation; TFLite Micro, conv_common.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer import Record
from mizzen.flatbuffer.tflite import TensorType

WEIGHTS = 1
"""Which input of convolutions and products it is."""


def with_real_weights(record: Record) -> Record | None:
    """Return a network whose indices are checked with such weights as FLOAT32; None without any."""
    main = record["subgraphs"][0]
    tensors: list[Record] = list(main["tensors"] or ())
    buffers: list[Record] = list(record["buffers"])
    chosen = sorted(set(_rounded(main, tensors, buffers)))
    for index in chosen:
        tensor = tensors[index]
        contents = _real(tensor, np.asarray(buffers[tensor["buffer"]]["data"], np.uint8))
        kind = {"type": int(TensorType.FLOAT32), "buffer": len(buffers), "quantization": None}
        tensors[index] = {**tensor, **kind}
        buffers.append({"data": contents})
    if not chosen:
        return None
    changed = {**main, "tensors": tensors}
    return {**record, "buffers": buffers, "subgraphs": [changed, *record["subgraphs"][1:]]}


def _rounded(main: Record, tensors: list[Record], buffers: list[Record]) -> Iterator[int]:
    """Return the 8-bit weights of operators that take real numbers."""
    for operator in main["operators"] or ():
        inputs: Any = operator["inputs"]
        if inputs is None or len(inputs) <= WEIGHTS or min(inputs[: WEIGHTS + 1]) < 0:
            continue
        data, weights = (tensors[int(index)] for index in inputs[: WEIGHTS + 1])
        if (
            data["type"] == TensorType.FLOAT32
            and weights["type"] == TensorType.INT8
            and buffers[weights["buffer"]]["data"] is not None
            and _scales(weights).size
        ):
            yield int(inputs[WEIGHTS])


def _scales(tensor: Record) -> npt.NDArray[np.float32]:
    quantization: Record | None = tensor["quantization"]
    scales: Any = None if quantization is None else quantization["scale"]
    return np.asarray(() if scales is None else scales, np.float32)


def _real(tensor: Record, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    quantization: Record = tensor["quantization"]
    shape = [int(extent) for extent in tensor["shape"]]
    scales = _scales(tensor)
    given: Any = quantization["zero_point"]
    zeros = np.zeros(1, np.float32) if given is None else np.asarray(given, np.float32)
    axes = [1] * len(shape)
    if scales.size > 1:
        axes[int(quantization["quantized_dimension"] or 0)] = scales.size
    zeros = zeros.reshape(axes) if zeros.size > 1 else zeros
    real = (data.view(np.int8).reshape(shape).astype(np.float32) - zeros) * scales.reshape(axes)
    return np.ascontiguousarray(real, np.float32).reshape(-1).view(np.uint8)
