"""Bytes to contents: TFLite and ExecuTorch, archives with PyTorch's part, Vela's `.npz`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import groupby, zip_longest
from types import MappingProxyType

from mizzen.artifact.arena_step import share_arena
from mizzen.artifact.control_step import ControlStep
from mizzen.artifact.execution import Contents
from mizzen.artifact.hosting import hosted
from mizzen.artifact.interface import Origins, TensorInfo
from mizzen.artifact.resources import Variables, VariableStep, variables_of
from mizzen.artifact.steps import CpuStep, NpuStep, Step, is_npu, npu_step, read_network
from mizzen.diagnostics import fail
from mizzen.flatbuffer.pte import is_pte
from mizzen.frontends.foreign import is_exported, not_read
from mizzen.frontends.tflite import Model, Operator, Tensor
from mizzen.frontends.tflite.subgraphs import called, names_of, reached_from, seen_from
from mizzen.frontends.tflite.variables import VARIABLE_KINDS

ARCHIVE_START = b"PK"
"""How a ZIP archive starts, which is what an `.npz` is."""

SHOWN_SCALES = 3
"""Of a tensor that has one for each channel."""

PLAN_NAME = b"plan.json"
"""In every archive of a program that runs partly in PyTorch."""

NO_CALLEES: Mapping[int, Sequence[int]] = MappingProxyType({})


def contents_from(data: bytes, name: str, origins: Sequence[Origins]) -> Contents:
    """Return the contents of an artifact's bytes; `origins` of the NPU operators' streams.

    E116 for inputs and outputs whose integers stand for nothing.
    """
    contents = _contents_from(data, name, origins)
    for index in (*contents.inputs, *contents.outputs):
        _require_scales(contents.infos[index], name)
    return contents


def _require_scales(info: TensorInfo, name: str) -> None:
    quantization = info.quantization
    if quantization is not None and not all(map(math.isfinite, quantization.scale)):
        raise fail(
            "E116",
            f"{name} must have inputs and outputs whose scales are finite numbers, and "
            f"{info.name} has {', '.join(map(str, quantization.scale[:SHOWN_SCALES]))}",
            help="quantise the network again, with data that have no NaN and no infinity",
        )


def _contents_from(data: bytes, name: str, origins: Sequence[Origins]) -> Contents:
    if is_pte(data, name):
        from mizzen.artifact import pte

        return pte.contents_of(data, name, origins)
    if not data.startswith(ARCHIVE_START):
        return contents_of(read_network(data, name), origins)
    if PLAN_NAME in data:
        from mizzen.artifact.archive import is_program, unpack

        if is_program(data):
            return unpack(data, name, origins)
    if is_exported(name):
        raise not_read(data, name, "")
    from mizzen.artifact import vela_raw

    return vela_raw.contents_of(data, name, origins)


def whole(data: bytes, name: str, contents: Contents) -> bytes:
    """Return bytes that have all steps of an artifact, its host's too.

    A network of one NPU operator that PyTorch's numbers go around is saved without what makes them
    integers; for another process it is packed with that.
    """
    from mizzen.artifact.archive import is_program, pack

    own = (NpuStep, CpuStep, VariableStep, ControlStep)
    if is_pte(data, name) or all(isinstance(step, own) for step in contents.steps):
        return data
    if is_program(data):
        return data
    return pack(name, contents, [data])


def contents_of(
    model: Model, origins: Sequence[Origins] = (), programs: Sequence[object] = ()
) -> Contents:
    """Return the contents of a compiled TFLite network: of its main subgraph, with the others.

    programs  of its NPU operators, in order, as far as their compiler hands them over
    """
    if len(model.subgraphs) == 1:
        runs = groupby(model.main.operators, is_npu)
        variables = variables_of(model, [list(run) for on_npu, run in runs if not on_npu])
        contents = _contents(model, Streams(origins, programs), variables)
        return replace(contents, signatures=model.signatures)
    return _Reader(model, Streams(origins, programs)).contents()


@dataclass(frozen=True, slots=True)
class Streams:
    """What is known of the NPU operators of a subgraph besides the file, in order."""

    origins: Sequence[Origins]
    programs: Sequence[object]

    def behind(self, count: int) -> Streams:
        """Return the streams after the first `count`."""
        return Streams(self.origins[count:], self.programs[count:])


class _Reader:
    """Reads the subgraphs of a network, those that an operator executes before the operator."""

    def __init__(self, model: Model, streams: Streams) -> None:
        self._model = model
        self._hosted = hosted(model)
        self._names = names_of(model)
        self._found: dict[int, Contents] = {}
        self._streams: dict[int, Streams] = {}
        for index in self._hosted.subgraphs:
            self._streams[index] = streams
            streams = streams.behind(sum(map(is_npu, model.subgraphs[index].operators)))

    def contents(self) -> Contents:
        """Return the contents of all subgraphs."""
        subgraphs = [self._of(index) for index in self._hosted.subgraphs]
        main, *others = subgraphs
        return replace(main, others=tuple(others), signatures=self._model.signatures)

    def _of(self, index: int) -> Contents:
        if index not in self._found:
            seen = seen_from(self._model, reached_from(self._model, index))
            callees = {
                operator.index: tuple(called(operator))
                for operator in self._model.subgraphs[index].operators
                if (index, operator.index) in self._hosted.callers
            }
            variables = self._hosted.variables.get(index)
            contents = _contents(seen, self._streams[index], variables, callees)
            below = {other: self._of(other) for indices in callees.values() for other in indices}
            title = self._names[index]
            self._found[index] = replace(contents, index=index, title=title, below=below)
        return self._found[index]


def _contents(
    model: Model,
    streams: Streams,
    variables: Variables | None,
    callees: Mapping[int, Sequence[int]] = NO_CALLEES,
) -> Contents:
    """Return the contents of the main subgraph.

    callees  what operators execute, by operator, which are steps of their own
    """
    main = model.main
    steps, arena = share_arena(model, tuple(_steps(model, streams, variables, callees)))
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
            known.update(variable.index for variable in step.variables)
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


class _Kind(Enum):
    """How an operator is executed."""

    NPU = auto()
    VARIABLES = auto()
    CONTROL = auto()
    CPU = auto()


def _steps(
    model: Model,
    streams: Streams,
    variables: Variables | None,
    callees: Mapping[int, Sequence[int]],
) -> Iterator[Step]:
    def kind(operator: Operator) -> _Kind:
        if is_npu(operator):
            return _Kind.NPU
        if operator.index in callees:
            return _Kind.CONTROL
        is_on_variables = variables is not None and operator.kind in VARIABLE_KINDS
        return _Kind.VARIABLES if is_on_variables else _Kind.CPU

    for what, operators in groupby(model.main.operators, kind):
        match what:
            case _Kind.VARIABLES:
                assert variables is not None
                yield VariableStep(model, list(operators), variables)
            case _Kind.CPU:
                yield CpuStep(model, list(operators))
            case _Kind.CONTROL:
                yield from (
                    ControlStep(model, operator, callees[operator.index]) for operator in operators
                )
            case _Kind.NPU:
                of_npu = list(operators)
                yield from _npu_steps(model, of_npu, streams)
                streams = streams.behind(len(of_npu))


def _npu_steps(model: Model, operators: Sequence[Operator], streams: Streams) -> Iterator[Step]:
    known = (operators, streams.origins, streams.programs)
    for operator, origins, program in zip_longest(*known):
        if operator is None:
            return
        yield npu_step(model, operator, origins or {}, program)
