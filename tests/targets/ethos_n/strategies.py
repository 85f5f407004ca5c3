"""Hypothesis strategies that follow from the rows of stream 3.1."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mizzen.isa import Command, Field, Instruction
from mizzen.targets.ethos_n.commands import INSTRUCTION_SET


def values(item: Field) -> SearchStrategy[int]:
    """What a field can hold; no agents, whose records would follow their command."""
    if item.name == "agents":
        return st.just(0)
    if item.enum is not None:
        return st.sampled_from(list(item.enum))
    ends = st.sampled_from([item.minimum, item.maximum])
    return st.one_of(ends, st.integers(item.minimum, item.maximum))


def instructions_of(command: Command) -> SearchStrategy[Instruction]:
    """Instructions of one command."""
    fields = {item.name: values(item) for item in command.fields}
    return st.fixed_dictionaries(fields).map(lambda drawn: command(**drawn))


def streams(most: int) -> SearchStrategy[list[Instruction]]:
    """Instructions of any commands with any values."""
    one = st.sampled_from(INSTRUCTION_SET.commands).flatmap(instructions_of)
    return st.lists(one, max_size=most)
