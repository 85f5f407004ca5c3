"""What programs are held to: outputs of the interpreter, no hazards, words that decode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.commands import (
    Arch,
    Instruction,
    decode,
    encode,
    instruction_set,
)
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import Program

from .interpreter import interpret, random_inputs


def require_right(program: Program, sequence: Sequence, accelerator: Accelerator) -> None:
    """Hold a program to what its sequence computes, and to the hazard checker."""
    instructions = decode(program.words, accelerator.arch)
    assert np.array_equal(encode(instructions, accelerator.arch), program.words)
    assert [row.render() for row in find_hazards(program).diagnostics] == []
    simulator = Simulator(program)
    for seed in range(2):
        inputs = random_inputs(sequence, seed)
        found = simulator.run([row[np.newaxis] for row in inputs], 1).outputs
        for one, other in zip(found, interpret(sequence, inputs), strict=True):
            assert np.array_equal(one[0], other)


KERNELS = ("OP_CONV", "OP_DEPTHWISE", "OP_POOL", "OP_RESIZE", "OP_ELEMENTWISE")
GREATEST = {Arch.U55: 3, Arch.U65: 3, Arch.U85: 7}


def blockdeps(program: Program) -> list[int]:
    """Return the BLOCKDEP of each operation."""
    found: list[int] = []
    value = 0
    for row in program.instructions:
        if row.name == "SET_BLOCKDEP":
            value = int(row.values["blockdep"])
        elif row.name in KERNELS:
            found.append(value)
    return found


def greatest_blockdeps(program: Program, accelerator: Accelerator) -> list[int]:
    """Return for each operation the greatest BLOCKDEP that the checker has nothing against."""
    found = [GREATEST[accelerator.arch]] * len(blockdeps(program))
    while endangered := _overtaking(program, accelerator, found):
        for place in endangered:
            found[place] -= 1
    return found


def _overtaking(program: Program, accelerator: Accelerator, values: list[int]) -> set[int]:
    """Return the operations that begin too early with these BLOCKDEPs."""
    row = instruction_set(accelerator.arch)["SET_BLOCKDEP"]
    changed: list[Instruction] = []
    kernels: dict[int, int] = {}
    offset = 0
    for instruction in program.instructions:
        if instruction.name == "SET_BLOCKDEP":
            continue
        if instruction.name in KERNELS:
            changed.append(row(blockdep=values[len(kernels)]))
            offset += row.words
            kernels[offset] = len(kernels)
        changed.append(instruction)
        offset += instruction.command.words
    edited = replace(program, words=encode(changed, accelerator.arch), origins={})
    return {
        kernels[row.origin.command]
        for row in find_hazards(edited).diagnostics
        if row.origin is not None and row.origin.command is not None and _is_of_blocks(row.help)
    }


def needless_waits(program: Program, accelerator: Accelerator) -> list[int]:
    """Return the word offsets of waits that could be weaker, or left out, for all the checker says.

    A wait for at most `n` is the weaker for a greater `n`; the greatest that there is, is none.
    """
    found: list[int] = []
    rows = list(program.instructions)
    for place, row in enumerate(rows):
        if row.name not in WAITS:
            continue
        field, most = WAITS[row.name]
        value = int(row.values[field]) + 1
        weaker = [row.command(**{field: value})] if value < most[accelerator.arch] else []
        words = encode([*rows[:place], *weaker, *rows[place + 1 :]], accelerator.arch)
        if not find_hazards(replace(program, words=words)).findings:
            found.append(row.offset_words)
    return found


WAITS = {
    "OP_KERNEL_WAIT": ("n", {Arch.U55: 2, Arch.U65: 2, Arch.U85: 2}),
    "OP_DMA_WAIT": ("k", {Arch.U55: 1, Arch.U65: 2, Arch.U85: 4}),
}
"""The field of a wait, and what may be outstanding without one."""


def _is_of_blocks(help_: str | None) -> bool:
    return "BLOCKDEP" in (help_ or "")
