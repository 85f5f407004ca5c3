"""Which rules of the machine an operator of a TFLite network breaks.

Rules read facts of their own, which are made of TFLite's operators and tensors here.
"""

from __future__ import annotations

from mizzen.diagnostics import Reason
from mizzen.frontends.tflite import Model, Operator, Tensor
from mizzen.frontends.tflite.model import ABSENT
from mizzen.targets.ethos_u.legal import tflite
from mizzen.targets.ethos_u.legal.tflite_facts import OperatorFacts, TensorFacts
from mizzen.targets.ethos_u.machine.commands import Arch


def breaches_of(model: Model, operator: Operator, arch: Arch) -> tuple[Reason, ...]:
    """Return every rule that an operator of the main subgraph breaks on a family."""
    return tflite.breaches(facts(model, operator, arch))


def explanations(model: Model, operator: Operator, arch: Arch) -> tuple[Reason, ...]:
    """Return why no rule takes an operator: what of the machine, or of the kernels, it breaks."""
    return breaches_of(model, operator, arch) or against_kernels(model, operator, arch)


def against_kernels(model: Model, operator: Operator, arch: Arch) -> tuple[Reason, ...]:
    """Return what TensorFlow Lite's kernels refuse of an operator, or read otherwise."""
    return tflite.against_kernels(facts(model, operator, arch))


def facts(model: Model, operator: Operator, arch: Arch) -> OperatorFacts:
    """Return what the rules need to know about an operator of the main subgraph."""
    tensors = model.main.tensors
    return OperatorFacts(
        kind=operator.kind,
        arch=arch,
        inputs=tuple(None if i == ABSENT else _tensor(tensors[i]) for i in operator.inputs),
        outputs=tuple(_tensor(tensors[index]) for index in operator.outputs),
        options=operator.options,
        intermediates=tuple(_tensor(tensors[i]) for i in operator.intermediates if i != ABSENT),
    )


def _tensor(tensor: Tensor) -> TensorFacts:
    quantization = tensor.quantization
    return TensorFacts(
        name=tensor.name,
        shape=tensor.shape,
        shape_signature=tensor.shape_signature,
        dtype=tensor.type.name,
        scales=quantization.scale if quantization else (),
        zero_points=quantization.zero_point if quantization else (),
        constant=tensor.data is not None,
        values=tensor.values,
    )
