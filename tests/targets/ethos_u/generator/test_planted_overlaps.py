"""Overlaps planted into the shared buffer, operation by operation: the checker finds every one.

Streams are Vela's and our own, in schedules by chance on every machine. Whether a change is an
overlap, the emitter's implementation says, which gives an operation just what it needs; the checker
has another one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.shared_buffer import (
    CORES,
    LARGEST_BLOCK,
    OUTPUT_BANKS,
    TABLE_BANKS,
    Core,
    Demand,
    Parts,
    parts_of,
)
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.judge.hazards.shared_buffer import misfits
from mizzen.targets.ethos_u.machine.commands import instruction_set
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, Accelerator
from mizzen.targets.ethos_u.machine.program import Program

from . import buffer_registers as read
from .chance_schedules import by_chance
from .test_emit_operations import (
    broadcast_and_scalars,
    one_of_each,
    one_operand,
    sixteen_bits,
    table_of_words,
    upscaled,
    wide_integers,
)

MAKERS = (
    one_of_each, broadcast_and_scalars, one_operand, sixteen_bits, table_of_words, upscaled,
    wide_integers,
)  # fmt: skip
VELA = {"generator": "vela"}
ALIKE = ("ethos-u55-256", "ethos-u65-256")
"""Machines whose core is that of U65-512 in all that counts here."""
MACHINES = [
    pytest.param(name, marks=pytest.mark.sweep) if name in ALIKE else name for name in CORES
]
Values = dict[str, int]
Plant = dict[str, Values]
"""What a change puts into registers: by command, its fields."""


@cache
def own(accelerator: Accelerator) -> list[Program]:
    return [emit(by_chance(make(), accelerator, 0), accelerator) for make in MAKERS]


def velas(repository: Path, accelerator: Accelerator) -> Iterator[Program]:
    path = repository / "examples" / "digits" / "digits.tflite"
    artifact = mizzen.compile(path, accelerator.name, prove="off", target_options=VELA)
    yield from (step.program for step in artifact.steps if isinstance(step, NpuStep))


@dataclass(frozen=True)
class Site:
    """An operation of a stream: what of the buffer it has, and how many banks there are."""

    kernel: Kernel
    registers: Registers
    core: Core

    @property
    def has(self) -> Parts:
        """What the registers give the operation."""
        return read.parts(self.kernel, self.registers)

    @property
    def demand(self) -> Demand:
        """What the operation demands, whatever its block; of one operand room for that one."""
        found = read.demand(self.kernel, self.registers)
        return replace(found, inputs=1) if self.kernel.mode in read.UNARY else found

    @property
    def end(self) -> int:
        """The bank behind the last that the operation may have."""
        return self.core.banks - (TABLE_BANKS if self.demand.has_table else 0)

    @property
    def needs(self) -> Parts | None:
        """The least that the emitter would give the operation, up to the end; None of too much."""
        demand, registers = self.demand, self.registers
        part = demand.has_traversal and read.is_part_kernel(registers)
        kept = TABLE_BANKS if self.core.keeps_tables and not demand.has_table else 0
        return parts_of(
            demand, registers.block(), part, replace(self.core, banks=self.core.banks + kept)
        )


def sites(program: Program, accelerator: Accelerator) -> Iterator[Site]:
    for kernel, registers in read.kernels(program):
        yield Site(kernel, registers, CORES[accelerator.name])


def overlaps(site: Site) -> bool:
    """Say by the emitter's implementation whether registers leave too little, or overlap."""
    needs, has, end = site.needs, site.has, site.end
    if needs is None:
        return True
    if needs.ifm2_ib_start is None:
        return not (
            needs.ib_end <= has.ib_end <= has.ab_start <= needs.ab_start and has.ib_end <= end
        )
    room = needs.ifm2_ib_start - OUTPUT_BANKS
    if site.demand.inputs == 1:
        return not OUTPUT_BANKS + room <= has.ib_end <= end
    second = site.registers.number("SET_IFM2_IB_START")
    return second < OUTPUT_BANKS + room or not second + room <= has.ib_end <= end


