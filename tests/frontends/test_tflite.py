from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer.tflite import SCHEMA, TensorType
from mizzen.frontends.tflite import Model, Quantization, macs, read, require_quantized
from mizzen.frontends.tflite.least_inputs import LEAST_INPUTS
from mizzen.package.tflite.builder import NetworkBuilder

Change = Callable[[Record], object]


def small_network() -> bytes:
    """Return a convolution with a fused activation, quantised per channel."""
    net = NetworkBuilder("small")
    x = net.tensor("x", (1, 6, 5, 3), "int8", 0.04, 3)
    filters = net.constant("filters", np.ones((4, 3, 3, 3), np.int8), SCALES, [0] * 4)
    bias = net.constant("bias", np.arange(4, dtype=np.int32), SCALES, [0] * 4)
    y = net.tensor("y", (1, 3, 3, 4), "int8", 0.2, -11)
    window = {"padding": 0, "stride_h": 2, "stride_w": 2, "fused_activation_function": 1}
    net.operator("CONV_2D", [x, filters, bias], [y], ("Conv2DOptions", window))
    net.operator("RELU", [y, -1], [x])
    return net.finish([x], [y])


SCALES = [0.25, 0.5, 0.125, 1.0]
SMALL = small_network()


def record_of(data: bytes) -> Record:
    return read_file(data, SCHEMA, "file")


def broken(change: Change) -> MizzenError:
    """Return the error of reading the small network after `change` to its record."""
    record = record_of(SMALL)
    change(record)
    with pytest.raises(MizzenError) as caught:
        read(write(record, SCHEMA), "net.tflite")
    return caught.value


def test_a_network_is_read_as_it_was_built() -> None:
    model = read(SMALL, "small.tflite")
    main = model.main
    x, filters, bias, y = main.tensors
    assert (x.name, x.shape, x.dtype, x.variable) == ("x", (1, 6, 5, 3), np.int8, False)
    assert x.quantization == Quantization((float(np.float32(0.04)),), (3,))
    assert (main.inputs, main.outputs) == ((x.index,), (y.index,))
    conv, relu = main.operators
    assert (conv.kind, conv.custom, conv.version) == ("CONV_2D", False, 1)
    assert (conv.inputs, conv.outputs) == ((0, 1, 2), (3,))
    assert conv.options["stride_w"] == 2
    assert relu.inputs == (3, -1)
    assert main.present(relu.inputs) == (y,)
    assert str(model.origin(conv)) == 'small.tflite, operator 0 CONV_2D -> "y"'
    assert filters.quantization == Quantization(tuple(SCALES), (0, 0, 0, 0), 0)
    assert filters.values is not None
    assert filters.values.shape == (4, 3, 3, 3)
    assert bias.values is not None
    assert bias.values.tolist() == [0, 1, 2, 3]
    assert x.data is None


def test_contents_are_views_of_the_file() -> None:
    contents = read(SMALL, "small").main.tensors[1].data
    assert contents is not None
    assert np.shares_memory(contents, np.frombuffer(SMALL, np.uint8))


def test_contents_behind_the_tables_are_found() -> None:
    """Large models keep contents behind the tables, and large custom options too."""
    record = record_of(SMALL)
    contents = record["buffers"][1]["data"].tobytes()
    for offset in (2, len(write(behind(record, 2, len(contents)), SCHEMA))):
        tables = write(behind(record, offset, len(contents)), SCHEMA)
    assert len(tables) == offset
    main = read(tables + contents, "large").main
    assert main.tensors[1].data is not None
    assert main.tensors[1].data.tobytes() == contents
    assert main.operators[0].custom_options.tobytes() == contents


def behind(record: Record, offset: int, size: int) -> Record:
    first(record, "operators").update(
        large_custom_options_offset=offset, large_custom_options_size=size
    )
    record["buffers"][1].update(data=None, offset=offset, size=size)
    return record


def test_codes_beyond_the_old_field_are_understood() -> None:
    net = NetworkBuilder()
    x, y = net.tensor("x", (1, 4), "int8", 0.1), net.tensor("y", (1, 4), "int8", 0.1)
    net.operator("GELU", [x], [y], ("GeluOptions", {}))
    net.operator("MyOwn", [y], [x], custom_options=b"\x01\x02", intermediates=[-1, y])
    first, second = read(net.finish([x], [y]), "net").main.operators
    assert (first.kind, first.custom) == ("GELU", False)
    assert (second.kind, second.custom) == ("MyOwn", True)
    assert bytes(second.custom_options) == b"\x01\x02"
    assert second.intermediates == (-1, y)


def first(record: Record, rows: str) -> Record:
    row: Record = record["subgraphs"][0][rows][0]
    return row


WRONG = "error[{}]: net.tflite must be a valid TFLite network: {}\n"
HELP = "  help get the file again, or convert the network again"


