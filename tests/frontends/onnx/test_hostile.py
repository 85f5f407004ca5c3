"""Files that were made to break what reads them: each ends in a network or a diagnostic, soon."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.frontends.onnx.reading import read
from mizzen.frontends.onnx.writing import submodel

from .networks import graph, helper, network, node, onnx, refusal, taken, tensor

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
COUNT = 1_500
SEED = 5
X, Y = tensor("x", ["n", 4, 6, 6]), tensor("y", None)


@pytest.fixture(scope="module")
def mutate() -> Callable[[bytes, Random], bytes]:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return import_module("mutations_onnx").mutate_onnx
    finally:
        sys.path.remove(str(BENCHMARKS))


def bases() -> list[bytes]:
    """Write networks with every kind of part: attributes of old, branches, functions, integers."""
    quantised = {"s": np.float32(0.1), "z": np.int8(3), "w": np.ones((2, 4, 3, 3), np.int8),
                 "b": np.ones(2, np.int32)}  # fmt: skip
    every = [
        network(
            [
                node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                node("DequantizeLinear", ["q", "s", "z"], ["a"]),
                node("DequantizeLinear", ["w", "s", "z"], ["v"]),
                node("Conv", ["a", "v"], ["h"], pads=[1, 1, 1, 1], strides=[2, 2]),
                node("QuantizeLinear", ["h", "s", "z"], ["p"]),
                node("DequantizeLinear", ["p", "s", "z"], ["y"]),
            ],
            [X], [Y], quantised,
        ),
        network(
            [node("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z", "b"], ["y"])],
            [tensor("x", [1, 4, 6, 6], 3)], [tensor("y", None, 3)], quantised,
        ),
        network(
            [
                node("Shape", ["x"], ["d"]),
                node("ConstantOfShape", ["d"], ["o"]),
                node("Expand", ["o", "d"], ["e"]),
                node("Range", ["r0", "r1", "r2"], ["r"]),
                node("Tile", ["r", "t"], ["u"]),
                node("Pad", ["x", "p"], ["k"]),
                node("Slice", ["k", "sl", "se"], ["c"]),
                node("Add", ["c", "e"], ["f"]),
                node("Add", ["f", "u"], ["y"]),
            ],
            [X], [Y],
            {"r0": np.float32(0), "r1": np.float32(6), "r2": np.float32(1), "t": [1],
             "p": [0, 0, 1, 1, 0, 0, 1, 1], "sl": [0, 0, 1, 1], "se": [9, 9, 7, 7]},
        ),
        network(
            [
                node("Pad", ["x"], ["a"], pads=[0, 0, 1, 1, 0, 0, 1, 1]),
                node("Slice", ["a"], ["b"], starts=[1, 1], ends=[7, 7], axes=[2, 3]),
                node("Clip", ["b"], ["c"], min=0.0, max=6.0),
                node("Upsample", ["c"], ["d"], scales=[1.0, 1.0, 2.0, 2.0]),
                node("Softmax", ["d"], ["e"], axis=1),
                node("Split", ["e"], ["y", "z"], axis=1, split=[2, 2]),
            ],
            [X], [Y], opset=7,
        ),
        network(
            [
                node("If", ["k"], ["r"],
                     then_branch=graph([node("Relu", ["x"], ["t"])], [], [tensor("t", None)]),
                     else_branch=graph([node("Neg", ["x"], ["t"])], [], [tensor("t", None)])),
                node("F", ["r", "r"], ["y"], domain="own", s=0.5),
            ],
            [X], [Y], {"k": np.array(True)},
            functions=[
                helper.make_function("own", "F", ["a", "b"], ["c"],
                                     [node("Add", ["a", "b"], ["c"])],
                                     [helper.make_opsetid("", 17)], attributes=["s"])
            ],
        ),
        network(
            [
                node("Reshape", ["x", "shape"], ["a"]),
                node("LSTM", ["a", "w", "r"], ["", "h"], hidden_size=3),
                node("Squeeze", ["h"], ["y"]),
            ],
            [X], [Y],
            {"shape": [6, 1, 24], "w": np.ones((1, 12, 24), np.float32),
             "r": np.ones((1, 12, 3), np.float32)},
        ),
    ]  # fmt: skip
    return [each.SerializeToString() for each in every]


def test_the_networks_that_are_changed_are_read() -> None:
    for data in bases():
        assert read(data, "x.onnx", None, {}).nodes


def test_changed_files_end_in_a_network_or_a_diagnostic(
    mutate: Callable[[bytes, Random], bytes],
) -> None:
    chance, files, codes = Random(SEED), bases(), Counter[str]()
    for _ in range(COUNT):
        data = mutate(chance.choice(files), chance)
        began = time.process_time()
        try:
            model = read(data, "x.onnx", None, {})
            submodel(model, model.nodes, model.inputs, model.outputs, model.types)
            codes["read"] += 1
        except MizzenError as error:
            codes[error.diagnostic.code] += 1
        assert time.process_time() - began < 5
    assert codes["read"] > COUNT // 10
    assert {"E189", "E190", "E192", "E194"} <= set(codes)


def test_many_nodes_take_seconds() -> None:
    count = 100_000
    nodes = [node(("Relu", "Neg", "Exp")[k % 3], [f"t{k}"], [f"t{k + 1}"]) for k in range(count)]
    nodes.reverse()
    model = network(nodes, [tensor("t0", [2])], [tensor(f"t{count}", None)])
    data = model.SerializeToString()
    began = time.process_time()
    assert len(read(data, "x.onnx", None, {}).nodes) == count
    assert time.process_time() - began < 30


def test_a_small_file_that_says_it_is_large() -> None:
    model = network([node("ConstantOfShape", ["s"], ["y"])], [], [Y], {"s": np.array([1 << 32])})
    assert len(model.SerializeToString()) < 120
    assert refusal(model).code == "E192"


@pytest.mark.parametrize(
    ("nodes", "code"),
    [
        ([node("Reshape", ["x", "s"], ["y"])], "E190"),
        ([node("Conv", ["x", "w"], ["y"], pads=[1 << 40] * 4)], "E192"),
        ([node("Conv", ["x", "w"], ["y"], strides=[0, 0])], "E190"),
        ([node("Conv", ["x", "w"], ["y"], kernel_shape=[-3, 3])], "E190"),
        ([node("Conv", ["x", "w"], ["y"], group=0)], "E190"),
        ([node("Conv", ["x", "w"], ["y"], group=-1)], "E190"),
        ([node("Conv", ["x", "w"], ["y"], group=3)], "E190"),
        ([node("Conv", ["x", "w"], ["y"], dilations=[1, 0])], "E190"),
        ([node("Conv", ["x", "w"], ["y"], kernel_shape=[5, 5])], "E190"),
        ([node("Conv", ["x", "w", "f"], ["y"])], "E190"),
        ([node("ConvTranspose", ["x", "w"], ["y"])], "E190"),
        ([node("MaxPool", ["x"], ["y"], kernel_shape=[0, 2])], "E190"),
        ([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[-1, 1])], "E190"),
        ([node("BatchNormalization", ["x", "g", "g", "g", "g"], ["y"])], "E190"),
        ([node("Transpose", ["x"], ["y"], perm=[0, 0, 0, 0])], "E190"),
        ([node("Transpose", ["x"], ["y"], perm=[9, 0, 1, 2])], "E190"),
        ([node("Concat", ["x", "x"], ["y"], axis=99)], "E190"),
        ([node("DepthToSpace", ["x"], ["y"], blocksize=0)], "E190"),
        ([node("Upsample", ["x"], ["y"], scales=[1e30] * 4)], "E194"),
        ([node("Resize", ["x", "", "f"], ["y"])], "E192"),
        ([node("LayerNormalization", ["x", "g"], ["y"], axis=(1 << 63) - 1)], "E190"),
        ([node("LayerNormalization", ["x", "g"], ["y"], axis=-9)], "E190"),
        ([node("GatherND", ["x", "i"], ["y"], batch_dims=-100)], "E190"),
        ([node("GatherND", ["x", "i"], ["y"], batch_dims=2)], "E190"),
        ([node("Einsum", ["x"], ["y"], equation="- ")], "E190"),
        ([node("Einsum", ["x"], ["y"], equation="ij->" + "i" * 10_000)], "E190"),
        ([node("OneHot", ["i", "d", "v"], ["y"], axis=4)], "E190"),
        ([node("GroupNormalization", ["x", "g", "g"], ["y"], num_groups=0)], "E190"),
        ([node("Attention", ["x", "x", "x"], ["y"], q_num_heads=0)], "E190"),
    ],
)  # fmt: skip
def test_numbers_that_no_operator_has(nodes: list[Any], code: str) -> None:
    constants = {
        "s": [-7, 1 << 40, 3, 2],
        "w": np.ones((2, 4, 3, 3), np.float32),
        "i": np.zeros((2, 1), np.int64),
        "d": 3,
        "v": np.ones(2, np.float32),
        "g": np.ones(3, np.float32),
        "f": np.array([1, 1, 1e9, 1e9], np.float32),
    }
    old = "Upsample" in {each.op_type for each in nodes}
    given = [tensor("x", [1, 4, 6, 6])]
    diagnostic = refusal(network(nodes, given, [Y], constants, 17 if old else 23))
    assert diagnostic.code == code


def test_names_that_steer_a_terminal_are_shown_and_kept() -> None:
    name = "\x1b[31m/a;b:c\n"
    model = network([node("Relu", ["x"], [name])], [tensor("x", [1])], [tensor(name, None)])
    assert taken(model).outputs == (name,)
    wrong = network([node("Add", ["x", name], ["y"])], [tensor("x", [1])], [Y])
    assert "\x1b" not in refusal(wrong).render()


def test_no_bytes_are_no_network() -> None:
    for data in (b"", b"\0", b"\x08\x08", b"hello world, this is a text", bytes(1000)):
        assert refusal(data).code == "E190"


def test_ends_of_files_at_every_byte() -> None:
    data = bases()[1]
    codes = {refusal(data[:size]).code for size in range(0, len(data) - 40, 3)}
    assert codes <= {"E190", "E194"}


def test_training_information_is_left_out() -> None:
    model = network([node("Relu", ["x"], ["y"])], [tensor("x", [1])], [Y])
    model.training_info.append(onnx.TrainingInfoProto())
    model.metadata_props.append(onnx.StringStringEntryProto(key="k", value="v"))
    assert len(taken(model).nodes) == 1
