"""Whether a network computes with integers, as an NPU does."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.diagnostics import Origin, fail
from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite.model import Model, Operator, Tensor

INTEGERS = {
    TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32, TensorType.INT64,
    TensorType.UINT16, TensorType.UINT32, TensorType.UINT64, TensorType.INT4,
}  # fmt: skip
FLOATS = {TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.FLOAT64}

CONVERSIONS = {"QUANTIZE", "DEQUANTIZE", "CAST"}
"""Operators between both kinds of numbers: no evidence that a network computes with one of them."""


def require_quantized(model: Model) -> None:
    """Refuse a network that computes with floats only, with E107 naming the first float tensor.

    Networks that compute with floats here and there pass: those operators run on the CPU. Weights
    do not count, so that a network with integer weights and float activations is refused.
    """
    first: tuple[Operator, Tensor] | None = None
    for operator, tensor in _activations(model):
        if tensor.type in INTEGERS:
            return
        if first is None and tensor.type in FLOATS:
            first = operator, tensor
    if first is None:
        return
    operator, tensor = first
    place = model.origin(operator)
    raise fail(
        "E107",
        f'the network must be quantised to integers, but tensor {tensor.index} "{tensor.name}" is '
        f"{tensor.type.name}, like everything that it computes",
        origin=Origin(place.model, place.operator, place.kind, place.name),
        help="convert it with full integer quantisation: a representative data set, and "
        "TFLITE_BUILTINS_INT8 as the only supported operators",
    )


def _activations(model: Model) -> Iterator[tuple[Operator, Tensor]]:
    """Return what operators compute with, other than constants, in execution order."""
    main = model.main
    for operator in main.operators:
        if operator.kind not in CONVERSIONS:
            for tensor in main.present((*operator.inputs, *operator.outputs)):
                if tensor.data is None:
                    yield operator, tensor
