"""Tables without the columns of which nothing is known."""

from __future__ import annotations

from dataclasses import replace

from mizzen.report.page import Table


def without_empty_columns(table: Table) -> Table:
    """Return a table without columns that are empty in every row."""
    columns = range(len(table.headings))
    kept = [place for place in columns if any(line[place] is not None for line in table.rows)]
    new = {place: index for index, place in enumerate(kept)}
    return replace(
        table,
        headings=tuple(table.headings[place] for place in kept),
        rows=tuple(tuple(line[place] for place in kept) for line in table.rows),
        shares=frozenset(new[place] for place in table.shares if place in new),
        wide=frozenset(new[place] for place in table.wide if place in new),
    )
