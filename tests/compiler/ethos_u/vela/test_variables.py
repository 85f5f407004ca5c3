"""What a network does with variables stays in its order, and everything else is for the NPU."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mizzen.compiler.ethos_u.vela.variables import bonds_of, precedence, require_order

import mizzen
from mizzen.artifact.resources import VariableStep
from mizzen.artifact.steps import read_network
from mizzen.cpu.tflm import CpuKernels
from mizzen.flatbuffer.memory_plan import ALLOCATION, HEAD_WORDS
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.variables import VARIABLE_KINDS
from mizzen.package.tflite.builder import NetworkBuilder

MAP = (1, 4, 4, 8)
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
FIRST = 17
STEPS = 40


class Net(NetworkBuilder):
    """Adds of maps, and variables of their shape, all of which start with `FIRST`."""

    def map(self, name: str) -> int:
        return self.tensor(name, MAP, "int8", 0.1, -3)

    def variable(self, name: str) -> int:
        handle = self.resource(name)
        self.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": name}))
        self.initial(name, np.full(MAP, FIRST, np.int8), 0.1, -3)
        return handle

    def read(self, handle: int, name: str) -> int:
        found = self.map(name)
        self.operator("READ_VARIABLE", [handle], [found], ("ReadVariableOptions", {}))
        return found

    def assign(self, handle: int, value: int) -> None:
        self.operator("ASSIGN_VARIABLE", [handle, value], [], ("AssignVariableOptions", {}))

    def add(self, one: int, other: int, name: str) -> int:
        found = self.map(name)
        self.operator("ADD", [one, other], [found], ("AddOptions", {}))
        return found


def delayed() -> bytes:
    """Twice the input before."""
    net = Net()
    x, line = net.map("x"), net.variable("line")
    before = net.read(line, "before")
    result = net.add(before, before, "result")
    net.assign(line, x)
    return net.finish([x], [result])


def shifted() -> bytes:
    """The sum of the two inputs before: one variable takes what the other one had."""
    net = Net()
    x, young, old = net.map("x"), net.variable("young"), net.variable("old")
    doubled = net.add(x, x, "doubled")
    first = net.read(young, "first")
    net.assign(young, doubled)
    second = net.read(old, "second")
    net.assign(old, first)
    return net.finish([x], [net.add(first, second, "result")])


def read_again() -> bytes:
    """A sum that is read from the variable that it was assigned to."""
    net = Net()
    x, total = net.map("x"), net.variable("total")
    net.assign(total, net.add(net.read(total, "before"), x, "after"))
    return net.finish([x], [net.add(net.read(total, "again"), x, "result")])


def assigned_twice() -> bytes:
    """Two assignments, of which the second stays."""
    net = Net()
    x, total = net.map("x"), net.variable("total")
    after = net.add(net.read(total, "before"), x, "after")
    net.assign(total, after)
    net.assign(total, net.add(x, x, "doubled"))
    return net.finish([x], [after])


def read_in_vain() -> bytes:
    """A sum whose variable is read once more, for nothing."""
    net = Net()
    x, total = net.map("x"), net.variable("total")
    after = net.add(net.read(total, "before"), x, "after")
    net.assign(total, after)
    net.read(total, "unused")
    return net.finish([x], [after])


def one_way() -> bytes:
    """A variable that is only read, one that is only assigned, and one that nothing uses."""
    net = Net()
    x, taken, given = net.map("x"), net.variable("taken"), net.variable("given")
    net.variable("unused")
    result = net.add(x, net.read(taken, "before"), "result")
    net.assign(given, result)
    return net.finish([x], [result])


ORDERS = (delayed, shifted, read_again, assigned_twice, read_in_vain, one_way)


@pytest.fixture(scope="module")
def wake_word(repository: Path) -> Callable[..., bytes]:
    """The example's network, which is as large as it is asked for."""
    return runpy.run_path(str(repository / "examples" / "wake_word" / "network.py"))["wake_word"]


