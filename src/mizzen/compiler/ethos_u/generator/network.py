"""The NPU operators of a compiled network as programs, and other programs in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.artifact.ethos_u import ETHOS_U
from mizzen.artifact.steps import is_npu, read_network
from mizzen.diagnostics import Origin
from mizzen.flatbuffer import Record
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer import write as write_file
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.memory_plan import ALLOCATION, NOT_IN_ARENA
from mizzen.targets.ethos_u.generator.placement import Block, place
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex
from mizzen.targets.ethos_u.vela.generate import Compiled

EMPTY_BUFFER = 0
"""The buffer that all tensors without contents have."""
_PAYLOAD, _READ_ONLY, _SCRATCH, _SCRATCH_FAST = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class NpuPart:
    """An NPU operator and its program, whose origins name the operators that Vela was given."""

    operator: Operator
    program: Program


def parts_of(compiled: Compiled) -> tuple[Model, list[NpuPart]]:
    """Return a compiled network, read, and its NPU operators. E12x, E52x if it is damaged."""
    network = read_network(compiled.network, "network")
    origins: dict[int, dict[int, Origin]] = {}
    for command in compiled.commands:
        if command.operator is not None:
            found = origins.setdefault(command.stream, {})
            found[command.offset_bytes] = Origin(operator=command.operator)
    rows = [row for row in network.main.operators if is_npu(row)]
    return network, [
        NpuPart(row, ETHOS_U.read(network, row, origins.get(stream, {})).program)
        for stream, row in enumerate(rows)
    ]


def outliving(network: Model, part: NpuPart) -> frozenset[str]:
    """Return the names of an NPU operator's inputs that are read behind it, or are outputs."""
    lifetimes, tensors = _lifetimes(network), network.main.tensors
    inputs = part.operator.inputs[_SCRATCH_FAST + 1 :]
    return frozenset(
        tensors[row].name
        for row in inputs
        if lifetimes[row][1] > part.operator.index or row in network.main.outputs
    )


def arena_bytes(network: Model, part: NpuPart, program: Program) -> int:
    """Return what the runtime's arena takes if the one NPU operator has a program."""
    inputs = part.operator.inputs
    sizes = {row.index: row.size_bytes or 0 for row in network.main.tensors}
    sizes[inputs[_SCRATCH_FAST]] = program.region_bytes.get(RegionIndex.SCRATCH_FAST, 0)
    sizes[inputs[_SCRATCH]] = program.region_bytes[RegionIndex.SCRATCH]
    offsets = _offsets(network, part, program)
    return max((offset + sizes[tensor] for tensor, offset in offsets.items()), default=0)


def with_programs(
    compiled: Compiled, parts: Sequence[NpuPart], programs: Sequence[Program]
) -> bytes:
    """Return the file of a network of several NPU operators, some of which have other programs.

    What they take and give lies where it did; all have the same constants.
    """
    record = read_file(compiled.network, SCHEMA, "network")
    main = record["subgraphs"][0]
    for part, program in zip(parts, programs, strict=True):
        if program.words is not part.program.words:
            row = main["operators"][part.operator.index]
            _fill(record, row["inputs"][_PAYLOAD], _payload(record, row, program))
    inputs = parts[0].operator.inputs
    _fill(record, inputs[_READ_ONLY], programs[0].constants[RegionIndex.READ_ONLY].tobytes())
    sizes = [row.region_bytes for row in programs]
    _resize(main, inputs[_SCRATCH], max(row[RegionIndex.SCRATCH] for row in sizes))
    if inputs[_SCRATCH_FAST] != inputs[_SCRATCH]:
        fast = max(row.get(RegionIndex.SCRATCH_FAST, 0) for row in sizes)
        _resize(main, inputs[_SCRATCH_FAST], fast)
    return write_file(record, SCHEMA)


def _payload(record: Record, operator: Record, program: Program) -> bytes:
    version = driver.parse(_bytes(record, operator["inputs"][_PAYLOAD])).version or (0, 1)
    return driver.build(program.words, program.hardware, version)


def with_program(compiled: Compiled, network: Model, part: NpuPart, program: Program) -> bytes:
    """Return the file of a network whose one NPU operator has another program."""
    record = read_file(compiled.network, SCHEMA, "network")
    main = record["subgraphs"][0]
    row = main["operators"][part.operator.index]
    inputs = row["inputs"]
    _fill(record, inputs[_PAYLOAD], _payload(record, row, program))
    _fill(record, inputs[_READ_ONLY], program.constants[RegionIndex.READ_ONLY].tobytes())
    sizes = program.region_bytes
    _resize(main, inputs[_SCRATCH], sizes[RegionIndex.SCRATCH])
    if inputs[_SCRATCH_FAST] != inputs[_SCRATCH]:
        _resize(main, inputs[_SCRATCH_FAST], sizes.get(RegionIndex.SCRATCH_FAST, 0))
    _allocate(record, _offsets(network, part, program))
    return write_file(record, SCHEMA)


