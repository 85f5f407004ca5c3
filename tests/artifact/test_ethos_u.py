from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mizzen.artifact.ethos_u import NpuOperator, npu_operator
from mizzen.artifact.steps import is_npu
from mizzen.artifact.steps import read_network as read
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model
from mizzen.package.tflite.builder import NetworkBuilder

OFFSETS = (-1, -1, 16, 16, 16, 48, 32)
"""Of payload, read-only data, scratch, fast scratch, input, state, output."""


def artifact(
    offsets: Sequence[int] | None = OFFSETS,
    inputs: Sequence[int] = (0, 1, 2, 3, 4, 5),
    *,
    constants: bool = True,
) -> Model:
    net = NetworkBuilder()
    if constants:
        net.constant("payload", np.arange(8, dtype=np.uint8))
        net.constant("read_only", np.arange(20, dtype=np.uint8))
    else:
        net.tensor("payload", [8], "uint8")
        net.tensor("read_only", [0], "uint8")
    net.tensor("scratch", [640], "uint8")
    net.tensor("scratch_fast", [320], "uint8")
    x = net.tensor("x", (1, 4, 4), "int8", 0.5)
    net.tensor("state", (1, 4), "int16", 0.5, variable=True)
    y = net.tensor("y", (1, 8), "int8", 0.5)
    net.operator("ethos-u", inputs, [y], custom_options=b"\x01\x04\x01")
    if offsets is not None:
        words = np.array([0, 0, len(offsets), *offsets], "<i4")
        net.metadata("OfflineMemoryAllocation", words.tobytes())
    return read(net.finish([x], [y]), "net_vela.tflite")


def parts(model: Model) -> NpuOperator:
    (operator,) = model.main.operators
    assert is_npu(operator)
    return npu_operator(model, operator)


def test_parts_lie_where_the_metadata_says() -> None:
    npu = parts(artifact())
    assert npu.payload.tolist() == list(range(8))
    assert npu.read_only.tolist() == list(range(20))
    assert (npu.scratch_bytes, npu.scratch_fast_bytes) == (640, 320)
    assert [(place.tensor.name, place.offset_bytes) for place in npu.inputs] == [
        ("x", 0), ("state", 32),
    ]  # fmt: skip
    assert [(place.tensor.name, place.offset_bytes) for place in npu.outputs] == [("y", 16)]
    assert npu.inputs[1].tensor.variable


def test_the_fast_scratch_may_be_the_scratch() -> None:
    assert parts(artifact(inputs=[0, 1, 2, 2, 4])).scratch_fast_bytes is None


def test_another_custom_operator_is_none_for_the_npu() -> None:
    net = NetworkBuilder()
    x = net.tensor("x", (1, 4), "int8", 0.5)
    net.operator("ethos-x", [x], [x])
    (operator,) = read(net.finish([x], [x]), "net").main.operators
    assert not is_npu(operator)


AT = '\n  at   net_vela.tflite, operator 0 ethos-u -> "y"\n'
END = (
    "  rule Vela 5.2, tflite_writer.py\n"
    "  help the artifact is damaged; compile it again"
)  # fmt: skip

BROKEN: dict[str, tuple[Model, str]] = {
    "too few inputs": (
        artifact(inputs=[0, 1, 2]),
        "error[E120]: an NPU operator must have 4 inputs and its real ones, not [0, 1, 2]",
    ),
    "an absent input": (
        artifact(inputs=[0, 1, 2, 3, -1]),
        "error[E120]: an NPU operator must have 4 inputs and its real ones, not [0, 1, 2, 3, -1]",
    ),
    "no payload": (
        artifact(constants=False),
        "error[E120]: an NPU operator's payload must be a constant",
    ),
    "no metadata": (
        artifact(None),
        "error[E121]: an artifact must have metadata OfflineMemoryAllocation, and has none",
    ),
    "too little metadata": (
        artifact(OFFSETS[:-1]),
        "error[E121]: OfflineMemoryAllocation must have an offset for each of 7 tensors, and has 6",
    ),
    "an input outside the arena": (
        artifact([-1, -1, 16, 16, -1, 48, 32]),
        'error[E121]: tensor 4 "x" must lie after the start of the scratch memory, but '
        "OfflineMemoryAllocation gives -1 and 16",
    ),
    "an output before the scratch": (
        artifact([-1, -1, 16, 16, 16, 48, 0]),
        'error[E121]: tensor 6 "y" must lie after the start of the scratch memory, but '
        "OfflineMemoryAllocation gives 0 and 16",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_operators_of_another_form_are_refused(name: str) -> None:
    model, message = BROKEN[name]
    with pytest.raises(MizzenError) as caught:
        parts(model)
    assert str(caught.value) == message + AT + END


@pytest.mark.parametrize("variable", [False, True])
def test_a_shape_outside_the_arena_is_no_input_of_the_npu(variable: bool) -> None:
    net = NetworkBuilder()
    payload = net.constant("payload", np.arange(8, dtype=np.uint8))
    scratch = net.tensor("scratch", [64], "uint8")
    shape = net.tensor("shape", (2,), "int32", variable=variable)
    x = net.tensor("x", (1, 4), "int8", 0.5)
    net.operator("ethos-u", [payload, payload, scratch, scratch, shape, x], [x])
    net.metadata("OfflineMemoryAllocation", np.array([0, 0, 4, -1, 0, -1, 0], "<i4").tobytes())
    found = parts(read(net.finish([shape, x], [x]), "net"))
    assert [row.tensor.name for row in found.inputs] == ["x"]


def test_read_only_data_may_be_empty() -> None:
    net = NetworkBuilder()
    payload = net.constant("payload", np.arange(8, dtype=np.uint8))
    empty, scratch = net.tensor("read_only", [0], "uint8"), net.tensor("scratch", [64], "uint8")
    x = net.tensor("x", (1, 4), "int8", 0.5)
    net.operator("ethos-u", [payload, empty, scratch, scratch, x], [x])
    net.metadata("OfflineMemoryAllocation", np.array([0, 0, 4, -1, -1, 0, 0], "<i4").tobytes())
    assert parts(read(net.finish([x], [x]), "net")).read_only.size == 0
