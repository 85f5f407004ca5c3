"""Compares the graph of a network with TFLite Micro's kernels, or LiteRT's for unsigned bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.compiler.tflite_reference import Kernels, evaluate
from mizzen.conformance.oracles import NO_KERNEL, litert
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Tensor, read
from mizzen.frontends.tflite.lower import Lowered, lower
from mizzen.ops import verify

Array = npt.NDArray[Any]


def lowered(network: bytes) -> Lowered:
    """Lower a network to a graph that is right in itself."""
    found = lower(read(network, "net.tflite"))
    assert not verify(found.graph)
    return found


def kinds(found: Lowered) -> list[str]:
    """Return the operations of a graph, constants left out."""
    return [row.kind for row in found.graph.sorted() if not row.kind.startswith("CONST")]


def inputs_of(tensors: Sequence[Tensor], count: int, limit: int | None = None) -> list[Array]:
    """Return random inputs [count, *shape]: the first the least values, the second the greatest."""
    rng = np.random.default_rng(count)
    made: list[Array] = []
    for tensor in tensors:
        assert tensor.dtype is not None
        if tensor.dtype == np.bool_:
            made.append(rng.integers(0, 2, (count, *tensor.shape)).astype(np.bool_))
            continue
        info = np.iinfo(str(tensor.dtype))
        low, high = (-limit, limit) if limit and info.bits > 8 else (info.min, info.max)
        values = rng.integers(low, high, (count, *tensor.shape), endpoint=True)
        values[0], values[1] = low, high
        made.append(values.astype(tensor.dtype))
    return made


def results(network: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Return what the kernels compute of a batch: LiteRT's where TFLite Micro has none."""
    try:
        return CpuKernels(network).run(inputs)
    except MizzenError as error:
        if error.diagnostic.code not in NO_KERNEL:
            raise
        return litert(network, inputs)


def assert_exact(network: bytes, count: int = 20, limit: int | None = None) -> Lowered:
    """Check that every output is equal, for random inputs and extremes; give the graph."""
    found = lowered(network)
    main = found.model.main
    inputs = inputs_of(main.present(main.inputs), count, limit)
    expected = results(network, inputs)
    kernels = Kernels(found.model)
    got = [
        evaluate(found, [array[index] for array in inputs], kernels=kernels)
        for index in range(count)
    ]
    for place, want in enumerate(expected):
        have = np.stack([outputs[place] for outputs in got])
        assert have.dtype == want.dtype
        np.testing.assert_array_equal(have, want)
    return found
