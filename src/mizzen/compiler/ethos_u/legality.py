"""The rules of an NPU family applied to the operators of a TFLite network."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.diagnostics import Reason
from mizzen.frontends.tflite import Model, Operator, Tensor
from mizzen.frontends.tflite.model import ABSENT
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.legal.tflite import breaches
from mizzen.targets.ethos_u.legal.tflite_defects import confused_biases, defects
from mizzen.targets.ethos_u.legal.tflite_facts import OperatorFacts, TensorFacts


def breaches_of(model: Model, operator: Operator, arch: Arch) -> tuple[Reason, ...]:
    """Return every rule that an operator of the main subgraph breaks on a family."""
    return breaches(facts(model, operator, arch))


def defects_of(model: Model, operator: Operator, arch: Arch) -> tuple[Reason, ...]:
    """Return the compiler's known defects that an operator of the main subgraph meets."""
    return tuple(defects(facts(model, operator, arch)))


def confused_of(
    model: Model, indices: Sequence[int], arch: Arch
) -> tuple[tuple[Operator, Reason], ...]:
    """Return those of some operators on the NPU whose biases the compiler confuses."""
    operators = [model.main.operators[index] for index in indices]
    found = confused_biases([facts(model, operator, arch) for operator in operators])
    return tuple((operators[index], breach) for index, breach in found)


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
