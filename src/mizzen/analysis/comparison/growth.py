"""What of versions has grown past what it may since a baseline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mizzen.diagnostics import Diagnostic, Severity, fail
from mizzen.report.versions import (
    Allowance,
    Growth,
    GrowthMeasure,
    Version,
    VersionGrowth,
    doubles,
)
from mizzen.report.words import short_name

MOST_NAMED = 3
"""Layers or areas that a failure names."""

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(%|[kKmM]?)(?:i?[bB])?")


def allowances_of(text: str) -> dict[GrowthMeasure, Allowance]:
    """Read how much measures may grow: ``cycles=2%,sram=0,flash=1K``. E488 for another form."""
    allowances: dict[GrowthMeasure, Allowance] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, amount = (piece.strip() for piece in part.partition("="))
        match = _AMOUNT.fullmatch(amount)
        names = [measure.value for measure in GrowthMeasure]
        if name not in names or match is None:
            raise fail(
                "E488",
                "what may grow is written like cycles=2%,sram=0,flash=1K, of the measures "
                f"{', '.join(names)}; {part!r} came",
            )
        number, unit = float(match[1]), match[2].lower()
        if unit == "%":
            allowances[GrowthMeasure(name)] = Allowance(part=number / 100)
        else:
            allowances[GrowthMeasure(name)] = Allowance(amount=int(number * UNITS[unit]))
    return allowances


def refuse_doubles(versions: Sequence[Version]) -> None:
    """Refuse versions that a baseline could not tell apart: E498."""
    twice = doubles(versions)
    if twice:
        raise fail(
            "E498",
            f"a baseline must have each version once, and {twice[0].title} is compared twice",
            rule="docs/how-to/fail-when-it-grows.md",
            help="give each model, accelerator and memory mode once",
        )


def not_written(path: str, baseline: str) -> Diagnostic:
    """Say that a baseline is left as it was, since the comparison failed: W497."""
    return Diagnostic(
        "W497",
        f"{path} is not written, because the comparison with {baseline} fails",
        Severity.WARNING,
        rule="--write-baseline",
        help="to accept the growth, give --write-baseline without --baseline",
    )


def failures_of(versions: Sequence[VersionGrowth]) -> Iterator[Diagnostic]:
    """Return an error for each measure that grew past its allowance: E484."""
    for grown in versions:
        for growth in grown.growths:
            if not growth.allowed:
                yield _failure(grown, growth)


def _failure(grown: VersionGrowth, growth: Growth) -> Diagnostic:
    measure, unit = growth.measure, growth.measure.unit
    percent = f" ({100 * growth.difference / growth.before:+.1f} %)" if growth.before else ""
    named = ", ".join(f"{short_name(name)} {more:+,}" for name, more in growth.where[:MOST_NAMED])
    rest = len(growth.where) - MOST_NAMED
    named += f" and {rest} more" if rest > 0 else ""
    where = f": {named}" if named else ""
    return Diagnostic(
        "E484",
        f"{measure.value} of {grown.version.title} may grow by {growth.allowance}, and grew by "
        f"{growth.difference:,} {unit}{percent} from {growth.before:,} to {growth.now:,}{where}",
        rule="--allow-growth",
        help=f"make it smaller, allow it with --allow-growth {measure.value}=..., or write another "
        "baseline",
    )


def unmatched(
    versions: Sequence[VersionGrowth], baseline: Sequence[Version], path: str
) -> Iterator[Diagnostic]:
    """Return an error where the baseline has none of the versions: E496.

    Nothing is held against anything then, so that no growth would ever be seen.
    """
    if any(grown.before is not None for grown in versions):
        return
    missing = [grown.version for grown in versions]
    models = {version.model for version in missing}
    nearest = sorted(baseline, key=lambda version: version.model not in models)
    yield Diagnostic(
        "E496",
        f"{path} must have one of the versions that are compared, and has none: compared is "
        f"{_titles(missing)}; it has {_titles(nearest)}",
        rule="--baseline",
        help="compare the model, accelerator and memory mode that it was written for, or write it "
        "again: --write-baseline without --baseline",
    )


def notes_of(versions: Sequence[VersionGrowth], path: str) -> Iterator[Diagnostic]:
    """Return which versions the baseline does not have beside others that it has: W491."""
    if all(grown.before is None for grown in versions):
        return
    for grown in versions:
        if grown.before is None:
            yield Diagnostic(
                "W491",
                f"{path} must have {grown.version.title} to compare it, and has not",
                Severity.WARNING,
                help="write the baseline again with --write-baseline",
            )


def _titles(versions: Sequence[Version]) -> str:
    if not versions:
        return "nothing"
    more = f" and {len(versions) - 1} more" if len(versions) > 1 else ""
    return versions[0].title + more
