"""The table of verdicts as Markdown, for pages and merge requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mizzen.conformance.table import FOOTNOTE, findings, heading, lines
from mizzen.conformance.verdict import Row


def markdown(rows: Sequence[Row], accelerators: Sequence[str], level: int = 2) -> str:
    """Return the table, then every network that is not exact.

    There is a section for each verdict, with a heading of the `level`.
    """
    found = _findings(rows, len(accelerators), "#" * level)
    return "\n".join([*_table(rows, accelerators), *found])


def _table(rows: Sequence[Row], accelerators: Sequence[str]) -> Iterator[str]:
    yield _line("operator", "type", *accelerators)
    yield _line(*["---"] * (2 + len(accelerators)))
    for line in lines(rows, accelerators):
        yield _line(f"`{line.operator}`", line.dtype, *line.cells)
    if any(row.exception is not None for row in rows):
        yield f"\n{_escaped(FOOTNOTE)}"


def _findings(rows: Sequence[Row], accelerators: int, marks: str) -> Iterator[str]:
    found = findings(rows)
    for verdict in dict.fromkeys(finding.verdict for finding in found):
        yield f"\n{marks} {heading(verdict)}\n"
        yield _line("networks", "accelerators", "what", "exception")
        yield _line("---", "---", "---", "---")
        for finding in found:
            if finding.verdict is verdict:
                everywhere = len(finding.accelerators) == accelerators
                where = "all" if everywhere else ", ".join(finding.accelerators)
                names = ", ".join(f"`{case}`" for case in finding.cases)
                yield _line(names, where, finding.what, finding.exception or "")


def _line(*cells: str) -> str:
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")
