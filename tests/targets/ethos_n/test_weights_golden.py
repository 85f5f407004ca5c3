"""Weights as Arm's library encoded them in the networks that it compiled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from mizzen.targets.ethos_n.commands_values import McePle, Upsample
from mizzen.targets.ethos_n.config import Capabilities, capabilities_of, find_variant
from mizzen.targets.ethos_n.network import (
    Array,
    Convolution,
    DepthwiseConvolution,
    FullyConnected,
    Network,
    Node,
    Requantize,
    TransposeConvolution,
)
from mizzen.targets.ethos_n.program import Program, read_program
from mizzen.targets.ethos_n.sim.weight_decoding import decode
from mizzen.targets.ethos_n.weights.weight_encoding import EncodedWeights, encode
from mizzen.targets.ethos_n.weights.weight_format import WeightLayout
from mizzen.targets.ethos_n.weights.weight_streams import OutputScale

from .golden import Compiled, compiled_networks, needs_golden

WEIGHTED = (Convolution, DepthwiseConvolution, FullyConnected, TransposeConvolution)


@dataclass(frozen=True)
class Values:
    """What a pass's weights were encoded from."""

    weights: Array
    zero_point: int
    bias: Array
    multiplier: int
    shift: int


def quantized(scale: float) -> tuple[int, int]:
    """Multiplier and shift of a scale less than 1, as `Utils.hpp` says."""
    shift = min(16 - math.frexp(scale)[1], 47)
    multiplier = math.floor(math.ldexp(scale, shift) + 0.5)
    return (multiplier, shift) if multiplier < 1 << 16 else (multiplier // 2, shift - 1)


def of_node(network: Network, node: Node) -> Values:
    """Values of an operation that has weights; a transpose convolution's are turned around."""
    data, _, weights = (operand.info.quantization for operand in node.inputs)
    product = np.float32(data.scale) * np.float32(weights.scale)
    scale = product / np.float32(node.operand.info.quantization.scale)
    numbers = network.data_of(node.inputs[2])
    assert numbers is not None
    if isinstance(node.operation, TransposeConvolution):
        numbers = numbers[::-1, ::-1]
    biases = network.data_of(node.inputs[1])
    assert biases is not None
    return Values(numbers, weights.zero_point, biases.ravel(), *quantized(float(scale)))


def made(command: McePle, network: Network) -> Values:
    """Values of weights that are in no network, which the library makes."""
    layout = WeightLayout.of(command)
    zeros = np.zeros(layout.ofms, np.int32)
    kernel, _, _, outputs = layout.shape
    if kernel == 2:
        # Depth to space: each of the 2x2 places of an output takes one input.
        weights = np.zeros(layout.shape, np.int64)
        for y, x in np.ndindex(2, 2):
            place = (1 - y) * 2 + (1 - x)
            weights[y, x, place * outputs : (place + 1) * outputs] = 2 * np.eye(outputs)
        return Values(weights, 0, zeros, *quantized(0.5))
    if command.mce.upsample is not Upsample.OFF:
        return Values(np.full(layout.shape, 2), 0, zeros, *quantized(0.5))
    scale = requantization(network) / 128
    return Values(np.full(layout.shape, 128), 0, zeros, *quantized(scale))


def requantization(network: Network) -> float:
    """The scale of a network that is one requantisation; 1 of others, which keep their scale."""
    first, second = list(network)[:2]
    if not isinstance(second.operation, Requantize):
        return 1.0
    return first.operand.info.quantization.scale / second.operand.info.quantization.scale


def encoded(values: Values, command: McePle, capabilities: Capabilities) -> EncodedWeights:
    scale = OutputScale((values.multiplier,), (values.shift,), command.mce.output_zero_point)
    return encode(
        values.weights,
        WeightLayout.of(command),
        zero_point=values.zero_point,
        bias=values.bias,
        scale=scale,
        capabilities=capabilities,
    )


def passes(compiled: Compiled, program: Program) -> Iterator[tuple[McePle, Values]]:
    """Return the passes with weights, in order, and what these were encoded from."""
    network = compiled.network
    nodes = [node for node in network if isinstance(node.operation, WEIGHTED)]
    for command in program.commands:
        if not isinstance(command, McePle):
            continue
        layout = WeightLayout.of(command)
        if nodes and nodes[0].inputs[2].info.shape == layout.shape:
            yield command, of_node(network, nodes.pop(0))
        else:
            yield command, made(command, network)
    assert not nodes


@needs_golden
@pytest.mark.parametrize("compiled", compiled_networks(), ids=str)
def test_weights_are_encoded_as_arm_encoded_them(compiled: Compiled) -> None:
    capabilities = capabilities_of(find_variant(f"Ethos-N78_{compiled.variant}"))
    program = read_program(compiled.encn, capabilities)
    for command, values in passes(compiled, program):
        ours = encoded(values, command, capabilities)
        assert ours.data == program.constant(command.weights.dram_buffer_id)
        assert ours.stripes == program.weight_stripes(command)


@needs_golden
@pytest.mark.parametrize("compiled", compiled_networks(), ids=str)
def test_arms_weights_decode_to_what_they_were_encoded_from(compiled: Compiled) -> None:
    capabilities = capabilities_of(find_variant(f"Ethos-N78_{compiled.variant}"))
    program = read_program(compiled.encn, capabilities)
    for command, values in passes(compiled, program):
        data = program.constant(command.weights.dram_buffer_id)
        stripes = program.weight_stripes(command)
        found = decode(data, stripes, WeightLayout.of(command), capabilities)
        assert np.array_equal(found.weights, values.weights.astype(int) - values.zero_point)
        assert np.array_equal(found.bias, values.bias)
        assert set(found.multipliers) == {values.multiplier}
        assert set(found.shifts) == {values.shift}
        assert set(found.zero_points) == {command.mce.output_zero_point % 256}