def _bytes(record: Record, tensor: int) -> bytes:
    buffer = record["subgraphs"][0]["tensors"][tensor]["buffer"]
    return record["buffers"][buffer]["data"].tobytes()


def _fill(record: Record, tensor: int, data: bytes) -> None:
    row = record["subgraphs"][0]["tensors"][tensor]
    if row["buffer"] == EMPTY_BUFFER:
        row["buffer"] = len(record["buffers"])
        record["buffers"] = [*record["buffers"], dict(record["buffers"][EMPTY_BUFFER])]
    record["buffers"][row["buffer"]]["data"] = np.frombuffer(data, np.uint8)
    row["shape"] = np.asarray([len(data)], np.int32)


def _resize(main: Record, tensor: int, size_bytes: int) -> None:
    main["tensors"][tensor]["shape"] = np.asarray([size_bytes], np.int32)


def _allocate(record: Record, offsets: Mapping[int, int]) -> None:
    """Write where tensors of the main subgraph lie into the network's metadata."""
    (row,) = (row for row in record["metadata"] if row["name"] == ALLOCATION)
    buffer = record["buffers"][row["buffer"]]
    words = buffer["data"].view("<i4").copy()
    for tensor, offset in offsets.items():
        words[3 + tensor] = offset
    buffer["data"] = words.view(np.uint8)


def _offsets(network: Model, part: NpuPart, program: Program) -> dict[int, int]:
    """Return where every tensor in the arena lies, with the program's own where it has them.

    The program has its scratch memory while it runs; what the CPU hands on then lies behind it.
    """
    before = ETHOS_U.arena_offsets(network)
    inputs = part.operator.inputs
    memories = {inputs[_SCRATCH], inputs[_SCRATCH_FAST]}
    rows = (*program.inputs, *program.outputs)
    own = [*_arena_inputs(part, before), *part.operator.outputs]
    found = dict(zip(own, (row.offset for row in rows), strict=True))
    found.update({tensor: 0 for tensor in memories if before.get(tensor, NOT_IN_ARENA) >= 0})
    others = [row for row in before if row not in found]
    if others:
        found.update(_of_cpu(network, part, program, found, others))
    return found


def _arena_inputs(part: NpuPart, offsets: Mapping[int, int]) -> list[int]:
    return [row for row in part.operator.inputs[_SCRATCH_FAST + 1 :] if row in offsets]


def _of_cpu(
    network: Model, part: NpuPart, program: Program, own: Mapping[int, int], others: list[int]
) -> dict[int, int]:
    """Place what only the CPU hands on around what the program fixes."""
    lifetimes = _lifetimes(network)
    at = part.operator.index
    scratch = program.region_bytes[RegionIndex.SCRATCH]
    blocks = [Block(scratch, at, at, offset_bytes=0)]
    sizes = [row.size_bytes or 0 for row in network.main.tensors]
    for tensor, offset in own.items():
        if tensor not in part.operator.inputs[: _SCRATCH_FAST + 1]:
            first, last = lifetimes[tensor]
            blocks += [
                Block(sizes[tensor], start, stop, offset_bytes=offset)
                for start, stop in ((first, at - 1), (at + 1, last))
                if start <= stop
            ]
    fixed = len(blocks)
    blocks += [Block(sizes[row], *lifetimes[row]) for row in others]
    placed = place(blocks)
    return dict(zip(others, placed.offsets_bytes[fixed:], strict=True))


def _lifetimes(network: Model) -> dict[int, tuple[int, int]]:
    """Return the first and last operator between which a tensor holds something.

    What no operator names is taken to hold something all the time.
    """
    main = network.main
    found: dict[int, tuple[int, int]] = dict.fromkeys(main.inputs, (0, 0))
    for row in main.operators:
        for tensor in (*row.inputs, *row.outputs, *row.intermediates):
            first, _ = found.get(tensor, (row.index, row.index))
            found[tensor] = first, row.index
    last = len(main.operators) - 1
    always = {row.index: (0, last) for row in main.tensors if row.index not in found}
    ending = {row: (found[row][0], last) for row in main.outputs if row in found}
    return {**found, **always, **ending}
