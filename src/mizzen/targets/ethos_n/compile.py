"""Compiling a network for Ethos-N78 to command stream 3.1, and what of networks is refused.

Refused is what the library does not support, and what it lets pass without a meaning.

Ref: Ethos-N driver stack 23.02, `Support.hpp` (`Compile`, `CompiledNetwork`), `SupportQueries.hpp`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands import encode
from mizzen.targets.ethos_n.commands_values import Command
from mizzen.targets.ethos_n.config import Capabilities, VariantConfiguration
from mizzen.targets.ethos_n.emit import Emission, emit
from mizzen.targets.ethos_n.legal import Level, reasons, supported
from mizzen.targets.ethos_n.legal.elementwise_rules import emptied
from mizzen.targets.ethos_n.lower import lower
from mizzen.targets.ethos_n.network import Constant, DepthToSpace, LeakyRelu, Network, Node, Query
from mizzen.targets.ethos_n.program import Buffers, Container, write_container
from mizzen.targets.ethos_n.schedule import schedule
from mizzen.targets.ethos_n.timing import Pass

MOST_WEIGHTS = 1 << 28
"""Weights that the compiler makes for an operation that has none of its own, at most."""


@dataclass(frozen=True, slots=True)
class NetworkBuffer:
    """A buffer that an inference takes or gives.

    source_operation_id     of the operation that makes what is in it: of an input the input itself
    source_output_index     which of that operation's outputs it is
    """

    size_bytes: int
    source_operation_id: int
    source_output_index: int


@dataclass(frozen=True, slots=True, eq=False)
class CompiledNetwork:
    """A network as an NPU can run it.

    operation_ids       of the network's operations that are in it
    inputs, outputs     in the order of the operations
    intermediate_bytes  of DRAM for feature maps between passes
    passes              the commands, each with where it comes from and what an estimate needs
    """

    operation_ids: tuple[int, ...]
    inputs: tuple[NetworkBuffer, ...]
    outputs: tuple[NetworkBuffer, ...]
    intermediate_bytes: int
    passes: tuple[Pass, ...]
    container: Container

    @property
    def commands(self) -> tuple[Command, ...]:
        """The command stream."""
        return tuple(made.command for made in self.passes)

    def serialize(self) -> bytes:
        """Return the compiled network as a container "ENCN" of version 1.0."""
        return write_container(self.container)


def compile_network(network: Network, configuration: VariantConfiguration) -> CompiledNetwork:
    """Compile a network.

    E911 for an SRAM that the hardware cannot have, E970 for an operation that is not supported,
    E972 for operations that no strategy has room for, E973 for weights that have none, E974 for
    weights that are no constants, E975 for an activation that keeps no number, E976 for a feature
    map without elements, E977 for numbers that are no scales, E978 for an operation that would need
    too many weights.
    """
    capabilities, options = configuration.capabilities, configuration.options
    require_compilable(network, capabilities)
    graph = lower(network, capabilities, strict_precision=options.strict_precision)
    attempt = schedule(graph, capabilities, options)
    emission = emit(graph, attempt, capabilities)
    container = emission.buffers.finish(encode(made.command for made in emission.passes))
    return CompiledNetwork(
        operation_ids=tuple(range(len(network))),
        inputs=_network_buffers(emission, container.inputs),
        outputs=_network_buffers(emission, container.outputs),
        intermediate_bytes=max(
            (buffer.offset + buffer.size for buffer in container.intermediates), default=0
        ),
        passes=tuple(emission.passes),
        container=container,
    )


def _network_buffers(emission: Emission, infos: Buffers) -> tuple[NetworkBuffer, ...]:
    entries = [emission.buffers.entry(info.id) for info in infos]
    return tuple(
        NetworkBuffer(entry.size, entry.source_operation_id, entry.source_output_index)
        for entry in entries
    )


def require_compilable(network: Network, capabilities: Capabilities) -> None:
    """Refuse a network that cannot be compiled whatever the options are.

    E970 for an operation that is not supported, E975 for an activation that keeps no number, E976
    for a feature map without elements, E977 for a scale or a slope that is not a positive number,
    E978 for an operation that would need too many weights.
    """
    _require_supported(network, capabilities)
    for node in network:
        _require_elements(node)
        _require_scales(node)
        _require_few_weights(node)
    _require_numbers(network)


def _require_supported(network: Network, capabilities: Capabilities) -> None:
    """Refuse the first operation that the library would not compile."""
    for node in network:
        inputs = tuple(operand.info for operand in node.inputs)
        broken = reasons(node.operation, inputs, capabilities)
        if broken:
            answer = supported(Query(node.operation, inputs), capabilities)
            because = f": {answer.message}" if answer.message else ""
            raise fail(
                "E970",
                f"operation {node.id} ({node.kind}) must be {Level.SUPPORTED.value}, and is "
                f"{answer.level.value}{because}",
                origin=node.origin,
                rule=broken[0].source or None,
                help=broken[0].help or "leave the operation to the CPU",
            )


def _require_elements(node: Node) -> None:
    """Refuse maps without elements, which the library does not ask about everywhere."""
    for operand in node.outputs:
        if not operand.info.elements:
            which = f"output {operand.output_index}" if len(node.outputs) > 1 else "its output"
            extents = "x".join(map(str, operand.info.shape))
            raise fail(
                "E976",
                f"operation {node.id} ({node.kind}) must give elements, and {which} is {extents}",
                origin=node.origin,
                help="leave out what is empty",
            )


def _require_scales(node: Node) -> None:
    """Refuse factors that are no positive numbers: they have no multiplier and shift.

    A constant's scale may be 0: that of the bias of a channel without weights, the product of two
    scales, underflows in float32.
    """
    factors = [
        ("scales", scale) for output in node.outputs for scale in output.info.quantization.scales
    ]
    if isinstance(node.operation, LeakyRelu):
        factors.append(("slopes", node.operation.alpha))
    for what, factor in factors:
        may_be_zero = isinstance(node.operation, Constant)
        if not (math.isfinite(factor) and (factor > 0 or (factor == 0 and may_be_zero))):
            raise fail(
                "E977",
                f"operation {node.id} ({node.kind}) must have positive, finite {what}, not "
                f"{factor:g}",
                origin=node.origin,
                help="quantise the network again",
            )


def _require_few_weights(node: Node) -> None:
    """Refuse a DepthToSpace, a convolution that picks channels, of so many that it fills memory."""
    if isinstance(node.operation, DepthToSpace):
        weights = node.inputs[0].info.channels ** 2
        if weights > MOST_WEIGHTS:
            raise fail(
                "E978",
                f"operation {node.id} ({node.kind}) must need at most {MOST_WEIGHTS} weights, the "
                f"square of its channels, and needs {weights}",
                origin=node.origin,
                help="leave the operation to the CPU",
            )


def _require_numbers(network: Network) -> None:
    """Refuse the first activation that keeps no number."""
    for empty in emptied(network):
        node, reason = empty.node, empty.reason
        raise fail(
            "E975",
            f"operation {node.id} ({node.kind}) must keep {reason.limit}, and keeps "
            f"{reason.actual}",
            origin=node.origin,
            rule=reason.source,
            help=reason.help,
        )
