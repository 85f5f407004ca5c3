"""What Vela's first core wrote, as in most artifacts of vendors: it is not damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import read, write
from mizzen.flatbuffer.tflite import SCHEMA, TensorType
from mizzen.frontends.tflite import read as read_model
from mizzen.package.tflite.builder import NetworkBuilder

TYPES = {"int8": (-128, 1 / 256), "uint8": (0, 1 / 256), "int16": (0, 1 / 32768)}


def softmax(dtype: str) -> bytes:
    net = NetworkBuilder()
    middle = 128 if dtype == "uint8" else 0
    scale = 10 / 32768 if dtype == "int16" else 0.1
    x = net.tensor("x", (1, 2), dtype, scale, middle)
    zero, step = TYPES[dtype]
    y = net.tensor("y", (1, 2), dtype, step, zero)
    net.operator("SOFTMAX", [x], [y], ("SoftmaxOptions", {"beta": 1.0}))
    return net.finish([x], [y])


@pytest.mark.parametrize("dtype", TYPES)
def test_a_class_may_have_all_the_probability(dtype: str, tmp_path: Path) -> None:
    """The inverse of the sum is then doubled to 2**31, and saturates, as in the kernels."""
    path = tmp_path / "net.tflite"
    path.write_bytes(softmax(dtype))
    vela = [sys.executable, "-m", "ethosu.vela", "net.tflite", "--debug-force-legacy-core"]
    target = ["--accelerator-config", "ethos-u55-128", "--output-dir", "."]
    subprocess.run([*vela, *target], cwd=tmp_path, check=True, capture_output=True)
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    given = rng.integers(limits.min, limits.max + 1, (200, 2)).astype(dtype)
    given[:2] = [limits.min, limits.max], [limits.max, limits.min]
    compiled = mizzen.load(tmp_path / "net_vela.tflite")
    assert compiled.accelerator == "ethos-u55-128"
    np.testing.assert_array_equal(compiled.run(given), mizzen.load(path).run(given))


def with_long_constant() -> bytes:
    """A network with a shape of 32 bits whose contents have 64, beside a custom operator."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, 4), "int8", 0.5)
    shape = net.constant("shape", np.array([4, 1, 1], np.int64))
    y, z = net.tensor("y", (1, 4), "int8", 0.5), net.tensor("z", (4, 1, 1), "int8", 0.5)
    net.operator("part", [x], [y])
    net.operator("RESHAPE", [y, shape], [z])
    root = read(net.finish([x], [z]), SCHEMA, "net")
    root["subgraphs"][0]["tensors"][shape]["type"] = int(TensorType.INT32)
    return write(root, SCHEMA)


def test_contents_of_a_compiled_network_may_be_longer() -> None:
    model = read_model(with_long_constant(), "net", lambda _: 1)
    values = model.main.tensors[1].values
    assert values is not None
    assert values.tolist() == [4, 0, 1]
    with pytest.raises(MizzenError, match="E105"):
        read_model(with_long_constant(), "net")
