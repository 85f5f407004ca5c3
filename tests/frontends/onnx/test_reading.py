"""Networks as they are read: order, names, functions, branches, places of nodes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.frontends.onnx import normalising
from mizzen.frontends.onnx.model import Model
from mizzen.frontends.onnx.reading import is_onnx, read, require_onnx

from .networks import (
    BOOL,
    computes_the_same,
    graph,
    helper,
    kinds,
    network,
    node,
    numpy_helper,
    onnx,
    refusal,
    taken,
    tensor,
)

X = tensor("x", [2, 3])
Y = tensor("y", None)


def test_nodes_are_put_in_order_and_keep_their_places() -> None:
    model = network(
        [node("Relu", ["b"], ["y"], name="last"), node("Neg", ["x"], ["a"]),
         node("Exp", ["a"], ["b"])],
        [X], [Y],
    )  # fmt: skip
    read_model = taken(model)
    assert [(each.kind, each.index, each.name) for each in read_model.nodes] == [
        ("Neg", 1, "a"), ("Exp", 2, "b"), ("Relu", 0, "last"),
    ]  # fmt: skip
    assert str(read_model.origin(read_model.nodes[2])) == 'x.onnx, operator 0 Relu -> "last"'


def test_what_no_output_needs_is_left_out() -> None:
    model = network(
        [node("Relu", ["x"], ["y"]), node("Loop", ["m"], ["z"]), node("Exp", ["y"], ["w"])],
        [X], [Y], {"unused": np.zeros(3, np.float32)},
    )  # fmt: skip
    read_model = taken(model)
    assert kinds(read_model) == ["Relu"]
    assert not read_model.constants
    assert set(read_model.types) == {"x", "y"}


def test_inputs_repeated_as_initializers_are_constants() -> None:
    model = network(
        [node("Add", ["x", "w"], ["y"])], [X, tensor("w", [3])], [Y], {"w": np.ones(3, np.float32)}
    )
    assert taken(model).inputs == ("x",)
    computes_the_same(model)


def test_another_name_of_a_tensor_is_gone() -> None:
    model = network(
        [node("Relu", ["x"], ["a"]), node("Identity", ["a"], ["b"]), node("Neg", ["b"], ["y"])],
        [X], [Y],
    )  # fmt: skip
    assert kinds(computes_the_same(model)) == ["Relu", "Neg"]


def test_outputs_keep_their_names() -> None:
    """A result under two names, an input and a constant as outputs."""
    model = network(
        [
            node("Relu", ["x"], ["a"]),
            node("Identity", ["a"], ["y"]),
            node("Identity", ["a"], ["z"]),
            node("Identity", ["x"], ["same"]),
            node("Constant", [], ["five"], value_float=5.0),
            node("Neg", ["a"], ["n"]),
        ],
        [X],
        [Y, tensor("z", None), tensor("same", None), tensor("five", None), tensor("n", None)],
    )
    read_model = computes_the_same(model)
    assert read_model.outputs == ("y", "z", "same", "five", "n")
    assert sorted(kinds(read_model)) == ["Identity", "Identity", "Neg", "Relu"]
    assert read_model.constants["five"] == 5


def test_an_input_that_is_an_output() -> None:
    model = network([node("Relu", ["x"], ["y"])], [X], [Y, X])
    assert taken(model).outputs == ("y", "x")


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node("Relu", ["missing"], ["y"])], '"missing" is none'),
        ([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])], '"y" is made twice'),
        ([node("Relu", ["x"], ["x"])], '"x" is made twice'),
        ([node("Add", ["x", "b"], ["a"]), node("Neg", ["a"], ["b"]), node("Neg", ["b"], ["y"])],
         "in no circle"),
        ([node("Relu", ["y"], ["y"])], "in no circle"),
        ([node("Relu", ["x"], ["a"])], 'output "y" must be made'),
        ([node("Relu", [], ["y"])], "1 to 1 inputs, and has 0"),
        ([node("Relu", [""], ["y"])], "must have an input X"),
        ([node("Add", ["x", "x", "x"], ["y"])], "2 to 2 inputs, and has 3"),
        ([node("Relu", ["x"], ["y", "z"])], "1 to 1 outputs, and has 2"),
        ([node("Add", ["x", "i"], ["y"])], "of a type that it takes"),
        ([node("Not", ["x"], ["y"])], "of a type that it takes"),
        ([node("MatMul", ["x", "x"], ["y"])], "must follow the rules of ONNX"),
        ([node("Constant", [], ["y"])], "must have one value"),
        ([node("Constant", [], ["y"], value_float=1.0, value_int=1)], "must have one value"),
    ],
)  # fmt: skip
def test_networks_that_are_wrong(nodes: list[Any], said: str) -> None:
    diagnostic = refusal(network(nodes, [X], [Y], {"i": np.zeros(3, np.int64)}))
    assert diagnostic.code == "E190"
    assert said in diagnostic.message


@pytest.mark.parametrize(
    "broken",
    [
        onnx.ModelProto(ir_version=8),
        network([], [X], []),
        network([], [X, X], [X]),
        network([], [X], [X, X]),
        network([], [tensor("", [1])], [X]),
        network([node("Relu", ["x"], ["y"])], [X], [tensor("", None)]),
    ],
)
def test_networks_without_parts(broken: Any) -> None:
    assert refusal(broken).code == "E190"


def test_initializers_of_one_name_are_refused() -> None:
    model = network([node("Add", ["x", "w"], ["y"])], [X], [Y], {"w": np.ones(3, np.float32)})
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    assert refusal(model).code == "E190"


def test_sparse_initializers_are_dense() -> None:
    model = network([node("Add", ["x", "w"], ["y"])], [X], [Y])
    model.graph.sparse_initializer.append(
        onnx.SparseTensorProto(
            values=numpy_helper.from_array(np.array([2], np.float32), "w"),
            indices=numpy_helper.from_array(np.array([1], np.int64), "i"),
            dims=[3],
        )
    )
    assert taken(model).constants["w"].tolist() == [0, 2, 0]


def branches(condition: str, constants: dict[str, Any], inputs: list[Any] | None = None) -> Any:
    """Make an `If`, whose branches take tensors from outside and have constants."""
    then = graph(
        [node("Add", ["h", "k"], ["s"], name="in"), node("Relu", ["s"], ["t"])],
        [], [tensor("t", None)], {"k": np.float32(1)},
    )  # fmt: skip
    otherwise = graph([node("Neg", ["h"], ["t"])], [], [tensor("t", None)])
    return network(
        [
            node("Exp", ["x"], ["h"]),
            node("If", [condition], ["r"], then_branch=then, else_branch=otherwise, name="choose"),
            node("Abs", ["r"], ["y"]),
        ],
        [X, *(inputs or [])],
        [Y],
        constants,
    )


def test_a_branch_takes_the_place_of_its_if() -> None:
    yes = computes_the_same(branches("c", {"c": np.array(True)}))
    assert [(each.kind, each.index) for each in yes.nodes] == [
        ("Exp", 0), ("Add", 1), ("Relu", 1), ("Abs", 2),
    ]  # fmt: skip
    assert yes.nodes[1].name == "choose/in"
    no = computes_the_same(branches("c", {"c": np.array([False])}))
    assert kinds(no) == ["Exp", "Neg", "Abs"]


def test_two_ifs_of_one_graph_have_names_of_their_own() -> None:
    model = branches("c", {"c": np.array(True)})
    second = onnx.NodeProto.FromString(model.graph.node[1].SerializeToString())
    second.output[0], second.name = "r2", "again"
    model.graph.node.append(second)
    model.graph.node.append(node("Add", ["y", "r2"], ["z"]))
    model.graph.output.append(tensor("z", None))
    assert kinds(computes_the_same(model)).count("Relu") == 2


def test_a_condition_that_shapes_decide() -> None:
    """As silero-vad chooses by the number of samples."""
    model = branches("c", {"two": 2, "zero": 0})
    model.graph.node.extend(
        [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "zero"], ["n"]),
         node("Equal", ["n", "two"], ["c"])]
    )  # fmt: skip
    read_model = taken(model)
    assert kinds(read_model) == ["Exp", "Add", "Relu", "Abs"]


def test_a_condition_that_an_input_decides_is_refused() -> None:
    diagnostic = refusal(branches("c", {}, [tensor("c", [], BOOL)]))
    assert (diagnostic.code, diagnostic.origin.operator) == ("E194", 1)


def function(name: str, nodes: list[Any], **more: Any) -> Any:
    return helper.make_function(
        "own",
        name,
        ["a", "b"],
        ["c"],
        nodes,
        [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)],
        **more,
    )


def with_functions(nodes: list[Any], functions: list[Any]) -> Any:
    model = network(nodes, [X], [Y], functions=functions)
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model


def test_functions_stand_where_they_are_called() -> None:
    leaky = node("LeakyRelu", ["a"], ["h"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=1))
    inner = function("Inner", [leaky, node("Add", ["h", "b"], ["c"])], attributes=["slope"])
    call = node("Inner", ["a", "b"], ["h"], domain="own")
    call.attribute.append(onnx.AttributeProto(name="slope", ref_attr_name="s", type=1))
    outer = function("Outer", [call, node("Relu", ["h"], ["c"])], attributes=["s"])
    model = with_functions(
        [node("Outer", ["x", "x"], ["t"], domain="own", s=0.25, name="first"),
         node("Outer", ["t", "x"], ["y"], domain="own", s=0.5)],
        [inner, outer],
    )  # fmt: skip
    read_model = computes_the_same(model)
    assert [(each.kind, each.index) for each in read_model.nodes] == [
        ("LeakyRelu", 0), ("Add", 0), ("Relu", 0), ("LeakyRelu", 1), ("Add", 1), ("Relu", 1),
    ]  # fmt: skip
    assert [each.attributes["alpha"] for each in read_model.nodes if each.attributes] == [0.25, 0.5]


def test_constants_of_a_function_are_there_once() -> None:
    value = helper.make_tensor("v", 1, [3], [1.0, 2.0, 3.0])
    body = [node("Constant", [], ["k"], value=value), node("Add", ["a", "k"], ["c"])]
    model = with_functions(
        [node("F", ["x", "x"], ["t"], domain="own"), node("F", ["t", "x"], ["y"], domain="own")],
        [function("F", body)],
    )
    first, second = computes_the_same(model).constants.values()
    assert first is second


def test_functions_without_an_end_are_refused() -> None:
    endless = function("F", [node("F", ["a", "b"], ["c"], domain="own")])
    model = with_functions([node("F", ["x", "x"], ["y"], domain="own")], [endless])
    assert refusal(model).code == "E192"


def test_functions_that_double_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalising, "MOST_NODES", 5_000)
    nodes = [
        [node(f"F{k}", ["a", "b"], ["h"], domain="own"),
         node(f"F{k}", ["h", "b"], ["c"], domain="own")]
        for k in range(22)
    ]  # fmt: skip
    functions = [function("F0", [node("Add", ["a", "b"], ["c"])])]
    functions += [function(f"F{k + 1}", every) for k, every in enumerate(nodes)]
    model = with_functions([node("F22", ["x", "x"], ["y"], domain="own")], functions)
    assert refusal(model).code == "E192"


def normalised(bias: bool, turned: bool) -> Any:
    rng = np.random.default_rng(3)
    shape = (3, 4, 3, 3) if turned else (4, 3, 3, 3)
    constants: dict[str, Any] = {
        "w": rng.normal(size=shape).astype(np.float32),
        **({"k": rng.normal(size=4).astype(np.float32)} if bias else {}),
    }
    inputs = ["x", *constants]
    norms = {name: rng.uniform(0.5, 2, 4).astype(np.float32) for name in "sbmv"}
    kind = "ConvTranspose" if turned else "Conv"
    return network(
        [node(kind, inputs, ["h"]), node("BatchNormalization", ["h", *norms], ["y"])],
        [tensor("x", [1, 3, 6, 6])],
        [Y],
        {**constants, **norms},
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_normalisation_goes_into_weights(*, bias: bool, turned: bool) -> None:
    model = computes_the_same(normalised(bias, turned), within=1e-4)
    assert kinds(model) == ["ConvTranspose" if turned else "Conv"]


def test_normalisation_of_what_something_else_needs_stays() -> None:
    model = normalised(bias=True, turned=False)
    model.graph.output.append(tensor("h", None))
    assert kinds(computes_the_same(model, within=1e-5)) == ["Conv", "BatchNormalization"]


def test_files_are_recognised() -> None:
    data = network(
        [node("Relu", ["x"], ["y"])], [X], [Y], producer_name="pytorch"
    ).SerializeToString()
    assert is_onnx(data, "")
    assert is_onnx(b"", "NET.ONNX")
    for other in (
        b"",
        b"\x1c\0\0\0TFL3" + bytes(40),
        b"PK\x03\x04" + bytes(40),
        b"\x08\0\0\0TOSA",
        b"\x08\x00\x00\x00TFL3",
        b"{}",
        b"\x7fELF",
        b"\x08\x07\x12\x04\0\0\0\0\0",
    ):
        assert not is_onnx(other, "net")  # fmt: skip


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    with pytest.raises(MizzenError) as caught:
        require_onnx()
    assert caught.value.diagnostic.code == "E193"
    assert (
        caught.value.diagnostic.help
        == "install Mizzen with its extra onnx: pip install '.[onnx]' in its checkout"
    )


def test_reading_imports_nothing_of_onnx_before_it_reads() -> None:
    import subprocess
    import sys

    script = (
        "import sys, mizzen.frontends.onnx.reading, mizzen.frontends.onnx.writing\n"
        "assert not {'onnx', 'onnxruntime', 'google.protobuf'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def own_files(models: Path) -> list[Path]:
    return sorted((models / "onnx").glob("*/*.onnx"))


REFUSED = {
    "ImageClassification_network.onnx": "E194",
    "KeywordSpotting_network.onnx": "E194",
    "dynamic_u8.onnx": "E194",
    "qlstm_3-2-3_T3_S1.onnx": "E194",
    "qtdnn_10x5_101_i32_biases.onnx": "E190",
}
"""Real files that are refused: dialects, a loop, and one that needs more than one step of time."""


def is_whole(path: Path) -> bool:
    try:
        onnx.load_model_from_string(path.read_bytes())
    except Exception:
        return False
    return True


def is_known(path: Path) -> bool:
    return is_whole(path) or path.name in REFUSED


def test_real_files(models: Path) -> None:
    """Each computes in ONNX Runtime what its file does."""
    files = own_files(models)
    if not files:
        pytest.skip(f"no ONNX files in {models}")
    for path in files:
        if not is_whole(path):
            assert refusal(path.read_bytes()).code == "E190"
        elif path.name in REFUSED:
            assert refusal(path.read_bytes()).code == REFUSED[path.name], path.name
        else:
            computes_the_same(onnx.load_model_from_string(path.read_bytes()), within=1e-5)


def test_a_network_that_needs_time_is_read_with_it(models: Path) -> None:
    path = models / "onnx" / "tract" / "qtdnn_10x5_101_i32_biases.onnx"
    if not path.is_file():
        pytest.skip(f"no {path}")
    computes_the_same(onnx.load_model_from_string(path.read_bytes()), {"input": (20, 10)}, 1.0)


BLOCKED_OR_NARROW = ("blocked", "int4", "uint4", "dynamicquantizelinear")


def test_quantisation_cases_of_onnx(models: Path) -> None:
    """The 29 cases: read, or refused as blocks, few bits or chosen at run time."""
    files = sorted((models / "onnx" / "onnx_node").glob("*/model.onnx"))
    if not files:
        pytest.skip(f"no cases of ONNX in {models}")
    for path in files:
        case = path.parent.name
        refused = any(word in case for word in BLOCKED_OR_NARROW) and "expanded" not in case
        if refused:
            assert refusal(path.read_bytes()).code == "E194", case
        else:
            assert isinstance(read(path.read_bytes(), case, None, {}), Model), case
