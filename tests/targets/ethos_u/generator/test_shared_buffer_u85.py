"""The memories of U85: against the blocks and microblocks of Vela's streams."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.conformance.cases import cases
from mizzen.conformance.compilers import Built, Compiler, build
from mizzen.targets.ethos_u.generator.operations import AS_COMPUTED, Order, Shape
from mizzen.targets.ethos_u.generator.schedule.blocks import legal
from mizzen.targets.ethos_u.generator.shared_buffer import (
    ARRAYS,
    DemandU85,
    fitting,
    microblock_for,
)
from mizzen.targets.ethos_u.generator.shared_buffer.arrays_u85 import Work
from mizzen.targets.ethos_u.generator.shared_buffer.demand_u85 import is_part_kernel_u85
from mizzen.targets.ethos_u.judge.hazards.array_u85 import MICROBLOCK_SIDES
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.machine.commands_values import ReverseU85, TransposeU85
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of
from mizzen.targets.ethos_u.machine.system_config import resolve

from .buffer_registers import is_part_kernel, kernels

SEED = 17
VELA = {"generator": "vela"}
WINDOWED = (Work.CONVOLUTION, Work.DEPTHWISE, Work.POOL)
WORKS = {
    "OP_CONV": Work.CONVOLUTION,
    "OP_DEPTHWISE": Work.DEPTHWISE,
    "OP_POOL": Work.POOL,
    "OP_ELEMENTWISE": Work.ELEMENTWISE,
    "OP_RESIZE": Work.RESIZE,
}


def demand(kernel: Kernel, registers: Registers) -> DemandU85:
    """Return what an operation demands, from its registers alone."""
    inputs, work = kernel.blocks.inputs, WORKS[kernel.name]
    if kernel.mode == "REDUCE_SUM":
        work = Work.REDUCE_SUM
    elif work is Work.CONVOLUTION and len(inputs) > 1:
        work = Work.PRODUCT
    precision = "SET_OFM_PRECISION"
    asked = DemandU85(
        work=work,
        shape=kernel.blocks.shape,
        ifm=inputs[0].map.shape if inputs else kernel.blocks.shape,
        ifm_bytes=registers.element_bytes("IFM"),
        order=Order(
            TransposeU85[registers.choice(precision, "activation_transpose")],
            ReverseU85[registers.choice(precision, "activation_reverse")],
        ),
        bricks=registers.choice(precision, "activation_format") == "NHCWB16",
    )
    if work is Work.ELEMENTWISE:
        return replace(asked, operands=tuple(item.map.shape for item in inputs))
    if work is Work.RESIZE:
        scale, fields = (
            registers.number("SET_RESIZE_X_SCALE_N_M1"),
            registers.fields("SET_RESIZE_X"),
        )
        step = int(fields["one_step_int"]) * scale + int(fields["one_step_mod"])
        return replace(asked, columns=(scale, step))
    stride, upscale = (
        registers.fields("SET_KERNEL_STRIDE"),
        registers.choice("SET_IFM_UPSCALE", "mode"),
    )
    height, width = (registers.number(f"SET_KERNEL_{side}_M1") for side in ("HEIGHT", "WIDTH"))
    return replace(
        asked,
        kernel_height=min(height, 8),
        kernel_width=min(width, 8),
        is_point=height * width == 1,
        stride_y=int(stride["stride_y"]),
        stride_x=int(stride["stride_x"]),
        upscale=1 if upscale == "NONE" else 2,
        replicates=upscale == "NEAREST",
        wide=registers.choice("SET_ACC_FORMAT", "acc_format") == "I48",
        part_kernel=work is Work.CONVOLUTION and is_part_kernel(registers),
        sparse=work is Work.CONVOLUTION and _is_sparse(registers),
    )


def _is_sparse(registers: Registers) -> bool:
    return registers.choice("SET_WEIGHT_FORMAT", "weight_sparsity") == "SPARSE_2_4"


def agreements(program: Program) -> int:
    """Hold what we say of operations outside chains to a stream; return how many."""
    accelerator, count, chained = accelerator_of(program.hardware), 0, False
    for kernel, registers in kernels(program):
        follows, chained = chained, kernel.goes_on
        # Of a transposed convolution's parts, each a grid's every other element, Vela looks at all.
        if follows or kernel.mode == "NONE" or _has_gaps(kernel):
            continue
        wanted, block = demand(kernel, registers), registers.block()
        sides = MICROBLOCK_SIDES[registers.choice("SET_ACC_FORMAT", "microblock")]
        assert microblock_for(wanted, accelerator)[:2] == sides, wanted
        blocks = np.array([block])
        assert fitting(wanted, blocks, wanted.part_kernel, accelerator)[0], (wanted, block)
        if wanted.work is Work.CONVOLUTION:
            assert is_part_kernel_u85(
                wanted.ifm[2], _elements(registers), sparse=wanted.sparse
            ) == (wanted.part_kernel), wanted
        count += 1
    return count


def _has_gaps(kernel: Kernel) -> bool:
    result = kernel.blocks.result
    assert result is not None
    dense = result.map.element_bytes * (16 if result.map.bricks else result.map.shape[2])
    return result.map.shape[1] > 1 and abs(result.map.stride_x) > dense and kernel.name == "OP_CONV"


def _elements(registers: Registers) -> int:
    stride = registers.fields("SET_KERNEL_STRIDE")
    return math.prod(
        (registers.number(f"SET_KERNEL_{side}_M1") - 1) // (int(stride[f"dilation_{axis}"]) + 1) + 1
        for side, axis in (("HEIGHT", "y"), ("WIDTH", "x"))
    )


@pytest.mark.parametrize("accelerator", ARRAYS)
def test_vela_gives_operations_the_same_microblocks_and_blocks_that_fit(
    accelerator: str, repository: Path, model_file: Callable[[str], Path]
) -> None:
    files = [repository / "examples" / "digits" / "digits.tflite"]
    files += [model_file("pretrainedResnet_quant.tflite"), model_file("rnnoise_INT8.tflite")]
    for path in files:
        steps = mizzen.compile(path, accelerator, prove="off", target_options=VELA).steps
        programs = [step.program for step in steps if isinstance(step, NpuStep)]
        assert sum(map(agreements, programs)) > 5


@pytest.mark.sweep
@pytest.mark.parametrize("accelerator", ARRAYS)
def test_vela_gives_single_operators_the_same(accelerator: str) -> None:
    count = 0
    for case in cases():
        outcome = build(case.build(), f"{case.name}.tflite", Compiler.REGOR, resolve(accelerator))
        if isinstance(outcome, Built):
            for step in artifact_of(outcome.network, "network.tflite").steps:
                if isinstance(step, NpuStep):
                    count += agreements(step.program)
    assert count > 700


def demands(rng: random.Random) -> Iterator[DemandU85]:
    """Return demands of every kind, without end."""
    while True:
        shape, work = _shape(rng), rng.choice(list(Work))
        kernel = rng.randint(1, 8) if work in WINDOWED else 1
        ifm = *shape[:2], rng.randint(1, 300)
        turned = kernel == 1
        alone = rng.random() < 0.5
        order = Order(rng.choice(list(TransposeU85))) if turned else AS_COMPUTED
        yield DemandU85(
            work=work,
            shape=shape,
            ifm=ifm,
            ifm_bytes=rng.choice((1, 2)),
            kernel_height=kernel,
            kernel_width=kernel,
            is_point=kernel == 1,
            stride_y=min(kernel, rng.randint(1, 2)),
            stride_x=min(kernel, rng.randint(1, 2)),
            wide=rng.random() < 0.3,
            part_kernel=work is Work.CONVOLUTION and is_part_kernel_u85(ifm[2], kernel**2),
            operands=() if alone else (shape, (shape[0], rng.choice((1, shape[1])), 1)),
            order=order,
            bricks=order is AS_COMPUTED or (alone and work is not Work.RESIZE),
        )


def _shape(rng: random.Random) -> Shape:
    return rng.randint(1, 40), rng.randint(1, 40), rng.randint(1, 300)


@pytest.mark.parametrize("name", ARRAYS)
def test_what_there_is_of_operations_has_a_block(name: str) -> None:
    rng, accelerator = random.Random(SEED), ACCELERATORS[name]
    wanted = demands(rng)
    for _ in range(200):
        asked = next(wanted)
        blocks = legal(asked, asked.shape, asked.part_kernel, accelerator)
        assert len(blocks), asked
        assert fitting(asked, blocks, asked.part_kernel, accelerator).all()
