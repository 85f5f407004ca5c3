"""Programs with something changed in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mizzen.flatbuffer import Member, Record
from mizzen.flatbuffer.pte import join, split

HERE = Path(__file__).parent


def changed(change: Callable[[Record], None], name: str = "ds_cnn_u55") -> bytes:
    """Return a golden program after `change` of its root table."""
    file = split((HERE / f"{name}.pte").read_bytes(), name)
    program = {key: value for key, value in file.program.items() if key != "segments"}
    change(program)
    return join(replace(file, program=program))


def plan(program: Record) -> Record:
    """Return the execution plan."""
    return program["execution_plan"][0]


def instructions(program: Record) -> list[Record]:
    """Return the instructions."""
    return plan(program)["chains"][0]["instructions"]


def value(program: Record, place: int) -> Any:
    """Return the fields of a value."""
    return plan(program)["values"][place]["val"].fields


def instruction(kind: str, **fields: Any) -> Record:
    """Return an instruction."""
    return {"instr_args": Member(kind, fields)}
