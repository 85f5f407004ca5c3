"""Archives with parts for ONNX Runtime: what comes back, and what a damaged one says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

import onnx

import mizzen
from mizzen.archives import packed, unpacked
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.onnx_steps import DivideStep, OrtStep
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError

from .networks import differing, images, outputs, torn, whole

Plan = dict[str, Any]


@pytest.fixture(scope="module")
def archive() -> bytes:
    return mizzen.compile(torn().data, "ethos-u55-128").data


def test_steps_come_back(archive: bytes) -> None:
    steps = artifact_of(archive, "net.zip").steps
    assert [type(step) for step in steps if isinstance(step, (NpuStep, OrtStep))][1] is OrtStep
    assert sum(isinstance(step, NpuStep) for step in steps) == 2
    assert isinstance(steps[0], DivideStep)
    assert "onnx2.onnx" in unpacked(archive)


def test_bytes_without_a_sign_in_an_archive() -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    data, x = whole("uint8").data, images()
    artifact = mizzen.compile(data, "ethos-u55-128", ignore_ops=["RELU"])
    again = artifact_of(artifact.data, "net.zip")
    assert differing(outputs(again, x), outputs(artifact, x)) == 0


def test_commands_name_the_same_operators(archive: bytes) -> None:
    assert archive == mizzen.compile(torn().data, "ethos-u55-128").data


def error_of(data: bytes) -> str:
    with pytest.raises(MizzenError) as caught:
        artifact_of(data, "net.zip")
    return str(caught.value)


def with_plan(archive: bytes, change: Callable[[Plan], object]) -> bytes:
    members = unpacked(archive)
    plan = json.loads(members["plan.json"])
    change(plan)
    return packed({**members, "plan.json": json.dumps(plan).encode()})


def step_of(plan: Plan, kind: str) -> Plan:
    return next(step for step in plan["steps"] if step["kind"] == kind)


CHANGES: dict[str, Callable[[Plan], object]] = {
    "no such tensor": lambda plan: step_of(plan, "onnx").update(inputs=[99]),
    "too few inputs": lambda plan: step_of(plan, "onnx").update(inputs=[]),
    "too few types": lambda plan: step_of(plan, "onnx").update(dtypes=[]),
    "another type": lambda plan: step_of(plan, "onnx").update(dtypes=["<f8"]),
    "objects": lambda plan: step_of(plan, "onnx").update(dtypes=["O"]),
    "operators": lambda plan: step_of(plan, "onnx").update(operators=[1]),
    "a scale of 0": lambda plan: step_of(plan, "divide")["numbers"].__setitem__(2, 0.0),
    "a scale of nothing": lambda plan: step_of(plan, "divide")["numbers"].__setitem__(2, "nan"),
    "no zero point": lambda plan: step_of(plan, "divide")["numbers"].__setitem__(3, None),
    "a sign of real numbers": lambda plan: plan["steps"].append(
        {"kind": "sign", "numbers": [0, 9]}
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_plans_that_do_not_fit(archive: bytes, change: Callable[[Plan], object]) -> None:
    assert error_of(with_plan(archive, change)).startswith("error[E115]: net.zip must be an ")


def with_part(archive: bytes, change: Callable[[Any], object]) -> bytes:
    members = unpacked(archive)
    model = onnx.load_model_from_string(members["onnx2.onnx"])
    change(model)
    return packed({**members, "onnx2.onnx": model.SerializeToString()})


def open_shape(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"


def elsewhere(model: Any) -> None:
    model.graph.initializer[0].external_data.add(key="location", value="../../secret")


PARTS: dict[str, Callable[[Any], object]] = {
    "another library": lambda model: setattr(model.graph.node[0], "domain", "mine"),
    "a tensor elsewhere": elsewhere,
    "an open shape": open_shape,
    "one input more": lambda model: model.graph.input.add().CopyFrom(model.graph.output[0]),
    "another shape": lambda model: model.graph.input[0].type.tensor_type.shape.dim.add(dim_value=2),
    "a type that nothing has": lambda model: setattr(
        model.graph.input[0].type.tensor_type, "elem_type", 99
    ),
}


@pytest.mark.parametrize("change", PARTS.values(), ids=PARTS)
def test_parts_that_are_not_mizzens(archive: bytes, change: Callable[[Any], object]) -> None:
    assert error_of(with_part(archive, change)).startswith("error[E115]: net.zip must be an ")


def test_parts_that_are_missing_or_cut(archive: bytes) -> None:
    members = unpacked(archive)
    part = members.pop("onnx2.onnx")
    assert error_of(packed(members)).startswith("error[E115]")
    cut = packed({**members, "onnx2.onnx": part[: len(part) // 2]})
    assert error_of(cut).startswith("error[E115]")


def test_any_byte_of_a_part_may_be_wrong(archive: bytes) -> None:
    members = unpacked(archive)
    part = members["onnx2.onnx"]
    rng = np.random.default_rng(2)
    codes: set[str] = set()
    for _ in range(200):
        place = int(rng.integers(len(part)))
        damaged = part[:place] + bytes([int(rng.integers(256))]) + part[place + 1 :]
        try:
            artifact = artifact_of(packed({**members, "onnx2.onnx": damaged}), "net.zip")
            artifact.run(images(1))
        except MizzenError as error:
            codes.add(error.diagnostic.code)
    assert codes == {"E115", "E725"}


def test_without_the_package_onnx(archive: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    assert error_of(archive).startswith("error[E193]: the package onnx must be installed to read")
