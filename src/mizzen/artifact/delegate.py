"""The program in the payload of an Ethos-U delegate: its memory, and what lies where in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mizzen.artifact.ethos_u import ETHOS_U
from mizzen.diagnostics import MizzenError
from mizzen.package.executorch import vela_bin
from mizzen.package.executorch.vela_bin import VelaBin, VelaTensor
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.base_pointers import (
    addressed_regions,
    require_memory,
    with_regions_of,
)
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex, TensorAddress
from mizzen.targets.ethos_u.vela.raw import raw

LARGEST_FAST_BYTES = 1 << 32
"""Region 2 while it is found out how much of it a stream writes."""


def program_of(
    content: VelaBin,
    inputs: tuple[TensorAddress, ...],
    outputs: tuple[TensorAddress, ...],
    name: str,
) -> Program:
    """Return the program of a payload; E520 to E525, E540 and E541 for a damaged one."""
    payload = driver.parse(content.commands)
    weights = np.frombuffer(content.weights, np.uint8)
    sizes = {
        int(RegionIndex.READ_ONLY): weights.nbytes,
        int(RegionIndex.SCRATCH): content.scratch_bytes,
    }
    program = Program(
        words=payload.words,
        hardware=payload.hardware,
        region_bytes=with_regions_of((*inputs, *outputs), sizes),
        constants={int(RegionIndex.READ_ONLY): weights},
        inputs=inputs,
        outputs=outputs,
        name=name,
        form=payload.form,
    )
    require_memory(program)
    return program if not _is_fast(program) else _with_fast(program)


def archive_of_delegate(data: bytes, name: str) -> bytes:
    """Return Vela's raw archive of a payload in a file of its own, whose tensors are integers.

    Raises as `mizzen.package.executorch.vela_bin.read` and `program_of`.
    """
    content = vela_bin.read(data, name)
    inputs = tuple(_placed("input", content.inputs))
    outputs = tuple(_placed("output", content.outputs))
    program = program_of(content, inputs, outputs, name)
    return raw.write(raw.RawModel(program, (None,) * len(inputs), (None,) * len(outputs)))


def _placed(word: str, tensors: Sequence[VelaTensor]) -> list[TensorAddress]:
    return [
        TensorAddress(f"{word}_{place}", each.shape, np.dtype(f"i{each.element_bytes}"),
                      each.region, each.offset_bytes)
        for place, each in enumerate(tensors)
    ]  # fmt: skip


def _is_fast(program: Program) -> bool:
    """Whether a stream addresses region 2; one that cannot be read to its end is told of later."""
    try:
        return RegionIndex.SCRATCH_FAST in addressed_regions(program.instructions)
    except MizzenError:
        return False


def _with_fast(program: Program) -> Program:
    """Return a program with region 2 as large as what its stream writes there.

    The payload of a delegate does not say how large it is. A stream that cannot be checked is told
    of where it is run.
    """
    fast = int(RegionIndex.SCRATCH_FAST)
    sizes = {**program.region_bytes, fast: LARGEST_FAST_BYTES}
    try:
        written = ETHOS_U.hazards(replace(program, region_bytes=sizes)).written
    except MizzenError:
        return program
    end = max((stop for _, stop in written.get(fast, ())), default=0)
    return program if not end else replace(program, region_bytes={**sizes, fast: end})