def change(rows: str, index: int, **fields: object) -> Change:
    """Change fields of a row of the subgraph, or of the file if it has such rows."""

    def apply(record: Record) -> None:
        row = record.get(rows) or record["subgraphs"][0][rows]
        row[index].update(fields)

    return apply


def quantize(record: Record) -> None:
    record["subgraphs"][0]["tensors"][1]["quantization"].update(zero_point=[0, 0])


def move_zero(record: Record) -> None:
    zeros = record["subgraphs"][0]["tensors"][0]["quantization"]
    zeros.update(zero_point=np.array([1 << 40]))


BROKEN: dict[str, tuple[Change, str, str]] = {
    "input of an operator": (
        change("operators", 0, inputs=[0, 1, 99]),
        "E103",
        "subgraphs[0].operators[0].inputs[2] must be in -1..3, not 99",
    ),
    "output of the network": (
        change("subgraphs", 0, outputs=[-1]),
        "E103",
        "subgraphs[0].outputs[0] must be in 0..3, not -1",
    ),
    "operator code": (
        change("operators", 0, opcode_index=7),
        "E103",
        "subgraphs[0].operators[0].opcode_index must be in 0..1, not 7",
    ),
    "buffer": (
        change("tensors", 0, buffer=6),
        "E103",
        "subgraphs[0].tensors[0].buffer must be in 0..2, not 6",
    ),
    "metadata": (
        lambda record: record.update(metadata=[{"name": "m", "buffer": 3}]),
        "E103",
        "metadata[0].buffer must be in 0..2, not 3",
    ),
    "no subgraph": (
        lambda record: record.update(subgraphs=None),
        "E103",
        "it must have a subgraph, and has none",
    ),
    "no tensors": (
        change("subgraphs", 0, tensors=None, inputs=None),
        "E103",
        "subgraphs[0].operators[0].inputs[0] is 0, of none at all",
    ),
    "type": (
        change("tensors", 0, type=99),
        "E104",
        "subgraphs[0].tensors[0].type must be in 0..22, not 99",
    ),
    "builtin operator": (
        change("operator_codes", 0, builtin_code=4000),
        "E104",
        "operator_codes[0] must be a builtin operator 0..209, not 4000",
    ),
    "custom operator without a name": (
        change("operator_codes", 0, builtin_code=32),
        "E104",
        "operator_codes[0] must name its custom operator, and does not",
    ),
    "contents": (
        change("tensors", 1, shape=[4, 3, 3, 4]),
        "E105",
        'subgraphs[0].tensors[1] "filters" must have 144 bytes of contents for '
        "INT8 [4, 3, 3, 4], not 108",
    ),
    "negative shape": (
        change("tensors", 0, shape=[1, -2]),
        "E106",
        "subgraphs[0].tensors[0].shape must be positive and take at most 1073741824 bytes, "
        "not [1, -2] of INT8",
    ),
    "huge shape": (
        change("tensors", 0, shape=[1 << 20, 1 << 20, 1 << 20]),
        "E106",
        "subgraphs[0].tensors[0].shape must be positive and take at most 1073741824 bytes, "
        "not [1048576, 1048576, 1048576] of INT8",
    ),
    "huge shape of nothing": (
        change("tensors", 0, shape=[0, 1 << 30, 1 << 30]),
        "E106",
        "subgraphs[0].tensors[0].shape must be positive and take at most 1073741824 bytes, "
        "not [0, 1073741824, 1073741824] of INT8",
    ),
    "too few inputs": (
        change("operators", 0, inputs=[0]),
        "E104",
        "subgraphs[0].operators[0].inputs must be at least 2 for CONV_2D, not [0]",
    ),
    "an absent input": (
        change("operators", 0, inputs=[0, -1]),
        "E104",
        "subgraphs[0].operators[0].inputs must be at least 2 for CONV_2D, not [0, -1]",
    ),
    "rank": (
        change("tensors", 0, shape=[1] * 9),
        "E106",
        "subgraphs[0].tensors[0].shape must have at most 8 extents, not 9",
    ),
    "zero points": (
        quantize,
        "E106",
        "subgraphs[0].tensors[1].quantization must have one zero point or 4, not 2",
    ),
    "a zero point of more than 16 bits": (
        move_zero,
        "E106",
        "subgraphs[0].tensors[0].quantization must have zero points in -32768..32767 for INT8, "
        "not 1099511627776",
    ),
}


