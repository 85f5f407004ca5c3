"""Tensors of a file as arrays: every type, both ways of writing, contents that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError, Origin
from mizzen.frontends.onnx.external import Beside
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.onnx.tensors import DTYPES, dense, of_sparse
from mizzen.frontends.onnx.wire import parse

from .networks import helper, numpy_helper, onnx

NOWHERE = Beside(None)


def array_of(message: Any) -> Array:
    return dense(parse(message.SerializeToString(), "x", "TensorProto"), NOWHERE, Origin("x"))


def refused(message: Any) -> Any:
    with pytest.raises(MizzenError) as caught:
        array_of(message)
    return caught.value.diagnostic


def example(dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([[limits.min, 0, 1], [5, 7, limits.max]], dtype)
    return np.array([[0, 1, 0], [1, 1, 0]]).astype(dtype)


@pytest.mark.parametrize("number", DTYPES)
@pytest.mark.parametrize("raw", [True, False])
def test_every_type_both_ways(number: int, *, raw: bool) -> None:
    value = example(DTYPES[number])
    data: Any = value.tobytes() if raw else value.reshape(-1).tolist()
    message = helper.make_tensor("t", number, value.shape, data, raw=raw)
    assert (bool(message.raw_data)) is raw
    result = array_of(message)
    assert (result.dtype, result.shape) == (value.dtype, value.shape)
    np.testing.assert_array_equal(result, numpy_helper.to_array(message))


@pytest.mark.parametrize(("number", "low", "high"), [(21, 0, 15), (22, -8, 7)])
@pytest.mark.parametrize("count", [1, 6, 7])
def test_four_bits_come_as_eight(number: int, low: int, high: int, count: int) -> None:
    values = np.linspace(low, high, count).astype(int)
    result = array_of(helper.make_tensor("t", number, [count], values))
    assert result.dtype == (np.uint8 if low == 0 else np.int8)
    assert result.tolist() == values.tolist()


def test_empty_and_scalar() -> None:
    assert array_of(helper.make_tensor("t", 1, [0, 4], [])).shape == (0, 4)
    assert array_of(helper.make_tensor("t", 1, [], [2.5])) == np.float32(2.5)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (onnx.TensorProto(dims=[4], data_type=1, raw_data=b"123"), "E190"),
        (onnx.TensorProto(dims=[4], data_type=1, float_data=[1, 2]), "E190"),
        (onnx.TensorProto(dims=[1 << 40], data_type=3), "E192"),
        (onnx.TensorProto(dims=[1 << 62, 0], data_type=3), "E192"),
        (onnx.TensorProto(dims=[-1], data_type=3), "E190"),
        (onnx.TensorProto(dims=[1] * 40, data_type=3), "E192"),
        (onnx.TensorProto(dims=[1 << 20] * 100_000, data_type=3), "E192"),
        (onnx.TensorProto(dims=[1], data_type=3, int32_data=[200]), "E190"),
        (onnx.TensorProto(dims=[1], data_type=8, string_data=[b"a"]), "E194"),
        (onnx.TensorProto(dims=[1], data_type=16, int32_data=[1]), "E194"),
        (onnx.TensorProto(dims=[1], data_type=17, int32_data=[1]), "E194"),
        (onnx.TensorProto(dims=[1], data_type=0), "E194"),
        (onnx.TensorProto(dims=[1], data_type=77), "E190"),
        (onnx.TensorProto(dims=[1], data_type=1, data_location=1), "E191"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(message: Any, code: str) -> None:
    assert refused(message).code == code


def test_views_of_the_file_are_not_copied() -> None:
    value = np.arange(1000, dtype=np.float32)
    data = numpy_helper.from_array(value, "t").SerializeToString()
    result = dense(parse(data, "x", "TensorProto"), NOWHERE, Origin("x"))
    assert np.shares_memory(result, np.frombuffer(data, np.uint8))


def sparse(values: Any, indices: Any, dims: list[int]) -> Array:
    message = onnx.SparseTensorProto(
        values=numpy_helper.from_array(np.asarray(values, np.float32), "t"),
        indices=numpy_helper.from_array(np.asarray(indices, np.int64), "i"),
        dims=dims,
    )
    data = message.SerializeToString()
    return of_sparse(parse(data, "x", "SparseTensorProto"), NOWHERE, Origin("x"))


def test_sparse_tensors_are_made_dense() -> None:
    assert sparse([1, 2], [1, 5], [2, 3]).tolist() == [[0, 1, 0], [0, 0, 2]]
    assert sparse([1, 2], [[0, 1], [1, 2]], [2, 3]).tolist() == [[0, 1, 0], [0, 0, 2]]


@pytest.mark.parametrize(
    ("indices", "dims", "code"),
    [([6], [2, 3], "E190"), ([-1], [2, 3], "E190"), ([[0, 3]], [2, 3], "E190"),
     ([0, 1], [2, 3], "E190"), ([1], [1 << 15, 1 << 14], "E192")],
)  # fmt: skip
def test_sparse_tensors_that_do_not_fit(indices: Any, dims: list[int], code: str) -> None:
    with pytest.raises(MizzenError) as caught:
        sparse([1], indices, dims)
    assert caught.value.diagnostic.code == code


def test_beside_has_a_folder() -> None:
    assert Beside(Path()).folder == Path()
