"""What the proof of a compilation finds, and what it costs.

Run ``python benchmarks/proof.py`` for a table, with ``--json`` for the figures:

`planted_found`        of mistakes planted in streams that change an output, the part that is found
`planted_changing`     how many of those there were
`planted_refused`      mistakes besides, with which the stream cannot be executed at all
`waits_found`          of waits that were removed, the part whose absence the proof notices
`proof_over_compile`   processor time of the proof over that of the compilation, all networks

A mistake is a register with another value, two operations in each other's place, a byte of the
constants (weights, scales, tables) with one bit flipped, or a wait that is not there. Whether one
changes an output is asked of `FEW_INPUTS` random inputs, and where the proof finds nothing of up to
`--inputs` of them. Networks are those of the folder that MIZZEN_MODELS names.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mizzen
from mizzen.artifact.execution import Contents
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.ethos_u.cpu_fallback import compile_with_cpu_fallback
from mizzen.compiler.ethos_u.proof import NetworkProof
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.proof.options import ProofOptions
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite.lower import lower
from mizzen.isa import Kind
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.commands import decode
from mizzen.targets.ethos_u.program import BY_CONFIG_WORD, Program
from mizzen.targets.ethos_u.vela.generate import Compiled, StreamCommand

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
PLANTED_IN = (
    "ad01_int8", "hello_world_int8", "kws_micronet_m", "kws_ref_model", "micro_speech_quantized",
    "person_detect", "pretrainedResnet_quant",
)  # fmt: skip
"""Networks that are on the NPU as a whole, in one operator."""

ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
FEW_INPUTS = 256
MOST_INPUTS = 10_000
Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint32]
MASK = (1 << 32) - 1


@dataclass(frozen=True)
class Mistake:
    """A program with a mistake, and the debug database of its commands."""

    kind: str
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

    def inputs(self, start: int, count: int) -> list[Array]:
        """Return random inputs of the NPU operator, the same for the same start."""
        rng = np.random.default_rng(1000 + start)
        return [
            rng.integers(
                np.iinfo(row.dtype).min,
                np.iinfo(row.dtype).max,
                (count, *row.shape),
                row.dtype,
                True,
            )
            for row in self.step.program.inputs
        ]

    def changed(self, simulator: Any, most: int) -> bool:
        """Whether a program gives another output than the right one for one of so many inputs."""
        done = 0
        while done < most:
            inputs = self.inputs(done, FEW_INPUTS)
            right = self.step.simulator.run(inputs, FEW_INPUTS).outputs
            found = simulator.run(inputs, FEW_INPUTS).outputs
            if any((a != b).any() for a, b in zip(right, found, strict=True)):
                return True
            done += FEW_INPUTS
        return False

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


def _with_words(case: Case, kind: str, words: Words) -> Mistake:
    program = replace(case.step.program, words=words)
    return Mistake(kind, program, case.compiled.commands)


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
    return _with_words(case, "register", words)


def _byte(case: Case, rng: np.random.Generator) -> Mistake | None:
    """Flip one bit of the constants."""
    program = case.step.program
    regions = [region for region, data in program.constants.items() if len(data)]
    if not regions:
        return None
    region = regions[int(rng.integers(len(regions)))]
    data = program.constants[region].copy()
    data[int(rng.integers(len(data)))] ^= np.uint8(1 << int(rng.integers(8)))
    constants = {**program.constants, region: data}
    return Mistake("byte", replace(program, constants=constants), case.compiled.commands)


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
    return Mistake("swapped", program, tuple(moved))


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
    return _with_words(case, "wait", words)


def _single(rows: Sequence[Instruction], index: int) -> int:
    """Return where the last setting of one word is whose value is in force."""
    found = next(
        row
        for row in reversed(rows[:index])
        if row.command.kind is Kind.SETTING and row.command.words == 1
    )
    return found.offset_words


def judge(case: Case, mistake: Mistake, most: int) -> str:
    """Say what became of a mistake: refused, found, missed, or that it changes nothing."""
    compiled, contents, step = case.with_program(mistake)
    try:
        simulator = step.simulator
    except MizzenError:
        return "refused"
    findings = case.proof.check(compiled, case.network, contents)
    if mistake.kind == "wait":
        return "wait found" if not findings.holds else "wait not needed"
    try:
        if not findings.holds:
            return "found" if case.changed(simulator, FEW_INPUTS) else "found, changes nothing"
        return "missed" if case.changed(simulator, most) else "changes nothing"
    except MizzenError:
        return "refused"


def processor_seconds() -> float:
    """Seconds of the processor, those of processes that have ended included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def costs(accelerators: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return processor seconds of compiling without a proof, and of what the proof adds."""
    found: dict[str, tuple[float, float]] = {}
    for path in sorted(MODELS.glob("*.tflite")):
        for accelerator in accelerators:
            spent = [
                min(_compile_seconds(path, accelerator, prove) for _ in range(3))
                for prove in ("off", "quick")
            ]
            found[f"{path.stem} {accelerator}"] = spent[0], spent[1] - spent[0]
    return found


def _compile_seconds(path: Path, accelerator: str, prove: str) -> float:
    start = processor_seconds()
    mizzen.compile(path, accelerator, prove=prove)
    return processor_seconds() - start


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--mistakes", type=int, default=2000)
    parser.add_argument("--inputs", type=int, default=MOST_INPUTS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    spent = costs(ACCELERATORS)
    rng = np.random.default_rng(options.seed)
    places = [(name, row) for name in PLANTED_IN for row in ACCELERATORS]
    counts: Counter[str] = Counter()
    for name, accelerator in places:
        case = Case(MODELS / f"{name}.tflite", accelerator)
        here: Counter[str] = Counter()
        for mistake in mistakes(case, -(-options.mistakes // len(places)), rng):
            answer = judge(case, mistake, options.inputs)
            here[answer] += 1
            if answer == "missed" and not options.json:
                print(f"  missed in {name} for {accelerator}: {mistake.kind}")
        counts += here
        if not options.json:
            print(f"{name:26} {accelerator:14} {dict(here)}", flush=True)
    changing = counts["found"] + counts["missed"]
    waits = counts["wait found"] + counts["wait not needed"]
    figures = {
        "planted_found": counts["found"] / max(1, changing),
        "planted_changing": float(changing),
        "planted_refused": float(counts["refused"]),
        "waits_found": counts["wait found"] / max(1, waits),
        "proof_over_compile": sum(b for _, b in spent.values()) / sum(a for a, _ in spent.values()),
    }
    if options.json:
        print(json.dumps({"figures": figures}))
        return
    for name, (compiling, proving) in spent.items():
        print(f"{name:48} {compiling:.3f} s + {proving:.3f} s = {proving / compiling:.2f}")
    print("\n".join(f"{name:20} {value:.4g}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
