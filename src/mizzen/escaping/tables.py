"""Cells of tables that other programs read: CSV for spreadsheets, Markdown for pull requests."""

from __future__ import annotations

from mizzen.escaping.terminal import cut, one_line

FORMULA = tuple("=+-@\t\r\n＝＋－＠")
"""What a spreadsheet takes for a formula, or for the end of a cell. Ref: OWASP, "CSV Injection"."""

LONGEST_CELL = 240


def csv_cell(value: object) -> object:
    """Return a cell of CSV: a number as it is, a text so that no spreadsheet computes with it.

    A text that is longer than what people read is cut: programs that read CSV have limits.
    """
    if not isinstance(value, str):
        return value
    text = cut(value)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


def markdown_code(text: str) -> str:
    """Return a text as code in a cell of a table, in which nothing else is Markdown or HTML."""
    plain = one_line(cut(" ".join(text.split()), LONGEST_CELL))
    return "`" + plain.replace("`", "'").replace("|", "\\|") + "`"
