"""Two TFLite networks, quantised and floating-point, and the tensors that are in both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mizzen.analysis.comparison.pairs import Pair, scale_of
from mizzen.analysis.comparison.same_operators import computing, result_of, same_operators
from mizzen.analysis.comparison.tflm import MicroReference
from mizzen.artifact.fitting import fitted, real, unsaid
from mizzen.artifact.interface import Array, TensorInfo
from mizzen.artifact.steps import read_network
from mizzen.compiler.folding import computed_once
from mizzen.compiler.proof.stimuli import plausible
from mizzen.compiler.tflite_stimuli import network_stimulus, values_bytes
from mizzen.diagnostics import fail
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model, Tensor
from mizzen.package.tflite.real_weights import with_real_weights

PAIRING_INPUTS, PAIRING_SEED = 2, 1
"""Inferences by which operators are told apart."""


class TfliteNetworks:
    """A quantised network and its floating-point one, both on TensorFlow Lite Micro."""

    def __init__(self, model: Model, floating: Model) -> None:
        record = with_real_weights(floating.record)
        if record is not None:
            floating = read_network(write(record, SCHEMA), floating.name)
        self.model, self.floating = model, floating
        main = model.main
        self.inputs = tuple(_info(tensor) for tensor in main.present(main.inputs))
        self._taken = floating.main.present(floating.main.inputs)
        shapes = [info.shape for info in self.inputs], [tensor.shape for tensor in self._taken]
        if shapes[0] != shapes[1]:
            raise fail(
                "E495",
                f"{floating.name} must take what {model.name} does, {shapes[0]}, and takes "
                f"{shapes[1]}",
                help="give the network that was quantised",
            )
        self.pairs: Sequence[Pair] = tuple(self._pairs())
        self.values_bytes = values_bytes(model) + values_bytes(floating)
        paired = {pair.index for pair in self.pairs}
        self.unmatched: Sequence[tuple[int, str, str]] = tuple(
            (operator.index, operator.kind, result_of(model, operator).name)
            for operator in computing(model)
            if operator.index not in paired
        )

    @property
    def example(self) -> None:
        """A file has no inputs."""
        return None

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs of the quantised network, `[count, *shape]` each."""
        main = self.model.main
        given = [network_stimulus(self.model, tensor) for tensor in main.present(main.inputs)]
        return plausible(given, count, seed)

    def infer(
        self, arrays: Sequence[Array]
    ) -> tuple[Mapping[object, Array], Mapping[object, Array]]:
        """Return the tensors of both, of inputs `[N, *shape]`: real numbers, or integers."""
        ours = [
            fitted(array, info, unsaid) for array, info in zip(arrays, self.inputs, strict=True)
        ]
        theirs = [
            real(array, info).astype(tensor.dtype or np.float32).reshape(-1, *tensor.shape)
            for array, info, tensor in zip(arrays, self.inputs, self._taken, strict=True)
        ]
        (one,) = MicroReference(computed_once(self.model)).infer([ours], [])
        (other,) = MicroReference(computed_once(self.floating)).infer([theirs], [])
        return {**one}, {**other}

    def _pairs(self) -> Iterator[Pair]:
        values = self.infer(self.stimuli(PAIRING_INPUTS, PAIRING_SEED))
        same = same_operators(self.model, self.floating, *values)
        for ours, theirs in sorted(same.items()):
            operator = self.model.main.operators[ours]
            tensor = result_of(self.model, operator)
            other = result_of(self.floating, self.floating.main.operators[theirs])
            scale = None if tensor.dtype is None else scale_of(tensor.quantization, tensor.dtype)
            if scale is not None:
                yield Pair(
                    ours, operator.kind, tensor.name, other.name, tensor.index, other.index, *scale
                )


def _info(tensor: Tensor) -> TensorInfo:
    dtype = tensor.dtype or np.dtype(np.uint8)
    return TensorInfo(tensor.name, tensor.shape, dtype, tensor.quantization)
