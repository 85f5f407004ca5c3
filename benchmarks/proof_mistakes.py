"""Mistakes planted in the stream of a compiled network.

A mistake is a register with another value, two operations in each other's place, a byte of the
constants (weights, scales, tables) with one bit flipped, or a wait that is not there.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mizzen.artifact.reading import contents_of
from mizzen.artifact.region_step import RegionStep
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.ethos_u.bounds import bounds_of
from mizzen.compiler.ethos_u.proof import RegionProof
from mizzen.compiler.ethos_u.regions import OwnCode
from mizzen.compiler.ethos_u.search.judging import Judged
from mizzen.compiler.ethos_u.tflite import TfliteRegions
from mizzen.compiler.ethos_u.vela.tflite import VelaRun, tensors_of
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.proof.regions import region_step
from mizzen.compiler.tflite_truth import NetworkTruth
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.lower import lower, lower_with_state
from mizzen.isa import Kind
from mizzen.isa.command import Instruction
from mizzen.partition import extract
from mizzen.targets.ethos_u.generator.operations import links_of
from mizzen.targets.ethos_u.machine.commands import decode
from mizzen.targets.ethos_u.machine.program import BY_CONFIG_WORD, Program, RegionIndex
from mizzen.targets.ethos_u.vela.generate import Compiled, StreamCommand, generate

Words = npt.NDArray[np.uint32]
MASK = (1 << 32) - 1


@dataclass(frozen=True)
class Mistake:
    """A program with a mistake, and the debug database of its commands; `where` for people."""

    kind: str
    where: str
    program: Program
    commands: tuple[StreamCommand, ...] = ()


@dataclass(frozen=True)
class Span:
    """Bytes of a region of constants that are of one kind, ``weights`` for one."""

    kind: str
    region: int
    start: int
    stop: int


class Case(ABC):
    """A compiled network in one NPU operator, its proof, and what is right.

    spans  what is known of the constants
    """

    def __init__(self, model: Model, step: NpuStep) -> None:
        self.model = model
        self.step = step
        self.arch = BY_CONFIG_WORD[step.program.hardware.config_word].arch
        self.instructions = decode(step.program.words, self.arch)
        self.commands: tuple[StreamCommand, ...] = ()
        self.spans: tuple[Span, ...] = ()

    @abstractmethod
    def planted(self, mistake: Mistake) -> NpuStep:
        """Return a step with another program."""

    @abstractmethod
    def holds(self, mistake: Mistake, step: NpuStep) -> bool:
        """Whether the proof finds nothing wrong with it."""


class VelaCase(Case):
    """Vela's code."""

    def __init__(self, path: Path, accelerator: str) -> None:
        data, target = path.read_bytes(), resolve_target(CompileOptions(accelerator))
        model = read_network(data, path.name)
        compiled = generate(data, target.configuration)
        assert isinstance(compiled, Compiled), f"Vela takes {path.stem}"
        self.network = read_network(compiled.network, path.name)
        self.contents = contents_of(self.network)
        (step,) = self.contents.steps
        assert isinstance(step, NpuStep)
        super().__init__(model, step)
        self.commands = compiled.commands
        self.truth = NetworkTruth(model, lower(model), ProofOptions(), bounds_of(model))

    def planted(self, mistake: Mistake) -> NpuStep:
        """Return a step with another program."""
        return NpuStep(self.step.family, replace(self.step.part, program=mistake.program))

    def holds(self, mistake: Mistake, step: NpuStep) -> bool:
        """Whether the proof finds nothing wrong with it."""
        contents = replace(self.contents, steps=(step,))
        tensors = tensors_of(self.model, self.network)
        return VelaRun(self.truth, self.network, contents, tensors).mistake() is None


class OwnCase(Case):
    """Code of our own."""

    def __init__(self, path: Path, accelerator: str) -> None:
        options = CompileOptions(accelerator, target_options={"generator": "own"})
        target = resolve_target(options)
        model = read_network(path.read_bytes(), path.name)
        lowered, options = lower_with_state(model), ProofOptions()
        regions = TfliteRegions(target.configuration, lowered)
        groups = sorted({each.group for each in lowered.graph if each.group is not None})
        code = regions.compile(extract(lowered.graph, groups, path.stem), None)
        assert isinstance(code, OwnCode), f"{path.stem} is on the NPU as a whole"
        self.code, self._options = code, options
        self._part = extract(lowered.graph, groups, path.stem)
        self._proof = RegionProof(model, lowered, options)
        self._step = region_step(code)
        super().__init__(model, self._step)
        self.spans = tuple(_spans(code.program))

    def planted(self, mistake: Mistake) -> NpuStep:
        """Return a step with another program."""
        return with_program(self._step, mistake.program)

    def holds(self, mistake: Mistake, step: NpuStep) -> bool:
        """Whether the proof finds nothing wrong with it."""
        assert isinstance(step, RegionStep), "`planted` made it"
        return self._proof.executed(self.code, step, self._part, self._options).wrong is None


