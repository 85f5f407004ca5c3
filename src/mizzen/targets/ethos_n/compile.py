"""Compiling a network for Ethos-N78 to command stream 3.1.

Ref: Ethos-N driver stack 23.02, `Support.hpp` (`Compile`, `CompiledNetwork`).
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_n import container as containers
from mizzen.targets.ethos_n.codec import encode
from mizzen.targets.ethos_n.commands import Command
from mizzen.targets.ethos_n.config import VariantConfiguration
from mizzen.targets.ethos_n.container import Buffers, Container
from mizzen.targets.ethos_n.emit import Emission, emit
from mizzen.targets.ethos_n.estimate import Pass
from mizzen.targets.ethos_n.lower import lower
from mizzen.targets.ethos_n.network import Network
from mizzen.targets.ethos_n.refusals import require_compilable
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
        """Return the compiled network as a container "ENCN" of version 1.0."""
        return containers.write(self.container)


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


def _network_buffers(emission: Emission, infos: Buffers) -> tuple[NetworkBuffer, ...]:
    entries = [emission.buffers.entry(info.id) for info in infos]
    return tuple(
        NetworkBuffer(entry.size, entry.source_operation_id, entry.source_output_index)
        for entry in entries
    )
