"""Constants that are computed when reading: right, and within bounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.frontends.onnx.evaluators import EVALUATORS
from mizzen.frontends.onnx.folding import MOST_BYTES

from .networks import helper, network, node, ran, refusal, taken, tensor

RNG = np.random.default_rng(11)
F = RNG.normal(size=(2, 3, 4)).astype(np.float32)
POSITIVE = (np.abs(F) + 0.5).astype(np.float32)
WHOLE = RNG.integers(-9, 9, (2, 3, 4))
B = F > 0

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    *[(kind, {"a": F}, {}) for kind in
      ("Abs", "Neg", "Sign", "Exp", "Floor", "Ceil", "Round", "Tanh", "Sigmoid", "Relu")],
    *[(kind, {"a": POSITIVE}, {}) for kind in ("Sqrt", "Log", "Reciprocal")],
    *[(kind, {"a": F, "b": F[:1] + 1}, {}) for kind in ("Add", "Sub", "Mul", "Div")],
    *[(kind, {"a": F, "b": F[:1] + 1}, {}) for kind in
      ("Less", "Greater", "LessOrEqual", "GreaterOrEqual")],
    *[(kind, {"a": WHOLE, "b": np.array([3, -2, 5, 1])}, {}) for kind in
      ("Add", "Sub", "Mul", "Div", "Mod", "Equal")],
    *[(kind, {"a": F, "b": F[:, :1], "c": F[:1]}, {}) for kind in ("Max", "Min", "Sum")],
    *[(kind, {"a": B, "b": ~B[:1]}, {}) for kind in ("And", "Or", "Xor")],
    ("Mod", {"a": F, "b": POSITIVE}, {"fmod": 1}),
    ("Not", {"a": B}, {}),
    ("Pow", {"a": POSITIVE, "b": F[:1]}, {}), ("Pow", {"a": WHOLE, "b": np.array(2)}, {}),
    ("Where", {"c": B, "a": F, "b": F[:1] * 2}, {}),
    ("Cast", {"a": F * 9}, {"to": 3}), ("Cast", {"a": F}, {"to": 9}),
    ("Cast", {"a": WHOLE}, {"to": 1}),
    ("ConstantOfShape", {"s": np.array([2, 3])}, {}),
    ("ConstantOfShape", {"s": np.array([2, 3])},
     {"value": helper.make_tensor("v", 7, [1], [7])}),
    ("ConstantOfShape", {"s": np.zeros(0, np.int64)}, {}),
    ("Range", {"a": np.array(2), "b": np.array(11), "c": np.array(4)}, {}),
    ("Range", {"a": np.float32(2), "b": np.float32(-1), "c": np.float32(-0.5)}, {}),
    ("Concat", {"a": F, "b": F}, {"axis": -1}),
    ("Gather", {"a": F, "i": np.array([[-1, 0], [1, 2]])}, {"axis": 1}),
    ("Gather", {"a": F, "i": np.array(1)}, {}),
    ("Slice", {"a": F, "s": np.array([-1, 1]), "e": np.array([-9, 99]), "x": np.array([1, 2]),
               "t": np.array([-1, 2])}, {}),
    ("Slice", {"a": F, "s": np.array([5]), "e": np.array([1])}, {}),
    ("Reshape", {"a": F, "s": np.array([0, -1])}, {}), ("Flatten", {"a": F}, {"axis": 2}),
    ("Squeeze", {"a": F[:1]}, {}), ("Unsqueeze", {"a": F, "x": np.array([0, -1])}, {}),
    ("Transpose", {"a": F}, {}), ("Transpose", {"a": F}, {"perm": [1, 2, 0]}),
    ("Expand", {"a": F[:, :1], "s": np.array([2, 1, 3, 4])}, {}),
    ("Tile", {"a": F, "s": np.array([2, 1, 3])}, {}),
    ("Pad", {"a": F, "p": np.array([0, 1, 0, 2, 0, 1]), "v": np.float32(3)}, {}),
    ("Clip", {"a": F, "l": np.float32(-0.5), "h": np.float32(0.5)}, {}),
    ("MatMul", {"a": F, "b": F.swapaxes(1, 2).copy()}, {}),
    ("Gemm", {"a": F[0], "b": F[1], "c": F[0, :1, :3]}, {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    *[(kind, {"a": F, "x": np.array([0, -1])}, {"keepdims": 0}) for kind in
      ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean")],
    ("ReduceSum", {"a": F}, {}), ("ReduceSum", {"a": F}, {"noop_with_empty_axes": 1}),
    ("CumSum", {"a": F, "x": np.array(1)}, {}), ("NonZero", {"a": np.maximum(WHOLE, 0)}, {}),
    ("Split", {"a": F, "s": np.array([1, 2])}, {"axis": 1}),
    ("QuantizeLinear", {"a": F, "s": np.float32(0.02), "z": np.uint8(128)}, {}),
    ("QuantizeLinear", {"a": F, "s": np.array([0.02, 0.5, 1], np.float32),
                        "z": np.zeros(3, np.int8)}, {"axis": 1}),
    ("QuantizeLinear", {"a": F, "s": np.array([0.02, 0.5], np.float32),
                        "z": np.array([1, 2], np.int16)}, {"axis": 0}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "constants", "attributes"),
    CASES,
    ids=[f"{i}-{each[0]}" for i, each in enumerate(CASES)],
)
def test_constants_are_what_onnx_runtime_computes(
    kind: str, constants: dict[str, Any], attributes: dict[str, Any]
) -> None:
    outputs = ["y", "z"] if kind == "Split" else ["y"]
    model = network(
        [node(kind, list(constants), outputs, **attributes)],
        [],
        [helper.make_value_info(name, helper.make_tensor_type_proto(0, None)) for name in outputs],
        constants,
        opset=21,
    )
    for output in model.graph.output:
        output.ClearField("type")
    read = taken(model)
    assert not read.nodes
    wanted = ran(model.SerializeToString(), {}, outputs)
    for name, value in zip(outputs, wanted, strict=True):
        assert (read.constants[name].dtype, read.constants[name].shape) == (
            value.dtype,
            value.shape,
        )
        np.testing.assert_allclose(
            read.constants[name].astype(np.float64), value.astype(np.float64), rtol=2e-6, atol=1e-6
        )


def test_every_row_is_tested() -> None:
    assert set(EVALUATORS) - {each[0] for each in CASES} == {"DequantizeLinear"}


def of_constants(nodes: list[Any], constants: dict[str, Any]) -> Any:
    """Make a network that adds what is computed of constants to its input."""
    return network(
        [*nodes, node("Identity", ["big"], ["y"])],
        [tensor("x", [1])],
        [tensor("y", None)],
        constants,
    )


GIGA = np.array([1 << 30])
BOMBS: list[tuple[list[Any], dict[str, Any]]] = [
    ([node("ConstantOfShape", ["s"], ["big"])], {"s": np.array([1 << 16, 1 << 16])}),
    ([node("ConstantOfShape", ["s"], ["big"])], {"s": GIGA}),
    ([node("Expand", ["v", "s"], ["big"])], {"v": np.zeros(1, np.float32), "s": GIGA}),
    ([node("Tile", ["v", "s"], ["big"])], {"v": np.zeros(1, np.float32), "s": GIGA}),
    ([node("Range", ["a", "b", "c"], ["big"])], {"a": 0, "b": 1 << 30, "c": 1}),
    ([node("Range", ["a", "b", "c"], ["big"])], {"a": 0, "b": (1 << 63) - 1, "c": 1}),
    ([node("Pad", ["v", "s"], ["big"])], {"v": np.zeros(1, np.float32), "s": [0, 1 << 30]}),
    ([node("ConstantOfShape", ["s"], ["a"]), node("Unsqueeze", ["a", "zero"], ["r"]),
      node("Unsqueeze", ["a", "one"], ["c"]), node("Add", ["r", "c"], ["big"])],
     {"s": np.array([1 << 15]), "zero": [0], "one": [1]}),
    ([node("ConstantOfShape", ["s"], ["a0"]),
      *[node("Add", [f"a{k}", "one"], [f"a{k + 1}"]) for k in range(30)],
      node("Identity", ["a30"], ["big"])], {"s": np.array([1 << 23]), "one": np.float32(1)}),
    ([node("ConstantOfShape", ["s"], ["big"])], {"s": np.array([-1])}),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "constants"), BOMBS)
def test_what_grows_is_refused(nodes: list[Any], constants: dict[str, Any]) -> None:
    assert refusal(of_constants(nodes, constants)).code in ("E190", "E192", "E194")


def test_products_that_take_long_are_left_to_the_host() -> None:
    model = of_constants(
        [
            node("ConstantOfShape", ["s"], ["a"]),
            node("MatMul", ["a", "a"], ["big"]),
        ],
        {"s": np.array([2000, 2000])},
    )
    assert [each.kind for each in taken(model).nodes] == ["MatMul"]


def test_memory_stays_within_a_gigabyte(tmp_path: Path) -> None:
    """What takes most: results as large as they may be, of operators that need copies."""
    count = MOST_BYTES // 8 - 64
    scripts: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "divide": ([node("Div", ["v", "w"], ["big"])],
                   {"v": np.zeros((count // 2, 1), np.int64), "w": np.full((1, 2), 3)}),
        "sigmoid": ([node("Expand", ["v", "s"], ["a"]), node("Sigmoid", ["a"], ["big"])],
                    {"v": np.zeros(1, np.float32), "s": np.array([count])}),
        "quantise": ([node("Expand", ["v", "s"], ["a"]),
                      node("QuantizeLinear", ["a", "c"], ["big"])],
                     {"v": np.zeros(1, np.float32), "s": np.array([int(count * 1.5)]),
                      "c": np.float32(1)}),
    }  # fmt: skip
    for name, (nodes, constants) in scripts.items():
        data = of_constants(nodes, constants).SerializeToString()
        (tmp_path / name).write_bytes(data)
        script = (
            "import resource, sys; from pathlib import Path\n"
            "from mizzen.frontends.onnx.reading import read\n"
            "import onnx, onnx.shape_inference\n"
            "data = Path(sys.argv[1]).read_bytes()\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "assert read(data, 'x', None, {}).constants\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
        )
        command = [sys.executable, "-c", script, str(tmp_path / name)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        assert int(done.stdout) << 10 < 1 << 30, name