def with_program(step: RegionStep, program: Program) -> RegionStep:
    """Return a step that executes another program."""
    other = copy(step)
    for known in ("simulator", "hazards"):
        other.__dict__.pop(known, None)
    other.program = program
    return other


def _spans(program: Judged) -> Iterator[Span]:
    """Yield where the constants of a program of our own are."""
    region = int(RegionIndex.READ_ONLY)
    packed = program.program.constants[region].tobytes()
    for blob in program.schedule.blobs:
        at = packed.find(blob.data)
        for core in blob.cores if at >= 0 else ():
            start = at + core.scales_offset_bytes
            yield Span("scales", region, start, start + core.scales_bytes)
            start = at + core.weights_offset_bytes
            yield Span("weights", region, start, start + core.weights_bytes)
    for link in chain.from_iterable(map(links_of, program.schedule.sequence.operations)):
        table = link.activation.table
        if table is not None and (at := packed.find(table.data)) >= 0:
            yield Span("table", region, at, at + len(table.data))


CASES: dict[str, type[VelaCase] | type[OwnCase]] = {"own": OwnCase, "vela": VelaCase}
"""By whose code it is."""


def mistakes(case: Case, count: int, rng: np.random.Generator) -> Iterator[Mistake]:
    """Plant mistakes, each kind in turn."""
    makers = [_register, _address, _byte, _swapped, _waitless]
    makers += [partial(_of_kind, kind) for kind in sorted({span.kind for span in case.spans})]
    made = tried = 0
    while made < count and tried < 8 * count:
        mistake = makers[tried % len(makers)](case, rng)
        tried += 1
        if mistake is not None:
            made += 1
            yield mistake


def _with_words(case: Case, kind: str, where: str, words: Words) -> Mistake:
    program = replace(case.step.program, words=words)
    return Mistake(kind, where, program, case.commands)


ADDRESSES = re.compile("SET_.*(BASE|REGION|STRIDE_[YXC]$|DMA0_(SRC|DST|LEN)$)")
"""Settings that say where something lies."""


def _register(case: Case, rng: np.random.Generator) -> Mistake:
    """Change the value of one setting that says no address."""
    return _setting(case, "register", lambda setting: not ADDRESSES.match(setting.name), rng)


def _address(case: Case, rng: np.random.Generator) -> Mistake:
    """Change the value of one setting that says where something lies."""
    return _setting(case, "address", lambda setting: bool(ADDRESSES.match(setting.name)), rng)


def _setting(
    case: Case, kind: str, chosen: Callable[[Instruction], bool], rng: np.random.Generator
) -> Mistake:
    """Change the value of one setting: another number, one beside it, or one bit."""
    settings = [
        row for row in case.instructions if row.command.kind is Kind.SETTING and chosen(row)
    ]
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
    return _with_words(case, kind, where, words)


def _byte(case: Case, rng: np.random.Generator) -> Mistake | None:
    """Flip one bit of the constants."""
    program = case.step.program
    regions = [region for region, data in program.constants.items() if len(data)]
    if not regions:
        return None
    region = regions[int(rng.integers(len(regions)))]
    return _flipped(case, "byte", region, int(rng.integers(len(program.constants[region]))), rng)


def _of_kind(kind: str, case: Case, rng: np.random.Generator) -> Mistake:
    """Flip one bit of constants of a kind."""
    spans = [span for span in case.spans if span.kind == kind and span.stop > span.start]
    span = spans[int(rng.integers(len(spans)))]
    return _flipped(case, kind, span.region, int(rng.integers(span.start, span.stop)), rng)


def _flipped(case: Case, kind: str, region: int, place: int, rng: np.random.Generator) -> Mistake:
    program = case.step.program
    data = program.constants[region].copy()
    bit = int(rng.integers(8))
    data[place] ^= np.uint8(1 << bit)
    constants = {**program.constants, region: data}
    changed = replace(program, constants=constants)
    where = f"bit {bit} of byte {place} of region {region}"
    return Mistake(kind, where, changed, case.commands)


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
    for row in case.commands:
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
