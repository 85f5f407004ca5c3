"""Where the constants of a command stream are, which generated sources keep apart from it.

A driver is given base pointers beside a stream: region 0 for constants, 1 for memory. Tools that
write both as arrays give the arrays names that belong together.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Convention:
    """A row: how a tool calls the array of a stream, and that of its constants.

    stream  of the stream's name, mangled as C++ does or not
    """

    tool: str
    stream: re.Pattern[str]
    constants: Callable[[re.Match[str]], str]


def _next_tensor(found: re.Match[str]) -> str:
    """Name the tensor with the next number: Arm's operator takes stream, constants, memory."""
    own, after = (f"tensor_data{int(found['number']) + more}" for more in (0, 1))
    length = str(len(after)) if found["length"] == str(len(own)) else found["length"]
    return f"{found['before']}{length}{after}{found['end']}"


CONVENTIONS = (
    Convention(
        "Renesas RUHMI, `sub_0000_command_stream.c`",
        re.compile(r"(?P<part>\w+)_command_stream"),
        lambda found: f"{found['part']}_model_data",
    ),
    Convention(
        "Edge Impulse EON compiler, `tflite_learn_1_compiled.cpp`",
        re.compile(r"(?P<before>.*?)(?P<length>\d*)tensor_data(?P<number>\d{1,6})(?P<end>E?)"),
        _next_tensor,
    ),
)


def constants_name(stream: str) -> str | None:
    """Return what the array with a stream's constants is called; None where no row knows."""
    for row in CONVENTIONS:
        found = row.stream.fullmatch(stream)
        if found is not None:
            return row.constants(found)
    return None
