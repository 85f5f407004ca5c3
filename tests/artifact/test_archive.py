"""Archives of programs that say what they like: nothing is executed, all is refused."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torch import nn

from mizzen.archives import packed, unpacked
from mizzen.artifact.host_steps import TorchStep
from mizzen.artifact.loading import artifact_of, load
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.torch import compile

Plan = dict[str, Any]


class Split(nn.Module):
    """Two regions with PyTorch's sort between."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.sort(self.linear(x), -1)[0])


@pytest.fixture(scope="module")
def archive() -> bytes:
    torch.manual_seed(0)
    calls = [torch.randn(1, 8) for _ in range(4)]
    return compile(Split().eval(), (calls[0],), "ethos-u55-128", calibration=calls).data


def test_commands_of_a_saved_program_name_its_operators(tmp_path: Path) -> None:
    torch.manual_seed(0)
    calls = [torch.randn(1, 8) for _ in range(4)]
    artifact = compile(Split().eval(), (calls[0],), "ethos-u55-128", calibration=calls)
    artifact.save(tmp_path / artifact.name)
    loaded = load(tmp_path / artifact.name)
    streams = [step.program.origins for step in loaded.steps if isinstance(step, NpuStep)]
    assert len(streams) == 2
    assert streams == [step.program.origins for step in artifact.steps if isinstance(step, NpuStep)]
    assert all(row.kind == "aten.linear" for stream in streams for row in stream.values())


def error_of(data: bytes) -> str:
    with pytest.raises(MizzenError) as caught:
        artifact_of(data, "net.zip")
    return str(caught.value)


def with_plan(archive: bytes, change: Callable[[Plan], object]) -> bytes:
    members = unpacked(archive)
    plan = json.loads(members["plan.json"])
    change(plan)
    return packed({**members, "plan.json": json.dumps(plan).encode()})


def kinds(plan: Plan) -> dict[str, Plan]:
    return {row["kind"]: row for row in plan["steps"]}


class Payload:
    """Pickled, it makes the folder that it names when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_pickles_in_the_part_of_pytorch(archive: bytes, tmp_path: Path) -> None:
    members = unpacked(archive)
    (name,) = [key for key in members if key.endswith(".pt2")]
    inner = unpacked(members[name])
    pickled = io.BytesIO()
    torch.save(Payload(tmp_path / "executed"), pickled)
    (samples,) = [key for key in inner if "sample_inputs" in key]
    artifact_of(packed({**members, name: packed({**inner, samples: pickled.getvalue()})}), "net")
    assert not (tmp_path / "executed").exists()
    (program,) = [key for key in inner if key.endswith("models/model.json")]
    text = inner[program].replace(b"torch.ops.aten.sort.default", b"torch.os.system")
    found = error_of(packed({**members, name: packed({**inner, program: text})}))
    assert found.startswith("error[E169]: a file's program must be tensors and operators on them")


def test_pickled_arrays(archive: bytes, tmp_path: Path) -> None:
    array = io.BytesIO()
    np.save(array, np.array([Payload(tmp_path / "executed")], object))
    arrays = packed({"constant0.npy": array.getvalue()})
    assert error_of(packed({**unpacked(archive), "arrays.npz": arrays})) == (
        "error[E115]: net.zip must be an archive that `mizzen compile` wrote: must hold numbers, "
        "not object\n"
        "  help compile the program again"
    )
    assert not (tmp_path / "executed").exists()


CHANGES: dict[str, Callable[[Plan], object]] = {
    "another version": lambda plan: plan.update(version=2),
    "no such step": lambda plan: plan["steps"][0].update(kind="shell"),
    "a tensor that nothing gives": lambda plan: kinds(plan)["torch"].update(inputs=[99]),
    "an output that nothing gives": lambda plan: plan.update(outputs=[99]),
    "an input too many": lambda plan: kinds(plan)["npu"]["inputs"].append(0),
    "another shape": lambda plan: kinds(plan)["npu"]["shapes"].update(
        {key: [1, 1 << 40] for key in kinds(plan)["npu"]["shapes"]}
    ),
    "objects": lambda plan: [row.update(dtype="|O") for row in plan["tensors"].values()],
    "a type of a gigabyte": lambda plan: kinds(plan)["quantize"].update(dtype="V1000000000"),
    "another type": lambda plan: kinds(plan)["quantize"].update(dtype="<i4"),
    "constants that are not there": lambda plan: plan.update(constants=[5]),
    "a zero point that is no whole number": lambda plan: [
        row.update(scale=[1.0], zero_point=[0.5]) for row in plan["tensors"].values()
    ],
    "a scale that is no number": lambda plan: [
        row.update(scale=["x"], zero_point=[0]) for row in plan["tensors"].values()
    ],
    "an extent that is no number": lambda plan: [
        row.update(shape=[None, 8]) for row in plan["tensors"].values()
    ],
    "an extent below zero": lambda plan: [
        row.update(shape=[-1, 8]) for row in plan["tensors"].values()
    ],
    "an input with half a number": lambda plan: plan.update(inputs=[0.5]),
    "a scale of a step that is no number": lambda plan: kinds(plan)["quantize"].update(
        numbers=[0, 1, "x", 0, -128, 127]
    ),
    "a scale of a step that is zero": lambda plan: kinds(plan)["quantize"].update(
        numbers=[0, 1, 0.0, 0, -128, 127]
    ),
    "operators that are no names": lambda plan: kinds(plan)["torch"].update(operators=[["sort"]]),
    "steps that are no list": lambda plan: plan.update(steps=7),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_plans_that_do_not_fit(archive: bytes, change: Callable[[Plan], object]) -> None:
    assert error_of(with_plan(archive, change)).startswith(
        "error[E115]: net.zip must be an archive that `mizzen compile` wrote: "
    )


def test_a_plan_with_endless_scales(archive: bytes) -> None:
    def change(plan: Plan) -> None:
        for row in plan["tensors"].values():
            row.update(scale=[float("inf")], zero_point=[0])

    assert error_of(with_plan(archive, change)).startswith("error[E116]: net.zip must have inputs")


def test_a_plan_nested_without_end(archive: bytes) -> None:
    found = error_of(packed({**unpacked(archive), "plan.json": b"[" * 100_000}))
    assert found.startswith("error[E115]")


def test_bombs() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plan.json", bytes(1 << 28))
    assert "must unpack to at most" in error_of(file.getvalue())


def test_pytorch_says_what_does_not_suit_it(archive: bytes) -> None:
    artifact = artifact_of(archive, "net.zip")
    (step,) = [row for row in artifact.steps if isinstance(row, TorchStep)]

    def failing(*_: object) -> None:
        raise RuntimeError("no room\nfor this")

    step.module = failing
    with pytest.raises(MizzenError) as caught:
        artifact.run(np.zeros((1, 8), np.float32))
    assert str(caught.value) == (
        "error[E718]: PyTorch must compute aten.sort, but says: no room\n"
        "  help the values do not suit the operators, or the artifact is damaged"
    )
