"""Bytes to contents: TFLite and ExecuTorch, archives with PyTorch's part, Vela's `.npz`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from mizzen.artifact.arena_step import share_arena
from mizzen.artifact.execution import Contents
from mizzen.artifact.interface import Origins, TensorInfo
from mizzen.artifact.resources import Variables, VariableStep, variables_of
from mizzen.artifact.steps import CpuStep, NpuStep, Step, is_npu, npu_step, read_network
from mizzen.diagnostics import fail
from mizzen.flatbuffer.pte import is_pte
from mizzen.frontends.tflite import Model, Operator, Tensor
from mizzen.frontends.tflite.variables import VARIABLE_KINDS

ARCHIVE_START = b"PK"
"""How a ZIP archive starts, which is what an `.npz` is."""

PLAN_NAME = b"plan.json"
"""In every archive of a program that runs partly in PyTorch."""


def contents_from(data: bytes, name: str, origins: Sequence[Origins]) -> Contents:
    """Return what the bytes of an artifact hold; `origins` of the NPU operators' streams."""
    if is_pte(data, name):
        from mizzen.artifact import pte

        return pte.contents_of(data, name)
    if not data.startswith(ARCHIVE_START):
        return contents_of(read_network(data, name), origins)
    if PLAN_NAME in data:
        from mizzen.artifact.archive import is_program, unpack

        if is_program(data):
            return unpack(data, name, origins)
    from mizzen.artifact import vela_raw

    return vela_raw.contents_of(data, name)


def whole(data: bytes, name: str, contents: Contents) -> bytes:
    """Return bytes that have all steps of an artifact, its host's too.

    A network of one NPU operator that PyTorch's numbers go around is saved without what makes them
    integers; for another process it is packed with that.
    """
    from mizzen.artifact.archive import is_program, pack

    own = (NpuStep, CpuStep, VariableStep)
    if is_pte(data, name) or all(isinstance(step, own) for step in contents.steps):
        return data
    if is_program(data):
        return data
    return pack(name, contents, [data])


def contents_of(
    model: Model, origins: Sequence[Origins] = (), programs: Sequence[object] = ()
) -> Contents:
    """Return what a compiled TFLite network holds.

    programs  of its NPU operators, in order, as far as their compiler hands them over
    """
    main = model.main
    runs = groupby(main.operators, is_npu)
    variables = variables_of(model, [list(rows) for on_npu, rows in runs if not on_npu])
    steps, arena = share_arena(model, tuple(_steps(model, origins, programs, variables)))
    needed = {index for step in steps for index in step.inputs} | set(main.outputs)
    values = {index: main.tensors[index].values for index in needed}
    edge = (*main.inputs, *main.outputs)
    contents = Contents(
        inputs=main.inputs,
        outputs=main.outputs,
        infos={index: _info(main.tensors[index], model.name) for index in edge},
        steps=tuple(steps),
        constants={index: array for index, array in values.items() if array is not None},
        carried=variables.carried if variables else (),
        arena=arena,
    )
    _require_order(model, contents)
    return contents


def _require_order(model: Model, contents: Contents) -> None:
    """Check that something gives each tensor before it is taken. E124 if nothing does."""
    known = {*contents.inputs, *contents.constants}
    known.update(contents.arena.places if contents.arena else ())
    for step in contents.steps:
        if isinstance(step, NpuStep):
            known.update(row.index for row in step.variables)
    taken = [*(step.inputs for step in contents.steps), contents.outputs]
    given = [*(step.outputs for step in contents.steps), ()]
    for step_takes, step_gives in zip(taken, given, strict=True):
        for index in step_takes:
            if index not in known:
                tensor = model.main.tensors[index]
                raise fail(
                    "E124",
                    f"{model.name}: something must give tensor {index} {tensor.name!r} before it "
                    "is taken, and state of CPU operators is theirs alone",
                    help="the network is damaged; make it again",
                )
        known.update(step_gives)


def _info(tensor: Tensor, file: str) -> TensorInfo:
    if tensor.dtype is None:
        raise fail(
            "E714",
            f"{file}: tensor {tensor.name!r} must have a type that NumPy has, "
            f"not {tensor.type.name}",
        )
    return TensorInfo(tensor.name, tensor.shape, tensor.dtype, tensor.quantization)


def _steps(
    model: Model,
    origins: Sequence[Origins],
    programs: Sequence[object],
    variables: Variables | None,
) -> Iterator[Step]:
    streams = 0

    def part(row: Operator) -> tuple[bool, bool]:
        return is_npu(row), variables is not None and row.kind in VARIABLE_KINDS

    for (on_npu, on_variables), operators in groupby(model.main.operators, part):
        if on_variables and variables is not None:
            yield VariableStep(model, list(operators), variables)
            continue
        if not on_npu:
            yield CpuStep(model, list(operators))
            continue
        for operator in operators:
            known = origins[streams] if streams < len(origins) else {}
            program = programs[streams] if streams < len(programs) else None
            yield npu_step(model, operator, known, program)
            streams += 1
