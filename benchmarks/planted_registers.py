"""Plant wrong registers in streams of several operations, and see which operation is named.

``python benchmarks/planted_registers.py --json`` compiles chains of six operators and more in the
manner of Mesa for U65-256 and U85-256 (`tests/mesa`), plants each of `planted_kinds` at one
operation of each, and asks what a user would: the first operation that differs from the network
(`first_difference`), what `check` says, and the rules of Linux. A mistake counts if an output
changes, if the stream does not run, or if it is wrong without that, as a missing wait. Figures:

`kinds`          that could be planted and count, of so many rows
`planted`        mistakes that count; `harmless` ones do not
`named`          whose operation is the first that is named; `share` of all that count
`said_nothing`   of which nothing was said
`of_operator`    whose operator of the network is the first that is named, and `operator_share`:
                 the network says nothing of what is inside of one, as the 26 of a softmax
`by_check`       whose operation `check` names first, without the network
`misses`         the others: kind, stream, operation, and what was named

Exits with 1 below a share of 0.95.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests"))

import mizzen
from mesa.lowering import Lowered, lowered
from mesa.networks import LONG, network
from mizzen.analysis.checking.artifacts import check_artifact
from mizzen.analysis.checking.linux import linux_check
from mizzen.analysis.comparison.bisection import first_difference
from mizzen.analysis.comparison.truth import Truth, truth_of
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.diagnostics import MizzenError
from mizzen.isa import Instruction
from mizzen.targets.ethos_u.machine.commands import decode, encode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from planted_kinds import KINDS, Kind, Places, Planted, segments_of

NPUS = ("ethos-u65-256", "ethos-u85-256")
BAR = 0.95


@dataclass(frozen=True)
class Stream:
    """A sound stream, its network, and what it gives."""

    name: str
    accelerator: str
    made: Lowered
    instructions: Sequence[Instruction]
    truth: Truth
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    folder: Path

    @property
    def arch(self) -> Any:
        """The architecture."""
        return ACCELERATORS[self.accelerator].arch

    def artifact(self, instructions: Sequence[Instruction]) -> Artifact:
        """Read a stream as a user would, from Mesa's file."""
        path = self.folder / "net.bin"
        path.write_bytes(self.made.file(encode(instructions, self.arch)))
        return mizzen.load(path, self.accelerator)


def stream(name: str, accelerator: str, folder: Path) -> Stream:
    """Compile a chain."""
    data = network(name)
    made = lowered(data, ACCELERATORS[accelerator].arch)
    words = made.stream.words()
    truth = truth_of(data)
    inputs = truth.stimuli(2, 3)
    instructions = decode(words, ACCELERATORS[accelerator].arch)
    whole = Stream(name, accelerator, made, instructions, truth, inputs, (), folder)
    artifact = whole.artifact(instructions)
    outputs = results(artifact, inputs)
    return Stream(name, accelerator, made, instructions, truth, inputs, outputs, folder)


def results(artifact: Artifact, inputs: Sequence[Array]) -> list[Array]:
    """Run two inferences; inputs are matched by the numbers of Mesa's tensors, in order."""
    flat = [array.view(np.uint8).reshape(len(array), -1) for array in inputs]
    came = artifact.run(*flat)
    return list(came) if isinstance(came, tuple) else [came]


def whole(planted: Planted, stop: Instruction) -> tuple[list[Instruction], list[int]]:
    """Return the commands of a stream, and where its operations are, in words."""
    made: list[Instruction] = []
    places: list[int] = []
    for segment in planted.segments:
        made += segment.before
        places.append(len(made))
        made.append(segment.operation)
    ends = list(accumulate(each.command.words for each in made))
    return [*made, stop], [ends[place] - 1 for place in places]


@dataclass(frozen=True)
class Said:
    """What was said of a stream: operations by their number, the first one first.

    changes  whether an output is another, or there is none
    """

    changes: bool
    difference: int | None
    check: tuple[frozenset[int], ...]
    linux: tuple[frozenset[int], ...]

    @property
    def first(self) -> frozenset[int]:
        """The operations that are named first: of the difference, else of a finding."""
        if self.difference is not None:
            return frozenset((self.difference,))
        return next(iter((*self.check, *self.linux)), frozenset())


def judge(original: Stream, instructions: Sequence[Instruction], places: Sequence[int]) -> Said:
    """Ask everything about a stream."""

    def number(word: int | None) -> frozenset[int]:
        if word is None:
            return frozenset()
        return frozenset([next((i for i, at in enumerate(places) if at >= word), len(places) - 1)])

    try:
        artifact = original.artifact(instructions)
        found = check_artifact(artifact)
    except MizzenError as error:
        origin = error.diagnostic.origin
        return Said(True, None, (number(None if origin is None else origin.command),), ())
    broken = [number(each.origin.command) for step in found.steps if step.report is None
              for each in step.findings if each.origin is not None]  # fmt: skip
    if broken:
        return Said(True, None, tuple(broken), ())
    check = tuple(_numbers(found.as_dict(), number))
    fault = found.fault
    if fault is not None and fault.origin is not None:
        check = (*check, number(fault.origin.command))
    linux = tuple(number(each.at) for _, report in linux_check(artifact).reports
                  for each in report.refusals)  # fmt: skip
    try:
        came = results(artifact, original.inputs)
        changes = any(not np.array_equal(a, b)
                      for a, b in zip(original.outputs, came, strict=False))  # fmt: skip
    except (MizzenError, ValueError):
        changes = True
    difference = _difference(artifact, original)
    named = None if difference is None else next(iter(number(difference)))
    return Said(changes, named, tuple(e for e in check if e), tuple(e for e in linux if e))


