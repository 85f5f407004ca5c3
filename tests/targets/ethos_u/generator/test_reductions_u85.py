"""Reductions on U85 with what is around them."""

from __future__ import annotations

from mizzen.graph import DType, Graph, RoundingMode, TensorType
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.machine.commands_values import Arch


def test_an_extreme_whose_channels_are_scaled_apart_is_scaled_after_it() -> None:
    graph = Graph("extreme")
    given = graph.add_input(TensorType((1, 4, 4, 8), DType.INT8), "given")
    one = TensorType((1, 1, 4, 8), DType.INT8)
    (most,) = graph.add("REDUCE_MAX", [given], [one], {"axis": 1}).results
    operands = [
        most,
        graph.constant([1 << 30] * 4 + [1 << 29] * 4, DType.INT32),
        graph.constant([30] * 8, DType.INT8),
        graph.constant([0], DType.INT8),
        graph.constant([0], DType.INT8),
    ]
    attributes = {
        "scale32": True,
        "rounding_mode": RoundingMode.SINGLE_ROUND,
        "per_channel": True,
        "input_unsigned": False,
        "output_unsigned": False,
    }
    graph.set_outputs(graph.add("RESCALE", operands, [one], attributes).results)
    lowered = lower(graph, (), Arch.U85)
    assert not lowered.refusals
    assert lowered.sequence is not None
    assert len(lowered.sequence.operations) == 2
