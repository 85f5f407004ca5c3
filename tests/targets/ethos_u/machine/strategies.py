"""Hypothesis strategies that follow from the rows of the command tables."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mizzen.isa import Command, Field, Instruction, InstructionSet


def values(item: Field) -> SearchStrategy[int]:
    """What a field can hold: its members, or its range with the ends made likely."""
    if item.enum is not None:
        return st.sampled_from(list(item.enum))
    ends = st.sampled_from([item.minimum, item.maximum])
    return st.one_of(ends, st.integers(item.minimum, item.maximum))


def instructions_of(command: Command) -> SearchStrategy[Instruction]:
    """Instructions of one command."""
    fields = {item.name: values(item) for item in command.fields}
    return st.fixed_dictionaries(fields).map(lambda drawn: command(**drawn))


def instructions(machine: InstructionSet) -> SearchStrategy[Instruction]:
    """Instructions of any command of a machine, all commands alike."""
    return st.sampled_from(machine.commands).flatmap(instructions_of)


def programs(machine: InstructionSet, most: int = 20) -> SearchStrategy[list[Instruction]]:
    """Short lists of instructions."""
    return st.lists(instructions(machine), max_size=most)