def _difference(artifact: Artifact, original: Stream) -> int | None:
    try:
        found = first_difference(artifact, original.truth)
    except MizzenError:
        return None
    return None if found is None else found.word


def _numbers(data: dict[str, Any], number: Any) -> Iterator[frozenset[int]]:
    """Return the operations of each finding of `check`: both of a race."""
    for step in data["steps"]:
        for finding in step["findings"]:
            named = frozenset[int]()
            for side in ("first", "second"):
                if side in finding:
                    named |= number(finding[side].get("offset_words"))
            origin = finding.get("origin") or {}
            yield named or number(origin.get("command"))


@dataclass
class Tally:
    """Counts."""

    harmless: int = 0
    planted: int = 0
    named: int = 0
    of_operator: int = 0
    by_check: int = 0
    said_nothing: int = 0
    kinds: set[str] = field(default_factory=set[str])
    misses: list[str] = field(default_factory=list[str])

    def figures(self) -> dict[str, Any]:
        """Return the figures; see the module."""
        return {
            "rows": len(KINDS), "kinds": len(self.kinds), "planted": self.planted,
            "harmless": self.harmless, "named": self.named,
            "share": self.named / max(1, self.planted), "of_operator": self.of_operator,
            "operator_share": self.of_operator / max(1, self.planted), "by_check": self.by_check,
            "said_nothing": self.said_nothing, "misses": self.misses,
        }  # fmt: skip

    def add(self, kind: Kind, original: Stream, planted: Planted, said: Said) -> bool:
        """Count a mistake; tell whether it counts."""
        if not (said.changes or said.check or said.linux or kind.is_wrong):
            self.harmless += 1
            return False
        self.planted += 1
        self.kinds.add(kind.name)
        right = _right(planted)
        owners = [op.operator for op in original.made.made]
        operators = [{owners[place] for place in places} for places in (said.first, right)]
        self.of_operator += bool(operators[0] & operators[1])
        self.by_check += bool(said.check and said.check[0] & right)
        if said.first & right:
            self.named += 1
            return True
        self.said_nothing += not said.first
        self.misses.append(
            f"{kind.name}: {original.name} {original.accelerator}, operation "
            f"{min(planted.wrong)} {planted.segments[min(planted.wrong)].operation.name}: "
            f"difference {said.difference}, check {[sorted(e) for e in said.check[:3]]}, "
            f"linux {[sorted(e) for e in said.linux[:2]]}"
        )
        return True


def _right(planted: Planted) -> frozenset[int]:
    """Return the wrong operations, and those that read what a wrong transfer brings."""
    made = set(planted.wrong)
    for place in planted.wrong:
        if planted.segments[place].operation.name == "OP_DMA_START":
            made.add(min(place + 1, len(planted.segments) - 1))
    return frozenset(made)


def plant(kind: Kind, original: Stream, tally: Tally, seed: int) -> None:
    """Plant a kind once, at the first operation at which it counts, of a few."""
    segments = segments_of(original.instructions)
    tried = 0
    for place in Places(f"{seed} {kind.name} {original.name} {original.accelerator}").order(
        len(segments)
    ):
        planted = kind.plant(segments, place, original.arch)
        if planted is None:
            continue
        tried += 1
        said = judge(original, *whole(planted, original.instructions[-1]))
        if tally.add(kind, original, planted, said) or tried == TRIES:
            return


TRIES = 4


def main() -> int:
    """Plant mistakes, and print which are named."""
    parser = argparse.ArgumentParser(description="Plant wrong registers in streams.")
    parser.add_argument("--chains", nargs="+", default=list(LONG), choices=LONG)
    parser.add_argument("--npus", nargs="+", default=list(NPUS), choices=NPUS)
    parser.add_argument("--kinds", nargs="+", help="only these rows")
    parser.add_argument("--every", type=int, default=1, help="only every n-th row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    tally = Tally()
    kinds = [each for each in KINDS if not asked.kinds or each.name in asked.kinds]
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.chains:
            for npu in asked.npus:
                original = stream(name, npu, Path(folder))
                for kind in kinds[:: asked.every]:
                    plant(kind, original, tally, asked.seed)
                print(name, npu, tally.named, tally.planted, file=sys.stderr, flush=True)
    figures = tally.figures()
    print(json.dumps({"figures": figures}) if asked.json else json.dumps(figures, indent=1))
    return int(figures["share"] < BAR)


if __name__ == "__main__":
    sys.exit(main())
