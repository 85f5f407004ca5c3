"""Registers of a small stream of our own, changed at random: each change is found or harmless.

Found is what the encoder, the checker of hazards or the simulator refuses, and what gives other
numbers. All else must be harmless for a reason: every operation still reads and writes the same
elements and does the same to them, and of what is in no plan the division of the shared
buffer is right by the emitter's implementation too. Waits and BLOCKDEP are left to the checker,
which is held to a second model elsewhere.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.schedule import schedule
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.judge.sim.operations import Convolution, Elementwise, FeatureMap, Format
from mizzen.targets.ethos_u.judge.sim.operations import Kernel as SimulatedKernel
from mizzen.targets.ethos_u.judge.sim.operations import Scale as SimulatedScale
from mizzen.targets.ethos_u.judge.sim.plan import Encoded, Plan
from mizzen.targets.ethos_u.machine.commands import Arch, decode, encode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, Accelerator
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve

from .interpreter import random_inputs
from .test_emit_operations import one_of_each
from .test_emit_u85 import one_of_each_u85
from .test_planted_overlaps import overlaps, sites

INPUTS = 32
HIDDEN = {
    "SET_OFM_SCALE": "dbl_rnd", "SET_IFM2_SCALE": "", "SET_ACC_FORMAT": "acc_format",
}  # fmt: skip
"""Of U85, what numbers of a small network do not show: where twice is rounded, how zero is scaled,
and whether accumulators have more bits than they need. In an empty name, any field."""
HARMLESS = "harmless"


def mutants(
    rows: list[Instruction], rng: random.Random
) -> Iterator[tuple[Instruction, list[Instruction]]]:
    """Return streams with another value in one field of one SET command, without end."""
    places = [place for place, row in enumerate(rows) if row.name.startswith("SET_")]
    while True:
        place = rng.choice(places)
        row = rows[place]
        field = rng.choice(row.command.fields)
        old = int(row.values[field.name])
        new = rng.choice(
            [old + 1, old - 1, old + 8, old - 8, 2 * old, old ^ 1 << rng.randint(0, 9)]
        )
        if field.name in ("scale", "clip_boundary"):
            new = old // 2  # less is not seen in every number
        if new != old and field.admits(new):
            other = row.command(**{**row.values, field.name: new})
            changed = replace(other, offset_words=row.offset_words)
            yield changed, [*rows[:place], changed, *rows[place + 1 :]]


def addresses(fm: FeatureMap) -> npt.NDArray[np.int64]:
    """Return the address of each element of a map."""
    y, x, c = np.ogrid[: fm.height, : fm.width, : fm.depth]
    right = x >= fm.width_0
    rows = np.where(right, fm.height_1, fm.height_0)
    low = y >= rows
    base = np.array(fm.bases)[np.where(low, 2, 0) + right]
    y, x = np.where(low, y - rows, y), np.where(right, x - fm.width_0, x)
    if fm.format is Format.NHWC:
        return base + y * fm.stride_y + x * fm.stride_x + c * fm.dtype.itemsize
    pixel = 16 * fm.dtype.itemsize
    return base + y * fm.stride_y + x * pixel + c // 16 * fm.stride_c + c % 16 * fm.dtype.itemsize


def meaning(part: Any) -> object:
    """Return an operation, or a part of one, as what it does: maps as addresses of elements."""
    if isinstance(part, FeatureMap):
        return part.region, part.dtype, part.zero_point, part.shape, addresses(part).tobytes()
    if isinstance(part, SimulatedKernel):
        part = replace(
            part,
            dilation_y=part.dilation_y if part.height > 1 else 1,
            dilation_x=part.dilation_x if part.width > 1 else 1,
        )
    if isinstance(part, SimulatedScale) and part.shift == 0:
        return part.multiplier  # nothing is rounded
    if isinstance(part, Elementwise) and (part.a, part.scale_a) == (part.b, part.scale_b):
        part = replace(part, reversed=False)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    return tuple((row.name, meaning(getattr(part, row.name))) for row in fields(part))


def with_constants(operation: Convolution, found: Encoded) -> object:
    """Return what a convolution does, with its numbers in place of where and how they lie.

    Channels that are multiplied with zeros alone are left out: streams hold more than there are.
    """
    weights, ifm = np.asarray(found.weights), addresses(operation.ifm)
    if not operation.depthwise:
        used = weights.any(axis=(0, 1, 2))
        weights, ifm = weights[..., used], ifm[..., used]
    scales = (getattr(found.scales, row.name) for row in fields(found.scales))
    numbers = (row.tobytes() for row in (ifm, weights, *map(np.asarray, scales)))
    whole = operation.ifm
    rest = {
        row.name: meaning(getattr(operation, row.name))
        for row in fields(operation)
        if row.name not in ("ifm", "weights", "scales", "layout")
    }
    return rest, whole.region, whole.dtype, whole.zero_point, whole.shape[:2], *numbers


def means(plan: Plan) -> list[object]:
    """Return what a plan does."""
    return [
        with_constants(row, plan.encoded[4 * (row.where.origin.command or 0)])
        if isinstance(row, Convolution)
        else meaning(row)
        for row in (step.operation for step in plan.steps)
    ]


@dataclass(frozen=True, eq=False)
class Judge:
    """A program, what it gives for some inputs, and what its plan does."""

    program: Program
    accelerator: Accelerator
    inputs: list[npt.NDArray[Any]]
    outputs: tuple[npt.NDArray[Any], ...]
    meaning: list[object]

    def verdict(self, mutant: list[Instruction]) -> str:
        """Say how a mutant is found; harmless if it does what the program does; else empty."""
        try:
            words = encode(mutant, self.accelerator.arch)
            changed = replace(self.program, words=words)
            if findings := find_hazards(changed).findings:
                return findings[0].diagnostic.code
            simulator = Simulator(changed)
            outputs = simulator.run(self.inputs, INPUTS).outputs
            if not all(map(np.array_equal, outputs, self.outputs)):
                return "differs"
        except MizzenError as error:
            return error.diagnostic.code
        divided = self.accelerator.arch is not Arch.U85
        if divided and any(overlaps(site) for site in sites(changed, self.accelerator)):
            return ""
        return HARMLESS if means(simulator.plan) == self.meaning else ""


def judge(name: str) -> Judge:
    accelerator = ACCELERATORS[name]
    sequence = one_of_each_u85() if accelerator.arch is Arch.U85 else one_of_each()
    program = emit(schedule(sequence, resolve(name)), accelerator)
    inputs = [
        np.stack(values)
        for values in zip(*(random_inputs(sequence, seed) for seed in range(INPUTS)), strict=True)
    ]
    simulator = Simulator(program)
    outputs = simulator.run(inputs, INPUTS).outputs
    return Judge(program, accelerator, inputs, outputs, means(simulator.plan))


def hidden(of: Judge, changed: Instruction) -> str:
    """Say that a change is harmless if it is one of those that cannot be seen."""
    field = HIDDEN.get(changed.name) if of.accelerator.arch is Arch.U85 else None
    if field is None:
        return ""
    was = next(row for row in of.program.instructions if row.offset_words == changed.offset_words)
    only = was.values[field] != changed.values[field] if field else True
    return HARMLESS if only else ""


@pytest.mark.parametrize(
    "count", [pytest.param(16, id="some"), pytest.param(1500, id="many", marks=pytest.mark.sweep)]
)
@pytest.mark.parametrize("name", ["ethos-u55-64", "ethos-u65-512", "ethos-u85-256"])
def test_each_mutant_is_found_or_harmless(name: str, count: int) -> None:
    of = judge(name)
    made = mutants(decode(of.program.words, of.accelerator.arch), random.Random(name))
    found = Counter[str]()
    for _ in range(count):
        changed, mutant = next(made)
        verdict = of.verdict(mutant) or hidden(of, changed)
        assert verdict, f"word {changed.offset_words}: {changed.name} {changed.values}"
        found[verdict] += 1
    assert 0.2 < found[HARMLESS] / count < 0.6
