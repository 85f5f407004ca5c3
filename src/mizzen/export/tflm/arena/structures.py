"""Sizes of TensorFlow Lite Micro's structures on a processor with addresses of 32 bits.

Every row is a structure that its interpreter makes for each network, in the order in which it does
so, and was read off a build of tflite-micro 90b983c for a Cortex-M33 (arm-none-eabi-g++ 12.2).
"""

from __future__ import annotations

from dataclasses import dataclass

ALIGNMENT_BYTES = 16
"""Of tensors, of what kernels ask for, and of the arena itself (micro_arena_constants.h)."""
WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes that are taken from the end of the arena, and their alignment."""

    size_bytes: int
    alignment: int = WORD_BYTES


SINGLE_ARENA_BUFFER_ALLOCATOR = Block(36)
GREEDY_MEMORY_PLANNER = Block(44)
MICRO_ALLOCATOR = Block(36)
RESOURCE_VARIABLES = Block(12, ALIGNMENT_BYTES)
RESOURCE_VARIABLE_BYTES = 20
"""Of each, in one block with this alignment."""
BUILTIN_DATA_ALLOCATOR = Block(8)
SUBGRAPH_BYTES = 8
EVAL_TENSOR_BYTES = 12
NODE_BYTES = 32
HANDLE_BYTES = 4
"""What finds memory that a kernel asked for in the plan."""
POINTER_BYTES = 4

TENSOR = Block(32)
"""An input or output of the network, or of the operator that is being prepared."""
QUANTISATION = Block(12)
COUNT_BYTES = 4
CHANNEL_BYTES = 4
"""Zero points of a tensor: how many, and each of them."""

REQUEST_BYTES = 12
REQUESTS_PER_OPERATOR = 12
"""Room that is kept for what the next kernel may ask for (kMaxScratchBuffersPerOp)."""
ALLOCATION_INFO_BYTES = 24
"""For each tensor and each request, while the plan is made."""
PLANNED_BYTES = 40
"""For each buffer that the plan has, while it is made."""
