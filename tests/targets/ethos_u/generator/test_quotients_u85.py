"""DIV of bytes by the rules of U85: what TFLite Micro's kernel gives of every pair of bytes."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.cpu.tflm import CpuKernels
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.machine.commands_values import Arch

from .lowered_networks import rules_for

PAIRS = (1, 256, 256)


def network(seed: int) -> bytes:
    """Return a network of one DIV, of random scales and zero points."""
    draw, net = np.random.default_rng(seed), NetworkBuilder("quotients")
    scales = draw.uniform(0.005, 0.2, 3)
    if seed % 2:  # most quotients are within the output's range
        scales[2] = scales[0] / scales[1] / draw.uniform(1, 60)
    x, y, z = (
        net.tensor(name, shape, "int8", float(scale), int(draw.integers(-128, 128)))
        for name, shape, scale in zip("xyz", ((1, 256, 1), PAIRS, PAIRS), scales, strict=True)
    )
    net.operator("DIV", [x, y], [z], ("DivOptions", {"fused_activation_function": seed % 2}))
    return net.finish([x, y], [z])


@pytest.mark.parametrize("seed", range(8))
def test_every_quotient_of_bytes_is_the_kernel_s(seed: int) -> None:
    data = network(seed)
    every = np.arange(-128, 128).astype(np.int8)
    x, y = every.reshape(1, 256, 1), np.broadcast_to(every, PAIRS)
    (wanted,) = CpuKernels(data).run([x[None], y[None]])
    (found,) = rules_for(data, "quotients", Arch.U85).run([x, y])
    assert (found == wanted[0]).all()
