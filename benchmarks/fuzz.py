"""Compile random networks, and compare what comes with what must.

Run ``python benchmarks/fuzz.py --family u55 --programs 100``, with ``--json`` for the figures:

`silent_differences`          programs whose artifact gives other numbers than the reference
`raw_exceptions`              programs that ended in an exception that is no diagnostic
`programs`                    programs that were compiled and compared
`refused`                     programs that the compiler core takes, and Mizzen refuses
`operators_on_npu_fraction`   of the operators of all programs

Inputs are others than the proof of a compilation executes: any integers, ends, and small ones. The
reference is TensorFlow Lite Micro, and the graph's reference where that has no kernel.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import random
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mizzen
from fuzz_networks import network
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import read_network
from mizzen.compiler.proof.stimuli import stimuli, stimulus
from mizzen.compiler.tflite_reference import Kernels, evaluate
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.lower import lower
from mizzen.package.tflite.extract import extract
from mizzen.partition import Device
from mizzen.targets.ethos_n.config import VARIANTS
from mizzen.targets.ethos_u.config import ACCELERATORS
from mizzen.targets.ethos_u.legal.tflite_bounds import bound_of
from mizzen.targets.ethos_u.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Stopped, generate

Array = npt.NDArray[Any]

INPUTS = 64
REFERENCE_INPUTS = 12
"""Inferences where the reference is the graph's, which takes them one by one."""

MOST_STEPS = 4
"""What a documented difference of one step may become in operators behind it."""

SLOW_SECONDS = 5.0
NO_KERNEL = frozenset(("E702", "E703"))
SEED = 977
"""Added to a program's number: the inputs are not those of a proof."""


@dataclass
class Found:
    """What the programs of a run showed."""

    programs: int = 0
    operators: int = 0
    on_npu: int = 0
    silent: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    raw: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    refused: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    slow: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    said: Counter[str] = field(default_factory=Counter[str])

    def figures(self) -> dict[str, float]:
        """Return the figures of this run; see the module."""
        return {
            "silent_differences": len(self.silent),
            "raw_exceptions": len(self.raw),
            "programs": self.programs,
            "refused": len(self.refused),
            "operators_on_npu_fraction": self.on_npu / max(1, self.operators),
        }


def accelerators(family: str) -> list[str]:
    """Return the accelerators of a family."""
    if family == "n78":
        return sorted(VARIANTS)
    return sorted(name for name in ACCELERATORS if name.startswith(f"ethos-{family}"))


def judge(found: Found, family: str, seed: int, number: int) -> None:
    """Compile a program, execute what comes, and compare."""
    data = network(family, seed, number)
    accelerator = random.Random(number).choice(accelerators(family))
    start = time.monotonic()
    try:
        artifact = mizzen.compile(data, accelerator)
    except MizzenError as error:
        found.said[error.diagnostic.code] += 1
        if _is_taken(data, accelerator, family):
            found.refused.append((number, f"{accelerator}: {error.diagnostic.message}"))
        return
    taken = time.monotonic() - start
    if taken > SLOW_SECONDS:
        found.slow.append((number, f"{accelerator}: {taken:.1f} s"))
    report = artifact.report
    assert report is not None
    found.operators += sum(1 for _ in report.placements)
    found.on_npu += sum(row.device is Device.NPU for row in report.placements)
    for row in report.diagnostics:
        found.said[row.code] += 1
    difference = compare(found, data, artifact, number)
    if difference is None:
        return
    large = int(difference.rsplit(" ", 1)[-1]) > MOST_STEPS if "by up to" in difference else True
    if large or not _is_bounded(data, artifact, accelerator, number):
        found.silent.append((number, f"{accelerator}: {difference}"))


def _is_bounded(data: bytes, artifact: Artifact, accelerator: str, number: int) -> bool:
    """Whether nothing differs once operators of a documented bound are on the CPU."""
    model, report = read_network(data, "network"), artifact.report
    assert report is not None
    main = model.main
    bounded = [
        row.index
        for row in main.operators
        if bound_of(row.kind, main.tensors[row.outputs[0]].type.name) is not None
    ]
    bounded = [row for row in bounded if report.placements[row].device is Device.NPU]
    if not bounded or _exceeds(model, bounded, accelerator, number):
        return False
    kinds = sorted({main.operators[row].kind for row in bounded})
    other = mizzen.compile(data, accelerator, ignore_ops=kinds)
    return compare(Found(), data, other, number) is None


