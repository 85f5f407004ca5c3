"""Mutate command streams in this process, and judge each: an answer or a diagnostic, in time.

``python benchmarks/mutations_streams.py --count 100000 --json`` takes the streams of one small
network, changes registers to other legal values, words by bits, or the size of a region, and does
what ``mizzen check --commands --linux`` and ``mizzen inspect --listing`` do. `mutations` does the
same to whole files by the command line, at a tenth of the speed. Figures:

`mutated_streams`  that were judged, and `codes` of the first thing that was said of them
`exceptions`       that ended in anything but a diagnostic; `MemoryError` is one of the system
`hangs`            that took over 60 s
`slowest_seconds`  of one stream, and its number

``--number N`` judges one of them again. Exits with 1 where there is an exception or a hang.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import resource
import signal
import struct
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

import mizzen
from mizzen.analysis.checking.artifacts import check_artifact
from mizzen.analysis.checking.linux import linux_check
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.artifact.streams import archive_of
from mizzen.diagnostics import MizzenError
from mizzen.isa import Instruction
from mizzen.targets.ethos_u.machine import commands
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.listing import list_program
from mizzen.targets.ethos_u.machine.program import Program

DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.tflite"
NPUS = ("ethos-u65-256", "ethos-u85-256")
HANG_SECONDS = 60
MOST_ADDRESSES = 6 << 30
SAYS_SECONDS = 30
FIRST_TENSOR = 7
"""Number of the network's input in Mesa's file; the output has the next."""

Words = npt.NDArray[np.uint32]


class TookTooLong(BaseException):
    """Raised where a stream is judged for too long; nothing catches it as an error."""


@dataclass(frozen=True, eq=False)
class Base:
    """A sound stream, decoded, and what Mesa's file of it has beside the words."""

    accelerator: str
    program: Program
    instructions: Sequence[Instruction]

    def file(self, words: Words, memory: int) -> bytes:
        """Return Mesa's file with other words, or with more or less memory for tensors."""
        places = (*self.program.inputs, *self.program.outputs)
        table = b"".join(
            struct.pack("<3I", FIRST_TENSOR + index, place.offset, place.size_bytes)
            for index, place in enumerate(places)
        )
        constants = self.program.constants[0].tobytes()
        sizes = struct.pack("<4Q", words.nbytes, len(constants), memory, len(table))
        return sizes + table + words.tobytes() + constants


def bases(models: Sequence[Path]) -> list[Base]:
    """Compile networks for each NPU."""
    return [_base(model, accelerator) for model in models for accelerator in NPUS]


def _base(model: Path, accelerator: str) -> Base:
    (step,) = mizzen.compile(model, accelerator, prove="off").steps
    assert isinstance(step, NpuStep)
    program = step.program
    return Base(
        accelerator, program, commands.decode(program.words, ACCELERATORS[accelerator].arch)
    )


