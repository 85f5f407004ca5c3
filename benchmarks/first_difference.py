"""Plant one wrong register in a stream, and ask which operation is the first that is wrong.

``python benchmarks/first_difference.py`` compiles networks with Mizzen's own code and with Vela,
changes one register of a random operation (an address, a scale, a zero point, padding, the kernel,
an activation's bounds or table, a shape or a stride), and keeps the changes that change an output
or stop the stream. Waits, block dependencies, sizes of blocks and places in the shared buffer are
left alone. Named is what `first_difference` names, beside a compile of the same kind (as `mizzen
compare --artifact` has it), and with the network alone. Figures:

`planted`          changes that change an output or stop the stream
`named`            part of them whose operation is named, with a compile beside the stream
`named_alone`      likewise, with the network alone
`named_visible`    likewise, of operations that write a tensor of the network or a part of one

Right is every operation that takes the wrong register: later ones may keep it. ``--json`` has each
miss. Networks are those in the folder that MIZZEN_MODELS names.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import mizzen
from mizzen.analysis.comparison.bisection import first_difference
from mizzen.analysis.comparison.executing import Executed, Execution, Isolated
from mizzen.analysis.comparison.recognising import Library
from mizzen.analysis.comparison.truth import truth_of
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.batching import Batch, Form
from mizzen.artifact.execution import execute
from mizzen.artifact.interface import Array
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.isa import Instruction, Kind

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
NETWORKS = ("kws_ref_model", "person_detect", "pretrainedResnet_quant")
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
GENERATORS = ("own", "vela")

KINDS = {
    "address": r"_BASE[0-3]?$|_REGION$|_BASE$",
    "scale": r"_SCALE$",
    "zero point": r"_ZERO_POINT$",
    "padding": r"_PAD_(TOP|LEFT|RIGHT|BOTTOM)$",
    "kernel": r"_KERNEL_",
    "activation": r"_ACTIVATION(_MIN|_MAX)?$",
    "shape": r"_(HEIGHT|WIDTH|DEPTH)[012]?_M1$",
    "stride": r"_STRIDE_[XYC]$",
}
LEFT_ALONE = re.compile("_BLK_|DMA0")
TRIES_FOR_ONE = 30

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A compiled network; its first NPU operator is planted in."""

    name: str
    accelerator: str
    generator: str
    artifact: Artifact

    @cached_property
    def step(self) -> NpuStep:
        """The NPU operator."""
        return next(step for step in self.artifact.steps if isinstance(step, NpuStep))

    def planted(self, row: Instruction, value: int) -> Artifact:
        """Return the artifact with another value of a setting."""
        words = self.step.program.words.copy()
        two = row.command.words == 2
        place = row.offset_words + two
        kept = 0 if two else int(words[place]) & 0xFFFF
        words[place] = value if two else kept | value << 16
        other = copy(self.step)
        for known in ("simulator", "hazards"):
            other.__dict__.pop(known, None)
        other.program = replace(self.step.program, words=words)
        other.part = replace(self.step.part, program=other.program)
        steps = tuple(other if step is self.step else step for step in self.artifact.steps)
        contents = replace(self.artifact.contents, steps=steps)
        return Artifact(self.artifact.data, self.artifact.name, contents)


def compiled(name: str, accelerator: str, generator: str) -> Case:
    """Compile a network."""
    options = {"generator": generator}
    artifact = mizzen.compile(MODELS / f"{name}.tflite", accelerator, target_options=options)
    return Case(name, accelerator, generator, artifact)


def changes(
    case: Case, rng: np.random.Generator
) -> Iterator[tuple[str, Instruction, int, Artifact]]:
    """Yield changes of one setting without end: one beside it, or one bit, kind by kind."""
    rows = [
        row
        for row in case.step.program.instructions
        if row.command.kind is Kind.SETTING and not LEFT_ALONE.search(row.name)
    ]
    of_kind = {
        kind: [row for row in rows if re.search(pattern, row.name)]
        for kind, pattern in KINDS.items()
    }
    kinds = [kind for kind, members in of_kind.items() if members]
    while True:
        for kind in kinds:
            members = of_kind[kind]
            row = members[int(rng.integers(len(members)))]
            words, two = case.step.program.words, row.command.words == 2
            width = 32 if two else 16
            value = int(words[row.offset_words + 1]) if two else int(words[row.offset_words]) >> 16
            beside = value + int(rng.choice([-16, -2, -1, 1, 2, 16]))
            flipped = value ^ 1 << int(rng.integers(12))
            other = int(rng.choice([beside, flipped])) % (1 << width)
            yield kind, row, value, case.planted(row, other)


