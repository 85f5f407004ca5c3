"""Tables of functions of a quantised number, filled on this host."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.cpu import tflm
from mizzen.cpu.graph import ReferenceKernels
from mizzen.cpu.tflm import CpuKernels
from mizzen.flatbuffer import Record
from mizzen.package.device import DeviceTensor, KernelCall
from mizzen.package.tflite.builder import NetworkBuilder

Array = npt.NDArray[Any]

PREFIX = "tflite::"
OPTIONS = {"LEAKY_RELU": "LeakyReluOptions"}
"""Tables of options of functions that have any."""


def tabulated(call: KernelCall, source: DeviceTensor, output: DeviceTensor) -> Array:
    """Return the results for every number of the input's type: of TFLite Micro's kernel if there.

    `[256]` of 8 bits, `[65536]` of 16, the least number first. Raises as `CpuKernels` does, or as
    `ReferenceKernels` where its package is not installed.
    """
    limits = np.iinfo(source.dtype)
    numbers = np.arange(limits.min, limits.max + 1).astype(source.dtype)[None]
    kind = call.operator.removeprefix(PREFIX)
    net = NetworkBuilder()
    places = [
        net.tensor(
            tensor.name, numbers.shape, tensor.dtype, tensor.scales or None, tensor.zero_points
        )
        for tensor in (source, output)
    ]
    fields: Record = {name: value for name, value in call.arguments if name != "inputs"}
    net.operator(kind, places[:1], places[1:], (OPTIONS[kind], fields) if kind in OPTIONS else None)
    network, origins = net.finish(places[:1], places[1:]), [call.origin] if call.origin else []
    kernels = CpuKernels if tflm.is_installed() else ReferenceKernels
    (results,) = kernels(network, origins).run([numbers[None]])
    return results.reshape(-1)
