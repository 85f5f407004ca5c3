"""Mistakes planted in the files of artifacts: one bit of a stream, or of constants, is another.

Of each it is asked whether the artifact can be loaded, whether `mizzen check --artifact` finds it
sound, whether it runs on random inputs and gives other outputs, and whether `mizzen compare
--artifact` finds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.analysis.checking.artifacts import check_artifact
from mizzen.analysis.comparison.exactness import Inputs, run, tflite_beside
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.ethos_n import NpuProgram
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.compile import compile_file
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.source import Source
from mizzen.diagnostics import MizzenError

Array = npt.NDArray[Any]

FEW_INPUTS = 64
"""What `run` is given of every artifact that `check` calls sound."""

BATCH = 256
KINDS = ("stream", "constants")
SEED = 77


class Judged(Enum):
    """What became of an artifact; those of a mistake that changes an output are the last two.

    Of artifacts that are only checked, nobody asks what a mistake changes: they run.
    """

    NOT_LOADED = "not loaded"
    REFUSED = "refused by check"
    ACCEPTED = "accepted by check, refused by run"
    RUNS = "accepted by check, runs"
    SAME = "changes nothing"
    FOUND = "found by compare"
    MISSED = "missed by compare"


@dataclass(frozen=True)
class Planted:
    """A bit of an artifact's file, in `stream` or `constants`."""

    kind: str
    byte: int
    bit: int

    def __str__(self) -> str:
        return f"bit {self.bit} of byte {self.byte}, {self.kind}"


class Subject:
    """A compiled network, and what is right."""

    def __init__(self, path: Path, accelerator: str, inputs: int) -> None:
        data = path.read_bytes()
        self.target = resolve_target(CompileOptions(accelerator))
        self.network = read_network(data, path.name)
        self.compiled = compile_file(Source(data, path.name), self.target)
        self.rng = np.random.default_rng([SEED, *f"{path.name} {accelerator}".encode()])
        self.inputs = [
            _random(row.shape, row.dtype, self.rng, inputs) for row in self.compiled.inputs
        ]
        self.outputs = _outputs(self.compiled, self.inputs)
        self.places = dict(_places(self.compiled))

    def plant(self, kind: str) -> Planted:
        """Choose a bit."""
        start, stop = self.places[kind]
        return Planted(kind, int(self.rng.integers(start, stop)), int(self.rng.integers(8)))

    def judge(self, planted: Planted, whole: bool) -> Judged:
        """Say what becomes of a mistake; only whether it can be run, unless as a `whole`."""
        spoilt = bytearray(self.compiled.data)
        spoilt[planted.byte] ^= 1 << planted.bit
        try:
            artifact = artifact_of(bytes(spoilt), self.compiled.name)
            sound = not check_artifact(artifact).findings
        except MizzenError:
            return Judged.NOT_LOADED
        if not sound and not whole:
            return Judged.REFUSED
        try:
            _outputs(artifact, [row[:FEW_INPUTS] for row in self.inputs])
            changes = whole and self.changes(artifact)
        except MizzenError:
            return Judged.ACCEPTED if sound else Judged.REFUSED
        if not changes:
            return Judged.SAME if whole else Judged.RUNS
        return Judged.FOUND if self.is_found(artifact) else Judged.MISSED

    def changes(self, artifact: Artifact) -> bool:
        """Whether an output is another one, for any input."""
        count = len(self.inputs[0])
        for start, stop in _cuts(count):
            found = _outputs(artifact, [row[start:stop] for row in self.inputs])
            pairs = zip(found, self.outputs, strict=True)
            if any(not np.array_equal(one, other[start:stop]) for one, other in pairs):
                return True
        return False

    def is_found(self, artifact: Artifact) -> bool:
        """Whether `compare` says that an artifact is wrong."""
        try:
            beside = tflite_beside(self.network, self.target, self.compiled, artifact)
            return not run(beside, self.target, Inputs()).holds
        except MizzenError:
            return True


def _cuts(count: int) -> Iterator[tuple[int, int]]:
    yield 0, min(FEW_INPUTS, count)
    for low in range(FEW_INPUTS, count, BATCH):
        yield low, min(low + BATCH, count)


def _random(shape: Sequence[int], dtype: Any, rng: np.random.Generator, count: int) -> Array:
    if np.dtype(dtype).kind == "f":
        return rng.uniform(-1, 1, (count, *shape)).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, (count, *shape), dtype, endpoint=True)


def _outputs(artifact: Artifact, inputs: Sequence[Array]) -> tuple[Array, ...]:
    found = artifact.run(*inputs)
    return found if isinstance(found, tuple) else (found,)


def _places(artifact: Artifact) -> Iterator[tuple[str, tuple[int, int]]]:
    """Return where the first NPU operator's stream and constants lie in the file."""
    program = next(row for row in artifact.steps if isinstance(row, NpuStep)).program
    if isinstance(program, NpuProgram):
        parts = program.program.stream, program.program.container.constant_dma
    else:
        parts = program.words.tobytes(), max(program.constants.values(), key=len).tobytes()
    for kind, part in zip(KINDS, parts, strict=True):
        start = artifact.data.find(part)
        if part and start >= 0:
            yield kind, (start, start + len(part))


@dataclass(frozen=True)
class Row:
    """What became of the mistakes in one artifact."""

    network: str
    accelerator: str
    counts: Counter[tuple[str, Judged]]


def artifacts(
    paths: Sequence[Path],
    accelerators: Sequence[str],
    count: int,
    checked: int,
    inputs: int,
    said: Callable[[str], None],
) -> dict[str, float]:
    """Plant so many mistakes in each artifact, and return the figures, by family.

    checked  mistakes besides of which only is asked whether what `check` accepts runs
    inputs   random ones that say whether a mistake changes an output
    said     is told what became of them
    """
    rows: list[Row] = []
    for path in paths:
        for accelerator in accelerators:
            subject = Subject(path, accelerator, inputs)
            counts: Counter[tuple[str, Judged]] = Counter()
            for place in range(count + checked if subject.places else 0):
                kind = list(subject.places)[place % len(subject.places)]
                planted = subject.plant(kind)
                judged = subject.judge(planted, whole=place < count)
                counts[kind, judged] += 1
                if judged in (Judged.MISSED, Judged.ACCEPTED):
                    said(f"  {judged.value}: {path.stem}, {accelerator}: {planted}")
            rows.append(Row(path.stem, accelerator, counts))
            shown = ", ".join(f"{n} {kind} {row.value}" for (kind, row), n in counts.items())
            said(f"{path.stem:24} {accelerator:22} {shown}")
    return dict(_figures(rows))


def _figures(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    whole: Counter[Judged] = Counter()
    families = {_family(row.accelerator): Counter[Judged]() for row in rows}
    for row in rows:
        for (_, judged), number in row.counts.items():
            families[_family(row.accelerator)][judged] += number
            whole[judged] += number
    for family, counts in families.items():
        changing = counts[Judged.FOUND] + counts[Judged.MISSED]
        yield f"compare_found_{family}", counts[Judged.FOUND] / max(1, changing)
        yield f"compare_changing_{family}", float(changing)
    yield "check_tried", float(sum(whole.values()))
    yield "check_refused", float(whole[Judged.REFUSED] + whole[Judged.NOT_LOADED])
    yield "check_accepts_what_run_refuses", float(whole[Judged.ACCEPTED])


def _family(accelerator: str) -> str:
    return accelerator.split("-")[1]