def _exceeds(model: Model, bounded: Sequence[int], accelerator: str, number: int) -> bool:
    """Whether one of some operators, alone, is off by more than its bound, which are all one."""
    for row in bounded:
        alone = extract(model.record, [row]).network
        said = compare(Found(), alone, mizzen.compile(alone, accelerator), number)
        if said is not None and not said.endswith("by up to 1"):
            return True
    return False


def _is_taken(data: bytes, accelerator: str, family: str) -> bool:
    return family == "n78" or not isinstance(generate(data, resolve(accelerator)), Stopped)


def compare(found: Found, data: bytes, artifact: Artifact, number: int) -> str | None:
    """Return how the artifact differs from the network, None if it does not."""
    model = read_network(data, "network")
    tensors = model.main.present(model.main.inputs)
    rows = [
        stimulus(row.shape, row.dtype or np.int8,
                 row.quantization.zero_point[0] if row.quantization else 0)
        for row in tensors
    ]  # fmt: skip
    inputs = stimuli(rows, INPUTS, SEED + number)
    try:
        expected = CpuKernels(data).run(inputs, INPUTS)
    except MizzenError as error:
        if error.diagnostic.code not in NO_KERNEL:
            raise
        inputs = [row[:REFERENCE_INPUTS] for row in inputs]
        try:
            expected = _reference(model, inputs)
        except MizzenError as why:
            found.said[f"no reference: {why.diagnostic.code}"] += 1
            return None
    try:
        results = artifact.run(*inputs)
    except MizzenError as error:
        code = error.diagnostic.code
        found.said[f"run: {code}"] += 1
        return None if code in NO_KERNEL else f"run: {error}"
    found.programs += 1
    every = results if isinstance(results, tuple) else (results,)
    for place, (ours, theirs) in enumerate(zip(every, expected, strict=True)):
        off = ours.reshape(theirs.shape) != theirs
        if off.any():
            wide = np.abs(ours.astype(np.int64) - theirs.reshape(ours.shape).astype(np.int64)).max()
            return f"output {place}: {int(off.sum())} of {off.size} differ, by up to {wide}"
    return None


def _reference(model: Model, inputs: list[Array]) -> list[Array]:
    lowered, kernels = lower(model), Kernels(model)
    rows = [
        evaluate(lowered, [array[index] for array in inputs], kernels=kernels)
        for index in range(len(inputs[0]))
    ]
    return [np.stack(each) for each in zip(*rows, strict=True)]


def _keep(folder: Path | None, family: str, seed: int, number: int) -> None:
    if folder is not None:
        (folder / f"{family}-{seed}-{number}.tflite").write_bytes(network(family, seed, number))


def run(family: str, seed: int, numbers: range, keep: Path | None, *, say: bool) -> Found:
    """Judge programs; a folder gets the networks of those that showed something."""
    found = Found()
    for number in numbers:
        before = len(found.silent) + len(found.raw) + len(found.refused) + len(found.slow)
        try:
            judge(found, family, seed, number)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"
            found.raw.append((number, what))
        rows = found.silent, found.raw, found.refused, found.slow
        if say and sum(map(len, rows)) > before:
            for name, each in zip(("silent", "raw", "refused", "slow"), rows, strict=True):
                if each and each[-1][0] == number:
                    print(name, *each[-1], flush=True)
                    _keep(keep, family, seed, number)
    return found


def main() -> None:
    """Judge programs, and print what was found."""
    parser = argparse.ArgumentParser(description="Compile random networks, and compare what comes.")
    parser.add_argument("--family", choices=["u55", "u65", "u85", "n78"], default="u55")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the networks that show something")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    start = time.monotonic()
    numbers = range(arguments.first, arguments.first + arguments.programs)
    found = run(arguments.family, arguments.seed, numbers, arguments.keep, say=not arguments.json)
    if arguments.json:
        print(json.dumps(found.figures()))
        return
    print(dict(found.said))
    print(found.figures(), f"{(time.monotonic() - start) / arguments.programs:.2f} s each")


if __name__ == "__main__":
    main()
