"""What the sources leave open is said once, with its bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mizzen.diagnostics import Severity
from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    Command,
    Format,
    Location,
    McePle,
    PleOperation,
    PleRecord,
    Upsample,
)
from mizzen.targets.ethos_n.commands_values import SpaceToDepth as Blocks
from mizzen.targets.ethos_n.sim import Simulator
from mizzen.targets.ethos_n.sim.geometry import Where
from mizzen.targets.ethos_n.sim.inferred import INFERRED, inferred
from mizzen.targets.ethos_n.tensors import Shape

from .assembler import Extents, Kernel, encoded, mce_ple, ple_only, program, source, table, target

SHAPE = (8, 8, 16)
PLAIN = mce_ple(Kernel.identity(16), source(SHAPE), SHAPE, target(SHAPE))


def with_mce(command: McePle, **changes: object) -> McePle:
    return replace(command, mce=replace(command.mce, **changes))


def kept(extents: Extents, stripe: Shape) -> McePle:
    """A pass that reads what stays in SRAM."""
    data = source(extents, location=Location.SRAM, stripe_shape=stripe)
    return mce_ple(Kernel.identity(extents[2]), data, extents, target(extents))


CASES: list[tuple[Command, set[str]]] = [
    (PLAIN, {"N690"}),
    (with_mce(PLAIN, algorithm=Algorithm.WINOGRAD), {"N690", "N691"}),
    (replace(PLAIN, weights=replace(PLAIN.weights, shape=(5, 1, 16, 1))), {"N690", "N692"}),
    (replace(PLAIN, ple=PleRecord(0, 0, PleOperation.SIGMOID, 9, 9)), {"N690", "N693"}),
    (with_mce(PLAIN, upsample=Upsample.BILINEAR), {"N690", "N694"}),
    (replace(PLAIN, output=target(SHAPE, format=Format.FCAF_DEEP)), {"N690", "N695"}),
    (Blocks(source(SHAPE), target((4, 4, 64)), 0, 0, 0), {"N696"}),
    (
        ple_only(PleOperation.ADDITION_RESCALE, [source(SHAPE)] * 2, target(SHAPE), 9, 0, 9, 3),
        {"N697"},
    ),
    (ple_only(PleOperation.ADDITION_RESCALE, [source(SHAPE)] * 2, target(SHAPE)), set()),
    (kept((16, 16, 16), (1, 16, 8, 16)), {"N690", "N698"}),
    (kept((8, 16, 32), (1, 8, 16, 16)), {"N690", "N698"}),
    (kept((8, 16, 16), (1, 8, 8, 16)), {"N690"}),
    (kept((16, 16, 16), (1, 8, 16, 16)), {"N690"}),
]


@pytest.mark.parametrize(("command", "codes"), CASES)
def test_commands_that_depend_on_it(command: Command, codes: set[str]) -> None:
    assert {note.code for note in inferred(Where(0, "PASS", 4), command)} == codes


def test_every_row_is_tested() -> None:
    assert {row.code for row in INFERRED} == set().union(*(codes for _, codes in CASES))


def test_a_program_says_it_once() -> None:
    kept = source(SHAPE)
    commands: list[Command] = [PLAIN, replace(PLAIN, input=kept)]
    weights = encoded(Kernel.identity(16), PLAIN)
    notes = Simulator(program(commands, table([1024], 1024), weights)).plan.diagnostics
    assert [note.severity for note in notes] == [Severity.NOTE]
    assert notes[0].render() == (
        "note[N690]: command 0 MCE_PLE: the sources leave open the rounding of the compute "
        "engine's shift, taken as half up; elements on a device may differ by 1\n"
        "  at   command at word 4"
    )


def test_blocks_to_channels() -> None:
    """A block's elements by rows, of each all channels."""
    command = Blocks(source((4, 6, 3)), target((2, 3, 12)), 0, 0, 0)
    values = np.arange(72, dtype=np.uint8).reshape(1, 4, 6, 3)
    made = Simulator(program([command], table([72], 72)))
    output = made.run([values], 1).outputs[0].reshape(2, 3, 12)
    for y, x in np.ndindex(2, 3):
        block = values[0, 2 * y : 2 * y + 2, 2 * x : 2 * x + 2]
        np.testing.assert_array_equal(output[y, x], block.ravel())
    assert [note.code for note in made.plan.diagnostics] == ["N696"]