def planted(site: Site) -> Iterator[tuple[str, Plant]]:
    """Return the overlaps that there are for an operation, by what they are."""
    height, width, depth = LARGEST_BLOCK
    yield (
        "the largest block there is",
        {
            "SET_OFM_BLK_HEIGHT_M1": {"height": height},
            "SET_OFM_BLK_WIDTH_M1": {"width": width},
            "SET_OFM_BLK_DEPTH_M1": {"depth": depth},
        },
    )
    if site.kernel.name == "OP_ELEMENTWISE":
        yield from _elementwise(site)
        return
    end, start = site.has.ib_end, site.has.ab_start
    yield "the input ends too early", {"SET_IFM_IB_END": {"ib_end": end - 1}}
    yield "the accumulators begin in the input", {"SET_AB_START": {"ab_start": end - 1}}
    yield "the input ends in the accumulators", {"SET_IFM_IB_END": {"ib_end": start + 1}}
    table = site.demand.has_table
    spare = TABLE_BANKS if site.core.keeps_tables and not table else 0
    what = "the table" if table else "the end"
    yield f"the accumulators run over {what}", {"SET_AB_START": {"ab_start": start + spare + 1}}
    for name, plant in (
        ("accumulators of 40 bits", {"SET_ACC_FORMAT": {"acc_format": 1}}),
        ("an input of 32 bits", {"SET_IFM_PRECISION": {"activation_precision": 2}}),
        ("a kernel that is higher by 8", {"SET_KERNEL_HEIGHT_M1": {"height": 9}}),
        ("a kernel that is wider by 8", {"SET_KERNEL_WIDTH_M1": {"width": 9}}),
    ):
        with changed(site.registers, plant):
            more = overlaps(site)
        if more:
            yield name, plant


def _elementwise(site: Site) -> Iterator[tuple[str, Plant]]:
    needs, demand = site.needs, site.demand
    assert needs is not None
    assert needs.ifm2_ib_start is not None
    room = needs.ifm2_ib_start - OUTPUT_BANKS
    if demand.has_table:
        yield "the inputs run over the table", {"SET_IFM_IB_END": {"ib_end": site.end + 1}}
    if demand.inputs == 1:
        yield "the input ends too early", {"SET_IFM_IB_END": {"ib_end": OUTPUT_BANKS + room - 1}}
    else:
        end, second = site.has.ib_end, site.registers.number("SET_IFM2_IB_START")
        yield (
            "the second input begins in the first",
            {"SET_IFM2_IB_START": {"ib_start": second - 1}},
        )
        yield (
            "the second input runs over the end",
            {"SET_IFM2_IB_START": {"ib_start": end - room + 1}},
        )
        yield "the inputs end too early", {"SET_IFM_IB_END": {"ib_end": second + room - 1}}


class changed:  # noqa: N801 it reads as a verb
    """While it lasts, registers hold what is planted; the rest of each stays."""

    def __init__(self, registers: Registers, plant: Plant) -> None:
        self._registers = registers
        self._rows = instruction_set(ACCELERATORS["ethos-u55-128"].arch)
        self._plant = plant
        self._before: list[Instruction] = []

    def __enter__(self) -> None:
        for name, values in self._plant.items():
            before = dict(self._registers.fields(name)) if self._registers.has(name) else {}
            row = self._rows[name]
            given = {item.name: max(0, item.minimum) for item in row.fields} | before
            self._before.append(row(**given))
            self._registers.write(row(**(given | values)))

    def __exit__(self, *_: object) -> None:
        for row in self._before:
            self._registers.write(row)


