"""Damaged programs: a diagnostic or an answer, never another exception."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands import HEADER, INSTRUCTION_SET, decode_instructions, encode
from mizzen.targets.ethos_n.commands_values import (
    Command,
    Convert,
    Format,
    Location,
    PleOperation,
    PleRecord,
)
from mizzen.targets.ethos_n.program import BufferKind, Container, program_of
from mizzen.targets.ethos_n.sim import Simulator

from .assembler import (
    FURTHER,
    HARDWARE,
    SRAM_INPUT,
    Kernel,
    encoded,
    mce_ple,
    ple_only,
    program,
    source,
    table,
    target,
    tensor,
)

SHAPE = (8, 8, 16)
KERNEL = Kernel.identity(16)
KEPT = target(SHAPE, location=Location.SRAM)
FIRST = mce_ple(KERNEL, source(SHAPE), SHAPE, KEPT)
COMPRESSED = tensor(SHAPE, FURTHER, SRAM_INPUT, format=Format.FCAF_WIDE)
SECOND = mce_ple(
    KERNEL, KEPT, SHAPE, COMPRESSED, PleRecord(0, 0, PleOperation.LEAKY_RELU, 43690, 16, 34952, 19)
)
LAST = ple_only(PleOperation.AVGPOOL_3X3_1_1_UDMA, [COMPRESSED], target(SHAPE))
COMMANDS: list[Command] = [FIRST, SECOND, LAST, Convert(COMPRESSED, target(SHAPE))]
BUFFERS = table([1024], 1024) | {FURTHER: (BufferKind.INTERMEDIATE, 2112)}
GOOD = program(COMMANDS, BUFFERS, encoded(KERNEL, FIRST))
WORDS = len(GOOD.stream) // 4

odd = st.sampled_from([0, 1, 2, 3, 7, 8, 16, 255, 256, 1 << 15, 1 << 16, (1 << 32) - 1])
numbers = odd | st.integers(0, (1 << 32) - 1)


def with_stream(stream: bytes) -> Container:
    container = GOOD.container
    block = container.constant_control_unit
    return replace(container, constant_control_unit=stream + block[len(stream) :])


def executed(container: Container) -> str | None:
    """Execute; give the code of the diagnostic, if there is one."""
    try:
        simulator = Simulator(program_of(container, HARDWARE))
        simulator.run([np.zeros((2, 1024), np.uint8)], 2)
    except MizzenError as error:
        return error.diagnostic.code
    return None


def test_the_good_program_is_good() -> None:
    assert executed(GOOD.container) is None


@given(st.lists(st.tuples(st.integers(4, WORDS - 1), numbers), min_size=1, max_size=3))
@settings(max_examples=250, deadline=None)
def test_words_that_are_others(changes: Sequence[tuple[int, int]]) -> None:
    stream = bytearray(GOOD.stream)
    for word, number in changes:
        struct.pack_into("<I", stream, 4 * word, number)
    assert (executed(with_stream(bytes(stream))) or "E9")[:2] in {"E9", "E5"}


@given(st.data())
@settings(max_examples=250, deadline=None)
def test_fields_that_are_others(data: st.DataObject) -> None:
    """A field at a time, so that what is reserved stays zero and enumerations stay defined."""
    instructions = decode_instructions(GOOD.stream)
    place = data.draw(st.integers(0, len(instructions) - 1))
    instruction = instructions[place]
    item = data.draw(st.sampled_from(instruction.command.fields))
    if item.enum is None:
        kept = st.integers(item.minimum, item.maximum)
        value = data.draw(kept | odd.filter(item.admits))
    else:
        value = data.draw(st.sampled_from(list(item.enum)))
    changed = instruction.command(**{**instruction.values, item.name: value})
    words = INSTRUCTION_SET.encode([*instructions[:place], changed, *instructions[place + 1 :]])
    assert (executed(with_stream(HEADER + words.tobytes())) or "E9")[:2] == "E9"


@given(st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_weights_that_are_others(changes: Sequence[tuple[int, int]]) -> None:
    data = bytearray(GOOD.container.constant_dma)
    for place, number in changes:
        data[place % len(data)] = number
    assert (executed(replace(GOOD.container, constant_dma=bytes(data))) or "E9")[:2] == "E9"


@pytest.mark.parametrize("left_out", range(len(COMMANDS) - 1))
def test_commands_that_are_left_out(left_out: int) -> None:
    """What a command leaves is read by the next; nothing there is a fault."""
    commands = COMMANDS[:left_out] + COMMANDS[left_out + 1 :]
    stream = encode(commands)
    container = with_stream(stream)
    shorter = replace(
        container,
        constants_control_unit=tuple(
            replace(info, size=len(stream)) if info.id == 0 else info
            for info in container.constants_control_unit
        ),
    )
    assert executed(shorter) == {0: "E958", 1: "E952", 2: None}[left_out]
