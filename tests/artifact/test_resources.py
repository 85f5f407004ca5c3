"""Variables go on from step to step where NPU operators lie between those that use them."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.resources import VariableStep
from mizzen.cpu.tflm import CpuKernels
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.package.tflite.builder import NetworkBuilder

MAP = (1, 4, 4, 8)
ACCELERATORS = ("ethos-u55-128", "ethos-u85-256")
BATCH = 3


def accumulator(first: int | None = None) -> bytes:
    """Add the input to a variable; give the sum. CALL_ONCE fills it with `first`, if given."""
    net = NetworkBuilder()
    x, before, after = (net.tensor(name, MAP, "int8", 0.1, -3) for name in ("x", "before", "after"))
    handle = net.resource("handle")
    net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "total"}))
    net.operator("READ_VARIABLE", [handle], [before], ("ReadVariableOptions", {}))
    net.operator("ADD", [before, x], [after], ("AddOptions", {}))
    net.operator("ASSIGN_VARIABLE", [handle, after], [], ("AssignVariableOptions", {}))
    if first is not None:
        net.initial("total", np.full(MAP, first, np.int8), 0.1, -3)
    return net.finish([x], [after])


def inputs(seed: int) -> Any:
    return np.random.default_rng(seed).integers(-40, 40, (BATCH, *MAP)).astype(np.int8)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("first", [None, 17])
def test_state_goes_on_as_on_the_cpu(first: int | None, accelerator: str) -> None:
    data = accumulator(first)
    artifact = mizzen.compile(data, accelerator, ignore_ops=["READ_VARIABLE", "ASSIGN_VARIABLE"])
    assert [type(step) is VariableStep for step in artifact.steps] == [True, False, True]
    assert artifact.report is not None
    assert not artifact.report.proof.unproved
    session, theirs = artifact.session(BATCH), CpuKernels(data).session(BATCH)
    for seed in range(4):
        x = inputs(seed)
        assert np.array_equal(session.run(x[:, 0]), theirs.run([x], BATCH)[0][:, 0])
    x = inputs(9)
    alone = CpuKernels(data).run([x], BATCH)[0][:, 0]
    again = pickle.loads(pickle.dumps(artifact))
    for row in (artifact, again):
        assert np.array_equal(row.run(x[:, 0]), alone)


def test_sessions_are_independent() -> None:
    """Two streams at once, in a thread each, and one of a copy."""
    artifact = mizzen.compile(accumulator(17), ACCELERATORS[0])
    sessions = [artifact.session(BATCH), artifact.session(BATCH), copy.deepcopy(artifact).session()]
    rows = [[inputs(10 * place + seed)[:, 0] for seed in range(20)] for place in range(3)]
    rows[2] = [row[:1] for row in rows[2]]

    def stream(place: int) -> list[Any]:
        return [sessions[place].run(x) for x in rows[place]]

    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(stream, range(3)))
    for place, given in enumerate(rows):
        theirs = CpuKernels(accumulator(17)).session(len(given[0]))
        for x, y in zip(given, found[place], strict=True):
            assert np.array_equal(y, theirs.run([x[:, None]], len(x))[0][:, 0])


def branching() -> bytes:
    """An accumulator, whose sum a flag chooses from the variable or from an operator."""
    net = NetworkBuilder()
    flag = net.tensor("flag", (1,), "bool")
    names = ("x", "before", "after", "doubled", "y")
    x, before, after, doubled, y = (net.tensor(name, MAP, "int8", 0.1, -3) for name in names)
    handle = net.resource("handle")
    net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "total"}))
    net.operator("READ_VARIABLE", [handle], [before], ("ReadVariableOptions", {}))
    net.operator("ADD", [before, x], [after], ("AddOptions", {}))
    net.operator("ASSIGN_VARIABLE", [handle, after], [], ("AssignVariableOptions", {}))
    net.operator("ADD", [after, after], [doubled], ("AddOptions", {}))
    choice = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    net.operator("IF", [flag, doubled], [y], ("IfOptions", choice))
    record: Record = read(net.finish([x, flag], [y]), SCHEMA, "net")
    (main,) = record["subgraphs"]
    tensors = [main["tensors"][index] for index in (x, handle, before)]
    reads = {"tensors": tensors, "inputs": [0], "outputs": [2], "operators": [
        {**main["operators"][0], "outputs": [1]},
        {**main["operators"][1], "inputs": [1], "outputs": [2]},
    ]}  # fmt: skip
    passes = {"tensors": tensors[:1], "inputs": [0], "outputs": [0], "operators": []}
    record["subgraphs"] = [main, reads, passes]
    return write(record, SCHEMA)


@pytest.mark.parametrize("ignored", [(), ("ADD",)])
def test_a_variable_of_a_branch_is_that_of_the_others(ignored: tuple[str, ...]) -> None:
    """Also where operators for the NPU lie between the branch and what assigns the variable."""
    data = branching()
    artifact = mizzen.compile(data, ACCELERATORS[0], ignore_ops=ignored)
    session, theirs = artifact.session(BATCH), CpuKernels(data).session(BATCH)
    for seed in range(4):
        x = inputs(seed)
        flag = np.array([[True], [False], [True]])
        found = session.run(x[:, 0], flag[:, 0])
        assert np.array_equal(found, theirs.run([x, flag], BATCH)[0][:, 0])
