"""What a network does with variables stays in its order, and everything else is for the NPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.variables import precedence
from mizzen.cpu.tflm import CpuKernels
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


def test_what_reads_comes_before_what_assigns() -> None:
    model = _model(delayed())
    read, assign = *_of(model, "READ_VARIABLE"), *_of(model, "ASSIGN_VARIABLE")
    assert precedence(model) == {read: [], assign: [read]}


def _model(data: bytes) -> Model:
    return read_network(data, "net")


def _of(model: Any, kind: str) -> list[int]:
    return [row.index for row in model.main.operators if row.kind == kind]
