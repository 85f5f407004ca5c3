"""Blocks planted into streams of U85, legal ones and others: the checker tells them apart.

Streams are Vela's. Whether a block fits, the generator's implementation says; the checker has
another one. What elementwise operations and resizes must leave of the memory of results is not
checked: Vela's own streams do not hold to it, and results leave row by row.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.generator.operations import AS_COMPUTED
from mizzen.targets.ethos_u.generator.shared_buffer.arrays_u85 import ARRAYS, Unit, Work
from mizzen.targets.ethos_u.generator.shared_buffer.demand_u85 import DemandU85
from mizzen.targets.ethos_u.generator.shared_buffer.fit_u85 import fits_u85, unit_of
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.hazards.array_u85 import MICROBLOCK_SIDES, SUBKERNEL
from mizzen.targets.ethos_u.judge.hazards.blocks import Shape, Sliding
from mizzen.targets.ethos_u.judge.hazards.fit_u85 import misfits_u85
from mizzen.targets.ethos_u.judge.hazards.kernels import is_part_kernel
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.machine.commands import encode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, Accelerator
from mizzen.targets.ethos_u.machine.program import Program

from . import buffer_registers as read

VELA = {"generator": "vela"}
BLOCKS = 40
"""Planted into each operation."""
KINDS = {
    "OP_CONV": Work.CONVOLUTION, "OP_DEPTHWISE": Work.DEPTHWISE, "OP_POOL": Work.POOL,
    "OP_ELEMENTWISE": Work.ELEMENTWISE, "OP_RESIZE": Work.RESIZE,
}  # fmt: skip


def velas(path: Path, accelerator: str) -> Iterator[Program]:
    artifact = mizzen.compile(path, accelerator, prove="off", target_options=VELA)
    yield from (step.program for step in artifact.steps if isinstance(step, NpuStep))


def demand(kernel: Kernel, registers: Registers) -> DemandU85 | None:
    """Return what an operation with a window demands; None of others."""
    work, item = KINDS[kernel.name], kernel.blocks.inputs[:1]
    if not item or not isinstance(item[0].window, Sliding) or kernel.mode == "NONE":
        return None
    if kernel.mode == "REDUCE_SUM":
        work = Work.REDUCE_SUM
    if len(kernel.blocks.inputs) > 1:
        work = Work.PRODUCT
    result, window = kernel.blocks.result, item[0].window
    if result is None or result.axes != (0, 1, 2) or result.reversed is not None:
        return None
    upscale = registers.choice("SET_IFM_UPSCALE", "mode")
    height, width = (registers.number(f"SET_KERNEL_{side}_M1") for side in ("HEIGHT", "WIDTH"))
    return DemandU85(
        work,
        kernel.blocks.shape,
        item[0].map.shape,
        item[0].map.element_bytes,
        kernel_height=min(SUBKERNEL, window.y.extent),
        kernel_width=min(SUBKERNEL, window.x.extent),
        is_point=height * width == 1,
        stride_y=window.y.stride,
        stride_x=window.x.stride,
        upscale=window.y.upscale,
        replicates=upscale == "NEAREST",
        wide=registers.choice("SET_ACC_FORMAT", "acc_format") == "I48",
        part_kernel=kernel.name == "OP_CONV" and is_part_kernel(registers),
        sparse=kernel.name == "OP_CONV"
        and registers.choice("SET_WEIGHT_FORMAT", "weight_sparsity") == "SPARSE_2_4",
        order=AS_COMPUTED,
    )


def by_chance(rng: random.Random, unit: Unit) -> Shape:
    """Return a block of any size, mostly of whole microblocks."""
    sides = [rng.choice((1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 33)) for _ in range(3)]
    block = [side * size for side, size in zip(sides, unit.shape, strict=True)]
    if rng.random() < 0.2:
        axis = rng.randrange(3)
        block[axis] = max(1, block[axis] + rng.choice((-1, 1)))
    return block[0], block[1], block[2]


def outcomes(program: Program, accelerator: Accelerator, rng: random.Random) -> Counter[str]:
    found: Counter[str] = Counter()
    array = ARRAYS[accelerator.name]
    goes_on = False
    for kernel, registers in read.kernels(program):
        link, goes_on = goes_on, kernel.goes_on
        needs = demand(kernel, registers)
        if needs is None or link:
            continue
        unit = unit_of(needs, array)
        assert MICROBLOCK_SIDES[kernel.microblock] == unit.shape[:2]
        for _ in range(BLOCKS):
            block = by_chance(rng, unit)
            (fits,) = fits_u85(needs, np.array([block]), needs.part_kernel, array)
            changed = replace(kernel, blocks=replace(kernel.blocks, block=block))
            texts = list(misfits_u85(changed, None, registers, accelerator))
            found[f"{'fits' if fits else 'does not'}, {'found' if texts else 'silent'}"] += 1
    return found


@pytest.mark.parametrize("macs", [128, 256, 512, 1024, 2048])
def test_blocks(macs: int, repository: Path) -> None:
    accelerator = ACCELERATORS[f"ethos-u85-{macs}"]
    path = repository / "examples" / "digits" / "digits.tflite"
    found: Counter[str] = Counter()
    for program in velas(path, accelerator.name):
        found += outcomes(program, accelerator, random.Random(macs))
    assert found["fits, found"] == found["does not, silent"] == 0
    assert min(found["fits, silent"], found["does not, found"]) > 10


@pytest.mark.sweep
@pytest.mark.parametrize("macs", [128, 256, 512, 1024, 2048])
@pytest.mark.parametrize("name", ["kws_ref_model", "vww_96_int8", "rnnoise_INT8"])
def test_blocks_of_networks(macs: int, name: str, model_file: Callable[[str], Path]) -> None:
    accelerator = ACCELERATORS[f"ethos-u85-{macs}"]
    found: Counter[str] = Counter()
    for program in velas(model_file(f"{name}.tflite"), accelerator.name):
        found += outcomes(program, accelerator, random.Random(macs))
    assert found["fits, found"] == found["does not, silent"] == 0


def misfits(program: Program, changed: list[Instruction]) -> list[str]:
    arch = ACCELERATORS[find_hazards(program).accelerator].arch
    found = find_hazards(replace(program, words=encode(changed, arch))).findings
    return [row.diagnostic.message for row in found if row.diagnostic.code == "E678"]


def first_of_chains(program: Program) -> int:
    """Count operations that are no links of a chain that another has begun."""
    count, goes_on = 0, False
    for kernel, _ in read.kernels(program):
        count, goes_on = count + (not goes_on), kernel.goes_on
    return count


@pytest.mark.parametrize("macs", [128, 256, 512, 1024, 2048])
def test_microblocks(macs: int, repository: Path) -> None:
    """One that this size does not have, planted into every operation, is found at each."""
    accelerator = ACCELERATORS[f"ethos-u85-{macs}"]
    path = repository / "examples" / "digits" / "digits.tflite"
    (program,) = velas(path, accelerator.name)
    assert not misfits(program, list(program.instructions))
    used = {unit.shape[:2] for unit in ARRAYS[accelerator.name].units}
    for number, sides in enumerate(MICROBLOCK_SIDES.values()):
        changed = [
            replace(row, values={**row.values, "microblock": number})
            if row.name == "SET_ACC_FORMAT"
            else row
            for row in program.instructions
        ]
        found = len(misfits(program, changed))
        assert found == first_of_chains(program) if sides not in used else found > 0 or macs == 512
