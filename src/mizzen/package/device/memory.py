"""Where tensors and scratch memories lie in the arena of a device.

Two blocks share bytes only if no call needs both. The largest are placed first, each as low as the
blocks allow that live while it does.

Ref: Y. Pisarchyk, J. Lee, Efficient Memory Management for Deep Neural Net Inference, 2020 (greedy
by size).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from mizzen.package.device.program import DeviceProgram, NpuCall

ALIGNMENT_BYTES = 16
"""Of every block: the NPU's base pointers must be multiples of this (core driver)."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes that are needed from call `first` to call `last`, with both."""

    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Byte offsets in the arena.

    tensors      by index: all but constants
    scratch      region 1 of NPU calls, by the position of the call
    arena_bytes  the size of the arena
    """

    tensors: Mapping[int, int]
    scratch: Mapping[int, int]
    arena_bytes: int


def plan(program: DeviceProgram) -> MemoryPlan:
    """Return where everything lies in one arena, as a compiler's plan has it or after that."""
    free = {
        index: block
        for index, block in tensor_blocks(program).items()
        if program.tensors[index].offset_bytes is None
    }
    needed: dict[tuple[bool, int], Block] = {(True, index): block for index, block in free.items()}
    needed |= {(False, position): block for position, block in scratch_blocks(program).items()}
    start = aligned(program.arena_bytes)
    places, end = place(needed, start)
    fixed = {
        index: tensor.offset_bytes
        for index, tensor in enumerate(program.tensors)
        if tensor.offset_bytes is not None and tensor.data is None
    }
    planned = {
        position: call.scratch_offset_bytes
        for position, call in enumerate(program.calls)
        if isinstance(call, NpuCall) and call.scratch_offset_bytes is not None
    }
    return MemoryPlan(
        tensors=fixed | {index: at for (is_tensor, index), at in places.items() if is_tensor},
        scratch=planned | {index: at for (is_tensor, index), at in places.items() if not is_tensor},
        arena_bytes=max(end, start),
    )


def aligned(size_bytes: int) -> int:
    """Return the next multiple of the alignment."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def tensor_blocks(program: DeviceProgram) -> dict[int, Block]:
    """Return when each tensor that is no constant holds something that is needed.

    Inputs are there before the first call. Outputs, and what states take over, stay after the
    last. States stay from one inference to the next.
    """
    end = len(program.calls)
    kept = {state.read for state in program.states}
    first = dict.fromkeys((*program.inputs, *kept), -1)
    last = dict.fromkeys((*program.outputs, *kept), end)
    last |= {state.write: end for state in program.states}
    for position, call in enumerate(program.calls):
        for index in (*call.reads, *call.writes):
            first.setdefault(index, position)
            last[index] = max(last.get(index, position), position)
    return {
        index: Block(program.tensors[index].size_bytes, start, last.get(index, start))
        for index, start in first.items()
        if program.tensors[index].data is None
    }


def scratch_blocks(program: DeviceProgram) -> dict[int, Block]:
    """Return the scratch memories that may lie anywhere, by the position of their call."""
    return {
        position: Block(call.scratch_bytes, position, position)
        for position, call in enumerate(program.calls)
        if isinstance(call, NpuCall) and call.scratch_offset_bytes is None
    }


def place(blocks: Mapping[Key, Block], start: int) -> tuple[dict[Key, int], int]:
    """Return the byte offset of each block from `start` on, and one past the last byte."""
    places: dict[Key, int] = {}
    order = sorted(blocks, key=lambda key: (-blocks[key].size_bytes, blocks[key].first))
    for key in order:
        block = blocks[key]
        at = start
        for low, high in sorted(_beside(block, blocks, places)):
            if at + block.size_bytes <= low:
                break
            at = max(at, aligned(high))
        places[key] = at
    return places, max((at + blocks[key].size_bytes for key, at in places.items()), default=start)


def _beside(
    block: Block, blocks: Mapping[Key, Block], places: Mapping[Key, int]
) -> Iterator[tuple[int, int]]:
    """Return the bytes of the blocks that are placed and live while `block` does."""
    for key, at in places.items():
        other = blocks[key]
        if other.first <= block.last and block.first <= other.last:
            yield at, at + other.size_bytes
