"""Small networks that are compiled for each family, with CPU operators and with state."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.package.tflite.builder import NetworkBuilder

Array = npt.NDArray[Any]

U55, U85, N78 = "ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple"


def random(shape: tuple[int, ...], seed: int = 0) -> npt.NDArray[np.int8]:
    """Return int8 numbers of a seed."""
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def convolutions() -> bytes:
    """Two convolutions, with a pooling between: memory is used again, and so are workspaces."""
    net = NetworkBuilder("convolutions")
    rng = np.random.default_rng(1)

    def convolution(source: int, taken: int, given: int, side: int, name: str) -> int:
        weights = rng.integers(-127, 128, (given, 3, 3, taken)).astype(np.int8)
        bias = rng.integers(-900, 900, given).astype(np.int32)
        target = net.tensor(name, (1, side, side, given), np.int8, 0.4, 3)
        operands = [source, net.constant(f"{name}_w", weights, 0.01),
                    net.constant(f"{name}_b", bias, 0.0005)]  # fmt: skip
        options = {"padding": 0, "stride_w": 1, "stride_h": 1,
                   "dilation_w_factor": 1, "dilation_h_factor": 1}  # fmt: skip
        net.operator("CONV_2D", operands, [target], ("Conv2DOptions", options))
        return target

    x = net.tensor("x", (1, 12, 12, 4), np.int8, 0.05, 2)
    first = convolution(x, 4, 16, 12, "first")
    pooled = net.tensor("pooled", (1, 6, 6, 16), np.int8, 0.4, 3)
    options = {"padding": 1, "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
    net.operator("MAX_POOL_2D", [first], [pooled], ("Pool2DOptions", options))
    return net.finish([x], [convolution(pooled, 16, 8, 6, "second")])


def islands(shape: tuple[int, ...] = (1, 5, 8)) -> bytes:
    """NPU, CPU, NPU, where ABS is left to the CPU."""
    net = NetworkBuilder("islands")
    tensors = [net.tensor(f"t{i}", shape, np.int8, 0.05, 0) for i in range(4)]
    net.operator("RELU6", [tensors[0]], [tensors[1]])
    net.operator("ABS", [tensors[1]], [tensors[2]])
    net.operator("ADD", [tensors[2], tensors[0]], [tensors[3]], ("AddOptions", {}))
    return net.finish([tensors[0]], [tensors[3]])
