"""What an inference calls, in order, and where its tensors lie: the same data for every runtime.

Each kind of artifact has a plan of its memory of its own, by which these are filled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mizzen.artifact.steps import NpuStep
from mizzen.report.memory import Use
from mizzen.targets.ethos_u.judge.hazards.intervals import Intervals

ARENA, CACHE, CONSTANTS, RUNTIME = "arena", "cache", "constants", "runtime"
"""Areas. The cache is the NPU's fast scratch memory, where that is memory of its own."""

READ_ONLY, SCRATCH, FAST = 0, 1, 2
"""Regions of an Ethos-U's stream, by their base pointers."""


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor, or memory of a kernel: where it lies; `address` is None if it is not decided."""

    name: str
    use: Use
    address: int | None
    size_bytes: int
    area: str = ARENA


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """What is done in one go: operators on the CPU, or all of an NPU operator.

    names    of its operations; a stream says itself what it does
    npu      the NPU's part; None on the CPU
    reads, writes  tensors, by what the layout calls them
    regions  area and base address of the NPU's regions that are written
    copies   whether its tensors are copied into these regions and out of them
    scratch  what a kernel needs while it runs
    """

    names: tuple[str, ...]
    npu: NpuStep | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    regions: Mapping[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    copies: bool = False
    scratch: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """Bytes that are only read.

    address  in the file; None where they are packed there
    call     the call whose NPU reads it part by part, if one does
    """

    name: str
    size_bytes: int
    address: int | None = None
    call: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ConstantRead:
    """Constants that an operation of the NPU reads: bytes of the read-only region of its call."""

    call: int
    operation: int
    name: str
    bytes: Intervals


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """An inference, and its memory.

    calls        in the order of execution
    tensors      all but constants
    states       those of them that outlive an inference
    constants    what is only read
    runtime      what the runtime keeps for itself, and states that it keeps
    ends         bytes that areas must have at least
    arena_bytes  for the runtime's one arena, its own structures included; None where it has none
    """

    calls: tuple[Call, ...]
    tensors: Mapping[int, Held]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    states: tuple[int, ...]
    constants: tuple[Constant, ...]
    runtime: tuple[Held, ...] = ()
    ends: Mapping[str, int] = field(default_factory=dict[str, int])
    arena_bytes: int | None = None
