"""Dimensions of inputs: bound by the user, by a batch of 1, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from .networks import FLOAT, STRING, Shape, helper, network, node, refusal, taken, tensor


def relu(shape: Shape | None, type: int = FLOAT) -> Any:
    return network([node("Relu", ["x"], ["y"])], [tensor("x", shape, type)], [tensor("y", None)])


def test_a_batch_is_one_and_said() -> None:
    model = taken(relu(["batch", 3, 8]))
    assert model.types["x"].shape == model.types["y"].shape == (1, 3, 8)
    assert model.said == (
        'dimension "batch" of input "x" is taken as 1; --shape batch=N says another',
    )


@pytest.mark.parametrize("extent", [None, -1, 0])
def test_a_batch_without_a_name(extent: int | None) -> None:
    model = taken(relu([extent, 4]))
    assert model.types["x"].shape == (1, 4)
    assert model.said == (
        'the first dimension of input "x" is taken as 1; --shape x=N,... says another',
    )


def test_dimensions_by_name_and_by_input() -> None:
    assert taken(relu(["n", "t", 8]), {"n": 2, "t": 5}).types["y"].shape == (2, 5, 8)
    bound = taken(relu(["n", "t", 8]), {"x": (3, 4, 8)})
    assert (bound.types["y"].shape, bound.said) == ((3, 4, 8), ())
    assert taken(relu(None), {"x": (3, 4)}).types["y"].shape == (3, 4)


def test_one_name_is_one_extent() -> None:
    model = network(
        [node("Add", ["a", "b"], ["y"])],
        [tensor("a", ["n", "t"]), tensor("b", ["n", "t"])],
        [tensor("y", None)],
    )
    assert taken(model, {"a": (2, 7)}).types["y"].shape == (2, 7)


@pytest.mark.parametrize(
    ("shape", "message", "help"),
    [
        (["n", "t", 8], 'dimension "t" of input "x" must be a number, and [n, t, 8] leaves it open',
         "say it: --shape t=N"),
        ([1, None, 8], 'dimension 1 of input "x" must be a number, and [1, ?, 8] leaves it open',
         "say it: --shape x=1,N,8"),
        (None, 'input "x" must have a shape, and the file gives it none',
         "say it: --shape x=1,3,96,96"),
    ],
)  # fmt: skip
def test_what_nothing_binds_is_refused(shape: Shape | None, message: str, help: str) -> None:
    diagnostic = refusal(relu(shape))
    assert (diagnostic.code, diagnostic.message) == ("E189", message)
    assert diagnostic.help == help


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            {"z": (1, 2)},
            '"z" must be an input of x.onnx or a symbolic dimension of one, which are: x, n',
        ),
        (
            {"m": 2},
            '"m" must be an input of x.onnx or a symbolic dimension of one, which are: x, n',
        ),
        ({"x": 2}, 'shape [2] must fit input "x", which is [n, 4, 8]'),
        ({"x": (1, 2)}, 'shape [1, 2] must fit input "x", which is [n, 4, 8]'),
        ({"x": (1, 5, 8)}, 'shape [1, 5, 8] must fit input "x", which is [n, 4, 8]'),
    ],
)
def test_shapes_of_nothing_are_refused(
    shapes: dict[str, tuple[int, ...] | int], message: str
) -> None:
    diagnostic = refusal(relu(["n", 4, 8]), shapes)
    assert (diagnostic.code, diagnostic.message) == ("E197", message)


def test_a_number_is_the_shape_of_an_input_of_one_dimension() -> None:
    assert taken(relu(["n"]), {"x": 7}).types["y"].shape == (7,)


def test_what_one_input_is_given_binds_the_others() -> None:
    model = network(
        [node("Add", ["a", "b"], ["y"])],
        [tensor("a", ["n", 4]), tensor("b", ["n", 4])],
        [tensor("y", None)],
    )
    read = taken(model, {"b": (3, 4)})
    assert (read.types["y"].shape, read.said) == ((3, 4), ())


@pytest.mark.parametrize("shape", [(-1, 4), (1 << 40, 4)])
def test_extents_are_held_in_bounds(shape: tuple[int, ...]) -> None:
    assert refusal(relu(["n", 4]), {"x": shape}).code in ("E190", "E192")


def test_inputs_that_are_no_numbers() -> None:
    assert refusal(relu([1], STRING)).code == "E194"
    assert refusal(relu([1], 16)).code == "E194"
    model = relu([1])
    for type in (
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [1])),
        helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [1])),
        helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, [1])),
        helper.make_sparse_tensor_type_proto(1, [1]),
    ):
        model.graph.input[0].type.CopyFrom(type)
        assert refusal(model).code == "E194"


def test_an_error_of_shapes_says_what_was_taken_as_one() -> None:
    model = network(
        [node("MatMul", ["x", "w"], ["y"])],
        [tensor("x", ["t", 3]), tensor("w", [4, 5])],
        [tensor("y", None)],
    )
    diagnostic = refusal(model)
    assert diagnostic.code == "E190"
    assert diagnostic.help == ('dimension "t" of input "x" is taken as 1; --shape t=N says another')


def test_shapes_computed_from_shapes_are_constants() -> None:
    """What PyTorch writes for `x.view(x.shape[0], -1)`."""
    model = network(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"]),
            node("Unsqueeze", ["n", "axes"], ["n1"]),
            node("Concat", ["n1", "rest"], ["to"], axis=0),
            node("Reshape", ["x", "to"], ["y"]),
        ],
        [tensor("x", ["batch", 3, 4])],
        [tensor("y", None)],
        {"zero": 0, "axes": [0], "rest": [-1]},
    )
    read = taken(model, {"batch": 5})
    assert [each.kind for each in read.nodes] == ["Reshape"]
    assert read.nodes[0].index == 4
    assert read.constants[read.nodes[0].inputs[1]].tolist() == [5, -1]
    assert read.types["y"].shape == (5, 12)


def test_a_shape_that_values_decide_is_refused() -> None:
    model = network([node("NonZero", ["x"], ["y"])], [tensor("x", [4])], [tensor("y", None, 7)])
    diagnostic = refusal(model)
    assert diagnostic.code == "E194"
    assert diagnostic.message == (
        "NonZero must make tensors of shapes that no input decides, and its depend on values"
    )
