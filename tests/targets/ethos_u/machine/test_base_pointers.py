from __future__ import annotations

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine.base_pointers import (
    REGION_COUNT,
    base_pointers,
    require_memory,
    require_region,
)
from mizzen.targets.ethos_u.machine.program import Program, TensorAddress

INT8 = np.dtype(np.int8)


def program(
    inputs: tuple[TensorAddress, ...] = (),
    outputs: tuple[TensorAddress, ...] = (),
    constants: int = 8,
) -> Program:
    return Program(
        words=np.zeros(0, np.uint32),
        hardware=None,
        region_bytes={0: 8, 1: 64},
        constants={0: np.zeros(constants, np.uint8)},
        inputs=inputs,
        outputs=outputs,
    )


def test_base_pointers_follow_the_operator() -> None:
    assert base_pointers(1, 2) == (
        "read-only data",
        "scratch",
        "fast scratch",
        "input 0",
        "output 0",
        "output 1",
    )
    assert len(base_pointers(4, 4)) == REGION_COUNT


def test_regions_are_eight() -> None:
    assert require_region(7) == 7
    with pytest.raises(MizzenError) as caught:
        require_region(8)
    assert str(caught.value) == "error[E540]: a region must be in 0..7, not 8"


def test_memory_that_holds_everything() -> None:
    require_memory(program((TensorAddress("x", (4, 4), INT8, 1, 48),)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            program((TensorAddress("x", (4, 4), INT8, 1, 49),)),
            'error[E541]: input "x" must lie inside the 64 bytes of region 1, not at 49..65',
        ),
        (
            program(outputs=(TensorAddress("y", (1,), INT8, 1, -1),)),
            'error[E541]: output "y" must lie inside the 64 bytes of region 1, not at -1..0',
        ),
        (
            program(outputs=(TensorAddress("y", (1,), INT8, 2, 0),)),
            'error[E540]: output "y" lies in region 2, which the program does not have',
        ),
        (
            program(constants=9),
            "error[E541]: constants must lie inside the 8 bytes of region 0, not at 0..9",
        ),
    ],
)
def test_memory_that_does_not(wrong: Program, message: str) -> None:
    with pytest.raises(MizzenError) as caught:
        require_memory(wrong)
    assert str(caught.value) == message
