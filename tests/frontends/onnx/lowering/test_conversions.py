"""Tensors that a network casts to another type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from .networks import Network, Scale, computed, lowered, on_host

SHAPE = (2, 128)
BYTES = np.arange(256, dtype=np.uint8).reshape(SHAPE)


def cast(source: Any, *results: Any) -> Network:
    from onnx import helper

    network = Network()
    value = network.input("x", SHAPE, source)
    for result in results:
        to = helper.np_dtype_to_tensor_dtype(np.dtype(result))
        value = network.add("Cast", value, to=to)
    network.outputs.append(value)
    return network


@pytest.mark.parametrize(
    ("source", "results"),
    [
        (np.uint8, [np.int16]),
        (np.uint8, [np.int32]),
        (np.int8, [np.int32]),
        (np.int8, [np.int64]),
        (np.int16, [np.int32]),
        (np.int32, [np.int64]),
        (np.int64, [np.int32]),
        (np.int8, [np.int32, np.int64, np.int32]),
        (np.uint8, [np.int64]),
    ],
)
def test_integers_that_the_result_holds(source: Any, results: list[Any]) -> None:
    given = BYTES.view(np.int8) if source == np.int8 else BYTES
    given = given.astype(source)
    lowering = lowered(cast(source, *results))
    assert on_host(lowering) == {}
    (result,) = computed(lowering, given)
    assert result.dtype == results[-1]
    np.testing.assert_array_equal(result, given)


@pytest.mark.parametrize("source", [np.uint8, np.int8, np.int16])
def test_integers_as_real_numbers_have_a_scale_of_1(source: Any) -> None:
    """Pixels that are cast to float32 and divided, as many exported networks begin."""
    network = cast(source, np.float32)
    most = network.constant(np.float32(255))
    divided = network.add("Div", network.outputs[0], most)
    scale = Scale(0.0041, -128) if source == np.uint8 else Scale(0.0041, 0)
    network.outputs[:] = [network.quantize(divided, scale)]
    given = (BYTES.view(np.int8) if source == np.int8 else BYTES).astype(source)
    lowering = lowered(network)
    assert on_host(lowering) == {}
    (result,) = computed(lowering, given)
    np.testing.assert_array_equal(result, scale.quantize(given.astype(np.float32) / 255))


def test_real_numbers_as_integers_are_the_runtimes() -> None:
    reasons = on_host(lowered(cast(np.float32, np.int32)))
    assert reasons == {"Cast": "it makes int32 of real numbers"}
