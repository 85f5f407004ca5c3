"""Text for terminals: what moves the cursor, hides or reorders characters is shown as its escape.

A terminal obeys control characters (ESC, CSI, BEL, CR, backspace, U+0080 to U+009F), and shows text
in another order or not at all for others (U+202E, U+2066, U+200B). Python counts all of them as not
printable, with what no character set has: lone surrogates, which stand for bytes of file names.

Ref: ECMA-48; Unicode Standard Annex 9, "Explicit Directional Formatting"; `str.isprintable`.
"""

from __future__ import annotations

import re

LONGEST_WORD = 240
"""Characters of a word that are shown: paths that people have are shorter, names that cut a table
in pieces are longer."""

LONGEST_TEXT = 4000
"""Characters of a message, or of a cell, that are shown."""

GAP = "..."
QUOTE = "  | "
"""Before each line of what somebody else's program wrote."""

_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def shown(text: str) -> str:
    """Return a text of our own lines, in which nothing but these lines moves the cursor."""
    if text.isprintable():
        return text
    return "\n".join(_escaped(line) for line in text.split("\n"))


def one_line(text: str) -> str:
    """Return a text on one line, its ends of lines as escapes, long words and long texts cut."""
    return _escaped(_LONG_WORD.sub(lambda word: cut(word[0], LONGEST_WORD), cut(text)))


def cut(text: str, most: int = LONGEST_TEXT) -> str:
    """Return a text with its middle left out where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    end = (most - len(GAP)) // 2
    return f"{text[: most - len(GAP) - end]}{GAP}{text[-end:]}"


def quoted_lines(text: str) -> str:
    """Return the output of somebody else's program, each line marked so that it is none of ours."""
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(f"{QUOTE}{_escaped(line.removesuffix(chr(13)))}".rstrip() for line in lines)


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in line
    )
