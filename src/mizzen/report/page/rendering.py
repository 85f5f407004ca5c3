"""Render a page: geometry here, markup in the templates."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from mizzen.diagnostics import fail
from mizzen.report.page.blocks import Block, Page
from mizzen.report.page.scales import LANE_HEIGHT, Chart, TimeScale, map_scale

if TYPE_CHECKING:
    from jinja2 import Environment

RAMP = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
"""Colours of shares from 0 to 1, red, green, blue: even steps of lightness. Ref: viridis."""


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
            lane_height=LANE_HEIGHT,
        )
    )


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise fail(
            "E566",
            "reports are written with Jinja, which is not installed",
            help="install Mizzen with its extra report: pip install '.[report]' in its checkout",
        ) from error
    environment = Environment(
        loader=PackageLoader("mizzen.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, colour=colour, kind=_kind)
    return environment


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def number(value: float | str) -> str:
    """Write a cell: texts as they are, integers with commas, others with three digits."""
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1e6 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value


def colour(share: float | None) -> str:
    """Return the colour of a share, 0 to 1; what is not there to use has none."""
    if share is None:
        return "none"
    place = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    index = min(int(place), len(RAMP) - 2)
    part = place - index
    mixed = (
        round(low + (high - low) * part)
        for low, high in zip(RAMP[index], RAMP[index + 1], strict=True)
    )
    return "#" + "".join(f"{value:02x}" for value in mixed)
