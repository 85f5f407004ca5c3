"""What the reference says of the tensors of a TFLite network, on inputs that tell.

The reference is the network's graph in NumPy, with TFLite Micro's kernels for what TOSA has no form
of (`tflite_reference`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy.typing as npt

from mizzen.compiler.proof.difference import is_within
from mizzen.compiler.proof.options import Effort, ProofOptions
from mizzen.compiler.proof.stimuli import stimuli
from mizzen.compiler.tflite_reference import Kernels, TensorValues, begin, tensor_values
from mizzen.compiler.tflite_stimuli import network_stimuli, network_stimulus, values_bytes
from mizzen.frontends.tflite import Model, macs, zero_of
from mizzen.frontends.tflite.lower import Lowered
from mizzen.targets.bounds import Bound

Array = npt.NDArray[Any]

MOST_MACS = 1 << 31
"""For each input that is asked for; networks that compute more execute fewer, at least one."""


class NetworkTruth:
    """A network, inputs for it, and what the reference says of them.

    bounds  the largest differences that are documented, of tensors by index
    inputs  `[count, *shape]` each; None to have some chosen
    """

    def __init__(
        self,
        model: Model,
        lowered: Lowered,
        options: ProofOptions,
        bounds: Mapping[int, Bound],
        inputs: list[Array] | None = None,
    ) -> None:
        self.model = model
        self.lowered = lowered
        self.options = options
        self.bounds = bounds
        self.inputs = self._chosen(options.effort) if inputs is None else inputs
        self.count = len(self.inputs[0]) if self.inputs else 1
        read = [row.outputs[0] for row in model.main.operators if row.kind == "READ_VARIABLE"]
        held = [network_stimulus(model, model.main.tensors[index]) for index in read]
        found = stimuli(held, self.count, options.seed + 1)
        self.state = dict(zip(read, found, strict=True)) | self._kept()
        self.kernels = Kernels(model)
        begin(lowered)

    def _chosen(self, effort: Effort) -> list[Array]:
        """Return inputs that tell; of large networks fewer, whatever the effort."""
        model, options = self.model, self.options
        work = max(1, sum(macs(model.main, row) for row in model.main.operators))
        most = max(1, MOST_MACS * options.inputs // work)
        wanted = replace(options, effort=effort).inputs_for(values_bytes(model))
        return network_stimuli(model, min(wanted, most), options.seed)

    def _kept(self) -> dict[int, Array]:
        """Return what operators may keep, by tensor; the first inference is one from the start."""
        rows = [row for row in self.model.main.tensors if row.variable and row.dtype is not None]
        given = [network_stimulus(self.model, row) for row in rows]
        found = stimuli(given, self.count, self.options.seed + 2)
        for row, array in zip(rows, found, strict=True):
            array[:1] = zero_of(row.quantization)
        return {row.index: array for row, array in zip(rows, found, strict=True)}

    @cached_property
    def first(self) -> TensorValues:
        """What the reference says by itself."""
        return self.reference({})

    def reference(self, known: Mapping[int, Array]) -> TensorValues:
        """Return what the reference says if it takes `known` where it may."""
        return tensor_values(
            self.lowered, self.inputs, self.count, self.kernels, known, self.allowed, self.state
        )

    def allowed(self, place: int, npu: Array, reference: Array) -> bool:
        """Whether a tensor differs within the bound that is documented for its operator."""
        bound = self.bounds.get(place)
        return bound is not None and is_within(npu, reference, bound.steps, bound.part)
