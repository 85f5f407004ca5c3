"""Operators of integers, taken apart: they compute what they computed, within a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mizzen.frontends.onnx.dialects import is_quantized
from mizzen.frontends.onnx.model import Array, Model

from .networks import (
    INT8,
    INT32,
    UINT8,
    computes_the_same,
    kinds,
    network,
    node,
    refusal,
    scales,
    taken,
    tensor,
)

RNG = np.random.default_rng(7)
MS = {"domain": "com.microsoft"}


def integers(*shape: int, dtype: Any = np.int8) -> Array:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def quantised_convolution(dtype: Any, weights: Any, *, per_channel: bool) -> Any:
    w_scale = [0.01, 0.02, 0.005, 0.03] if per_channel else 0.02
    w_zero = np.zeros(4 if per_channel else (), weights)
    return network(
        [
            node(
                "QLinearConv",
                ["x", "x_s", "x_z", "w", "w_s", "w_z", "y_s", "y_z", "b"],
                ["y"],
                pads=[1, 0, 1, 0],
                group=2,
            )
        ],
        [tensor("x", [1, 4, 6, 6], UINT8 if dtype is np.uint8 else INT8)],
        [tensor("y", None, UINT8 if dtype is np.uint8 else INT8)],
        {
            "w": integers(4, 2, 3, 3, dtype=weights),
            "b": RNG.integers(-3000, 3000, 4).astype(np.int32),
            **scales("x", 0.05, 3, dtype),
            **scales("w", w_scale, w_zero, weights),
            **scales("y", 0.2, 5, dtype),
        },
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("per_channel", [True, False])
def test_convolutions(dtype: Any, *, per_channel: bool) -> None:
    model = computes_the_same(
        quantised_convolution(dtype, np.int8, per_channel=per_channel), within=1
    )
    assert kinds(model) == [*["DequantizeLinear"] * 3, "Conv", "QuantizeLinear"]
    assert {each.index for each in model.nodes} == {0}
    assert is_quantized(model)
    bias = model.nodes[2]
    assert model.constants[bias.inputs[0]].dtype == np.int32
    scale = np.float32(0.05) * np.atleast_1d(model.constants["w_s"])
    np.testing.assert_array_equal(np.atleast_1d(model.constants[bias.inputs[1]]), scale)
    assert model.nodes[1].attributes.get("axis") == (0 if per_channel else None)


def integer_operator(kind: str, count: int = 1, **attributes: Any) -> Any:
    """Make an operator of com.microsoft of inputs with their scales, then those of the result."""
    names = "ab"[:count]
    constants = {k: v for name in names for k, v in scales(name, 0.04, 10, np.uint8).items()}
    inputs = [part for name in names for part in (name, f"{name}_s", f"{name}_z")]
    return network(
        [node(kind, [*inputs, "y_s", "y_z"], ["y"], **attributes, **MS)],
        [tensor(name, [1, 4, 6, 6], UINT8) for name in names],
        [tensor("y", None, UINT8)],
        {**constants, **scales("y", 0.05, 20, np.uint8)},
    )


UNARY = [
    ("QLinearSigmoid", {}, "Sigmoid"),
    ("QLinearLeakyRelu", {"alpha": 0.1}, "LeakyRelu"),
    ("QLinearAveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, "AveragePool"),
    ("QLinearGlobalAveragePool", {}, "GlobalAveragePool"),
    ("QLinearSoftmax", {"axis": 3, "opset": 13}, "Softmax"),
    ("QLinearReduceMean", {"axes": [2, 3], "keepdims": 1}, "ReduceMean"),
]


@pytest.mark.parametrize(("kind", "attributes", "made"), UNARY)
def test_operators_of_one_input(kind: str, attributes: dict[str, Any], made: str) -> None:
    file = integer_operator(kind, **attributes)
    if kind == "QLinearReduceMean":  # ONNX Runtime has no such kernel on every machine.
        model = taken(file)
        assert model.constants[model.nodes[1].inputs[1]].tolist() == [2, 3]
    else:
        model = computes_the_same(file, within=1)
    assert kinds(model) == ["DequantizeLinear", made, "QuantizeLinear"]


@pytest.mark.parametrize(("kind", "made"), [("QLinearAdd", "Add"), ("QLinearMul", "Mul")])
def test_operators_of_two_inputs(kind: str, made: str) -> None:
    model = computes_the_same(integer_operator(kind, 2), within=1)
    assert kinds(model) == ["DequantizeLinear", "DequantizeLinear", made, "QuantizeLinear"]


def test_softmax_of_all_that_follows() -> None:
    model = taken(integer_operator("QLinearSoftmax", axis=1, opset=11))
    assert kinds(model)[1:-1] == ["Reshape", "Softmax", "Reshape"]


def test_concatenations() -> None:
    model = computes_the_same(
        network(
            [
                node(
                    "QLinearConcat",
                    ["y_s", "y_z", "a", "a_s", "a_z", "b", "b_s", "b_z"],
                    ["y"],
                    axis=1,
                    **MS,
                )
            ],
            [tensor("a", [1, 3], UINT8), tensor("b", [1, 4], UINT8)],
            [tensor("y", [1, 7], UINT8)],
            {**scales("y", 0.05, 1, np.uint8), **scales("a", 0.04, 2, np.uint8),
             **scales("b", 0.05, 1, np.uint8)},
        ),
        within=1,
    )  # fmt: skip
    assert kinds(model) == ["DequantizeLinear", "DequantizeLinear", "Concat", "QuantizeLinear"]


def test_choices() -> None:
    inputs = ["c", "a", "a_s", "a_z", "b", "b_s", "b_z", "y_s", "y_z"]
    model = computes_the_same(
        network(
            [node("QLinearWhere", inputs, ["y"], **MS)],
            [tensor("c", [4], 9), tensor("a", [4], UINT8), tensor("b", [4], UINT8)],
            [tensor("y", [4], UINT8)],
            {**scales("y", 0.05, 1, np.uint8), **scales("a", 0.04, 2, np.uint8),
             **scales("b", 0.05, 1, np.uint8)},
        ),
        within=1,
    )  # fmt: skip
    assert kinds(model)[2] == "Where"


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("per_column", [True, False])
@pytest.mark.parametrize("is_real", [True, False])
def test_gemm(turned: int, *, per_column: bool, is_real: bool) -> None:
    shape = (5, 3) if turned else (3, 5)
    b_scale = np.linspace(0.01, 0.03, 5) if per_column else 0.02
    b_zero = np.zeros(5 if per_column else (), np.int8)
    result = [] if is_real else ["y_s", "y_z"]
    model = computes_the_same(
        network(
            [
                node(
                    "QGemm",
                    ["a", "a_s", "a_z", "b", "b_s", "b_z", "c", *result],
                    ["y"],
                    transB=turned,
                    alpha=0.5,
                    **MS,
                )
            ],
            [tensor("a", [2, 3], INT8)],
            [tensor("y", None, 1 if is_real else INT8)],
            {"b": integers(*shape), "c": RNG.integers(-300, 300, 5).astype(np.int32),
             **scales("a", 0.04, 2), **scales("b", b_scale, b_zero), **scales("y", 0.1, -3)},
        ),
        within=1e-5 if is_real else 1,
    )  # fmt: skip
    assert "Gemm" in kinds(model)


@pytest.mark.parametrize("rank", [2, 3])
def test_products(rank: int) -> None:
    lead = [2] * (rank - 2)
    model = computes_the_same(
        network(
            [node("QLinearMatMul", ["a", "a_s", "a_z", "b", "b_s", "b_z", "y_s", "y_z"], ["y"])],
            [tensor("a", [*lead, 4, 3], INT8), tensor("b", [*lead, 3, 5], INT8)],
            [tensor("y", None, INT8)],
            {**scales("a", 0.04, 2), **scales("b", 0.02, 0), **scales("y", 0.1, -3)},
        ),
        within=1,
    )
    assert kinds(model) == ["DequantizeLinear", "DequantizeLinear", "MatMul", "QuantizeLinear"]


def test_sixteen_bits_of_onnx_runtime() -> None:
    model = computes_the_same(
        network(
            [
                node("QuantizeLinear", ["x", "x_s", "x_z"], ["q"], **MS),
                node("DequantizeLinear", ["q", "x_s", "x_z"], ["y"], **MS),
            ],
            [tensor("x", [20])],
            [tensor("y", None)],
            scales("x", 1e-4, 5, np.int16),
        )
    )
    assert [each.domain for each in model.nodes] == ["", ""]
    assert model.types["q"].dtype == np.int16


def test_a_result_without_zero_point_is_of_the_inputs_type() -> None:
    model = network(
        [node("QLinearSigmoid", ["x", "x_s", "", "y_s"], ["y"], **MS)],
        [tensor("x", [4], INT8)],
        [tensor("y", None, INT8)],
        {"x_s": np.float32(0.1), "y_s": np.float32(0.01)},
    )
    assert taken(model).types["y"].dtype == np.int8


def test_scales_that_are_computed_leave_the_operator_whole() -> None:
    model = network(
        [node("QLinearMatMul", ["a", "s", "z", "b", "s", "z", "s", "z"], ["y"])],
        [tensor("a", [2, 3], INT8), tensor("b", [3, 2], INT8), tensor("s", [])],
        [tensor("y", None, INT8)],
        {"z": np.int8(0)},
    )
    assert kinds(taken(model)) == ["QLinearMatMul"]
    assert not is_quantized(taken(model))


@pytest.mark.parametrize(
    ("kind", "domain", "said"),
    [
        ("DynamicQuantizeLinear", "", "chooses its scale when it runs"),
        ("DynamicQuantizeMatMul", "com.microsoft", "chooses its scale when it runs"),
        ("Quant", "qonnx.custom_op.general", "is of QONNX"),
        ("BipolarQuant", "onnx.brevitas", "is of QONNX"),
        ("Trunc", "qonnx.custom_op.general", "is of QONNX"),
        ("RequantShift", "", "is of Deeploy"),
        ("Loop", "", "repeats a graph"),
    ],
)
def test_dialects_that_are_refused(kind: str, domain: str, said: str) -> None:
    model = network(
        [node(kind, ["x"], ["y"], domain=domain)], [tensor("x", [4])], [tensor("y", [4])]
    )
    diagnostic = refusal(model)
    assert diagnostic.code == "E194"
    assert said in diagnostic.message
    assert diagnostic.help


def test_operators_of_other_domains() -> None:
    model = network(
        [node("Own", ["x"], ["y"], domain="my.own")], [tensor("x", [4])], [tensor("y", [4])]
    )
    diagnostic = refusal(model)
    assert diagnostic.code == "E194"
    assert diagnostic.message == 'Own must be an operator of ONNX, and is of "my.own"'


def test_operators_of_onnx_runtime_have_the_types_that_the_file_gives() -> None:
    model = network(
        [node("FastGelu", ["x"], ["y"], **MS)], [tensor("x", ["n", 4])], [tensor("y", ["n", 4])]
    )
    read = computes_the_same(model)
    assert read.types["y"].shape == (1, 4)


def pair(scale: Any, zero: Any, dtype: Any = np.int8, **attributes: Any) -> Any:
    return network(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["q"], **attributes),
            node("DequantizeLinear", ["q", "s", "z"], ["y"], **attributes),
        ],
        [tensor("x", [2, 3, 4])],
        [tensor("y", None)],
        {"s": np.array(scale, np.float32), "z": np.array(zero, dtype)},
        opset=21,
    )


@pytest.mark.parametrize(
    ("scale", "zero", "code"),
    [(float("nan"), 0, "E190"), (0.0, 0, "E190"), (-1.0, 0, "E190"), (float("inf"), 0, "E190"),
     ([0.1, 0.2], [0, 0], "E190"), ([0.1] * 3, 0, "E190"), ([], [], "E190"),
     ([[0.1] * 3] * 2, [[0] * 3] * 2, "E190"), ([0.1, 0.0, 0.1], [0, 0, 0], "E190")],
)  # fmt: skip
def test_parameters_that_are_none(scale: Any, zero: Any, code: str) -> None:
    assert refusal(pair(scale, zero)).code == code


def test_axes_are_counted_from_the_first() -> None:
    model = computes_the_same(pair([0.1, 0.2, 0.3], [0, 1, 2], axis=-2))
    assert [each.attributes["axis"] for each in model.nodes] == [1, 1]
    for scale, zero in ((0.1, 0), ([0.1], [0])):
        assert not any(each.attributes for each in taken(pair(scale, zero, axis=7)).nodes)


def test_parameters_of_every_shape() -> None:
    for scale, zero in ((0.1, 3), ([0.1], [3]), ([0.1, 0.2, 0.3], [0, 1, 2]), ([0.1], 3)):
        if np.shape(scale) == np.shape(zero):
            computes_the_same(pair(scale, zero), within=1e-6)
        else:
            assert kinds(taken(pair(scale, zero))) == ["QuantizeLinear", "DequantizeLinear"]
    assert refusal(pair([0.1, 0.2], [0, 0], axis=7)).code == "E190"


def test_blocks_and_few_bits_are_refused() -> None:
    assert refusal(pair(np.full((2, 3, 2), 0.1), np.zeros((2, 3, 2)), axis=2, block_size=2)).code \
        == "E194"  # fmt: skip
    model = pair(0.1, 0)
    model.graph.initializer[1].data_type = 22
    model.graph.initializer[1].raw_data = b"\x01"
    assert refusal(model).code == "E194"


def test_weights_of_four_bits_come_as_eight() -> None:
    model = network(
        [node("DequantizeLinear", ["w", "s"], ["r"]), node("MatMul", ["x", "r"], ["y"])],
        [tensor("x", [2, 4])],
        [tensor("y", None)],
        {"s": np.float32(0.5)},
        opset=21,
    )
    from .networks import helper

    model.graph.initializer.append(helper.make_tensor("w", 22, [4, 2], [-8, 7, 1, 2, 3, -1, 0, 5]))
    read = taken(model)
    assert read.constants["w"].tolist() == [[-8, 7], [1, 2], [3, -1], [0, 5]]
    assert read.types["w"].dtype == np.int8


def weights_of(model: Model) -> Array:
    reader = next(each for each in model.nodes if each.kind == "DequantizeLinear")
    return model.constants[reader.inputs[0]]


def test_float_weights_that_the_file_quantises_are_integers() -> None:
    """As training with quantisation exports them: QuantizeLinear of a constant."""
    w = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)
    model = network(
        [
            node("Constant", [], ["scale"], value_floats=[0.01, 0.02, 0.03, 0.04]),
            node("QuantizeLinear", ["w", "scale", "zero"], ["q"], axis=0),
            node("DequantizeLinear", ["q", "scale", "zero"], ["r"], axis=0),
            node("Conv", ["x", "r"], ["y"]),
        ],
        [tensor("x", [1, 3, 5, 5])],
        [tensor("y", None)],
        {"w": w, "zero": np.zeros(4, np.int8)},
    )
    read = computes_the_same(model)
    assert kinds(read) == ["DequantizeLinear", "Conv"]
    wanted = np.rint(w / np.array([0.01, 0.02, 0.03, 0.04], np.float32).reshape(4, 1, 1, 1))
    np.testing.assert_array_equal(weights_of(read), np.clip(wanted, -128, 127))


MOVES: list[tuple[str, dict[str, Any], dict[str, Any], int]] = [
    ("Transpose", {"perm": [1, 0, 2]}, {}, 1),
    ("Reshape", {}, {"to": [2, 3, 4]}, 0),
    ("Reshape", {}, {"to": [2, 12]}, 0),
    ("Unsqueeze", {}, {"axes": [0]}, 1),
    ("Flatten", {"axis": 1}, {}, 0),
]


@pytest.mark.parametrize(("kind", "attributes", "constants", "axis"), MOVES)
def test_moved_weights_stay_integers(
    kind: str, attributes: dict[str, Any], constants: dict[str, Any], axis: int
) -> None:
    model = network(
        [
            node("DequantizeLinear", ["w", "s", "z"], ["r"], axis=0),
            node(kind, ["r", *constants], ["v"], **attributes),
            node("Add", ["x", "v"], ["y"]),
        ],
        [tensor("x", [1])],
        [tensor("y", None)],
        {"w": integers(2, 3, 4), "s": np.array([0.1, 0.2], np.float32),
         "z": np.zeros(2, np.int8), **constants},
    )  # fmt: skip
    read = computes_the_same(model)
    assert kinds(read) == ["DequantizeLinear", "Add"]
    assert weights_of(read).dtype == np.int8
    assert read.nodes[0].attributes["axis"] == axis


def test_a_float_constant_of_quantised_ones_is_computed() -> None:
    model = network(
        [
            node("DequantizeLinear", ["w", "s", "z"], ["r"]),
            node("Mul", ["r", "two"], ["v"]),
            node("Add", ["x", "v"], ["y"]),
        ],
        [tensor("x", [4])],
        [tensor("y", None)],
        {"w": integers(4), **{k[-1]: v for k, v in scales("w", 0.1, 3).items()},
         "two": np.float32(2)},
    )  # fmt: skip
    assert kinds(computes_the_same(model)) == ["Add"]


def test_the_same_quantisation_twice_is_one() -> None:
    model = network(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["a"]),
            node("QuantizeLinear", ["x", "s2", "z"], ["b"]),
            node("DequantizeLinear", ["a", "s", "z"], ["c"]),
            node("DequantizeLinear", ["b", "s2", "z"], ["d"]),
            node("Add", ["c", "d"], ["y"]),
        ],
        [tensor("x", [4])],
        [tensor("y", None)],
        {"s": np.float32(0.1), "s2": np.float32(0.1), "z": np.int8(0)},
    )
    assert kinds(computes_the_same(model)).count("QuantizeLinear") == 1


@pytest.mark.parametrize("output", [None, 2, 3, 5])
def test_zero_points_that_are_left_out(output: int | None) -> None:
    attributes = {} if output is None else {"output_dtype": output}
    model = network(
        [node("QuantizeLinear", ["x", "s"], ["y"], **attributes)],
        [tensor("x", [5])],
        [tensor("y", None, output or UINT8)],
        {"s": np.float32(0.1)},
        opset=21,
    )
    read = computes_the_same(model)
    zero = read.constants[read.nodes[0].inputs[2]]
    assert zero.shape == ()
    assert zero == 0
    assert zero.dtype == read.types["y"].dtype


def test_raw_sums_stay() -> None:
    model = network(
        [node("MatMulInteger", ["a", "b"], ["y"])],
        [tensor("a", [2, 3], INT8), tensor("b", [3, 4], INT8)],
        [tensor("y", None, INT32)],
    )
    assert kinds(taken(model)) == ["MatMulInteger"]
