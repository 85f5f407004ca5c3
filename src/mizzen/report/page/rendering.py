"""Render a page: geometry here, markup in the templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from mizzen.diagnostics import fail, install_extra
from mizzen.escaping import one_line
from mizzen.report.page.blocks import Block, Graph, Page
from mizzen.report.page.layered import Layout, Place, layered
from mizzen.report.page.scales import Chart, LogScale, MemoryScale, TimeScale, map_scale
from mizzen.report.words import size

if TYPE_CHECKING:
    from jinja2 import Environment

RAMP = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
"""Colours of shares from 0 to 1, red, green, blue: even steps of lightness. Ref: viridis."""

SHORT = 240
"""Characters of a text of which nothing is cut."""

WHOLE_FROM = 999.5
"""Numbers that are written without digits after the point."""


def render(page: Page) -> str:
    """Return a page as one HTML file. E566 where Jinja is not installed."""
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            map_scale=map_scale,
            time_scale=TimeScale.of,
            chart=Chart.of,
            layered=_layout,
            memory_scale=MemoryScale.of,
            log_scale=LogScale.of,
        )
    )


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise fail(
            "E566",
            "reports are written with Jinja, which is not installed",
            help=install_extra("report"),
        ) from error
    environment = Environment(
        loader=PackageLoader("mizzen.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, colour=colour, kind=_kind, bytes=size)

    def path(points: Sequence[Place]) -> Markup:
        return Markup(curve(points))

    environment.filters.update(curve=path)
    return environment


def plain(value: object) -> object:
    """Return a value for a page: texts without control characters, long words and lines cut.

    Names come from files. Jinja escapes them for HTML afterwards; what is markup stays.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return (
        value
        if len(value) < SHORT and value.isprintable()
        else "\n".join(map(one_line, value.split("\n")))
    )


def _layout(block: Graph) -> Layout:
    return layered([box.after for box in block.boxes])


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def curve(points: Sequence[Place]) -> str:
    """Return the path of an edge: straight down through bends, a curve between layers."""
    (x, y), *rest = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for to_x, to_y in rest:
        if to_x == x:
            parts.append(f"V{to_y:.1f}")
        else:
            half = (y + to_y) / 2
            parts.append(f"C{x:.1f} {half:.1f} {to_x:.1f} {half:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    return "".join(parts)


def number(value: float | str) -> str:
    """Write a cell: texts as they are, integers with commas, others with three digits."""
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < WHOLE_FROM else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value


def colour(share: float | None) -> str:
    """Return the colour of a share, 0 to 1; what is not there to use has none."""
    if share is None or math.isnan(share):
        return "none"
    place = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    index = min(int(place), len(RAMP) - 2)
    part = place - index
    mixed = (
        round(low + (high - low) * part)
        for low, high in zip(RAMP[index], RAMP[index + 1], strict=True)
    )
    return "#" + "".join(f"{value:02x}" for value in mixed)
