"""Put verdicts together: a table of operator x type x accelerator, and what is behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mizzen.conformance.verdict import Row, Verdict

MARK = "*"
"""Stands at verdicts that a documented exception explains."""

FOOTNOTE = f"{MARK} a documented exception"


@dataclass(frozen=True, slots=True)
class Line:
    """One operator and type: what became of its networks, a cell for each accelerator."""

    operator: str
    dtype: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Networks that are not exact, all in the same way and on the same accelerators."""

    verdict: Verdict
    cases: tuple[str, ...]
    accelerators: tuple[str, ...]
    what: str
    exception: str | None


def lines(outcomes: Sequence[Row], accelerators: Sequence[str]) -> list[Line]:
    """Return the table, operators in alphabetical order."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.operator, outcome.dtype), []).append(outcome)
    return [
        Line(operator, dtype, tuple(_cell(group, name) for name in accelerators))
        for (operator, dtype), group in sorted(groups.items())
    ]


def _cell(outcomes: Iterable[Row], accelerator: str) -> str:
    groups: dict[Verdict, list[Row]] = {verdict: [] for verdict in Verdict}
    for outcome in outcomes:
        if outcome.accelerator == accelerator:
            groups[outcome.verdict].append(outcome)
    return ", ".join(_part(verdict, group) for verdict, group in groups.items() if group)


def _part(verdict: Verdict, rows: Sequence[Row]) -> str:
    mark = MARK if all(row.exception is not None for row in rows) else ""
    return f"{len(rows)} {verdict.value}{_how_far(rows)}{mark}"


def _how_far(outcomes: Sequence[Row]) -> str:
    differences = [
        outcome.difference
        for outcome in outcomes
        if outcome.verdict is Verdict.OFF and outcome.difference
    ]
    if not differences:
        return ""
    steps = max(difference.steps for difference in differences)
    share = max(difference.share for difference in differences)
    return f" by up to {steps} in {percent(share)}"


def percent(share: float) -> str:
    """Write a part of 1 with two digits; only nothing is `0 %`."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def findings(outcomes: Sequence[Row]) -> list[Finding]:
    """Return all networks that are not exact: verdict by verdict, those alike together."""
    by_case: dict[tuple[Verdict, str, str, str | None], list[str]] = {}
    for outcome in outcomes:
        if outcome.verdict is not Verdict.EXACT:
            key = (outcome.verdict, outcome.case, _what(outcome), outcome.exception)
            by_case.setdefault(key, []).append(outcome.accelerator)
    groups: dict[tuple[Verdict, str, str | None, tuple[str, ...]], list[str]] = {}
    for (verdict, case, what, exception), accelerators in by_case.items():
        alike = (verdict, what, exception, tuple(accelerators))
        groups.setdefault(alike, []).append(case)
    order = list(Verdict)
    grouped = [
        Finding(verdict, tuple(cases), accelerators, what, exception)
        for (verdict, what, exception, accelerators), cases in groups.items()
    ]
    return sorted(grouped, key=lambda finding: order.index(finding.verdict))


def heading(verdict: Verdict) -> str:
    """Write a verdict as a heading."""
    return f"{verdict.value[:1].upper()}{verdict.value[1:]}"


def _what(outcome: Row) -> str:
    if outcome.verdict is Verdict.OFF and outcome.difference is not None:
        difference = outcome.difference
        return (
            f"by up to {difference.steps} in {difference.differing} of {difference.outputs} outputs"
        )
    return outcome.detail


def markdown(outcomes: Sequence[Row], accelerators: Sequence[str], level: int = 2) -> str:
    """Return the table, then every network that is not exact.

    There is a section for each verdict, with a heading of the `level`.
    """
    written = _findings(outcomes, len(accelerators), "#" * level)
    return "\n".join([*_table(outcomes, accelerators), *written])


def _table(outcomes: Sequence[Row], accelerators: Sequence[str]) -> Iterator[str]:
    yield _line("operator", "type", *accelerators)
    yield _line(*["---"] * (2 + len(accelerators)))
    for line in lines(outcomes, accelerators):
        yield _line(f"`{line.operator}`", line.dtype, *line.cells)
    if any(outcome.exception is not None for outcome in outcomes):
        yield f"\n{_escaped(FOOTNOTE)}"


def _findings(outcomes: Sequence[Row], accelerators: int, marks: str) -> Iterator[str]:
    grouped = findings(outcomes)
    for verdict in dict.fromkeys(finding.verdict for finding in grouped):
        yield f"\n{marks} {heading(verdict)}\n"
        yield _line("networks", "accelerators", "what", "exception")
        yield _line("---", "---", "---", "---")
        for finding in grouped:
            if finding.verdict is verdict:
                everywhere = len(finding.accelerators) == accelerators
                where = "all" if everywhere else ", ".join(finding.accelerators)
                names = ", ".join(f"`{case}`" for case in finding.cases)
                yield _line(names, where, finding.what, finding.exception or "")


def _line(*cells: str) -> str:
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")
