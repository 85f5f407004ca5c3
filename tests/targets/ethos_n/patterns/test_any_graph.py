"""Any graph is judged: operators of every kind, whatever their types, with any quantisation."""

from __future__ import annotations

import math

import pytest

from mizzen.conformance.cases import cases
from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.lower import lower
from mizzen.graph import DType, Graph, Quantization
from mizzen.partition import Device, extract, partition
from mizzen.targets.ethos_n.patterns import Covering, generate, legality, prepare, unprofitable

from .graphs import FOUR_TOPS, Net, placed

QUANTIZATIONS = (
    None,
    Quantization((0.1,), (0,)),
    Quantization((0.0,), (0,)),
    Quantization((-1.0,), (3,)),
    Quantization((math.nan,), (0,)),
    Quantization((math.inf,), (0,)),
    Quantization((1e-42,), (0,)),
    Quantization((1e30,), (0,)),
    Quantization((0.1,), (1000,)),
    Quantization((0.1, 0.2), (0, 0), 1),
)


def quantise(graph: Graph, quantization: Quantization | None) -> None:
    values = [*graph.inputs, *(value for row in graph for value in row.results)]
    for value in values:
        if value.dtype in (DType.INT8, DType.INT16):
            value.type = value.type.quantized(quantization)


def judge(graph: Graph) -> None:
    covering = Covering(graph, FOUR_TOPS)
    legal = legality(covering)
    found = partition(graph, legal)
    for reasons in (row.reasons for row in found.groups.values()):
        assert all(reason.message and reason.rule for reason in reasons)
    unprofitable(found, covering)
    for region in found.regions:
        if region.device is Device.NPU:
            generate(extract(graph, region.groups).graph, FOUR_TOPS)


EVERY = cases()
PER_CASE = 3
"""Quantisations that one case is judged with; all have every one of them in turn."""


@pytest.mark.parametrize("start", range(0, len(EVERY), 50))
def test_every_operator(start: int) -> None:
    for place, case in enumerate(EVERY[start : start + 50]):
        graph = lower(read(case.build(), case.name)).graph
        prepare(graph)
        judge(graph)
        for index in range(PER_CASE):
            quantise(graph, QUANTIZATIONS[(place * PER_CASE + index) % len(QUANTIZATIONS)])
            judge(graph)


def test_whatever_is_not_the_quantisation_of_a_layer() -> None:
    """Of one network, each value alone has each of them."""
    case = next(case for case in EVERY if case.operator == "DEPTHWISE_CONV_2D")
    graph = lower(read(case.build(), case.name)).graph
    for value in [*graph.inputs, *(value for row in graph for value in row.results)]:
        before = value.type
        for quantization in QUANTIZATIONS:
            value.type = before.quantized(quantization)
            judge(graph)
        value.type = before


def test_deep_networks() -> None:
    """Deeper than Python's stack, and in no more time than their length asks for."""
    net = Net()
    x = net.input(1, 4, 4, 16)
    for bound in range(3000):
        x = net.clamp(x, -100, bound % 50)
    net.outputs(x)
    (region,) = placed(net.graph).regions
    assert len(region.groups) == 3000
    assert len(Covering(net.graph, FOUR_TOPS).composites) == 3000
