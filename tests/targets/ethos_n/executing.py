"""Networks in the text form: compiled, executed, and what the integer reference says of them."""

from __future__ import annotations

import numpy as np

from mizzen.targets.ethos_n.compile import CompiledNetwork, compile_network
from mizzen.targets.ethos_n.config import CompilationOptions, VariantConfiguration, find_variant
from mizzen.targets.ethos_n.network import Array, Network
from mizzen.targets.ethos_n.program import program_of
from mizzen.targets.ethos_n.reference import evaluate
from mizzen.targets.ethos_n.sim import Simulator

from .arms_containers import numbers
from .network_text import parse_network

BATCH = 2


def configured(
    variant: str, sram_bytes: int = 0, options: CompilationOptions | None = None
) -> VariantConfiguration:
    return VariantConfiguration(find_variant(variant), sram_bytes, options or CompilationOptions())


def network_of(text: str) -> Network:
    """Read a network; constants by the rule of `numbers`."""
    rows = [line.split() for line in text.splitlines() if line]
    return parse_network(text, {row[1]: numbers(row[2:]) for row in rows if row[0] == "const"})


def drawn_inputs(network: Network) -> list[Array]:
    """Return numbers of the whole range of each input's type, a batch of them."""
    random = np.random.default_rng(3)
    return [
        random.integers(0, 256, (BATCH, *row.info.shape[1:]), np.uint8).view(
            row.info.data_type.dtype
        )
        for row in network.inputs
    ]


def executed(
    network: Network, configuration: VariantConfiguration, inputs: list[Array]
) -> tuple[CompiledNetwork, list[Array]]:
    """Compile and execute a network whose inputs and outputs are NHWC, all of them used."""
    compiled = compile_network(network, configuration)
    program = program_of(compiled.container, configuration.capabilities)
    images = [
        np.pad(array.reshape(BATCH, -1), ((0, 0), (0, buffer.size_bytes - array[0].size)))
        for array, buffer in zip(inputs, compiled.inputs, strict=True)
    ]
    outcome = Simulator(program).run(images, BATCH)
    given = {
        (buffer.source_operation_id, buffer.source_output_index): output
        for buffer, output in zip(compiled.outputs, outcome.outputs, strict=True)
    }
    arrays = [
        given[row.operation_id, row.output_index][:, : row.info.elements]
        .view(row.info.data_type.dtype)
        .reshape(BATCH, *row.info.shape[1:])
        for row in network.outputs
    ]
    return compiled, arrays


def require_reference(text: str, configuration: VariantConfiguration) -> CompiledNetwork:
    """Assert that a network's stream gives, to the last bit, what the reference does."""
    network = network_of(text)
    inputs = drawn_inputs(network)
    compiled, found = executed(network, configuration, inputs)
    for array, expected in zip(found, evaluate(network, inputs), strict=True):
        np.testing.assert_array_equal(array, expected)
        assert len(np.unique(expected)) > 5
    return compiled