def mutated(base: Base, chance: Random) -> bytes:
    """Return Mesa's file of a stream in which something else stands."""
    arch = ACCELERATORS[base.accelerator].arch
    changed = list(base.instructions)
    memory = base.program.region_bytes[1]
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        at = chance.randrange(len(changed))
        match chance.randrange(12):
            case 0:
                del changed[at]
            case 1:
                changed.insert(at, chance.choice(base.instructions))
            case 2:
                other = chance.randrange(len(changed))
                changed[at], changed[other] = changed[other], changed[at]
            case 3:
                memory = chance.choice((0, 1, memory // 2, memory * 2, memory << 8, 1 << 32))
            case _:
                changed[at] = _other(changed[at], chance)
    words = commands.encode(changed, arch)
    if chance.random() < 0.15 and len(words):
        words[chance.randrange(len(words))] ^= np.uint32(1 << chance.randrange(32))
    return base.file(words, memory)


def _other(instruction: Instruction, chance: Random) -> Instruction:
    """Return a command with another legal value in one of its fields."""
    fields = instruction.command.fields
    if not fields:
        return instruction
    field = chance.choice(fields)
    now = int(instruction.values[field.name])
    choices = (0, 1, -1, now + 1, now - 1, 2 * now, now // 2, now + 16, 255, 65535, 1 << 20,
               chance.randrange(1 << 16), chance.randrange(1 << 32))  # fmt: skip
    if field.members is not None:
        choices = tuple(map(int, field.members))
    for value in chance.sample(choices, len(choices)):
        try:
            return instruction.command(**{**instruction.values, field.name: value})
        except MizzenError:
            continue
    return instruction


def judge(data: bytes, accelerator: str) -> str:
    """Return the code of the first thing that is said of a stream; "" where nothing is."""
    try:
        artifact = artifact_of(archive_of(data, "net.bin", accelerator, {}), "net.bin")
        for step in artifact.steps:
            assert isinstance(step, NpuStep)
            list_program(step.program)
        said = (*check_artifact(artifact).findings, *linux_check(artifact).findings)
    except MizzenError as error:
        return error.diagnostic.code
    return said[0].code if said else ""


@contextmanager
def in_time() -> Generator[None]:
    """Raise TookTooLong where the block takes too long."""

    def stop(*_: object) -> None:
        raise TookTooLong

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def stream_of(made: Sequence[Base], seed: int, number: int) -> tuple[Base, bytes]:
    """Return a mutated file by its number: the same one every time."""
    chance = Random(f"{seed} {number}")
    base = chance.choice(made)
    return base, mutated(base, chance)


@dataclass(frozen=True)
class Tally:
    """What was found so far."""

    codes: Counter[str]
    exceptions: tuple[str, ...] = ()
    hangs: tuple[str, ...] = ()
    slowest: tuple[float, int] = (0.0, -1)

    def figures(self) -> dict[str, Any]:
        """Return the figures; see the module."""
        return {
            "mutated_streams": self.codes.total() + len(self.exceptions) + len(self.hangs),
            "exceptions": len(self.exceptions),
            "hangs": len(self.hangs),
            "slowest_seconds": list(self.slowest),
            "codes": dict(self.codes.most_common()),
            "findings": [*self.exceptions, *self.hangs],
        }


def judged(tally: Tally, made: Sequence[Base], seed: int, number: int) -> Tally:
    """Judge one more."""
    base, data = stream_of(made, seed, number)
    began = time.perf_counter()
    try:
        with in_time():
            code = judge(data, base.accelerator)
    except TookTooLong:
        place = traceback.format_exc().splitlines()[-3:]
        return replace(tally, hangs=(*tally.hangs, f"{number}: {' '.join(place)}"))
    except MemoryError:
        code = "MemoryError"
    except Exception:
        lines = traceback.format_exc().splitlines()
        print(number, *lines[-6:], sep="\n", file=sys.stderr, flush=True)
        return replace(tally, exceptions=(*tally.exceptions, f"{number}: {lines[-1]}"))
    tally.codes[code] += 1
    return replace(tally, slowest=max(tally.slowest, (time.perf_counter() - began, number)))


def main() -> int:
    """Judge mutated streams, and print what was found."""
    parser = argparse.ArgumentParser(description="Judge mutated command streams.")
    parser.add_argument("models", nargs="*", type=Path, default=[DIGITS])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, help="judge the one of this number only")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    made = bases(asked.models)
    numbers = range(asked.first, asked.first + asked.count)
    if asked.number is not None:
        numbers = range(asked.number, asked.number + 1)
    tally = Tally(Counter())
    said = time.monotonic()
    for number in numbers:
        tally = judged(tally, made, asked.seed, number)
        if time.monotonic() - said > SAYS_SECONDS:
            said = time.monotonic()
            print(number, json.dumps(tally.figures()), file=sys.stderr, flush=True)
    figures = tally.figures()
    print(json.dumps({"figures": figures}) if asked.json else json.dumps(figures, indent=1))
    return int(bool(tally.exceptions or tally.hangs))


if __name__ == "__main__":
    sys.exit(main())
