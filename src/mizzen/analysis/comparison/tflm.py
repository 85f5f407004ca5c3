"""Every tensor of a TFLite network as TensorFlow Lite Micro's kernels compute it.

The network is executed as it is, with all tensors among its outputs, in one interpreter for each
stream; so state goes on as on a device, and no part of the compiler is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.analysis.comparison.layers import Layer, Layers
from mizzen.analysis.comparison.observing import given_by
from mizzen.artifact.interface import Array
from mizzen.compiler.folding import GONE
from mizzen.cpu.device import device_kernels
from mizzen.diagnostics import Device
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.model import ABSENT
from mizzen.package.tflite.extract import extract
from mizzen.report import CompileReport

Tensors = Mapping[int, Array]
"""The model's tensors by index, `[N, *shape]`."""


def layers_of(model: Model, report: CompileReport | None) -> Layers:
    """Return the operators of a model; `report` says which are on the CPU, and which are gone."""
    on_cpu = {placement.index for placement in report.on_cpu} if report is not None else set[int]()
    placements = () if report is None else report.placements
    gone = {placement.index for placement in placements if not GONE.isdisjoint(placement.reasons)}
    main = model.main
    layers: list[Layer] = []
    for operator in main.operators:
        if operator.index in gone:
            continue
        outputs = main.present(operator.outputs)
        layers.append(
            Layer(
                operator.index,
                operator.kind,
                outputs[0].name if outputs else "",
                Device.CPU if operator.index in on_cpu else Device.NPU,
                tuple(index for index in operator.inputs if index != ABSENT),
                tuple(operator.outputs),
            )
        )
    return Layers(layers)


def constants_of(model: Model, size: int) -> dict[int, Array]:
    """Return the constants of a network, the same in each of `size` inferences."""
    held = ((tensor.index, tensor.values) for tensor in model.main.tensors if not tensor.variable)
    return {
        index: np.broadcast_to(values, (size, *values.shape))
        for index, values in held
        if values is not None
    }


@dataclass(frozen=True, eq=False)
class MicroReference:
    """A network on TensorFlow Lite Micro."""

    model: Model

    def infer(
        self, inputs: Sequence[Sequence[Array]], known: Sequence[Tensors]
    ) -> list[dict[int, Array]]:
        """Infer in a row from the initial state, and return all tensors of each inference.

        inputs  of each inference, `[N, *shape]`, in the network's order
        known   tensors of each inference that are taken instead of being computed

        Raises E130, E131 and E701 to E707 for a network that the kernels cannot compute.
        """
        main = self.model.main
        given = set(known[0]) if known else set[int]()
        wanted = [
            operator.index
            for operator in main.operators
            if not operator.outputs or not all(index in given for index in operator.outputs)
        ]
        part = extract(self.model.record, wanted, shown=given_by(self.model, wanted))
        kernels = device_kernels(
            part.network, [self.model.origin(main.operators[i]) for i in wanted]
        )
        size = len(inputs[0][0]) if inputs[0] else 1
        runner = kernels if len(inputs) == 1 else kernels.session(size)
        tensors: list[dict[int, Array]] = []
        for place, arrays in enumerate(inputs):
            values = constants_of(self.model, size)
            values.update(zip(main.inputs, arrays, strict=True))
            values.update(known[place] if known else {})
            results = runner.run([values[index] for index in part.inputs], size)
            values.update(zip(part.outputs, results, strict=True))
            tensors.append(values)
        return tensors
