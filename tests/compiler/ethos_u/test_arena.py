"""Networks of several NPU operators: all they hand on has bytes of its own in one arena."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.ethos_u import arena, tflite
from mizzen.compiler.ethos_u.arena import ArenaPlan, CpuWork, NpuWork, plan_arena
from mizzen.compiler.ethos_u.proof import RegionProof
from mizzen.compiler.proof.options import DEFAULT
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.schedule import schedule
from mizzen.targets.ethos_u.machine.system_config import resolve

from .networks import MAP, Net, report_of

U55 = "ethos-u55-128"
ACCELERATORS = [U55, "ethos-u55-32", "ethos-u65-256", "ethos-u65-512"]
SHAPE = MAP[1:]


def summed(net: Net, index: int) -> int:
    """Add up a map along its channels, which only the CPU does."""
    made = net.map(f"summed-{index}")
    axis = net.constant("axis", np.array([3], np.int32))
    net.operator("CUMSUM", [index, axis], [made], ("CumsumOptions", {}))
    return made


def over_the_cpu() -> bytes:
    """Two NPU operators: a product goes from one to the other while the CPU is at work."""
    net = Net()
    kept, sent = net.map("kept"), net.map("sent")
    net.operator("MUL", [net.sum, net.first], [kept], ("MulOptions", {}))
    net.operator("SUB", [net.sum, net.second], [sent], ("SubOptions", {}))
    both = net.map("both")
    net.operator("ADD", [summed(net, sent), kept], [both], ("AddOptions", {}))
    return net.finish([net.first, net.second], [net.twice(both)])


def outlived() -> bytes:
    """A network whose CPU reads, after the NPU, what it has given the NPU."""
    net = Net()
    given, inner, after = net.map("given", "float32"), net.map("inner"), net.map("after")
    net.operator("QUANTIZE", [given], [inner])
    made = net.twice(net.twice(inner))
    net.operator("MUL", [made, inner], [after], ("MulOptions", {}))
    return net.finish([given, net.first, net.second], [after, net.sum])


def made(data: bytes, accelerator: str, generator: str, **options: Any) -> mizzen.Artifact:
    return mizzen.compile(data, accelerator, target_options={"generator": generator}, **options)


def give_the_same(artifacts: list[mizzen.Artifact]) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        inputs = [
            rng.normal(0, 4, (2, *info.shape)).astype(info.dtype)
            if info.dtype == np.float32
            else rng.integers(-128, 128, (2, *info.shape), np.int8)
            for info in artifacts[0].inputs
        ]
        theirs, ours = (artifact.run(*inputs) for artifact in artifacts)
        assert all(np.array_equal(*pair) for pair in zip(theirs, ours, strict=True))


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_npu_operators_around_the_cpu_compute_what_velas_do(accelerator: str) -> None:
    artifacts = [made(over_the_cpu(), accelerator, name) for name in ("vela", "own")]
    ours = artifacts[1]
    assert [step.on_npu for step in ours.steps] == [True, False, True]
    assert len(report_of(ours).code) == 2
    assert report_of(ours).proof.parts == 2
    assert not ours.hazards
    give_the_same(artifacts)


def test_all_of_a_network_has_one_plan_no_larger_than_velas() -> None:
    theirs, ours = (report_of(made(over_the_cpu(), U55, name)) for name in ("vela", "own"))
    assert ours.arena_bytes <= theirs.arena_bytes


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_what_is_read_after_the_npu_outlives_it(accelerator: str) -> None:
    artifacts = [
        made(outlived(), accelerator, name, ignore_ops=("MUL",)) for name in ("vela", "own")
    ]
    assert not artifacts[1].hazards
    give_the_same(artifacts)


def sequence_of(data: bytes) -> Any:
    found = lower(lower_with_state(read_network(data, "net")).graph)
    assert found.sequence is not None
    return found.sequence


def twice() -> bytes:
    net = Net()
    return net.finish([net.first, net.second], [net.twice(net.twice(net.sum))])


def test_the_plan_is_proved_to_be_the_least() -> None:
    """Two operators one after the other take what one of them does: 128 bytes a map."""
    sequence = sequence_of(twice())
    works = [
        NpuWork(schedule(sequence, resolve(U55)), (0, 1), (2,)),
        CpuWork((2,), (3,)),
        NpuWork(schedule(sequence, resolve(U55)), (2, 3), (4,)),
    ]
    plan = plan_arena(works, dict.fromkeys(range(5), 128), [0, 1], [4])
    assert plan.size_bytes == plan.bound_bytes == 256
    assert set(plan.offsets_bytes) == set(range(5))
    assert [each.region_bytes[1] for each in plan.schedules] == [256, 256]


def test_what_lives_across_an_operator_shares_no_byte_with_it() -> None:
    sequence = sequence_of(twice())
    work = NpuWork(schedule(sequence, resolve(U55)), (0, 1), (2,))
    plan = plan_arena([work, CpuWork((2, 5), (6,))], dict.fromkeys(range(7), 128), [0, 1, 5], [6])
    (moved,) = plan.schedules
    taken = [place.offset_bytes for place in moved.places if place is not None]
    kept = plan.offsets_bytes[5]
    assert all(at >= kept + 128 or at + 128 <= kept for at in taken)


def spoilt(plan: ArenaPlan, tensor: int, other: int) -> ArenaPlan:
    """Return a plan in which a tensor lies where another one does."""
    offsets = {**plan.offsets_bytes, tensor: plan.offsets_bytes[other]}
    return replace(plan, offsets_bytes=offsets)


def test_a_plan_in_which_tensors_meet_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any) -> ArenaPlan:
        plan = arena.plan_arena(*given)
        names = {row.name: row.index for row in model.main.tensors}
        return spoilt(plan, names["kept"], names["sent"])

    model = read_network(over_the_cpu(), "net")
    monkeypatch.setattr(tflite, "plan_arena", wrong)
    with pytest.raises(MizzenError) as caught:
        tflite.compile_network(model, resolve(U55), DEFAULT, None)
    assert caught.value.diagnostic.code == "E583"
    assert "must have bytes of their own in the arena" in str(caught.value)


def test_a_file_that_is_right_has_nothing_wrong(tmp_path: Path) -> None:
    data = over_the_cpu()
    model = read_network(data, "net")
    lowered = lower_with_state(model)
    proof = RegionProof(model, lowered, DEFAULT)
    file = made(data, U55, "own").data
    network = read_network(file, "net")
    names = {row.name: row.index for row in model.main.tensors}
    tensors = {row.index: names[row.name] for row in network.main.tensors if row.name in names}
    contents = contents_of(network)
    assert proof.prove_file(network, contents, tensors) == ""
    assert sum(isinstance(step, NpuStep) for step in contents.steps) == 2