@pytest.mark.parametrize(("kind", "least"), LEAST_INPUTS.items())
def test_an_operator_has_the_inputs_that_its_kernel_reads(kind: str, least: int) -> None:
    """With the last of them absent it is refused, whatever is made of the operator later."""
    net = NetworkBuilder()
    tensors = [net.tensor(f"x{place}", (1, 4, 4, 2), "int8", 0.5) for place in range(least)]
    result = net.tensor("y", (1, 4, 4, 2), "int8", 0.5)
    net.operator(kind, [*tensors[:-1], -1], [result])
    with pytest.raises(MizzenError, match=f"inputs must be at least {least} for {kind}, not"):
        read(net.finish(tensors, [result]), "net.tflite")


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_schema_cannot_say_is_checked(name: str) -> None:
    damage, code, message = BROKEN[name]
    assert str(broken(damage)) == WRONG.format(code, message) + HELP


def test_contents_behind_the_end_are_refused() -> None:
    error = broken(change("buffers", 1, data=None, offset=1 << 40, size=9))
    message = r"buffers\[1\] must lie inside the \d+ bytes of the file, not at \d{13}\.\.\d{13}\n"
    assert re.search(message, str(error))


def test_packed_types_take_part_of_a_byte() -> None:
    record = record_of(SMALL)
    record["subgraphs"][0]["tensors"][0].update(type=TensorType.INT4, shape=[5, 43])
    read_back = read(write(record, SCHEMA), "net").main.tensors[0]
    assert (read_back.size_bytes, read_back.dtype, read_back.values) == (108, None, None)


def one_operator(kind: str, inputs: list[Any], output: Any, options: Any = None) -> Model:
    net = NetworkBuilder()
    indices = [-1 if shape is None else net.tensor("x", shape, "int8", 0.1) for shape in inputs]
    y = net.tensor("y", output, "int8", 0.1)
    net.operator(kind, indices, [y], options)
    return read(net.finish([index for index in indices if index >= 0], [y]), "net")


