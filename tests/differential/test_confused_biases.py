"""Layers with the same weights and scales but different biases: Vela gives all of them one."""

from __future__ import annotations

import numpy as np
import pytest

import mizzen
from mizzen.conformance.networks import NetworkBuilder
from mizzen.cpu.tflm import CpuKernels

SHAPE = (1, 4, 4, 8)


def network(*, tied: bool, same_bias: bool, second_scale: float) -> bytes:
    """Two convolutions of one input."""
    rng, net = np.random.default_rng(0), NetworkBuilder("tied")
    x = net.tensor("x", SHAPE, "int8", 0.05, 0)
    weights = rng.integers(-127, 128, (8, 1, 1, 8)).astype(np.int8)
    first = net.constant("w", weights, [0.01], 0, axis=0)
    other = weights if tied else -weights
    second = net.constant("other", other, [0.01], 0, axis=0)
    biases = [rng.integers(-9000, 9000, 8).astype(np.int32) for _ in range(2)]
    b = net.constant("b", biases[0], [0.0005])
    c = net.constant("c", biases[0 if same_bias else 1], [0.0005])
    names = ("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")
    options = {"padding": 1, **dict.fromkeys(names, 1), "fused_activation_function": 0}
    y = net.tensor("y", SHAPE, "int8", 0.5, 0)
    z = net.tensor("z", SHAPE, "int8", second_scale, 0)
    net.operator("CONV_2D", [x, first, b], [y], ("Conv2DOptions", options), version=3)
    net.operator("CONV_2D", [x, second, c], [z], ("Conv2DOptions", options), version=3)
    return net.finish([x], [y, z])


@pytest.mark.parametrize(
    ("tied", "same_bias", "second_scale", "wrong"),
    [
        (True, False, 0.5, True),
        (True, True, 0.5, False),
        (True, False, 0.25, False),
        (False, False, 0.5, False),
    ],
)
def test_vela_confuses_biases(
    *, tied: bool, same_bias: bool, second_scale: float, wrong: bool
) -> None:
    """Exactly where the result is not that of TensorFlow Lite Micro."""
    data = network(tied=tied, same_bias=same_bias, second_scale=second_scale)
    vela = {"generator": "vela"}
    artifact = mizzen.compile(data, "ethos-u55-128", prove="off", target_options=vela)
    x = np.random.default_rng(1).integers(-128, 128, (1, *SHAPE)).astype(np.int8)
    found, wanted = artifact.run(x), CpuKernels(data).run([x])
    same = [
        np.array_equal(one.reshape(SHAPE), other.reshape(SHAPE))
        for one, other in zip(found, wanted, strict=True)
    ]
    assert all(same) is not wrong
    ours = mizzen.compile(data, "ethos-u55-128").run(x)
    for one, other in zip(ours, wanted, strict=True):
        assert np.array_equal(one.reshape(SHAPE), other.reshape(SHAPE))
