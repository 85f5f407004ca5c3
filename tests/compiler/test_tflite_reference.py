"""What the reference makes of operations that are parts of an operator."""

from __future__ import annotations

import numpy as np

from mizzen.artifact.steps import read_network
from mizzen.compiler.tflite_reference import Kernels
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.reference import evaluate


def test_a_wider_type_within_an_operator_is_computed() -> None:
    """ARG_MAX to INT64: TOSA has no such conversion, so its graph has a CUSTOM one."""
    net = NetworkBuilder("greatest")
    x = net.tensor("x", (1, 3, 5), "int8", 0.1)
    y = net.tensor("y", (1, 3), "int64")
    axis = net.constant("axis", np.array([2], np.int32))
    options = ("ArgMaxOptions", {"output_type": 4})
    net.operator("ARG_MAX", [x, axis], [y], options)
    model = read_network(net.finish([x], [y]), "greatest.tflite")
    given = np.random.default_rng(2).integers(-128, 128, (1, 3, 5)).astype(np.int8)
    (places,) = evaluate(lower_with_state(model).graph, [given], custom=Kernels(model))
    assert places.dtype == np.int64
    assert np.array_equal(places, given.argmax(2))
