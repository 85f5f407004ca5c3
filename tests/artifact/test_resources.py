"""Variables go on from step to step where NPU operators lie between those that use them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.resources import VariableStep
from mizzen.cpu.tflm import CpuKernels
from mizzen.flatbuffer import Member, Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA, BuiltinOperator, TensorType
from mizzen.package.tflite.builder import NetworkBuilder

MAP = (1, 4, 4, 8)
ACCELERATORS = ("ethos-u55-128", "ethos-u85-256")
BATCH = 3


def tensor(name: str, type_: TensorType, buffer: int = 0, scale: float | None = None) -> Record:
    shape: list[int] = [] if type_ is TensorType.RESOURCE else list(MAP)
    row: Record = {"name": name, "shape": shape, "type": int(type_), "buffer": buffer}
    if scale is not None:
        row["quantization"] = {"scale": [scale], "zero_point": [-3]}
    return row


def accumulator(first: int | None = None, *, assigned_before: bool = False) -> bytes:
    """Add the input to a variable; give the sum. CALL_ONCE fills it with `first`, if given."""
    net = NetworkBuilder()
    x, before, after = (net.tensor(name, MAP, "int8", 0.1, -3) for name in ("x", "before", "after"))
    handle = net.resource("handle")
    options: Record = {"shared_name": "total"}
    net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", options))
    if assigned_before:
        doubled = net.tensor("doubled", MAP, "int8", 0.1, -3)
        net.operator("ADD", [x, x], [doubled], ("AddOptions", {}))
        net.operator("ASSIGN_VARIABLE", [handle, doubled], [], ("AssignVariableOptions", {}))
    net.operator("READ_VARIABLE", [handle], [before], ("ReadVariableOptions", {}))
    net.operator("ADD", [before, x], [after], ("AddOptions", {}))
    net.operator("ASSIGN_VARIABLE", [handle, after], [], ("AssignVariableOptions", {}))
    data = net.finish([x], [after])
    return data if first is None else filled(data, np.full(MAP, first, np.int8), options)


def filled(data: bytes, contents: Any, options: Record) -> bytes:
    record: dict[str, Any] = read(data, SCHEMA, "net")
    codes = record["operator_codes"] = list(record["operator_codes"])
    names = [BuiltinOperator(max(r["builtin_code"], r["deprecated_builtin_code"])) for r in codes]
    codes.append({"builtin_code": int(BuiltinOperator.CALL_ONCE), "version": 1,
                  "deprecated_builtin_code": 127})  # fmt: skip
    record["buffers"] = [*record["buffers"], {"data": contents.view(np.uint8).ravel()}]
    once = {"opcode_index": len(codes) - 1, "inputs": [], "outputs": [],
            "builtin_options": Member("CallOnceOptions", {"init_subgraph_index": 1})}  # fmt: skip
    handle = {"opcode_index": names.index(BuiltinOperator.VAR_HANDLE), "inputs": [],
              "outputs": [0], "builtin_options": Member("VarHandleOptions", options)}  # fmt: skip
    assign = {"opcode_index": names.index(BuiltinOperator.ASSIGN_VARIABLE), "inputs": [0, 1],
              "outputs": [], "builtin_options": Member("AssignVariableOptions", {})}  # fmt: skip
    start = {"tensors": [tensor("handle", TensorType.RESOURCE),
                         tensor("start", TensorType.INT8, len(record["buffers"]) - 1, 0.1)],
             "inputs": [], "outputs": [], "operators": [handle, assign]}  # fmt: skip
    (main,) = record["subgraphs"]
    main = {**main, "operators": [once, *main["operators"]]}
    record["subgraphs"] = [main, start]
    return write(record, SCHEMA)


def inputs(seed: int) -> Any:
    return np.random.default_rng(seed).integers(-40, 40, (BATCH, *MAP)).astype(np.int8)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("first", [None, 17])
def test_state_goes_on_as_on_the_cpu(first: int | None, accelerator: str) -> None:
    data = accumulator(first)
    artifact = mizzen.compile(data, accelerator)
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


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_a_variable_that_is_assigned_and_then_read_is_refused(accelerator: str) -> None:
    with pytest.raises(mizzen.MizzenError) as caught:
        mizzen.compile(accumulator(assigned_before=True), accelerator)
    assert str(caught.value) == (
        "error[E306]: variable 'total' must be read behind what is assigned to it in the same "
        "inference, and the compiler reads it in front\n"
        "  at   model.tflite\n"
        "  rule Vela 5.2.0 orders operators by the tensors that they share\n"
        "  help take the tensor that is assigned instead of reading the variable again"
    )
