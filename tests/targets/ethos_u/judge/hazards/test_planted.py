"""Waits taken out and block dependencies raised, one at a time: the checker finds what opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.conformance.cases import cases
from mizzen.conformance.networks import Case
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.hazards.findings import Race
from mizzen.targets.ethos_u.judge.hazards.operations import ORDERS
from mizzen.targets.ethos_u.machine.commands import Instruction, decode, encode, instruction_set
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of

from .interleaving import Guarantees, Stream, races
from .maker import Maker

WORDS = {"READ_AFTER_WRITE": "RAW", "WRITE_AFTER_READ": "WAR", "WRITE_AFTER_WRITE": "WAW"}
WAITS = ("OP_KERNEL_WAIT", "OP_DMA_WAIT")


def mutations(
    instructions: list[Instruction], accelerator: Accelerator
) -> Iterator[list[Instruction]]:
    """Return the stream without each wait, with each wait weaker, with each BLOCKDEP higher."""
    commands, most = instruction_set(accelerator.arch), ORDERS[accelerator.arch].blockdep
    for index, instruction in enumerate(instructions):
        others: list[Instruction] = []
        if instruction.name in WAITS:
            others.append(commands["OP_PMU_MASK"](enable=0))
        elif instruction.name == "SET_BLOCKDEP":
            low = instruction.values["blockdep"] + 1
            others += [instruction.command(blockdep=value) for value in {low, most} if low <= most]
        for other in others:
            changed = replace(other, offset_words=instruction.offset_words)
            yield [*instructions[:index], changed, *instructions[index + 1 :]]


def found_by_us(program: Program) -> set[tuple[int, int, str]]:
    found: set[tuple[int, int, str]] = set()
    for finding in find_hazards(program).findings:
        if isinstance(finding, Race):
            first, second = finding.first.origin.command, finding.second.origin.command
            assert first is not None
            assert second is not None
            found.add((first, second, WORDS[finding.order.name]))
    return found


def check(program: Program) -> tuple[int, int]:
    """Compare with the oracle on every mutation; give how many there are, and how many race."""
    accelerator = accelerator_of(program.hardware)
    instructions = decode(program.words, accelerator.arch)
    stream = Stream(instructions, accelerator)
    most = ORDERS[accelerator.arch].blockdep
    unguarded = [
        instruction.command(blockdep=most) if instruction.name == "SET_BLOCKDEP" else instruction
        for instruction in instructions
        if instruction.name not in WAITS
    ]
    conflicts = stream.conflicts(Guarantees(stream, unguarded, accelerator))
    assert races(stream, conflicts, instructions, accelerator) == set()
    count, racing = 0, 0
    for changed in mutations(instructions, accelerator):
        expected = races(stream, conflicts, changed, accelerator)
        words = encode(changed, accelerator.arch)
        assert found_by_us(replace(program, words=words)) == expected
        count, racing = count + 1, racing + bool(expected)
    return count, racing


def programs(network: Path | bytes, accelerator: str, generator: str = "vela") -> list[Program]:
    options = {"generator": generator}
    artifact = mizzen.compile(network, accelerator, prove="off", target_options=options)
    return [step.program for step in artifact.steps if isinstance(step, NpuStep)]


@pytest.mark.parametrize(
    ("accelerator", "generator", "planted", "racing"),
    [
        ("ethos-u55-32", "vela", 9, 8),
        ("ethos-u55-128", "vela", 5, 5),
        ("ethos-u65-512", "vela", 10, 10),
        ("ethos-u85-256", "vela", 5, 5),
        ("ethos-u55-32", "own", 19, 17),
        ("ethos-u55-128", "own", 14, 14),
        ("ethos-u65-512", "own", 17, 17),
    ],
)
def test_digits(
    repository: Path, accelerator: str, generator: str, planted: int, racing: int
) -> None:
    path = repository / "examples" / "digits" / "digits.tflite"
    (program,) = programs(path, accelerator, generator)
    assert check(program) == (planted, racing)


@pytest.mark.parametrize("accelerator", ["ethos-u55-64", "ethos-u65-512", "ethos-u85-256"])
def test_a_keyword_spotter(model_file: Callable[[str], Path], accelerator: str) -> None:
    (program,) = programs(model_file("kws_ref_model.tflite"), accelerator)
    planted, racing = check(program)
    assert racing > 0.8 * planted > 0, "the compiler's own waits are hardly ever needless"


@pytest.mark.sweep
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-512"])
@pytest.mark.parametrize("name", ["person_detect", "vww_96_int8", "pretrainedResnet_quant"])
def test_networks(model_file: Callable[[str], Path], name: str, accelerator: str) -> None:
    for program in programs(model_file(f"{name}.tflite"), accelerator):
        assert check(program)[1] > 0


@pytest.mark.sweep
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_operators(case: Case) -> None:
    for accelerator in ("ethos-u55-64", "ethos-u65-512", "ethos-u85-256"):
        for program in programs(case.build(), accelerator):
            check(program)


OFFSETS = st.integers(0, 7).map(lambda unit: 128 * unit)
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 3), st.sampled_from([8, 16, 24]))
BLOCKS = st.tuples(st.integers(1, 2), st.integers(1, 3), st.sampled_from([8, 16]))


@settings(max_examples=150, deadline=None)
@given(st.data())
@pytest.mark.parametrize("accelerator", ["ethos-u55-32", "ethos-u65-512", "ethos-u85-256"])
def test_streams_at_random(accelerator: str, data: st.DataObject) -> None:
    """Copies, transfers, tables and waits that no compiler would put together."""
    maker = Maker(accelerator)
    tables = 1024 * (maker.accelerator.shram_kib or 2) // maker.accelerator.cores - 2048
    for _ in range(data.draw(st.integers(1, 6))):
        match data.draw(st.sampled_from(["copy", "table", "dma", "load", "kernels", "transfers"])):
            case "dma":
                lengths = st.sampled_from([16, 100, 200])
                maker.dma(data.draw(OFFSETS), data.draw(OFFSETS), data.draw(lengths))
            case "load":
                slot = 256 * data.draw(st.integers(0, 1))
                maker.dma(0, tables + slot, 256, source_region=0, inside=True)
            case "kernels":
                maker.add("OP_KERNEL_WAIT", n=data.draw(st.integers(0, 1)))
            case "transfers":
                maker.add("OP_DMA_WAIT", k=data.draw(st.integers(0, 1)))
            case kind:
                maker.copy(
                    data.draw(OFFSETS),
                    data.draw(OFFSETS),
                    data.draw(SHAPES),
                    block=data.draw(BLOCKS),
                    blockdep=data.draw(st.integers(0, 3)),
                    ab_start=data.draw(st.sampled_from([4, 13, 14])),
                    **({"table": data.draw(st.integers(0, 1))} if kind == "table" else {}),
                )
    program = maker.program([], (0, 0))
    instructions = decode(program.words, maker.accelerator.arch)
    stream = Stream(instructions, maker.accelerator)
    conflicts = stream.conflicts(Guarantees(stream, instructions, maker.accelerator))
    expected = races(stream, conflicts, instructions, maker.accelerator)
    assert found_by_us(program) == expected