def require_exact(data: bytes, artifact: mizzen.Artifact, limits: tuple[int, int]) -> None:
    session, theirs = artifact.session(2), CpuKernels(data).session(2)
    rng = np.random.default_rng(3)
    (info,) = artifact.inputs
    seen = set[bytes]()
    for _ in range(STEPS):
        x = rng.integers(*limits, (2, *info.shape)).astype(np.int8)
        (expected,) = theirs.run([x], 2)
        found = session.run(x[:, 0])
        assert np.array_equal(found, expected[:, 0])
        seen.add(np.asarray(found).tobytes())
    assert len(seen) > STEPS // 2


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("build", ORDERS)
def test_order_is_the_network_s(build: Callable[[], bytes], accelerator: str) -> None:
    data = build()
    artifact = mizzen.compile(data, accelerator)
    require_exact(data, artifact, (-20, 20))
    assert artifact.report is not None
    assert {row.kind for row in artifact.report.on_npu} - VARIABLE_KINDS == {"ADD"}
    assert artifact.report.diagnostics == ()


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_a_streaming_network_is_one_part(wake_word: Callable[..., bytes], accelerator: str) -> None:
    data = wake_word(((3,), (2, 4)), 16)
    artifact = mizzen.compile(data, accelerator)
    require_exact(data, artifact, (-128, 128))
    assert [type(step) is VariableStep for step in artifact.steps] == [True, False, True]
    report = artifact.report
    assert report is not None
    assert report.macs_on_npu == report.macs > 0
    assert {row.kind for row in report.on_cpu} == VARIABLE_KINDS
    assert all(row.cycles for row in report.on_npu if row.macs)
    assert report.proof.unproved == report.diagnostics == ()
    assert report.proof.watched > 10
    (reason,) = {reason for row in report.on_cpu for reason in row.reasons}
    assert reason.message == (
        "the CPU keeps the network's variables, and the NPU takes and gives what they hold as "
        "tensors"
    )


def test_the_file_is_one_for_the_runtime(wake_word: Callable[..., bytes]) -> None:
    """CALL_ONCE comes first, its subgraph is there, and the plan counts the tensors of both."""
    data = wake_word(((3,),), 16)
    artifact = mizzen.compile(data, ACCELERATORS[2])
    network, model = (read_network(row, "net") for row in (artifact.data, data))
    assert network.main.operators[0].kind == "CALL_ONCE"
    assert [[row.kind for row in part.operators] for part in network.subgraphs[1:]] == [
        [row.kind for row in part.operators] for part in model.subgraphs[1:]
    ]
    plan = np.frombuffer(bytes(network.metadata[ALLOCATION]), np.int32)
    tensors = sum(len(part.tensors) for part in network.subgraphs)
    assert plan[1:HEAD_WORDS].tolist() == [2, tensors]
    assert len(plan) == HEAD_WORDS + tensors


def test_operators_on_variables_take_and_give_what_they_did() -> None:
    """What makes the compiler keep their order is gone from the file."""
    artifact = mizzen.compile(assigned_twice(), ACCELERATORS[0])
    for row in read_network(artifact.data, "net").main.operators:
        if row.kind == "ASSIGN_VARIABLE":
            assert (len(row.inputs), len(row.outputs)) == (2, 0)


def test_bonds_are_where_tensors_do_not_say_the_order(wake_word: Callable[..., bytes]) -> None:
    bonds = bonds_of(_model(wake_word(((3,),), 16)))
    assert (bonds.tensors, bonds.takes, bonds.gives) == ([], {}, {})
    model = _model(read_again())
    bonds = bonds_of(model)
    (assign,) = _of(model, "ASSIGN_VARIABLE")
    again = _of(model, "READ_VARIABLE")[1]
    assert list(bonds.gives) == [assign]
    assert bonds.takes == {again: bonds.gives[assign]}


@pytest.mark.parametrize("lost", [False, True])
def test_another_order_is_refused(*, lost: bool) -> None:
    model = _model(delayed())
    read, assign = *_of(model, "READ_VARIABLE"), *_of(model, "ASSIGN_VARIABLE")
    assert precedence(model) == {read: [], assign: [read]}
    require_order(model, {read: 1, assign: 2})
    with pytest.raises(mizzen.MizzenError) as caught:
        require_order(model, {read: 1} if lost else {read: 2, assign: 1})
    assert str(caught.value) == (
        "error[E306]: variable 'line' must be read and assigned in the network's order, and the "
        "compiler changes it\n"
        "  at   net\n"
        "  rule Vela 5.2.0 orders operators by the tensors that they share\n"
        "  help use the tensor that is assigned instead of reading the variable again"
    )


def _model(data: bytes) -> Model:
    return read_network(data, "net")


def _of(model: Any, kind: str) -> list[int]:
    return [row.index for row in model.main.operators if row.kind == kind]