MACS: dict[str, tuple[Any, ...]] = {
    "CONV_2D": ([(2, 8, 8, 3), (5, 3, 3, 3), (5,)], (2, 4, 4, 5), None, 2 * 16 * 5 * 27),
    "CONV_2D in groups": ([(1, 8, 8, 6), (4, 3, 3, 3)], (1, 8, 8, 4), None, 64 * 4 * 27),
    "CONV_3D": ([(1, 4, 4, 4, 3), (2, 2, 2, 3, 5)], (1, 3, 3, 3, 5), None, 27 * 5 * 24),
    "DEPTHWISE_CONV_2D": ([(1, 8, 8, 3), (1, 3, 3, 6)], (1, 8, 8, 6), None, 64 * 6 * 9),
    "FULLY_CONNECTED": ([(3, 20), (7, 20), None], (3, 7), None, 3 * 7 * 20),
    "TRANSPOSE_CONV": ([(4,), (5, 2, 2, 3), (1, 4, 4, 3)], (1, 8, 8, 5), None, 16 * 3 * 4 * 5),
    "BATCH_MATMUL": ([(2, 3, 4), (2, 4, 5)], (2, 3, 5), None, 2 * 3 * 4 * 5),
    "BATCH_MATMUL adjoint": (
        [(2, 4, 3), (2, 4, 5)], (2, 3, 5), ("BatchMatMulOptions", {"adj_x": True}), 2 * 3 * 4 * 5,
    ),
    "SVDF": ([(2, 6), (8, 6), (8, 4)], (2, 4), None, 2 * (8 * 6 + 8 * 4)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        [(2, 5, 3), None, *[(4, 3)] * 3, None, *[(4, 4)] * 3], (2, 5, 4), None,
        2 * 5 * (3 * 12 + 3 * 16),
    ),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (
        [(2, 5, 3), (4, 3), (4, 4), (4,), (2, 4)], (2, 5, 4), None, 10 * 28,
    ),
    "AVERAGE_POOL_2D": ([(1, 8, 8, 3)], (1, 4, 4, 3), None, 0),
    "CustomConv": ([(1, 8, 8, 3), (5, 3, 3, 3)], (1, 4, 4, 5), None, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", MACS)
def test_multiply_accumulates_follow_from_shapes(name: str) -> None:
    inputs, output, options, want = MACS[name]
    model = one_operator(name.split(maxsplit=1)[0], inputs, output, options)
    assert macs(model.main, model.main.operators[0]) == want


@pytest.mark.parametrize(
    ("name", "count"),
    [("kws_ref_model.tflite", 2_656_768), ("pretrainedResnet_quant.tflite", 12_501_632)],
)
def test_real_networks_have_the_published_multiply_accumulates(
    model_file: Any, name: str, count: int
) -> None:
    """MLPerf Tiny says 2.7 and 12.5 million."""
    model = read(model_file(name).read_bytes(), name)
    assert sum(macs(model.main, operator) for operator in model.main.operators) == count


def reading(*, given: list[int], read_from: list[int], outputs: list[int]) -> bytes:
    """A network of tensors 0 to 4: plain, constant, state, empty, and computed from `read_from`."""
    net = NetworkBuilder()
    net.tensor("plain", (1, 4), "int8", 0.5)
    net.constant("constant", np.ones((1, 4), np.int8), 0.5)
    net.tensor("state", (1, 4), "int8", 0.5, variable=True)
    net.tensor("empty", (0,), "int32")
    net.tensor("computed", (1, 4), "int8", 0.5)
    net.operator("Mine", read_from, [4])
    net.operator("RELU", [4], [4])
    return net.finish(given, outputs)


def test_what_is_there_before_it_is_read_is_accepted() -> None:
    data = reading(given=[0], read_from=[0, 1, 2, 3, -1], outputs=[4, 0, 1])
    assert len(read(data, "net").main.operators) == 2


MINE = ', operator 0 Mine -> "computed"'


@pytest.mark.parametrize(
    ("data", "tensor", "place"),
    [
        (reading(given=[], read_from=[0], outputs=[4]), '0 "plain"', MINE),
        (reading(given=[0], read_from=[0, 4], outputs=[4]), '4 "computed"', MINE),
        (reading(given=[], read_from=[1], outputs=[0]), '0 "plain"', ""),
    ],
)
def test_what_nothing_has_made_is_refused(data: bytes, tensor: str, place: str) -> None:
    with pytest.raises(MizzenError) as caught:
        read(data, "net.tflite")
    assert str(caught.value) == (
        f"error[E108]: tensor {tensor} must be an input, a constant, state, or computed before "
        "it is read, and is none of these\n"
        f"  at   net.tflite{place}\n"
        "  help get the file again, or convert the network again"
    )


@pytest.mark.parametrize("computed", [False, True])
def test_state_is_no_result(computed: bool) -> None:
    net = NetworkBuilder()
    x, y = (net.tensor(name, (1, 4), "int8", 0.5) for name in "xy")
    state = net.tensor("state", (1, 4), "int8", 0.5, variable=True)
    net.operator("ABS", [x], [state if computed else y])
    net.operator("ABS", [state], [y])
    with pytest.raises(MizzenError) as caught:
        read(net.finish([x], [y] if computed else [y, state]), "net.tflite")
    place = ', operator 0 ABS -> "state"' if computed else ""
    assert str(caught.value) == (
        'error[E133]: tensor 2 "state" must be state of an operator or a result, and is both\n'
        f"  at   net.tflite{place}\n"
        "  help give the result in a tensor of its own; convert the network again"
    )


def test_state_that_is_an_input_is_no_output() -> None:
    net = NetworkBuilder()
    state = net.tensor("state", (1, 4), "int8", 0.5, variable=True)
    y = net.tensor("y", (1, 4), "int8", 0.5)
    net.operator("ABS", [state], [y])
    with pytest.raises(MizzenError, match=r"\[E133\]"):
        read(net.finish([state], [state, y]), "net.tflite")


def float_network(kinds: list[str], types: list[str]) -> Model:
    net = NetworkBuilder()
    tensors = [net.tensor(f"t{i}", (1, 4), type_, 0.1) for i, type_ in enumerate(types)]
    for index, kind in enumerate(kinds):
        net.operator(kind, [tensors[index]], [tensors[index + 1]])
    return read(net.finish(tensors[:1], tensors[-1:]), "net.tflite")


def test_a_float_network_is_refused_with_its_first_tensor() -> None:
    with pytest.raises(MizzenError) as caught:
        require_quantized(float_network(["RELU", "TANH"], ["float32"] * 3))
    assert str(caught.value) == (
        'error[E107]: the network must be quantised to integers, but tensor 0 "t0" is FLOAT32, '
        "like everything that it computes\n"
        '  at   net.tflite, operator 0 RELU -> "t1"\n'
        "  help quantise it with some dozens of real inputs: `mizzen quantize MODEL --data PATH`, "
        "or `mizzen compile MODEL --calibrate PATH`"
    )


@pytest.mark.parametrize(
    ("kinds", "types"),
    [
        (["QUANTIZE", "RELU", "DEQUANTIZE"], ["float32", "int8", "int8", "float32"]),
        (["TANH", "QUANTIZE", "RELU"], ["float32", "float32", "int16", "int16"]),
        ([], ["float32"]),
    ],
)
def test_a_network_with_integers_passes(kinds: list[str], types: list[str]) -> None:
    require_quantized(float_network(kinds, types))


def test_integer_weights_alone_are_not_enough() -> None:
    net = NetworkBuilder()
    x, y = net.tensor("x", (1, 4), "float32"), net.tensor("y", (1, 2), "float32")
    weights = net.constant("w", np.ones((2, 4), np.int8), 0.1)
    net.operator("FULLY_CONNECTED", [x, weights], [y], ("FullyConnectedOptions", {}))
    with pytest.raises(MizzenError, match="E107"):
        require_quantized(read(net.finish([x], [y]), "hybrid"))