COUNTS = {
    "ethos-u55-32": (111, 162),
    "ethos-u55-64": (119, 166),
    "ethos-u55-128": (118, 161),
    "ethos-u55-256": (116, 158),
    "ethos-u65-256": (116, 158),
    "ethos-u65-512": (116, 158),
}
"""Overlaps planted into our own streams, and into Vela's; every one is found."""
KINDS = {  # that there are on every machine
    "the largest block there is",
    "the input ends too early",
    "the accumulators begin in the input",
    "the input ends in the accumulators",
    "the accumulators run over the end",
    "the accumulators run over the table",
    "an input of 32 bits",
    "the second input begins in the first",
    "the second input runs over the end",
    "the inputs end too early",
    "the inputs run over the table",
}


@pytest.mark.parametrize("name", MACHINES)
def test_every_planted_overlap_is_found(name: str, repository: Path) -> None:
    accelerator = ACCELERATORS[name]
    counts: list[Counter[str]] = []
    for programs in (own(accelerator), velas(repository, accelerator)):
        count = Counter[str]()
        for program in programs:
            for site in sites(program, accelerator):
                assert not list(misfits(site.kernel, site.registers, accelerator))
                for what, plant in planted(site):
                    with changed(site.registers, plant):
                        assert overlaps(site), what
                        assert list(misfits(site.kernel, site.registers, accelerator)), what
                    count[what] += 1
        counts.append(count)
    assert tuple(row.total() for row in counts) == COUNTS[name]
    assert set(counts[0]) >= KINDS


def by_chance_changed(rng: random.Random, site: Site) -> Plant:
    """Return other values for some of the registers that decide what overlaps."""
    core = site.core
    most = core.banks + 2
    height, width, depth = (
        min(
            limit,
            unit * rng.randint(1, rng.choice((2, 5, limit // unit))) + rng.choice((0, 0, 0, 1)),
        )
        for unit, limit in zip(core.microblock, LARGEST_BLOCK, strict=True)
    )
    every: Plant = {
        "SET_IFM_IB_END": {"ib_end": rng.randint(0, most)},
        "SET_AB_START": {"ab_start": rng.randint(0, most)},
        "SET_IFM2_IB_START": {"ib_start": rng.randint(0, most)},
        "SET_OFM_BLK_HEIGHT_M1": {"height": height},
        "SET_OFM_BLK_WIDTH_M1": {"width": width},
        "SET_OFM_BLK_DEPTH_M1": {"depth": depth},
        "SET_ACC_FORMAT": {"acc_format": rng.randint(0, 2)},
        "SET_IFM_PRECISION": {"activation_precision": rng.randint(0, 2)},
        "SET_IFM2_PRECISION": {"activation_precision": rng.randint(0, 2)},
        "SET_IFM2_BROADCAST": {"broadcast_constant": rng.randint(0, 1)},
        "SET_IFM_DEPTH_M1": {"depth": rng.randint(1, 70)},
        "SET_IFM_UPSCALE": {"mode": rng.randint(0, 2)},
        "SET_KERNEL_HEIGHT_M1": {"height": rng.randint(1, 12)},
        "SET_KERNEL_WIDTH_M1": {"width": rng.randint(1, 12)},
        "SET_KERNEL_STRIDE": {"stride_y": rng.randint(1, 3), "weight_order": rng.randint(0, 1)},
    }
    chosen = rng.sample(sorted(every), rng.randint(2, 4))
    return {name: every[name] for name in chosen if site.registers.has(name)}


@pytest.mark.parametrize("name", MACHINES)
def test_both_implementations_agree_on_registers_by_chance(name: str) -> None:
    accelerator, rng = ACCELERATORS[name], random.Random(name)
    found: list[bool] = []
    for program in own(accelerator):
        for site in sites(program, accelerator):
            for _ in range(12):
                plant = by_chance_changed(rng, site)
                with changed(site.registers, plant):
                    found.append(overlaps(site))
                    said = list(misfits(site.kernel, site.registers, accelerator))
                    assert bool(said) == found[-1], (plant, said)
    assert 0.2 < sum(found) / len(found) < 0.8
