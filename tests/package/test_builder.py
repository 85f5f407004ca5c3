"""Networks that are built, read back and run by TFLite Micro."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mizzen.flatbuffer import read
from mizzen.flatbuffer.tflite import SCHEMA, TensorType
from mizzen.package.tflite.builder import NetworkBuilder


def test_options_of_newer_operators_go_into_the_second_union() -> None:
    net = NetworkBuilder()
    x = net.tensor("x", (1, 4), "int8", 0.5)
    net.operator("STABLEHLO_TRANSPOSE", [x], [x],
                 ("StablehloTransposeOptions", {"permutation": [1, 0]}))  # fmt: skip
    net.operator("RESHAPE", [x], [x], ("ReshapeOptions", {"new_shape": [4]}))
    first, second = read(net.finish([x], [x]), SCHEMA, "net")["subgraphs"][0]["operators"]
    assert first["builtin_options"] is None
    assert first["builtin_options2"].fields["permutation"].tolist() == [1, 0]
    assert second["builtin_options2"] is None
    assert second["builtin_options"].fields["new_shape"].tolist() == [4]


def test_codes_are_shared_and_fit_both_fields() -> None:
    net = NetworkBuilder()
    x = net.tensor("x", (1, 4), "int8", 0.5)
    for kind, version in (("RELU", 1), ("GELU", 1), ("RELU", 1), ("RELU", 2), ("Mine", 1)):
        net.operator(kind, [x], [x], version=version)
    record = read(net.finish([x], [x]), SCHEMA, "net")
    codes = [
        (code["deprecated_builtin_code"], code["builtin_code"], code["custom_code"])
        for code in record["operator_codes"]
    ]
    assert codes == [(19, 19, None), (127, 150, None), (19, 19, None), (32, 32, "Mine")]
    indices = [operator["opcode_index"] for operator in record["subgraphs"][0]["operators"]]
    assert indices == [0, 1, 0, 2, 3]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "float32", "bool"])
def test_tensors_have_the_files_types(dtype: str) -> None:
    net = NetworkBuilder()
    x = net.constant("x", np.ones((2, 3), dtype))
    (row,) = read(net.finish([], [x]), SCHEMA, "net")["subgraphs"][0]["tensors"]
    assert TensorType(row["type"]).name == dtype.upper()


def test_zero_points_are_as_many_as_scales() -> None:
    net = NetworkBuilder()
    x = net.tensor("x", (2, 3), "int8", [0.5, 0.25, 1.0], 0, axis=1)
    (row,) = read(net.finish([], [x]), SCHEMA, "net")["subgraphs"][0]["tensors"]
    assert row["quantization"]["zero_point"].tolist() == [0, 0, 0]
    assert row["quantization"]["quantized_dimension"] == 1


def test_a_built_network_runs_in_tflite_micro() -> None:
    runtime: Any = pytest.importorskip("tflite_micro", reason="tflite-micro is missing").runtime
    net = NetworkBuilder()
    x = net.tensor("x", (1, 3), "int8", 0.5)
    weights = net.constant("w", np.array([[1, 2, 3], [-4, 5, -6]], np.int8), 0.5)
    bias = net.constant("b", np.array([4, -8], np.int32), 0.25)
    y = net.tensor("y", (1, 2), "int8", 0.5, -1)
    net.operator("FULLY_CONNECTED", [x, weights, bias], [y], ("FullyConnectedOptions", {}))
    interpreter = runtime.Interpreter.from_bytes(net.finish([x], [y]), arena_size=1 << 16)
    interpreter.set_input(np.array([[4, -6, 8]], np.int8), 0)
    interpreter.invoke()
    # (4 - 12 + 24 + 4) / 2 - 1, (-16 - 30 - 48 - 8) / 2 - 1
    assert interpreter.get_output(0).tolist() == [[9, -52]]
