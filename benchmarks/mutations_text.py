"""Mutate files of text: JSON by its values, TOML, INI and CSV by their lines and cells."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

from mutations_bytes import number, raw, real

TEXTS = (
    "", "x" * 5000, "\0", "../../x", "O", "|O", "<f4", "npu", "a b", "\x1b[31m", "\n", "nan",
    "1e999", "-1", "é\u202e", "{}", "$(touch EXECUTED)", "=1+1", "torch.os.system", "ethos-u55-128",
)  # fmt: skip
NESTED = "[" * 200_000

PIECES = (
    NESTED, "NaN", "-Infinity", "9" * 5000, "1e999", '"\\ud800"', "}", "{" * 3000, "null",
    "null,", '"a":1,',
)  # fmt: skip
"""What a document cannot have between its values, or should not."""
LITERALS = (
    "0", "-1", "1", "2", "true", "[]", "{}", '""', '"x"', "nan", "inf", "-inf", "1e999", "1e-320",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 400, "9" * 5000,
    '"' + "y" * 3000 + '"', "[1, 2, 3]", '["a", "b"]', "[[]]", "0x7fffffff", "1979-05-27", "'",
    "0.5", "1_000", "[" * 3000, "{a = 1}", '"\\u001b[31m"',
)  # fmt: skip
"""Values as TOML writes them, and as it does not."""


def mutate_json(data: bytes, chance: Random) -> bytes:
    """Change values of a document, or what it is written like."""
    match chance.randrange(12):
        case 0:
            return raw(data, chance)
        case 1:
            return _written(data, chance)
        case _:
            document = copy.deepcopy(json.loads(data))
            for _ in range(chance.choice((1, 1, 1, 2, 4))):
                document = changed(document, chance)
            return json.dumps(document).encode("utf-8", "surrogatepass")


def _written(data: bytes, chance: Random) -> bytes:
    """Put a text into a document that is no value of it, or too much of one."""
    text = data.decode("utf-8", "replace")
    spots = [found.start() for found in re.finditer(r"[:\[,]", text)] or [0]
    at = chance.choice(spots) + 1
    piece = chance.choice(PIECES)
    return (text[:at] + piece + text[at:]).encode("utf-8", "replace")


def changed(document: Any, chance: Random) -> Any:
    """Replace, take away, double or add one value of a tree of dictionaries and lists."""
    places = list(_places(document))
    if not places:
        return other(document, chance)
    holder, key = chance.choice(places)
    match chance.randrange(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case 2:
            holder[key] = chance.choice(({}, [], [[]], {"": 0}, None))
        case 3:
            source, other_key = chance.choice(places)
            if other_key in (source if isinstance(source, dict) else range(len(source))):
                holder[key] = copy.deepcopy(source[other_key])
        case 4 if isinstance(holder, dict):
            holder[chance.choice(TEXTS)] = holder.pop(key)
        case _:
            holder[key] = other(holder[key], chance)
    return document


def other(value: Any, chance: Random) -> Any:
    """Return another value, mostly of the same type."""
    if chance.random() < 0.2:
        return chance.choice((None, True, 0, -1, 1.5, "x", [], {}))
    match value:
        case bool() | None:
            return chance.choice((True, False, None, 1))
        case int():
            return number(chance, value)
        case float():
            return real(chance, value)
        case str():
            return chance.choice(TEXTS) if chance.random() < 0.5 else value + chance.choice(TEXTS)
        case list():
            return chance.choice(([], value[:-1], value * 2, value[::-1]))
        case _:
            return chance.choice((None, [], 1))


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    holders = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in holders:
        yield tree, key
        yield from _places(value)


def mutate_lines(data: bytes, chance: Random) -> bytes:
    """Change a file of `key = value` lines and `[headings]`: TOML or INI."""
    if chance.random() < 0.1:
        return raw(data, chance)
    lines = data.decode("utf-8", "replace").split("\n")
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        _change_line(lines, chance)
    return "\n".join(lines).encode("utf-8", "replace")


def _change_line(lines: list[str], chance: Random) -> None:
    useful = [
        i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")
    ]
    if not useful:
        return
    at = chance.choice(useful)
    key, equals, value = lines[at].partition("=")
    match chance.randrange(8):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            lines.insert(at, lines[chance.choice(useful)])
        case 3 if equals:
            lines[at] = f"{key.strip()}x = {value}"
        case 4:
            lines[at] = lines[at].replace(chance.choice('[]="'), chance.choice(("", "[", "]]")), 1)
        case 5 if re.search(r"\d+", value):
            new = str(number(chance, int(re.findall(r"\d+", value)[0])))
            lines[at] = f"{key}={re.sub(r'[0-9][0-9_.]*', new, value, count=1)}"
        case _ if equals:
            lines[at] = f"{key}= {chance.choice(LITERALS)}"
        case _:
            lines[at] = lines[at].upper()


CELLS = (
    "", "-1", "0", "1e400", "nan", "inf", "9" * 20, "9" * 5000, "x" * 200_000, '"', '"a', "\0",
    "=1+1", "../../x", "1.5", "\x1b[2J", "é", "a\rb", "100000000000", ";", "file", "label",
)  # fmt: skip


def mutate_cells(data: bytes, chance: Random) -> bytes:
    """Change the cells of a CSV file."""
    if chance.random() < 0.15:
        return raw(data, chance)
    lines = data.decode("utf-8", "replace").split("\n")
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(lines))
        cells = lines[at].split(",")
        match chance.randrange(6):
            case 0:
                lines.insert(at, lines[chance.randrange(len(lines))])
            case 1 if len(lines) > 1:
                del lines[at]
            case 2:
                cells.insert(chance.randrange(len(cells) + 1), chance.choice(CELLS))
                lines[at] = ",".join(cells)
            case 3:
                lines = [",".join((chance.choice(CELLS), *line.split(",")[1:])) for line in lines]
            case _:
                cells[chance.randrange(len(cells))] = chance.choice(CELLS)
                lines[at] = ",".join(cells)
    return "\n".join(lines).encode("utf-8", "replace")
