"""The compiled TFLite network of a region, with the names, shapes and scales of the program."""

from __future__ import annotations

import numpy as np

from mizzen.compiler.codegen import RegionCode
from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.graph import Value


def named_network(region: RegionCode, names: dict[Value, str]) -> bytes:
    """Return a region's network with inputs and outputs as a runtime wants to see them.

    names  what values of the program's edge are called there; others keep the compiler's names
    """
    (found,) = region.model.record["subgraphs"]
    main: Record = {**found, "tensors": [dict(tensor) for tensor in found["tensors"]]}
    for side, values in (("inputs", region.part.inputs), ("outputs", region.part.outputs)):
        for index, value in zip(main[side], values, strict=True):
            tensor = main["tensors"][index]
            if value in names:
                tensor["name"] = names[value]
            if value.shape:
                tensor["shape"] = np.asarray(value.shape, np.int32)
            if value.quantization is not None:
                tensor["quantization"] = {
                    "scale": np.asarray(value.quantization.scales, np.float32),
                    "zero_point": np.asarray(value.quantization.zero_points, np.int64),
                }
    return write({**region.model.record, "subgraphs": [main]}, SCHEMA)
