"""Which operators of a network are compiled parts, and which family's they are."""

from __future__ import annotations

from mizzen.artifact.interface import Origins
from mizzen.artifact.program import NpuFamily
from mizzen.artifact.steps import NpuStep
from mizzen.frontends.tflite import Model, Operator, read
from mizzen.targets.families import families, loaded


def read_network(data: bytes, name: str) -> Model:
    """Read a TFLite network that may have compiled parts. Raises as `mizzen.frontends.tflite`."""
    return read(data, name, _memory_inputs)


def _memory_inputs(code: str) -> int:
    return next((family.memory_inputs for family in families() if family.code == code), 0)


def is_npu(operator: Operator) -> bool:
    """Whether an operator is a compiled part."""
    return operator.custom and any(family.code == operator.kind for family in families())


def family_of(operator: Operator) -> NpuFamily:
    """Return the family of a compiled part."""
    (found,) = (family for family in families() if family.code == operator.kind)
    return loaded(found.runtime)


def npu_step(model: Model, operator: Operator, origins: Origins, program: object = None) -> NpuStep:
    """Make the step of an NPU operator, whose tensors are the model's; `origins` of its stream.

    program  as the compiler of its family hands it over; None to read it from the operator
    """
    family = family_of(operator)
    if program is None:
        return NpuStep(family, family.read(model, operator, origins))
    return NpuStep(family, family.part(model, operator, origins, program))
