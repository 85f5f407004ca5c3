"""What the pattern table makes of graphs can be compiled, and runs as the reference says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mizzen.targets.ethos_n.compile import CompiledNetwork, compile_network
from mizzen.targets.ethos_n.config import VARIANTS, VariantConfiguration
from mizzen.targets.ethos_n.patterns import Generated
from mizzen.targets.ethos_n.program import program_of
from mizzen.targets.ethos_n.reference import evaluate
from mizzen.targets.ethos_n.sim import Simulator

from .graphs import FOUR_TOPS, Array, Net, whole
from .test_operators import OPERATORS

ONE_TOPS = VariantConfiguration(VARIANTS["ethos-n78-1tops-2ple"])


def run(
    generated: Generated, configuration: VariantConfiguration, inputs: Sequence[Array]
) -> list[Array]:
    """Compile and execute; arrays are those of the network's inputs and outputs."""
    network = generated.network
    compiled = compile_network(network, configuration)
    operands = [(row.operation_id, row.output_index) for row in network.inputs]
    arrays = [
        padded(inputs[operands.index(key)], buffer.size_bytes)
        for key, buffer in zip(keys(compiled)[0], compiled.inputs, strict=True)
    ]
    program = program_of(compiled.container, configuration.capabilities)
    outcome = Simulator(program).run(arrays, 1)
    given = dict(zip(keys(compiled)[1], outcome.outputs, strict=True))
    return [
        given[row.operation_id, row.output_index]
        .view(row.info.data_type.dtype)
        .reshape(row.info.shape)
        for row in network.outputs
    ]


def padded(array: Array, size_bytes: int) -> Array:
    """Return an input as bytes of its buffer, which of a dense layer has more of them."""
    return np.pad(array.reshape(-1), (0, size_bytes - array.size)).reshape(1, -1)


def keys(compiled: CompiledNetwork) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    sides = (compiled.inputs, compiled.outputs)
    first, second = (
        [(row.source_operation_id, row.source_output_index) for row in side] for side in sides
    )
    return first, second


def check(net: Net, configuration: VariantConfiguration) -> None:
    generated = whole(net, configuration)
    random = np.random.default_rng(3)
    inputs = [
        random.integers(-128, 128, operand.info.shape, np.int8)
        for operand in generated.network.inputs
    ]
    found = run(generated, configuration, inputs)
    for output, wanted in zip(found, evaluate(generated.network, inputs), strict=True):
        np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize("configuration", [FOUR_TOPS, ONE_TOPS], ids=["4tops", "1tops"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name: str, configuration: VariantConfiguration) -> None:
    net = Net()
    net.outputs(OPERATORS[name][0](net))
    check(net, configuration)
