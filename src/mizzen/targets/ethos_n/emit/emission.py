"""From passes to commands, encoded weights and the table of DRAM buffers.

Buffer 0 is the command stream. Intermediate buffers share memory over time: each has the lowest
place that is free while it is in use. The others lie one after another, each kind for itself.

Ref: Ethos-N driver stack 23.02, the Support Library's `BufferManager` and `WeightEncoder`, and the
order in which it numbers buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import Location, MceOperation
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.emit.pass_commands import (
    Ids,
    accumulator_scale,
    buffer_bytes,
    concat_of,
    convert_command,
    mce_command,
    overall_factors,
    ple_command,
    written_quantization,
)
from mizzen.targets.ethos_n.lower.work_graph import (
    Concat,
    Graph,
    Layout,
    Node,
    Relabel,
    Sink,
    Source,
    Stored,
)
from mizzen.targets.ethos_n.program import BufferInfo, BufferKind, Buffers, Container, Version
from mizzen.targets.ethos_n.schedule.attempt import (
    Attempt,
    ConvertPass,
    McePass,
    Pass,
    PlePass,
    round_up,
)
from mizzen.targets.ethos_n.timing.statistics import ParentIds
from mizzen.targets.ethos_n.timing.statistics import Pass as CompiledPass
from mizzen.targets.ethos_n.weights.weight_encoding import EncodedWeights, encode
from mizzen.targets.ethos_n.weights.weight_format import WeightLayout
from mizzen.targets.ethos_n.weights.weight_streams import OutputScale

ALIGNMENT_BYTES = 64
"""Of every buffer; compressed feature maps need it."""
FIRST_SRAM_ID = 0x8000000
"""Feature maps in SRAM have numbers of their own, which mean nothing to what runs the stream."""


@dataclass(slots=True)
class Entry:
    """A buffer while commands are being made.

    source_operation_id, ..._output_index  of the network's input or output that it is
    first_command, last_command            the first and the last that uses it
    """

    kind: BufferKind
    size: int
    data: bytes = b""
    source_operation_id: int = 0
    source_output_index: int = 0
    first_command: int = -1
    last_command: int = -1


class BufferTable:
    """Buffers in the order of their ids, from 1 on until the command stream is there."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._sram_maps = 0

    def add(self, entry: Entry) -> int:
        """Take a DRAM buffer in; return its id."""
        number = len(self._entries) + 1
        self._entries[number] = entry
        return number

    def add_constant(self, kind: BufferKind, data: bytes) -> int:
        """Take constants in; return their buffer's id."""
        return self.add(Entry(kind, len(data), data))

    def add_intermediate(self, size: int) -> int:
        """Take a feature map between passes in; return its buffer's id."""
        return self.add(Entry(BufferKind.INTERMEDIATE, size))

    def add_sram_map(self) -> int:
        """Number a feature map in SRAM."""
        self._sram_maps += 1
        return FIRST_SRAM_ID + self._sram_maps - 1

    def make_output(self, buffer_id: int, operation_id: int, output_index: int) -> None:
        """Make a feature map one that an inference gives."""
        entry = self._entries[buffer_id]
        entry.kind = BufferKind.OUTPUT
        entry.source_operation_id, entry.source_output_index = operation_id, output_index

    def widen(self, buffer_id: int, multiple: int) -> None:
        """Round a buffer's size up."""
        entry = self._entries[buffer_id]
        entry.size = round_up(entry.size, multiple)

    def use(self, buffer_ids: Iterable[int], command: int) -> None:
        """Note that a command uses buffers."""
        for buffer_id in buffer_ids:
            entry = self._entries[buffer_id]
            if entry.first_command < 0:
                entry.first_command = command
            entry.last_command = command

    def finish(self, stream: bytes) -> Container:
        """Return all buffers a place, and the command stream the first."""
        self._entries[0] = Entry(BufferKind.CONSTANT_CONTROL_UNIT, len(stream), stream)
        blocks: dict[BufferKind, bytes] = {}
        lists: dict[BufferKind, Buffers] = {}
        for kind in BufferKind:
            numbered = sorted(
                (n, entry) for n, entry in self._entries.items() if entry.kind is kind
            )
            entries = [entry for _, entry in numbered]
            if kind is BufferKind.INTERMEDIATE:
                offsets = first_fit(entries)
            else:
                offsets = _one_behind_another(entries)
            blocks[kind] = _block(entries, offsets)
            lists[kind] = tuple(
                BufferInfo(n, offset, entry.size)
                for (n, entry), offset in zip(numbered, offsets, strict=True)
            )
        return Container(
            Version.V1_0,
            blocks[BufferKind.CONSTANT_DMA],
            blocks[BufferKind.CONSTANT_CONTROL_UNIT],
            self._in_order_of_operations(lists[BufferKind.INPUT]),
            self._in_order_of_operations(lists[BufferKind.OUTPUT]),
            lists[BufferKind.CONSTANT_CONTROL_UNIT],
            lists[BufferKind.CONSTANT_DMA],
            lists[BufferKind.INTERMEDIATE],
        )

    def _in_order_of_operations(self, infos: Buffers) -> Buffers:
        """Sort what an inference takes or gives as the network's operations were added."""
        return tuple(sorted(infos, key=lambda info: self._entries[info.id].source_operation_id))

    def entry(self, buffer_id: int) -> Entry:
        """Return a DRAM buffer."""
        return self._entries[buffer_id]


