"""Reading artifacts: TFLite networks, archives of programs with PyTorch's part, Vela's `.npz`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.artifact.arena_step import share_arena
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.execution import Contents
from mizzen.artifact.interface import Origins, TensorInfo
from mizzen.artifact.steps import CpuStep, Step, is_npu, npu_step, read_network
from mizzen.diagnostics import fail
from mizzen.frontends.tflite import Model, Tensor
from mizzen.report import read_sidecar
from mizzen.targets.families import family_for

if TYPE_CHECKING:
    from mizzen.report import CompileReport

ARCHIVE_START = b"PK"
"""How a ZIP archive starts, which is what an `.npz` is."""

PLAN_NAME = b"plan.json"
"""In every archive of a program that runs partly in PyTorch."""


def load(path: str | Path, accelerator: str | None = None) -> Artifact:
    """Read an artifact: a compiled `.tflite`, one with nothing for an NPU, or Vela's raw `.npz`.

    `accelerator` asserts which configuration the artifact is for. Raises E1xx for files that are
    not artifacts or are damaged, E113 for another accelerator, E210 for one that there is not.
    """
    if accelerator is not None:
        family_for(accelerator)
    source = Path(path)
    try:
        data = source.read_bytes()
    except OSError as error:
        raise fail("E110", f"{source} must be a file that can be read: {error.strerror}") from None
    report = read_sidecar(source, data)
    artifact = artifact_of(data, source.name, report, () if report is None else report.origins)
    if accelerator is not None and artifact.accelerator not in (None, accelerator):
        raise fail(
            "E113",
            f"{source.name} must be for {accelerator}, and was compiled for {artifact.accelerator}",
            help=f"compile the network with --accelerator-config {accelerator}",
        )
    return artifact


def artifact_of(
    data: bytes, name: str, report: CompileReport | None = None, origins: Sequence[Origins] = ()
) -> Artifact:
    """Read the bytes of an artifact; `origins` of the NPU operators' streams, in order."""
    return Artifact(data, name, _contents(data, name, origins), report)


def _contents(data: bytes, name: str, origins: Sequence[Origins]) -> Contents:
    if not data.startswith(ARCHIVE_START):
        return contents_of(read_network(data, name), origins)
    if PLAN_NAME in data:
        from mizzen.artifact.archive import is_program, unpack

        if is_program(data):
            return unpack(data, name)
    from mizzen.artifact import vela_raw

    return vela_raw.contents_of(data, name)


def contents_of(
    model: Model, origins: Sequence[Origins] = (), programs: Sequence[object] = ()
) -> Contents:
    """Return what a compiled TFLite network holds.

    programs  of its NPU operators, in order, as far as their compiler hands them over
    """
    main = model.main
    steps, arena = share_arena(model, tuple(_steps(model, origins, programs)))
    needed = {index for step in steps for index in step.inputs} | set(main.outputs)
    values = {index: main.tensors[index].values for index in needed}
    edge = (*main.inputs, *main.outputs)
    return Contents(
        inputs=main.inputs,
        outputs=main.outputs,
        infos={index: _info(main.tensors[index], model.name) for index in edge},
        steps=tuple(steps),
        constants={index: array for index, array in values.items() if array is not None},
        arena=arena,
    )


def _info(tensor: Tensor, file: str) -> TensorInfo:
    if tensor.dtype is None:
        raise fail(
            "E714",
            f"{file}: tensor {tensor.name!r} must have a type that NumPy has, "
            f"not {tensor.type.name}",
        )
    return TensorInfo(tensor.name, tensor.shape, tensor.dtype, tensor.quantization)


def _steps(model: Model, origins: Sequence[Origins], programs: Sequence[object]) -> Iterator[Step]:
    streams = 0
    for on_npu, operators in groupby(model.main.operators, is_npu):
        if not on_npu:
            yield CpuStep(model, list(operators))
            continue
        for operator in operators:
            known = origins[streams] if streams < len(origins) else {}
            program = programs[streams] if streams < len(programs) else None
            yield npu_step(model, operator, known, program)
            streams += 1