def executed(artifact: Artifact, arrays: Sequence[Array], library: Library) -> list[Execution]:
    """Execute an artifact's NPU operators, up to where one stops."""
    right = dict(zip(artifact.contents.inputs, arrays, strict=True))
    state = Isolated(artifact, library, right)
    batch = Batch(len(arrays[0]), Form.STACKED, tuple(arrays))
    with suppress(MizzenError):
        execute(artifact.contents, batch, state)
    return [state.executions[place] for place in sorted(state.executions)]


def touched(good: Execution, bad: Execution) -> set[int]:
    """Return the operations that take something else from registers than they should.

    What stops the stream is one, unless one before it writes other numbers, or elsewhere.
    """
    wrong = [
        each
        for each in bad.operations
        if each.trace.settings != good.by_index[each.index].trace.settings
    ]
    indices = {each.index for each in wrong}
    if bad.stopped is not None and all(_as_in(each, good) for each in wrong):
        indices.add(bad.stopped.index)
    return indices


def _as_in(each: Executed, good: Execution) -> bool:
    """Whether an operation writes the same numbers to the same place as it should."""
    other = good.by_index[each.index]
    if each.map is None or other.map is None:
        return each.map is other.map
    return each.trace.gives == other.trace.gives and np.array_equal(each.map, other.map)


def differs(artifact: Artifact, arrays: Sequence[Array], wanted: Sequence[Array]) -> bool:
    """Whether outputs are others, or there are none."""
    try:
        results = artifact.run(*arrays)
    except MizzenError:
        return True
    outputs = results if isinstance(results, tuple) else (results,)
    return not all(map(np.array_equal, outputs, wanted))


def measure(case: Case, count: int, rng: np.random.Generator) -> list[Row]:
    """Plant so many mistakes, and say of each what was named."""
    truth = truth_of(MODELS / f"{case.name}.tflite")
    arrays = truth.stimuli(4, 1)
    results = case.artifact.run(*arrays)
    wanted = results if isinstance(results, tuple) else (results,)
    library = Library(list(truth.references(truth.values(arrays))))
    (good, *_) = executed(case.artifact, arrays, library)
    known = {each.index for each in good.operations if each.is_known}
    rows: list[Row] = []
    for tried, (kind, row, before, wrong) in enumerate(changes(case, rng)):
        if len(rows) == count or tried == TRIES_FOR_ONE * count:
            return rows
        if not differs(wrong, arrays, wanted):
            continue
        bad = executed(wrong, arrays, library)
        if not bad:
            continue  # words that are no command: nothing is executed
        planted = touched(good, bad[0])
        named = [
            first_difference(wrong, truth, arrays, right=right) for right in (case.artifact, None)
        ]
        rows.append(
            {
                "case": f"{case.name}, {case.accelerator}, {case.generator}",
                "kind": kind,
                "register": row.name,
                "before": before,
                "planted": sorted(planted),
                "stops": bad[0].stopped is not None,
                "visible": bool(planted & known),
                "named": [None if each is None else each.index for each in named],
                "hit": [each is not None and each.index in planted for each in named],
            }
        )
    return rows


def share(rows: Sequence[Row], way: int) -> float:
    """Return the part of mistakes whose operation is named."""
    return sum(row["hit"][way] for row in rows) / max(1, len(rows))


def figures(rows: Sequence[Row]) -> Mapping[str, float]:
    """Return what is published."""
    visible = [row for row in rows if row["visible"]]
    return {
        "planted": len(rows),
        "named": share(rows, 0),
        "named_alone": share(rows, 1),
        "named_visible": share(visible, 1),
    }


def table(rows: Sequence[Row]) -> str:
    """Return the shares by case and by kind, and what was missed."""
    lines = [f"{'':48}planted  beside   alone"]
    for key in ("case", "kind"):
        for name, number in Counter(row[key] for row in rows).items():
            own = [row for row in rows if row[key] == name]
            lines.append(f"{name:48}{number:7}{share(own, 0):8.0%}{share(own, 1):8.0%}")
    misses = [row for row in rows if not row["hit"][0]]
    return "\n".join([*lines, *(f"missed beside a compile: {row}" for row in misses)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--accelerator-config", nargs="+", default=ACCELERATORS)
    parser.add_argument("--generator", nargs="+", default=GENERATORS)
    parser.add_argument("--count", type=int, default=12, help="mistakes for each case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(args.seed)
    rows: list[Row] = []
    for name in args.networks:
        for accelerator in args.accelerator_config:
            for generator in args.generator:
                rows += measure(compiled(name, accelerator, generator), args.count, rng)
                print(f"{name} {accelerator} {generator}: {len(rows)}", file=sys.stderr)
    if args.json:
        print(json.dumps({"figures": figures(rows), "mistakes": rows}))
        return
    print(table(rows))
    print("  ".join(f"{name} {value:.3g}" for name, value in figures(rows).items()))


if __name__ == "__main__":
    main()
