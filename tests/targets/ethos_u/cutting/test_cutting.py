"""Streams in parts: every operation sees the registers that it saw, and nothing is lost between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError, Origin
from mizzen.targets.ethos_u.cutting import parts_of
from mizzen.targets.ethos_u.cutting.places import Table, Worked, cuts
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel
from mizzen.targets.ethos_u.judge.hazards.stream import steps
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.program import Program, StagedRun, accelerator_of

NPUS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")


def compiled(repository: Path, accelerator: str) -> Program:
    network = repository / "examples" / "digits" / "digits.tflite"
    artifact = mizzen.compile(network, accelerator, prove="off")
    (step,) = (step for step in artifact.steps if isinstance(step, NpuStep))
    assert isinstance(step.program, Program)
    return step.program


def kernels(program: Program) -> Iterator[Kernel]:
    """Return the kernel operations with all that their registers say, whatever their place."""
    for step in steps(program, accelerator_of(program.hardware)):
        if isinstance(step, Kernel):
            yield replace(step, origin=replace(step.origin, command=None))


@pytest.mark.parametrize("accelerator", NPUS)
def test_operations_of_all_parts_are_those_of_the_whole(repository: Path, accelerator: str) -> None:
    program = compiled(repository, accelerator)
    parts = parts_of(program)
    assert [layer.name for part in parts for layer in part.layers] == [
        "conv0", "conv1", "conv2", "conv3", "pool", "scores", "probabilities",
    ]  # fmt: skip
    assert [kernel for part in parts for kernel in kernels(part.program)] == list(kernels(program))
    *before, last = (part.program.instructions for part in parts)
    assert [stream[-1].name for stream in (*before, last)] == ["OP_STOP"] * len(parts)


@pytest.mark.parametrize(
    ("accelerator", "expected"),
    [
        ("ethos-u55-128", [0, 0, 0, 0, 0, 0, 1]),
        ("ethos-u65-256", [1, 1, 1, 0, 0, 0, 1]),  # and weights beside the layers before theirs
        ("ethos-u85-256", [0, 0, 0, 0, 0, 0, 1]),
    ],
)
def test_a_lookup_table_is_loaded_where_it_is_read(
    repository: Path, accelerator: str, expected: list[int]
) -> None:
    parts = parts_of(compiled(repository, accelerator))
    names = [[each.name for each in part.program.instructions] for part in parts]
    assert [commands.count("OP_DMA_START") for commands in names] == expected
    assert parts[-1].again == 1


def test_parts_find_the_weights_that_parts_before_have_staged(repository: Path) -> None:
    staged = dict[int, list[StagedRun]]()
    for place, part in enumerate(parts_of(compiled(repository, "ethos-u65-256"))):
        if place in (2, 3):
            with pytest.raises(MizzenError, match="E633"):
                Simulator(part.program)
        staged = Simulator(replace(part.program, staged=staged)).plan.staged


def test_without_origins_each_operation_is_a_part_but_for_chains(repository: Path) -> None:
    program = replace(compiled(repository, "ethos-u85-256"), origins={})
    whole = list(kernels(program))
    parts = parts_of(program)
    assert len(parts) == len(whole) - sum(kernel.goes_on for kernel in whole)
    assert sum(kernel.goes_on for kernel in whole) > 0
    assert not any(list(kernels(part.program))[-1].goes_on for part in parts)
    assert parts[0].layers[0].kind == "OP_CONV"


def kernel(at: int, layer: int, **facts: object) -> Worked:
    plain = Worked(at, at + 1, Origin(operator=layer), goes_on=False, takes_over=False, tables=())
    return replace(plain, **facts)  # pyright: ignore[reportArgumentType] by their names


def test_layers_that_take_turns_share_a_part() -> None:
    order = [0, 1, 2, 1, 2, 3]
    assert list(cuts([kernel(at, layer) for at, layer in enumerate(order)])) == [1, 5]


def test_what_stays_inside_the_npu_is_not_cut() -> None:
    assert list(cuts([kernel(0, 0, goes_on=True), kernel(1, 1), kernel(2, 2)])) == [2]
    assert list(cuts([kernel(0, 0), kernel(1, 1), kernel(2, 2, takes_over=True)])) == [1]


def test_a_table_that_cannot_be_loaded_again_stays_in_its_part() -> None:
    for read_only, expected in ((True, [1, 2, 3]), (False, [1, 3])):
        table = Table(11, read_only)
        streams = [kernel(0, 0), kernel(12, 1), kernel(20, 2, tables=(table,)), kernel(30, 3)]
        assert list(cuts(streams)) == expected
