"""The same numbers given several times, in other shapes: each output has a buffer of its own."""

from __future__ import annotations

import numpy as np
import pytest

import mizzen
from mizzen.cpu.tflm import CpuKernels
from mizzen.package.tflite.builder import NetworkBuilder

SHAPE = (1, 16, 16, 16)
WINDOW = {"padding": 1, "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}


def network(names: str) -> bytes:
    """A pool whose first row is `p` and the rest `q`; `a`, `b` and `c` are `p` as vectors."""
    net = NetworkBuilder()
    x = net.tensor("x", SHAPE, "int8", 0.05, 3)
    pool = net.tensor("pool", (1, 8, 8, 16), "int8", 0.05, 3)
    net.operator("MAX_POOL_2D", [x], [pool], ("Pool2DOptions", WINDOW))
    found = {
        "p": net.tensor("p", (1, 1, 8, 16), "int8", 0.05, 3),
        "q": net.tensor("q", (1, 7, 8, 16), "int8", 0.05, 3),
    }
    axis = net.constant("axis", np.array([1], np.int32))
    sizes = net.constant("sizes", np.array([1, 7], np.int32))
    options = ("SplitVOptions", {"num_splits": 2})
    net.operator("SPLIT_V", [pool, sizes, axis], [found["p"], found["q"]], options)
    for name in sorted(set(names) & set("abc")):
        found[name] = net.tensor(name, (1, 128), "int8", 0.05, 3)
        shape = net.constant(f"shape_{name}", np.array([1, 128], np.int32))
        options = ("ReshapeOptions", {"new_shape": [1, 128]})
        net.operator("RESHAPE", [found["p"], shape], [found[name]], options)
    return net.finish([x], [found[name] for name in names])


@pytest.mark.parametrize("names", ["qabp", "qpab", "abp", "pab", "qab", "qabc", "pabcq", "qap"])
@pytest.mark.parametrize("accelerator", ["ethos-n78-4tops-4ple", "ethos-u55-128", "ethos-u85-256"])
def test_each_output_is_there(names: str, accelerator: str) -> None:
    data = network(names)
    artifact = mizzen.compile(data, accelerator)
    assert artifact.report is not None
    assert not artifact.report.on_cpu
    maps = np.random.default_rng(2).integers(-128, 128, (3, *SHAPE[1:]), np.int8)
    for found, wanted in zip(
        artifact.run(maps), CpuKernels(data).run([maps[:, np.newaxis]]), strict=True
    ):
        assert np.array_equal(found, wanted.reshape(found.shape))
