"""Mistakes planted in the stream of a compiled network.

A mistake is a register with another value, two operations in each other's place, a byte of the
constants (weights, scales, tables) with one bit flipped, or a wait that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mizzen.artifact.execution import Contents
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.ethos_u.vela.cpu_fallback import compile_with_cpu_fallback
from mizzen.compiler.ethos_u.vela.proof import NetworkProof
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.proof.options import ProofOptions
from mizzen.frontends.tflite.lower import lower
from mizzen.isa import Kind
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.machine.commands import decode
from mizzen.targets.ethos_u.machine.program import BY_CONFIG_WORD, Program
from mizzen.targets.ethos_u.vela.generate import Compiled, StreamCommand

Words = npt.NDArray[np.uint32]
MASK = (1 << 32) - 1


@dataclass(frozen=True)
class Mistake:
    """A program with a mistake, and the debug database of its commands; `where` for people."""

    kind: str
    where: str
    program: Program
    commands: tuple[StreamCommand, ...]


class Case:
    """A compiled network, its proof, and what is right."""

    def __init__(self, path: Path, accelerator: str) -> None:
        data, target = path.read_bytes(), resolve_target(CompileOptions(accelerator))
        self.model = read_network(data, path.name)
        generated = compile_with_cpu_fallback(self.model, data, target.configuration)
        self.compiled: Compiled = generated.compiled
        self.network = read_network(self.compiled.network, path.name)
        self.contents = contents_of(self.network)
        (step,) = self.contents.steps
        assert isinstance(step, NpuStep)
        self.step = step
        self.proof = NetworkProof(self.model, lower(self.model), ProofOptions())
        self.arch = BY_CONFIG_WORD[step.program.hardware.config_word].arch
        self.instructions = decode(step.program.words, self.arch)

    def with_program(self, mistake: Mistake) -> tuple[Compiled, Contents, NpuStep]:
        """Return what the proof takes, with another program."""
        step = NpuStep(self.step.family, replace(self.step.part, program=mistake.program))
        contents = replace(self.contents, steps=(step,))
        return replace(self.compiled, commands=mistake.commands), contents, step


def mistakes(case: Case, count: int, rng: np.random.Generator) -> Iterator[Mistake]:
    """Plant mistakes, each kind in turn."""
    makers = (_register, _byte, _swapped, _waitless)
    made = tried = 0
    while made < count and tried < 8 * count:
        mistake = makers[tried % len(makers)](case, rng)
        tried += 1
        if mistake is not None:
            made += 1
            yield mistake


def _with_words(case: Case, kind: str, where: str, words: Words) -> Mistake:
    program = replace(case.step.program, words=words)
    return Mistake(kind, where, program, case.compiled.commands)


def _register(case: Case, rng: np.random.Generator) -> Mistake:
    """Change the value of one setting: another number, one beside it, or one bit."""
    settings = [row for row in case.instructions if row.command.kind is Kind.SETTING]
    row = settings[int(rng.integers(len(settings)))]
    words = case.step.program.words.copy()
    at = row.offset_words
    low = 0 if row.command.words == 2 else 16
    place = at + 1 if row.command.words == 2 and rng.integers(4) else at
    low, width = (0, 32) if place > at else (16, 16)
    value = (int(words[place]) & MASK) >> low
    other = (
        int(rng.integers(1 << width)),
        value + int(rng.choice([-16, -1, 1, 16])),
        value ^ (1 << int(rng.integers(width))),
    )[int(rng.integers(3))] % (1 << width)
    kept = int(words[place]) & ((1 << low) - 1)
    words[place] = kept | other << low
    where = f"{row.name} at word {at}, {value:#x} to {other:#x}"
    return _with_words(case, "register", where, words)


def _byte(case: Case, rng: np.random.Generator) -> Mistake | None:
    """Flip one bit of the constants."""
    program = case.step.program
    regions = [region for region, data in program.constants.items() if len(data)]
    if not regions:
        return None
    region = regions[int(rng.integers(len(regions)))]
    data = program.constants[region].copy()
    place, bit = int(rng.integers(len(data))), int(rng.integers(8))
    data[place] ^= np.uint8(1 << bit)
    constants = {**program.constants, region: data}
    changed = replace(program, constants=constants)
    where = f"bit {bit} of byte {place} of region {region}"
    return Mistake("byte", where, changed, case.compiled.commands)


def _segments(rows: Sequence[Instruction], total: int) -> list[tuple[int, int]]:
    """Return first and one past the last word of what each operation needs, itself at the end."""
    ends = [
        row.offset_words + row.command.words for row in rows if row.command.kind is Kind.OPERATION
    ]
    starts = [0, *ends[:-1]]
    return [(a, b) for a, b in zip(starts, ends, strict=True) if b <= total]


def _swapped(case: Case, rng: np.random.Generator) -> Mistake | None:
    """Let two operations in a row change places, each with the settings in front of it."""
    words = case.step.program.words
    segments = _segments(case.instructions, len(words))
    if len(segments) < 3:
        return None
    place = int(rng.integers(1, len(segments) - 1))
    (a, b), (c, d) = segments[place], segments[place + 1]
    swapped = np.concatenate([words[:a], words[c:d], words[a:b], words[d:]])
    moved = []
    for row in case.compiled.commands:
        at = row.offset_bytes // 4
        shift = (d - c) if a <= at < b else (a - c) if c <= at < d else 0
        moved.append(replace(row, offset_bytes=row.offset_bytes + 4 * shift))
    program = replace(case.step.program, words=swapped)
    return Mistake("swapped", f"operation {place} and the next", program, tuple(moved))


def _waitless(case: Case, rng: np.random.Generator) -> Mistake | None:
    """Replace a wait by the setting in front of it, which then is made twice."""
    rows = case.instructions
    places = [
        index
        for index, row in enumerate(rows)
        if index and row.name.endswith("_WAIT") and rows[index - 1].command.kind is Kind.SETTING
    ]
    if not places:
        return None
    index = places[int(rng.integers(len(places)))]
    before = rows[index - 1]
    words = case.step.program.words.copy()
    at = rows[index].offset_words
    if before.command.words != 1:
        words[at] = words[_single(rows, index)]
    else:
        words[at] = words[before.offset_words]
    return _with_words(case, "wait", f"word {at}", words)


def _single(rows: Sequence[Instruction], index: int) -> int:
    """Return where the last setting of one word is whose value is in force."""
    found = next(
        row
        for row in reversed(rows[:index])
        if row.command.kind is Kind.SETTING and row.command.words == 1
    )
    return found.offset_words
