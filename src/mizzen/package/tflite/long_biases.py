"""Give 16-bit convolutions the biases that TensorFlow Lite Micro's kernels read.

The kernels of two operators add up 16-bit data in 64 bits, and take the bias for INT64 whatever
type it has: of INT32 they read two numbers as one, and then what lies after them. LiteRT converts.
Ref: TFLite Micro, `transpose_conv.cc`, `depthwise_conv.cc`; LiteRT, `transpose_conv.cc`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer import Member, Record
from mizzen.flatbuffer.tflite import BuiltinOperator, TensorType

BIAS_INPUTS = {BuiltinOperator.DEPTHWISE_CONV_2D: 2, BuiltinOperator.TRANSPOSE_CONV: 3}
"""The operators, and which of their inputs is the bias."""

_BIAS_TYPE = "quantized_bias_type"


def with_long_biases(record: Record) -> Record | None:
    """Return a network whose indices are checked with such biases as INT64; None if it has none."""
    tensors: list[Record] = list(record["subgraphs"][0]["tensors"] or ())
    operators: list[Record] = list(record["subgraphs"][0]["operators"] or ())
    buffers: list[Record] = list(record["buffers"])
    changed = False
    for place, operator in enumerate(operators):
        index = _bias_of(record, operator)
        if index is None or not _is_short(tensors, buffers, operator, index):
            continue
        changed = True
        operators[place] = _of_long_bias(operator, len(tensors), index)
        contents = _long(record["buffers"][tensors[index]["buffer"]]["data"])
        long = {"type": int(TensorType.INT64), "buffer": len(buffers)}
        tensors.append({**tensors[index], **long, "name": f"{tensors[index]['name']}-long"})
        buffers.append({"data": contents})
    if not changed:
        return None
    main = {**record["subgraphs"][0], "tensors": tensors, "operators": operators}
    return {**record, "buffers": buffers, "subgraphs": [main, *record["subgraphs"][1:]]}


def _long(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return data.view(np.int32).astype(np.int64).view(np.uint8)


def _bias_of(record: Record, operator: Record) -> int | None:
    """Return the tensor that is the bias of one of these operators, if it has one."""
    code = record["operator_codes"][operator["opcode_index"]]
    number = max(code["deprecated_builtin_code"], code["builtin_code"])
    place = BIAS_INPUTS.get(number)
    inputs = operator["inputs"]
    if place is None or inputs is None or len(inputs) <= place or inputs[place] < 0:
        return None
    return int(inputs[place])


def _is_short(tensors: list[Record], buffers: list[Record], operator: Record, bias: int) -> bool:
    """Whether a bias is a constant of INT32 where the data is of INT16."""
    outputs: Any = operator["outputs"]
    return (
        outputs is not None
        and len(outputs) > 0
        and tensors[int(outputs[0])]["type"] == TensorType.INT16
        and tensors[bias]["type"] == TensorType.INT32
        and buffers[tensors[bias]["buffer"]]["data"] is not None
    )


def _of_long_bias(operator: Record, bias: int, before: int) -> Record:
    inputs = np.array(
        [bias if index == before else index for index in operator["inputs"]], np.int32
    )
    options: Member | None = operator["builtin_options"]
    if options is None or not options.fields.get(_BIAS_TYPE):
        return {**operator, "inputs": inputs}
    fields = {**options.fields, _BIAS_TYPE: int(TensorType.INT64)}
    return {**operator, "inputs": inputs, "builtin_options": Member(options.table, fields)}
