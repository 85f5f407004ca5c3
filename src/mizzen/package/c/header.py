"""The C header of the container, made of its layout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

from mizzen.package.c.layout import (
    ALIGNMENT_BYTES,
    ENUMS,
    FILE_MAGIC,
    MAGIC,
    MAX_RANK,
    NONE,
    ROWS,
    VERSION,
    Row,
)

FILE_NAME = "mizzen_format.h"

HEAD = """\
/* The container that the runtime executes, made of Mizzen's table of it: do not edit.
 *
 * All words are little-endian. Offsets are bytes from the container's start; places in the pool
 * are words from the pool's start. */
#ifndef MIZZEN_FORMAT_H
#define MIZZEN_FORMAT_H

#include <stdint.h>
"""
NUMBERS = {
    "MZ_FORMAT_MAGIC": MAGIC,
    "MZ_FORMAT_VERSION": VERSION,
    "MZ_FILE_MAGIC": FILE_MAGIC,
    "MZ_FORMAT_ALIGNMENT": ALIGNMENT_BYTES,
    "MZ_MAX_RANK": MAX_RANK,
    "MZ_NONE": NONE,
}


def format_header() -> str:
    """Return the text of `mizzen_format.h`."""
    numbers = "\n".join(
        f"#define {name} {value:#x}u" if value > 99 else f"#define {name} {value}u"
        for name, value in NUMBERS.items()
    )
    parts = [HEAD, numbers, "", *map(_enumeration, ENUMS), *map(_structure, ROWS), "#endif", ""]
    return "\n".join(parts)


def _enumeration(members: type[IntEnum]) -> str:
    name = _snake(members.__name__)
    prefix = f"MZ_{name.upper()}"
    lines = ",\n".join(f"    {prefix}_{member.name} = {member.value}" for member in members)
    return (
        f"/* {(members.__doc__ or '').strip()} */\nenum mz_{name} {{\n{lines}\n}};\n"
        f"#define {prefix}_COUNT {len(members)}u\n"
    )


def _structure(table: Row) -> str:
    return "\n".join(_lines(table))


def _lines(table: Row) -> Iterator[str]:
    width = max(len(field.name) for field in table.fields) + 1
    yield f"/* {table.doc}. */"
    yield "typedef struct {"
    for field in table.fields:
        yield f"    uint32_t {field.name + ';':{width}} /* {field.doc} */"
    yield f"}} mz_{table.name}_row;"
    size = f"sizeof(mz_{table.name}_row) == {table.size_bytes}"
    yield f"typedef char mz_{table.name}_row_size[{size} ? 1 : -1];\n"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
