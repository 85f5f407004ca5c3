"""Parts of generated sources: what ends a comment or a string, or is expanded, is taken away."""

from __future__ import annotations

import re

from mizzen.escaping.terminal import one_line

_ENDS_COMMENT = re.compile(r"\*(?=/)|/(?=\*)|\\$")
_PLAIN = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _-.,:;+()[]{}=@/"
)


def c_comment(text: str) -> str:
    """Return a text for a comment of C or of a linker script: it neither ends nor begins one."""
    return _ENDS_COMMENT.sub(lambda mark: f"{mark[0]} ", one_line(text))


def c_string(text: str) -> str:
    """Return a string literal of C that has these bytes, in UTF-8.

    What is not plain is in octal, three digits each, which ends by itself; so is `?`, as two of
    them begin a trigraph. Ref: C99, 5.2.1.1 and 6.4.4.4.
    """
    data = text.encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(b) if chr(b) in _PLAIN else f"\\{b:03o}" for b in data) + '"'


def make_value(text: str) -> str:
    """Return the value of a variable of make: nothing is expanded, and it ends at the line's end.

    A `#` has a backslash before it, and backslashes before that are doubled; one at the end would
    take the next line in. Ref: GNU make manual, 3.1, "What Makefiles Contain".
    """
    plain = re.sub(r"(\\*)#", r"\1\1\#", text.replace("$", "$$"))
    return f"{plain}$()" if plain.endswith("\\") else plain


def cmake_argument(text: str) -> str:
    """Return a bracket argument of CMake, in which nothing is evaluated, however it ends."""
    level = next(n for n in range(len(text) + 2) if f"]{'=' * n}]" not in f"{text}]")
    return f"[{'=' * level}[{text}]{'=' * level}]"
