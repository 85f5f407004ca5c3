"""From passes to commands and buffers.

Ref: Ethos-N driver stack 23.02, the order in which the Support Library numbers buffers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mizzen.targets.ethos_n.commands_values import Location
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.emit.buffers import BufferTable, Entry
from mizzen.targets.ethos_n.emit.pass_commands import (
    Ids,
    convert_command,
    join_of,
    mce_command,
    ple_command,
)
from mizzen.targets.ethos_n.emit.records import buffer_bytes
from mizzen.targets.ethos_n.emit.weights import encode_weights
from mizzen.targets.ethos_n.estimate.passes import ParentIds
from mizzen.targets.ethos_n.estimate.passes import Pass as CompiledPass
from mizzen.targets.ethos_n.lower.graph import Graph, Layout, Node
from mizzen.targets.ethos_n.lower.work import Join, Relabel, Sink, Source, Stored
from mizzen.targets.ethos_n.program import BufferKind
from mizzen.targets.ethos_n.schedule.attempt import Attempt, ConvertPass, McePass, Pass, PlePass

RELABELLED_MULTIPLE_BYTES = 1024
"""A buffer of NHWC bytes that are read as bricks is a whole number of brick groups."""


@dataclass(slots=True)
class Emission:
    """The passes of a network and its buffers, in the making."""

    capabilities: Capabilities
    attempt: Attempt
    passes: list[CompiledPass] = field(default_factory=list[CompiledPass])
    buffers: BufferTable = field(default_factory=BufferTable)
    ids: dict[Node, int] = field(default_factory=dict[Node, int])
    """The buffer, or the number in SRAM, of each node's map."""
    places: dict[Pass, int] = field(default_factory=dict[Pass, int])
    """The index of each pass's command."""

    def emit(self, graph: Graph) -> None:
        """Make the commands of all passes, in the order of their first nodes."""
        for node in graph.sorted():
            made = self.attempt.of(node).made_by
            if made is not None:
                if made not in self.places:
                    self._emit_pass(made)
                continue
            self._number(node)

    def _number(self, node: Node) -> None:
        """Return a node that no pass makes its buffer."""
        match node.work:
            case Source():
                (operation_id,) = node.operation_ids
                size = buffer_bytes(node.shape, self.attempt.format(node))
                entry = Entry(BufferKind.INPUT, size, source_operation_id=operation_id)
                self.ids[node] = self.buffers.add(entry)
            case Stored(data):
                contents = np.ascontiguousarray(data).tobytes()
                self.ids[node] = self.buffers.add_constant(BufferKind.CONSTANT_DMA, contents)
            case Relabel():
                self._relabel(node)
            case Join():
                self.ids[node] = self.ids[node.source]
            case Sink(output_index):
                operation_id = min(node.operation_ids)
                self.buffers.make_output(self.ids[node.source], operation_id, output_index)
            case _:
                raise AssertionError("every other node is made by a pass")

    def _relabel(self, node: Node) -> None:
        self.ids[node] = self.ids[node.source]
        in_bricks = node.layout is Layout.NHWCB and node.source.layout is Layout.NHWC
        if in_bricks and self.attempt.in_dram(node):
            self.buffers.widen(self.ids[node], RELABELLED_MULTIPLE_BYTES)

    def _emit_pass(self, made: Pass) -> None:
        index = len(self.passes)
        self.places[made] = index
        first, last = made.nodes[0], made.nodes[-1]
        operation_ids = {number for node in made.nodes for number in node.operation_ids}
        compiled = self._compiled(made, tuple(self.ids[node] for node in first.inputs))
        ids = tuple(sorted(operation_ids))
        self.passes.append(replace(compiled, operation_ids=ids, parents=self._parents(first)))
        used = [source for source in first.inputs if self.attempt.in_dram(source)]
        if self.attempt.in_dram(last):
            used.append(last)
        self.buffers.use((self.ids[node] for node in used), index)

    def _compiled(self, made: Pass, inputs: tuple[int, ...]) -> CompiledPass:
        match made:
            case McePass():
                return self._compiled_mce(made, inputs)
            case PlePass():
                ids = Ids(inputs, self._output_id(made))
                return CompiledPass(ple_command(made, self.attempt, ids))
            case ConvertPass():
                ids = Ids(inputs, self._output_id(made))
                return CompiledPass(convert_command(made, self.attempt, ids))

    def _compiled_mce(self, made: McePass, inputs: tuple[int, ...]) -> CompiledPass:
        encoded = encode_weights(made, self.capabilities)
        places = np.array([(place.offset, place.size) for place in encoded.stripes], "<u4")
        weights = self.buffers.add_constant(BufferKind.CONSTANT_DMA, encoded.data)
        metadata = self.buffers.add_constant(BufferKind.CONSTANT_CONTROL_UNIT, places.tobytes())
        ids = Ids(inputs, self._output_id(made), weights, metadata)
        return CompiledPass(
            mce_command(made, self.attempt, ids),
            weight_stripe_bytes=tuple(place.size for place in encoded.stripes),
            weights_shape=made.work.weights.shape,
        )

    def _output_id(self, made: Pass) -> int:
        """Return the number of a pass's output, which a concatenation's parts have in common."""
        last = made.nodes[-1]
        join = join_of(last)
        if self.attempt.location(last) is Location.SRAM:
            found = self.buffers.add_sram_map()
        elif join is None:
            found = self._intermediate(last)
        else:
            if join not in self.ids:
                self.ids[join] = self._intermediate(join)
            found = self.ids[join]
        self.ids[last] = found
        return found

    def _intermediate(self, node: Node) -> int:
        size = buffer_bytes(node.shape, self.attempt.format(node))
        return self.buffers.add_intermediate(size)

    def _parents(self, node: Node) -> ParentIds:
        return tuple(self._parent(source) for source in node.inputs)

    def _parent(self, source: Node) -> int | ParentIds:
        made = self.attempt.of(source).made_by
        return self._parents(source) if made is None else self.places[made]


def emit(graph: Graph, attempt: Attempt, capabilities: Capabilities) -> Emission:
    """Return the commands and the buffers of a graph that has been divided into passes."""
    emission = Emission(capabilities, attempt)
    emission.emit(graph)
    return emission
