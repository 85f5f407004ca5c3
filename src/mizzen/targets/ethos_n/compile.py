"""Compiling a network for Ethos-N78 to command stream 3.1.

Ref: Ethos-N driver stack 23.02, `Support.hpp` (`Compile`, `CompiledNetwork`).
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n import container as containers
from mizzen.targets.ethos_n.codec import encode
from mizzen.targets.ethos_n.commands import Command
from mizzen.targets.ethos_n.config import Capabilities, Configuration
from mizzen.targets.ethos_n.container import Buffers, Container
from mizzen.targets.ethos_n.emit import Emission, emit
from mizzen.targets.ethos_n.estimate import Pass
from mizzen.targets.ethos_n.legal import Level, reasons, supported
from mizzen.targets.ethos_n.legal.clamping import emptied
from mizzen.targets.ethos_n.lower import lower
from mizzen.targets.ethos_n.network import Network
from mizzen.targets.ethos_n.network_text import Query
from mizzen.targets.ethos_n.schedule import schedule


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
        return tuple(row.command for row in self.passes)

    def serialize(self) -> bytes:
        """Give the compiled network as a container "ENCN" of version 1.0."""
        return containers.write(self.container)


def compile_network(network: Network, configuration: Configuration) -> CompiledNetwork:
    """Compile a network.

    E911 for an SRAM that the hardware cannot have, E970 for an operation that is not supported,
    E972 for operations that no strategy has room for, E973 for weights that have none, E974 for
    weights that are no constants, E975 for an activation that keeps no number, E976 for a feature
    map without elements.
    """
    capabilities, options = configuration.capabilities, configuration.options
    _require_supported(network, capabilities)
    _require_elements(network)
    _require_numbers(network)
    graph = lower(network, capabilities, strict_precision=options.strict_precision)
    attempt = schedule(graph, capabilities, options)
    emission = emit(graph, attempt, capabilities)
    container = emission.buffers.finish(encode(row.command for row in emission.passes))
    return CompiledNetwork(
        operation_ids=tuple(range(len(network))),
        inputs=_network_buffers(emission, container.inputs),
        outputs=_network_buffers(emission, container.outputs),
        intermediate_bytes=max(
            (row.offset + row.size for row in container.intermediates), default=0
        ),
        passes=tuple(emission.passes),
        container=container,
    )


def _require_supported(network: Network, capabilities: Capabilities) -> None:
    """Refuse the first operation that the library would not compile."""
    for node in network:
        inputs = tuple(operand.info for operand in node.inputs)
        answer = supported(Query(node.operation, inputs), capabilities)
        if not answer:
            found = reasons(node.operation, inputs, capabilities)
            because = f": {answer.message}" if answer.message else ""
            raise fail(
                "E970",
                f"operation {node.id} ({node.kind}) must be {Level.SUPPORTED.value}, and is "
                f"{answer.level.value}{because}",
                origin=node.origin,
                rule=found[0].source or None,
                help=found[0].help or "leave the operation to the CPU",
            )


def _require_elements(network: Network) -> None:
    """Refuse feature maps without elements, which the library does not ask about everywhere."""
    for node in network:
        for operand in node.outputs:
            if not operand.info.elements:
                which = f"output {operand.output_index}" if len(node.outputs) > 1 else "its output"
                extents = "x".join(map(str, operand.info.shape))
                raise fail(
                    "E976",
                    f"operation {node.id} ({node.kind}) must give elements, and {which} is "
                    f"{extents}",
                    origin=node.origin,
                    help="leave out what is empty",
                )


def _require_numbers(network: Network) -> None:
    """Refuse the first activation that keeps no number."""
    for found in emptied(network):
        node, reason = found.node, found.reason
        raise fail(
            "E975",
            f"operation {node.id} ({node.kind}) must keep {reason.limit}, and keeps "
            f"{reason.actual}",
            origin=node.origin,
            rule=reason.source,
            help=reason.help,
        )


def _network_buffers(emission: Emission, infos: Buffers) -> tuple[NetworkBuffer, ...]:
    entries = [emission.buffers.entry(info.id) for info in infos]
    return tuple(
        NetworkBuffer(entry.size, entry.source_operation_id, entry.source_output_index)
        for entry in entries
    )
