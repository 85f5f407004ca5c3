"""What operations of U85 must be so that its array can do them, by hand and in chains of Vela's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.isa.command import Instruction
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.judge.hazards.stream import steps
from mizzen.targets.ethos_u.machine.commands import Arch, encode, instruction_set
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import Program

from ..timing.timed_kernels import Kernels  # noqa: TID252 tests are no package with a name

U85 = "ethos-u85-256"
WIDE, ROW, SQUARE = 1, 2, 3
"""Microblocks of U85-256: 1 x 2 x 16, 1 x 4 x 8, 2 x 2 x 8."""


def texts(program: Program) -> list[str]:
    found = find_hazards(program).findings
    return [row.diagnostic.message for row in found if row.diagnostic.code == "E678"]


def convolution(block: tuple[int, int, int], microblock: int = SQUARE, **more: object) -> list[str]:
    maker = Kernels(U85)
    maker.convolution((4, 4, 16), 16, block=block, microblock=microblock, **more)
    return texts(maker.made())


def test_a_block_of_whole_microblocks() -> None:
    assert convolution((4, 4, 16)) == []
    assert convolution((3, 4, 16)) == ["OP_CONV: a block must be a multiple of 2 high, not 3"]
    assert convolution((4, 4, 12)) == ["OP_CONV: a block must be a multiple of 8 deep, not 12"]
    assert convolution((4, 6, 16), ROW) == ["OP_CONV: a block must be a multiple of 4 wide, not 6"]


def test_microblocks_of_an_operation() -> None:
    assert convolution((4, 4, 16), WIDE) == [
        "OP_CONV: the microblock must be U1X4 or U2X2 for it, not U1X2"
    ]
    assert convolution((4, 4, 16), WIDE, depthwise=True) == []
    assert convolution((4, 4, 16), SQUARE, depthwise=True) == [
        "OP_DEPTHWISE: the microblock must be U1X2 for it, not U2X2"
    ]


def test_two_jobs_in_the_input_memory() -> None:
    """16 channels of 32 bytes for each position: 256 of them fit twice, 288 do not."""
    maker = Kernels("ethos-u85-1024")
    maker.convolution((4, 4, 32), 64, block=(8, 16, 32), microblock=SQUARE)
    assert texts(maker.made()) == []
    maker = Kernels("ethos-u85-1024")
    maker.convolution((4, 4, 32), 64, block=(8, 18, 32), microblock=SQUARE)
    assert texts(maker.made()) == [
        "OP_CONV: inputs of 2 jobs must fit into 16384 bytes, and take 18432 in blocks of "
        "8 x 18 x 32"
    ]


def test_two_blocks_of_accumulators() -> None:
    assert convolution((8, 8, 32)) == []
    assert convolution((8, 8, 40)) == [
        "OP_CONV: accumulators of 2 blocks must fit into 16384 bytes, and take 24576 in blocks of "
        "8 x 8 x 40"
    ]


def test_rows_of_a_pool() -> None:
    maker = Kernels(U85)
    maker.pool((32, 32, 16), (3, 3), microblock=WIDE)
    assert texts(maker.made()) == [
        "OP_POOL: the input of a block must fit into 16384 bytes, and take 18496 in blocks of "
        "32 x 32 x 16",
        "OP_POOL: accumulators must fit into 16384 bytes, and take 65536 in blocks of 32 x 32 x 16",
    ]


def velas(network: Path | bytes) -> Program:
    artifact = mizzen.compile(network, U85, prove="off", target_options={"generator": "vela"})
    (program,) = (step.program for step in artifact.steps if isinstance(step, NpuStep))
    return program


def planted(program: Program, at: int, name: str, **values: int) -> list[str]:
    """Return what is found with a command put before the instruction at an index."""
    rows: list[Instruction] = list(program.instructions)
    assert texts(program) == []
    rows.insert(at, instruction_set(Arch.U85)[name](**values))
    return texts(replace(program, words=encode(rows, Arch.U85)))


def test_links_have_the_block_of_what_they_go_on_from(repository: Path) -> None:
    """The softmax of digits has chains, whose links say nothing of blocks themselves."""
    program = velas(repository / "examples" / "digits" / "digits.tflite")
    words = {kernel.origin.command for kernel in _links(program)}
    ats = [at for at, row in enumerate(program.instructions) if row.offset_words in words]
    assert ats
    for at in ats:
        found = planted(program, at, "SET_OFM_BLK_WIDTH_M1", width=96)
        link = program.instructions[at].name
        assert found[0].startswith(f"{link}: a link must have the block of the operation that its")
        assert ", not 1 x 96 x" in found[0]


def _links(program: Program) -> Iterator[Kernel]:
    goes_on = False
    for step in steps(program, ACCELERATORS[U85], Registers()):
        if isinstance(step, Kernel):
            if goes_on:
                yield step
            goes_on = step.goes_on


def product() -> bytes:
    """Of 8 x 16 and 16 x 24 elements."""
    net = NetworkBuilder("product")
    x = net.tensor("x", (1, 8, 16), "int8", 0.05)
    y = net.tensor("y", (1, 16, 24), "int8", 0.05)
    z = net.tensor("z", (1, 8, 24), "int8", 0.2)
    options = ("BatchMatMulOptions", {"adj_x": False, "adj_y": False})
    net.operator("BATCH_MATMUL", [x, y], [z], options)
    return net.finish([x, y], [z])


def test_second_operands_of_products_lie_in_bricks() -> None:
    program = velas(product())
    rows = list(program.instructions)
    at = next(at for at, row in enumerate(rows) if row.values.get("weights_ifm2"))
    last = max(i for i, row in enumerate(rows[:at]) if row.name == "SET_IFM2_PRECISION")
    values = {**rows[last].values, "activation_format": 0}
    assert planted(program, at, "SET_IFM2_PRECISION", **values) == [
        "OP_CONV: the second operand of a product must lie in bricks of 16 channels (NHCWB16), "
        "not NHWC"
    ]
