"""One region of constants for all NPU operators of a network, whoever made them.

Vela's code says where in it its constants lie, and stays as it is; code of our own is emitted
again, with its constants in the gaps between, which are those that other code had of Vela.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mizzen.compiler.ethos_u.generator.search import Found
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.judge.hazards import EMPTY, Intervals, touched
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex

ALIGNMENT_BYTES = 16
"""Of what has an address."""
ENDLESS_BYTES = 1 << 40
"""Behind the last constants nothing is in the way."""
READ_ONLY = int(RegionIndex.READ_ONLY)


def with_shared_constants(
    found: Sequence[Found], configuration: EthosUConfiguration
) -> list[Program]:
    """Return the programs that NPU operators get, with the same constants in all of them."""
    kept = [row.program for row in found if row.schedule is None]
    read = _read(kept)
    starts = places([_size(row.program) for row in found if row.schedule is not None], read)
    whole = np.zeros(0, np.uint8)
    for program in kept[:1]:
        whole = _with(whole, program.constants[READ_ONLY], read.runs)
    rest = iter(starts)
    programs: list[Program] = []
    for row in found:
        program = row.program
        if row.schedule is not None:
            start = next(rest)
            moved = emit(replace(row.schedule, constants_at=start), configuration.accelerator)
            data = moved.constants[READ_ONLY]
            whole = _with(whole, data, [(start, len(data))])
            program = replace(program, words=moved.words, origins=moved.origins)
        programs.append(program)
    sizes = {READ_ONLY: len(whole)}
    return [
        replace(
            program,
            constants={**program.constants, READ_ONLY: whole},
            region_bytes={**program.region_bytes, **sizes},
        )
        for program in programs
    ]


def _read(programs: Iterable[Program]) -> Intervals:
    """Return the bytes of the constants that programs read."""
    found = EMPTY
    for program in programs:
        for step in touched(program):
            for region, bytes_ in step.reads:
                if region == READ_ONLY:
                    found = found | bytes_
    return found


def _size(program: Program) -> int:
    return _aligned(len(program.constants[READ_ONLY]))


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def places(sizes: Sequence[int], read: Intervals) -> list[int]:
    """Return where constants of some sizes begin: the largest first, each as low as it fits."""
    gaps = list(_gaps(read))
    found = [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda row: -sizes[row]):
        size = sizes[index]
        place = next(row for row, (start, stop) in enumerate(gaps) if stop - start >= size)
        start, stop = gaps[place]
        found[index], gaps[place] = start, (start + size, stop)
    return found


def _gaps(read: Intervals) -> Iterator[tuple[int, int]]:
    edges = [0, *(edge for run in read.runs for edge in run), ENDLESS_BYTES]
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        yield _aligned(start), stop


def _with(
    whole: npt.NDArray[np.uint8], data: npt.NDArray[np.uint8], runs: Iterable[tuple[int, int]]
) -> npt.NDArray[np.uint8]:
    """Return constants with some bytes of others where those have them."""
    for start, stop in runs:
        if stop > len(whole):
            whole = np.concatenate([whole, np.zeros(stop - len(whole), np.uint8)])
        whole[start:stop] = data[start:stop]
    return whole
