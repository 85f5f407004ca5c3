"""`recorded.c` and `recorded.h`: what an element takes and must give, as constant arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mizzen.graph import Array
from mizzen.mesh.export.c_text import count, lines_of
from mizzen.mesh.export.recording import Recording
from mizzen.mesh.network.boxes import slices
from mizzen.mesh.program import ElementProgram, Fetch, Give, Instruction, Receive, Send

HEAD = """\
/* What element {element} takes and gives, image by image: recorded by Mizzen. */
#include "recorded.h"

#include "board.h"

const uint32_t recorded_images = {images}u;
const uint32_t recorded_count = {count}u;

"""


def recorded_source(element: ElementProgram, recorded: Recording | None) -> str:
    """Return `recorded.c`: for each instruction with a message, its bytes of all images."""
    records = [] if recorded is None else list(_rows(element, recorded))
    head = HEAD.format(
        element=element.element, images=recorded.images if recorded else 0, count=len(records)
    )
    arrays = [
        f"BOARD_MODEL static const uint8_t bytes{place}[{max(array.nbytes, 1)}] = {{\n"
        f"{lines_of(map(str, array.tobytes() or bytes(1)))}\n}};\n"
        for place, (_, _, array) in enumerate(records)
    ]
    table = [
        f"    {{{kind}, {count(number)}, bytes{place}}},"
        for place, (kind, number, _) in enumerate(records)
    ]
    return "\n".join(
        [
            head + "\n".join(arrays),
            "const recorded_row recorded_rows[] = {",
            *table,
            "    {RECORDED_END, 0u, 0},",
            "};",
            "",
        ]
    )


def _rows(element: ElementProgram, recorded: Recording) -> Iterator[tuple[str, int, Array]]:
    for instruction in element.instructions:
        record = _recorded(element, recorded, instruction)
        if record is not None:
            kind, number, array = record
            held = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            yield kind, number, held.reshape(len(held), -1).view(np.uint8)


def _recorded(
    element: ElementProgram, recorded: Recording, instruction: Instruction
) -> tuple[str, int, Array] | None:
    """Return the kind of a row, as recorded.h has it, the message or tensor, and the values."""
    match instruction:
        case Fetch():
            box = element.regions[instruction.region].box
            assert box is not None, "what is fetched has a box"
            values = recorded.inputs[instruction.tensor][(slice(None), *slices(box))]
            return "RECORDED_FETCH", instruction.tensor, values
        case Receive():
            values = recorded.messages[instruction.message]
            return "RECORDED_RECEIVE", instruction.message, values
        case Send():
            values = recorded.messages[instruction.message]
            return "RECORDED_SEND", instruction.message, values
        case Give():
            values = recorded.given[element.element, instruction.tensor, instruction.box]
            return "RECORDED_GIVE", instruction.tensor, values
        case _:
            return None
