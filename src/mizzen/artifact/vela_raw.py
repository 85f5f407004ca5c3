"""Vela's raw archives, `.npz`, as what an artifact holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mizzen.artifact.ethos_u import ETHOS_U
from mizzen.artifact.execution import Contents
from mizzen.artifact.interface import Origins, TensorInfo, Variable
from mizzen.artifact.program import CompiledPart
from mizzen.artifact.steps import NpuStep
from mizzen.frontends.tflite import Quantization, zero_of
from mizzen.targets.ethos_u.vela.raw import raw


def contents_of(data: bytes, name: str, origins: Sequence[Origins] = ()) -> Contents:
    """Read an archive: one program, whose tensors get their places as indices.

    origins  of its stream, where they are known

    Raises E54x for a file that is not one.
    """
    model = raw.read(data, name)
    program = replace(model.program, origins=origins[0]) if origins else model.program
    taken = range(len(program.inputs))
    given = range(len(program.inputs), len(program.inputs) + len(program.outputs))
    real = [index for index in taken if not program.inputs[index].variable]
    quantized = dict(zip((*taken, *given), (*model.inputs, *model.outputs), strict=True))
    infos = {
        index: TensorInfo(place.name, place.shape, place.dtype, _raw_quantization(quantized, index))
        for index, place in zip((*taken, *given), (*program.inputs, *program.outputs), strict=True)
    }
    variables = tuple(
        Variable(index, place.shape, place.dtype, zero_of(infos[index].quantization))
        for index, place in enumerate(program.inputs)
        if place.variable
    )
    step = NpuStep(ETHOS_U, CompiledPart(program, tuple(taken), tuple(given), variables))
    return Contents(tuple(real), tuple(given), infos, (step,), {})


def _raw_quantization(
    quantized: dict[int, raw.RawQuantization | None], index: int
) -> Quantization | None:
    quantization = quantized.get(index)
    return (
        None
        if quantization is None
        else Quantization(quantization.scales, quantization.zero_points)
    )
