"""Single operators of TFLite: the NPU's network computes what the graph does, to one step.

The networks are those of the conformance suite. Those that stay on the CPU have reasons; which
operators have a form at all is written down here.
"""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.conformance.cases import cases
from mizzen.conformance.networks import Case
from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.lower import lower
from mizzen.graph import Graph
from mizzen.reference import evaluate
from mizzen.targets.ethos_n.patterns import Covering, generate, legality, prepare
from mizzen.targets.ethos_n.reference import evaluate as evaluate_network

from .graphs import FOUR_TOPS

SMALL = [case for case in cases() if case.dtype in ("int8", "uint8")]
ON_NPU = {
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED",
    "LEAKY_RELU", "LOGISTIC", "MAX_POOL_2D", "MEAN", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1",
    "RELU_N1_TO_1", "RESHAPE", "RESIZE_NEAREST_NEIGHBOR", "SPLIT_V", "TANH", "TRANSPOSE_CONV",
}  # fmt: skip
"""Operators of which at least one of the suite's networks is for the NPU."""
STEP = 1


def graph_of(case: Case) -> Graph:
    graph = lower(read(case.build(), case.name)).graph
    prepare(graph)
    return graph


def is_on_npu(graph: Graph) -> bool:
    legal = legality(Covering(graph, FOUR_TOPS))
    found = [legal(row) for row in graph]
    assert all(reason.message and reason.help for reasons in found for reason in reasons)
    return not any(found)


def test_operators_that_have_a_form() -> None:
    assert {case.operator for case in SMALL if is_on_npu(graph_of(case))} == ON_NPU


@pytest.mark.parametrize("operator", sorted(ON_NPU))
def test_operator(operator: str) -> None:
    for case in (case for case in SMALL if case.operator == operator):
        graph = graph_of(case)
        if is_on_npu(graph):
            assert difference(graph) <= STEP, case.name


def difference(graph: Graph) -> int:
    """Return by how much the network's numbers differ from the graph's at most."""
    generated = generate(graph, FOUR_TOPS)
    random = np.random.default_rng(5)
    inputs = [random.integers(-128, 128, value.shape, np.int8) for value in graph.inputs]
    arrays = dict(zip(generated.inputs, inputs, strict=True))
    found = evaluate_network(
        generated.network,
        [arrays[operand].reshape(operand.info.shape) for operand in generated.network.inputs],
    )
    wanted = evaluate(graph, inputs)
    results = [found[place] for place in generated.output_order]
    return max(
        int(np.abs(one.reshape(other.shape).astype(int) - other).max())
        for one, other in zip(results, wanted, strict=True)
    )
