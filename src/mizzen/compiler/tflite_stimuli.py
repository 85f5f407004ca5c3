"""Inputs that tell, for a TFLite network: what each of its inputs may be, as its operators say."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.compiler.proof.stimuli import Stimulus, stimuli, stimulus
from mizzen.frontends.tflite import Model, Tensor

Array = npt.NDArray[Any]

INDICES = {"GATHER": 1, "GATHER_ND": 1, "EMBEDDING_LOOKUP": 0}
"""The input of an operator that numbers rows of another one."""


def network_stimulus(model: Model, tensor: Tensor) -> Stimulus:
    """Return the values that a tensor that the network takes may have."""
    zero = tensor.quantization.zero_point[0] if tensor.quantization else 0
    dtype = tensor.dtype or np.dtype(np.uint8)
    usual = stimulus(tensor.shape, dtype, zero)
    for operator in model.main.operators:
        if tensor.index not in operator.inputs:
            continue
        place = INDICES.get(operator.kind)
        if place is not None and operator.inputs[place] == tensor.index:
            extents = model.main.tensors[operator.inputs[1 - place]].shape
            return Stimulus(tensor.shape, dtype, 0, max(0, min(extents, default=1) - 1))
        if operator.kind == "QUANTIZE" and dtype.kind == "f":
            return _real(model.main.tensors[operator.outputs[0]], tensor)
    return usual


def _real(quantized: Tensor, tensor: Tensor) -> Stimulus:
    """Return the real numbers that a quantised tensor can stand for."""
    integers = stimulus(quantized.shape, quantized.dtype or np.dtype(np.int8))
    scale, zero = 1.0, 0
    if quantized.quantization and quantized.quantization.scale:
        scale, zero = quantized.quantization.scale[0], quantized.quantization.zero_point[0]
    low, high = (scale * (edge - zero) for edge in (integers.low, integers.high))
    return Stimulus(tensor.shape, tensor.dtype or np.dtype(np.float32), low, high)


def network_stimuli(model: Model, count: int, seed: int) -> list[Array]:
    """Return `count` inferences of a network's inputs, `[count, *shape]` each."""
    given = [network_stimulus(model, tensor) for tensor in model.main.present(model.main.inputs)]
    return stimuli(given, count, seed)


def values_bytes(model: Model) -> int:
    """Return the bytes of the tensors of one inference, constants left out; at least 1."""
    computed = (tensor for tensor in model.main.tensors if tensor.data is None)
    return max(1, sum(tensor.size_bytes or 0 for tensor in computed))
