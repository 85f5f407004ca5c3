"""Operators with state of their own: the same over several inferences as TensorFlow Lite Micro."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.export import c_container
from mizzen.package.tflite.builder import NetworkBuilder

from .runtime_host import Host, built

INFERENCES = 6


def svdf(draw: np.random.Generator) -> tuple[bytes, tuple[int, int]]:
    """Return a network of one SVDF, and the shape of its input."""
    batches, width, units, rank, memory = (int(number) for number in draw.integers(1, 5, 5))
    count = units * rank
    kind = str(draw.choice(["int8", "int16"]))
    net = NetworkBuilder()
    x = net.tensor("x", (batches, width), np.int8, 0.05, int(draw.integers(-9, 9)))
    features = net.constant(
        "features", draw.integers(-127, 128, (count, width)).astype(np.int8), 0.01
    )
    times = net.constant("times", draw.integers(-127, 128, (count, memory)).astype(kind), 0.01)
    bias = net.constant("bias", draw.integers(-900, 900, units).astype(np.int32), 0.0002)
    state = net.tensor("state", (batches, count * memory), kind, 0.02, variable=True)
    y = net.tensor("y", (batches, units), np.int8, 0.1, int(draw.integers(-9, 9)))
    net.operator("SVDF", [x, features, times, bias, state], [y],
                 ("SVDFOptions", {"rank": rank, "fused_activation_function": 1}))  # fmt: skip
    return net.finish([x], [y]), (batches, width)


@pytest.mark.parametrize("seed", range(6))
def test_svdf_over_several_inferences(
    seed: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    draw = np.random.default_rng(seed)
    data, shape = svdf(draw)
    file = tmp_path / "network.tflite"
    file.write_bytes(data)
    artifact = mizzen.load(file)
    session = artifact.session()
    with Host(built(tmp_path_factory.mktemp("host"), "gcc"), c_container(artifact).data) as host:
        for _ in range(INFERENCES):
            x = draw.integers(-128, 128, shape).astype(np.int8)
            expected = session.run(x)
            assert isinstance(expected, np.ndarray)
            assert host.run(x) == [expected.tobytes()]
