"""Small networks for the CPU's kernels: with state, without end, too large, and faulty ones."""

from __future__ import annotations

import numpy as np

from mizzen.flatbuffer import Member, Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA, BuiltinOperator, TensorType
from mizzen.package.tflite.builder import NetworkBuilder

SHAPE = (1, 4)


def unary(kind: str, shape: tuple[int, ...] = SHAPE, dtype: str = "int8") -> bytes:
    net = NetworkBuilder()
    x, y = net.tensor("x", shape, dtype, 0.5), net.tensor("y", shape, dtype, 0.5)
    net.operator(kind, [x], [y])
    return net.finish([x], [y])


def chain(*kinds: str) -> bytes:
    net = NetworkBuilder()
    x = y = net.tensor("x", SHAPE, "int8", 0.5)
    for kind in kinds:
        before, y = y, net.tensor("y", SHAPE, "int8", 0.5)
        net.operator(kind, [before], [y])
    return net.finish([x], [y])


def two_outputs() -> bytes:
    """Return |a| and a + b."""
    net = NetworkBuilder()
    a, b, first, second = (net.tensor(name, SHAPE, "int8", 0.5) for name in "abcd")
    net.operator("ABS", [a], [first])
    net.operator("ADD", [a, b], [second], ("AddOptions", {}))
    return net.finish([a, b], [first, second])


def no_inputs() -> bytes:
    net = NetworkBuilder()
    constant = net.constant("c", np.array([[-2, 3]], np.int8), 0.5)
    y = net.tensor("y", (1, 2), "int8", 0.5)
    net.operator("ABS", [constant], [y])
    return net.finish([], [y])


def delay_line() -> bytes:
    """Return the sum of the last three inputs: an SVDF, whose state is a variable tensor."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, 1), "int8", 0.5)
    features = net.constant("features", np.array([[127]], np.int8), 1 / 127)
    times = net.constant("times", np.array([[64, 64, 64]], np.int16), 1 / 64)
    bias = net.constant("bias", np.zeros(1, np.int32), 1 / 128)
    state = net.tensor("state", (1, 3), "int16", 0.5, variable=True)
    y = net.tensor("y", (1, 1), "int8", 0.5)
    net.operator("SVDF", [x, features, times, bias, state], [y],
                 ("SVDFOptions", {"rank": 1}))  # fmt: skip
    return net.finish([x], [y])


def counter() -> bytes:
    """Add the input to a resource variable, and give the sum."""
    net = NetworkBuilder()
    x = net.tensor("x", SHAPE, "int8", 0.5)
    handle = net.tensor("handle", [1], "int32")
    before, after = (
        net.tensor("before", SHAPE, "int8", 0.5),
        net.tensor("after", SHAPE, "int8", 0.5),
    )
    net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "total"}))
    net.operator("READ_VARIABLE", [handle], [before], ("ReadVariableOptions", {}))
    net.operator("ADD", [before, x], [after], ("AddOptions", {}))
    net.operator("ASSIGN_VARIABLE", [handle, after], [], ("AssignVariableOptions", {}))
    record = read(net.finish([x], [after]), SCHEMA, "counter")
    record["subgraphs"][0]["tensors"][1]["type"] = int(TensorType.RESOURCE)
    return write(record, SCHEMA)


def endless() -> bytes:
    """Loop while x >= x."""
    codes = ("WHILE", "GREATER_EQUAL", "RELU")
    tensor = {"name": "x", "shape": [1, 1], "type": int(TensorType.INT8), "buffer": 0,
              "quantization": {"scale": [0.5], "zero_point": [0]}}  # fmt: skip
    condition = {"name": "c", "shape": [1, 1], "type": int(TensorType.BOOL), "buffer": 0}
    loop = Member("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    record: Record = {
        "version": 3,
        "operator_codes": [
            {"deprecated_builtin_code": int(BuiltinOperator[code]), "version": 1,
             "builtin_code": int(BuiltinOperator[code])}
            for code in codes
        ],
        "subgraphs": [
            subgraph([tensor, tensor], 0, [0], [1], loop),
            subgraph([tensor, condition], 1, [0, 0], [1]),
            subgraph([tensor, tensor], 2, [0], [1]),
        ],
        "buffers": [{}],
    }  # fmt: skip
    return write(record, SCHEMA)


def subgraph(
    tensors: list[Record], code: int, inputs: list[int], outputs: list[int], options: object = None
) -> Record:
    operator = {"opcode_index": code, "inputs": inputs, "outputs": outputs,
                "builtin_options": options}  # fmt: skip
    return {"tensors": tensors, "operators": [operator], "inputs": [0], "outputs": outputs}


def crashing() -> bytes:
    """Slice far beyond the end of the input, where no memory is."""
    net = NetworkBuilder()
    x, y = net.tensor("x", SHAPE, "int8", 0.5), net.tensor("y", (1, 1), "int8", 0.5)
    begin = net.constant("begin", np.array([1 << 28, 0], np.int32))
    size = net.constant("size", np.array([1, 1], np.int32))
    net.operator("SLICE", [x, begin, size], [y], ("SliceOptions", {}))
    return net.finish([x], [y])
