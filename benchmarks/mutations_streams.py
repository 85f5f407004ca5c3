"""Mutate command streams in this process, and judge each: an answer or a diagnostic, in time.

``python benchmarks/mutations_streams.py --count 100000 --json`` takes the streams of small networks
for U65 and U85, changes registers to other legal values, words by bits, or the size of a region,
and does what ``mizzen check --commands --linux`` and ``mizzen inspect --listing`` do. One in
`FILES` goes by Mesa's file, as a user would give it, the others past it to the judges: it is the
same, at a tenth of the cost. `mutations` does it to whole files by the command line. Figures:

`mutated_streams`  that were judged, and `codes` of the first thing that was said of them
`exceptions`       that ended in anything but a diagnostic; `MemoryError` is one of the system
`hangs`            that took over 60 s of the processor
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
from mizzen.analysis.checking.artifacts import MOST_SECONDS_FOR_ONE, check_artifact
from mizzen.analysis.checking.linux import linux_check
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.artifact.streams import archive_of
from mizzen.conformance.cases import cases
from mizzen.diagnostics import MizzenError
from mizzen.isa import Instruction
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.linux import would_linux_take
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine import commands
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.listing import list_program
from mizzen.targets.ethos_u.machine.program import Program

CASES = (
    "conv_1x8x8x3_o8_k5x3_s2x2_d1x1_same_int8", "conv_1x7x7x6_o9_k3x3_s1x1_d1x1_same_int16",
    "dw_1x9x7x11_m1_k3x3_s1x1_d1x1_same_int8", "fc_3x12_o20_act0_int8",
    "tconv_1x4x5x3_o8_k4x4_s2x2_valid_int8", "average_pool_2d_1x9x8x13_k3x3_s2x2_d1x1_same_int8",
    "max_pool_2d_1x8x8x16_k2x2_s2x2_d1x1_valid_int8", "mean_1x7x6x11_axes12_int8",
    "add_1x5x6x7_1x5x6x7_int8", "mul_1x1x6x7_1x5x6x7_int8", "sub_1x5x6x7_1x1x1x1_int8",
    "sum_1x6x5x2_axes3_int8", "argmax_1x4x5x9",
)  # fmt: skip
DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.tflite"
FILES = 10
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


def bases() -> list[Base]:
    """Compile networks of one operator, and the digits, for each NPU."""
    models = [case.build() for case in cases() if case.name in CASES]
    models.append(DIGITS.read_bytes())
    return [_base(model, accelerator) for model in models for accelerator in NPUS]


def _base(model: bytes, accelerator: str) -> Base:
    (step,) = mizzen.compile(model, accelerator, prove="off").steps
    assert isinstance(step, NpuStep)
    program = step.program
    return Base(
        accelerator, program, commands.decode(program.words, ACCELERATORS[accelerator].arch)
    )


def mutated(base: Base, chance: Random) -> tuple[Words, int]:
    """Return words among which something else stands, and bytes of memory."""
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
    return words, memory


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


def judge_file(data: bytes, accelerator: str) -> str:
    """Return the code of the first thing that is said of a file; "" where nothing is."""
    try:
        artifact = artifact_of(archive_of(data, "net.bin", accelerator, {}), "net.bin")
        for step in artifact.steps:
            assert isinstance(step, NpuStep)
            list_program(step.program)
        said = (*check_artifact(artifact).findings, *linux_check(artifact).findings)
    except MizzenError as error:
        return error.diagnostic.code
    return said[0].code if said else ""


def judge(program: Program) -> str:
    """Return the code of the first thing that is said of a stream; "" where nothing is."""
    try:
        list_program(program)
        said = (*would_linux_take(program).diagnostics, *find_hazards(program).diagnostics)
        simulator = Simulator(program)
        if simulator.plan.seconds < MOST_SECONDS_FOR_ONE:
            given = [np.zeros((2, *each.shape), each.dtype) for each in program.inputs]
            for array in given:
                array[1] = 77
            simulator.run(given, 2)
    except MizzenError as error:
        return error.diagnostic.code
    return said[0].code if said else ""


@contextmanager
def in_time() -> Generator[None]:
    """Raise TookTooLong where the block takes too long."""

    def stop(*_: object) -> None:
        raise TookTooLong

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def judge_number(made: Sequence[Base], seed: int, number: int) -> str:
    """Make a mutated stream by its number, the same one every time, and judge it."""
    chance = Random(f"{seed} {number}")
    base = chance.choice(made)
    words, memory = mutated(base, chance)
    with in_time():
        if number % FILES == 0:
            return judge_file(base.file(words, memory), base.accelerator)
        regions = {**base.program.region_bytes, 1: memory}
        return judge(replace(base.program, words=words, region_bytes=regions))


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
    began = time.process_time()
    try:
        code = judge_number(made, seed, number)
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
    return replace(tally, slowest=max(tally.slowest, (time.process_time() - began, number)))


def main() -> int:
    """Judge mutated streams, and print what was found."""
    parser = argparse.ArgumentParser(description="Judge mutated command streams.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, help="judge the one of this number only")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    made = bases()
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
