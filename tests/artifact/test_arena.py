"""Several NPU operators in one arena: what an earlier one leaves there, a later one finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.artifact import arena
from mizzen.artifact.arena_step import share_arena
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import CpuStep, NpuStep, read_network
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.package.tflite.builder import NetworkBuilder

from .test_artifact import memory_cell_net

Array = npt.NDArray[Any]
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
SHAPE = (1, 4, 4, 8)


class Net(NetworkBuilder):
    """A network of maps `[1, 4, 4, depth]` whose ABS is to be on the CPU."""

    def map(self, depth: int = 8) -> int:
        return self.tensor("map", (1, 4, 4, depth), np.int8, 0.1)

    def add(self, a: int, b: int) -> int:
        y = self.map()
        self.operator("ADD", [a, b], [y], ("AddOptions", {}))
        return y

    def abs(self, x: int, depth: int = 8) -> int:
        y = self.map(depth)
        self.operator("ABS", [x], [y])
        return y

    def joined(self, depth: int, *parts: int) -> int:
        y = self.map(depth)
        self.operator("CONCATENATION", parts, [y], ("ConcatenationOptions", {"axis": 3}))
        return y


def left_behind() -> bytes:
    """The second NPU operator reads a sum that the first one left, which is no input of it."""
    net = Net()
    x, y = net.map(), net.map()
    total = net.add(y, x)
    again, other = net.add(total, y), net.add(y, total)
    return net.finish([x, y], [other, net.add(net.abs(again), x)])


def filled_by_parts() -> bytes:
    """A concatenation that two NPU operators fill, each with what the CPU computed before it."""
    net = Net()
    x, y = net.map(), net.map()
    first = net.abs(y)
    second = net.abs(net.joined(24, x, first, first), 24)
    whole = net.joined(40, first, second, first)
    return net.finish([x, y], [net.abs(whole, 40), net.add(y, x)])


NETWORKS: dict[str, Callable[[], bytes]] = {
    "left behind": left_behind,
    "filled by parts": filled_by_parts,
}


def inputs(batch: int = 5) -> list[Array]:
    rng = np.random.default_rng(3)
    return [rng.integers(-128, 128, (batch, *SHAPE)).astype(np.int8) for _ in range(2)]


def compiled(data: bytes, accelerator: str = "ethos-u55-128") -> Artifact:
    artifact = mizzen.compile(data, accelerator, ignore_ops=["ABS"])
    assert sum(isinstance(step, NpuStep) for step in artifact.steps) > 1
    assert any(isinstance(step, CpuStep) for step in artifact.steps)
    return artifact


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", NETWORKS)
def test_it_computes_what_the_kernels_do(name: str, accelerator: str) -> None:
    data = NETWORKS[name]()
    artifact = compiled(data, accelerator)
    given = inputs()
    for _ in range(2):
        for ours, expected in zip(artifact.run(*given), CpuKernels(data).run(given), strict=True):
            assert np.array_equal(ours, expected)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", NETWORKS)
def test_what_an_earlier_operator_leaves_is_no_hazard(name: str, accelerator: str) -> None:
    assert compiled(NETWORKS[name](), accelerator).hazards == ()


@pytest.mark.usefixtures("velas_code")
def test_what_nobody_leaves_is_one() -> None:
    """The same operators without the first one read what nothing has written."""
    artifact = compiled(left_behind())
    steps, _ = share_arena(read_network(artifact.data, "net"), artifact.steps[1:])
    found = [row for step in steps if isinstance(step, NpuStep) for row in step.hazards.diagnostics]
    assert {row.code for row in found} == {"E674"}


@pytest.mark.usefixtures("velas_code")
def test_an_output_that_nobody_completes_is_a_hazard() -> None:
    """Without the operators behind it, the first part of a concatenation is all there is."""
    artifact = compiled(filled_by_parts())
    model = read_network(artifact.data, "net")
    npu = [step for step in artifact.steps if isinstance(step, NpuStep)]
    first, last = npu
    assert set(first.outputs) & set(last.outputs)
    steps, _ = share_arena(model, [step for step in artifact.steps if step is not last])
    codes = [
        row.code for step in steps if isinstance(step, NpuStep) for row in step.hazards.diagnostics
    ]
    assert codes == ["E676"]


def test_a_batch_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    data = filled_by_parts()
    artifact = compiled(data)
    given = inputs(7)
    whole = artifact.run(*given)
    assert artifact.contents.arena is not None
    monkeypatch.setattr(arena, "BATCH_BYTES", 3 * sum(artifact.contents.arena.block_bytes.values()))
    assert artifact.contents.arena.largest_batch == 3
    for found, expected in zip(artifact.run(*given), whole, strict=True):
        assert np.array_equal(found, expected)


def test_state_beside_the_cpu_goes_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x, y = memory_cell_net()
    z = net.tensor("z", (1, 1, 4), np.int8, 1 / 128)
    net.operator("ABS", [y], [z])
    data = net.finish([x], [z])
    artifact = mizzen.compile(data, "ethos-u55-128", ignore_ops=["ABS"])
    assert [type(step) for step in artifact.steps[1:]] == [CpuStep]
    monkeypatch.setattr(arena, "BATCH_BYTES", 1)
    session, kernels = artifact.session(2), CpuKernels(data).session(2)
    rng = np.random.default_rng(0)
    for _ in range(6):
        given = rng.integers(-128, 128, (2, 1, 1, 3)).astype(np.int8)
        assert np.array_equal(session.run(given), kernels.run([given])[0])


def test_an_offset_that_is_none() -> None:
    net = NetworkBuilder()
    net.constant("payload", np.arange(8, dtype=np.uint8))
    net.constant("read_only", np.arange(20, dtype=np.uint8))
    net.tensor("scratch", [640], "uint8")
    x, y = net.tensor("x", (1, 4), "int8", 0.5), net.tensor("y", (1, 4), "int8", 0.5)
    z = net.tensor("z", (1, 4), "int8", 0.5)
    net.operator("ethos-u", [0, 1, 2, 2, x], [y], custom_options=b"\x01\x04\x01")
    net.operator("ABS", [y], [z])
    words = np.array([0, 0, 6, -1, -1, 0, 0, 16, -7], "<i4")
    net.metadata("OfflineMemoryAllocation", words.tobytes())
    model = read_network(net.finish([x], [z]), "net_vela.tflite")
    from mizzen.artifact.ethos_u import ETHOS_U

    with pytest.raises(MizzenError) as caught:
        ETHOS_U.arena_offsets(model)
    assert str(caught.value).startswith(
        "error[E121]: OfflineMemoryAllocation must give offsets of at least -1, not -7"
    )
