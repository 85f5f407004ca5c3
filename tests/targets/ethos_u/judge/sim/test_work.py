"""Operations whose bytes cannot mean the work that their registers ask for."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.judge.sim.work import SMALL
from mizzen.targets.ethos_u.machine.program import Program

from .assembler import OFM, U55_128, Settings, activation, feature_map, result, window

AVERAGE = 1
WIDE = 1 << 13
"""Rows and columns of a map of 64 M elements."""


def pooled(size: int, kernel: int, changes: Settings) -> Program:
    """A pooling of `size` x `size` places, with other registers."""
    shape = (size, size, 1)
    settings = (
        feature_map("IFM", shape, np.int8, 0)
        | result(shape, np.int8)
        | activation(-128, 127)
        | window(kernel, kernel)
        | {"SET_OFM_SCALE": {"scale": 1, "shift": 0}}
        | changes
    )
    commands = U55_128.commands(settings, "OP_POOL", pooling_mode=AVERAGE)
    return U55_128.program(commands, [((1, 1, 1), np.int8)], ((1, 1, 1), np.int8))


def refusal(program: Program) -> str:
    with pytest.raises(MizzenError) as caught:
        Simulator(program)
    return str(caught.value)


def flat(prefix: str) -> Settings:
    """All elements of a map at one place."""
    return {f"SET_{prefix}_STRIDE_{axis}": {"stride": 0} for axis in "XY"}


def test_a_map_of_many_elements_at_one_byte_is_refused() -> None:
    assert refusal(pooled(WIDE, 1, flat("IFM") | flat("OFM"))) == (
        "error[E644]: OP_POOL: an operation that touches 2 bytes must have at most 16,777,216 "
        "elements, and this one has 134,217,728\n"
        "  at   command at word 57\n"
        "  help a size, a stride or the kernel is wrong: see the registers before it with "
        "mizzen inspect --listing"
    )


def test_a_kernel_that_is_as_large_as_its_map_is_refused() -> None:
    size, kernel = 1024, 1000
    dense = {"SET_IFM_STRIDE_Y": {"stride": size + kernel - 1}}
    said = "steps of arithmetic, and this one has 1,048,576,000,000\n"
    assert said in refusal(pooled(size, kernel, dense))


def test_small_work_is_done_however_few_bytes_it_touches() -> None:
    program = pooled(64, 1, flat("IFM"))
    assert SMALL > 64 * 64
    memory = np.zeros((1, 0x3000), np.uint8)
    memory[0, 0] = 7
    Simulator(program).run_in({1: memory}, 1)
    assert (memory[0, OFM : OFM + 64 * 64] == 7).all()