def _one_behind_another(entries: Sequence[Entry]) -> list[int]:
    offsets: list[int] = []
    end = 0
    for entry in entries:
        offsets.append(round_up(end, ALIGNMENT_BYTES))
        end = offsets[-1] + entry.size
    return offsets


def _block(entries: Sequence[Entry], offsets: Sequence[int]) -> bytes:
    block = bytearray()
    for entry, offset in zip(entries, offsets, strict=True):
        if entry.data:
            block.extend(bytes(offset - len(block)))
            block.extend(entry.data)
    return bytes(block)


def first_fit(entries: Sequence[Entry]) -> list[int]:
    """Return offsets at which no two buffers that are in use together overlap.

    In the order of their first use, then of their ids, each has the lowest place that is free.
    """
    offsets = [0] * len(entries)
    placed: list[int] = []
    for index in sorted(range(len(entries)), key=lambda at: (entries[at].first_command, at)):
        entry = entries[index]
        placed = [at for at in placed if entries[at].last_command >= entry.first_command]
        taken = sorted((offsets[at], _aligned(entries[at])) for at in placed)
        offset = 0
        for start, size in taken:
            if offset + _aligned(entry) <= start:
                break
            offset = max(offset, start + size)
        offsets[index] = offset
        placed.append(index)
    return offsets


def _aligned(entry: Entry) -> int:
    return round_up(entry.size, ALIGNMENT_BYTES)


def encode_weights(made: McePass, capabilities: Capabilities) -> EncodedWeights:
    """Encode the weights of a pass; E973 if a stripe of them is larger than its place in SRAM."""
    work, tile, written = made.work, made.plan.weights, written_quantization(made)
    factors = overall_factors(made.mce.source.quantization, work.weights.quantization, written)
    multipliers, shifts = zip(*map(accumulator_scale, factors), strict=True)
    encoded = encode(
        work.weight_data,
        _layout(made),
        zero_point=work.weights.quantization.zero_point,
        bias=work.bias,
        scale=OutputScale(multipliers, shifts, written.zero_point),
        capabilities=capabilities,
    )
    if tile.bytes < encoded.max_stripe_bytes * tile.stripes:
        ids = ", ".join(map(str, sorted(made.mce.operation_ids)))
        raise fail(
            "E973",
            f"{tile.stripes} stripes of the weights of operations {ids} must fit into "
            f"{tile.bytes} bytes; one has {encoded.max_stripe_bytes}",
            help="leave the operation to the CPU",
        )
    return encoded


def _layout(made: McePass) -> WeightLayout:
    work, stripe = made.work, made.plan.weights.stripe
    depth = stripe[3]
    if work.operation is MceOperation.DEPTHWISE_CONVOLUTION:
        depth = depth * stripe[2] // (work.stride.x * work.stride.y)
    return WeightLayout(
        work.weights.shape,
        depth,
        stripe[2],
        work.operation,
        made.algorithm,
        work.stride.y,
        work.stride.x,
        work.pad_top,
        work.pad_left,
    )


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
            case Concat():
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
        concat = concat_of(last)
        if self.attempt.location(last) is Location.SRAM:
            number = self.buffers.add_sram_map()
        elif concat is None:
            number = self._intermediate(last)
        else:
            if concat not in self.ids:
                self.ids[concat] = self._intermediate(concat)
            number = self.ids[concat]
        self.ids[last] = number
        return number

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
