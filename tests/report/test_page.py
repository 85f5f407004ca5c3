"""Pages: what they hold, that texts are no markup, and what a browser makes of them."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import pytest

from mizzen.report.page import (
    Bar,
    Facts,
    Lane,
    Line,
    Lines,
    Map,
    Node,
    Note,
    Page,
    Section,
    Series,
    Table,
    Timeline,
    render,
)
from mizzen.report.page.rendering import colour, number

from .browser import Browser

ROWS = (
    ("conv<1>", 3, 0.25),
    ("pool", 20, 1.0),
    ("add", 4, 0.5),
    *((f"mul {i}", i, 0.1) for i in range(6)),
)
TABLE = Table("Layers", ("name", "tiles", "busy"), ROWS, frozenset({2}))
PAGE = Page(
    "A & B",
    "Two <networks>",
    (
        Section("Words", (Note("a < b"), Facts((("Rate", "5 > 4"),)))),
        Section("Tables", (TABLE,)),
        Section(
            "Pictures",
            (
                Map(
                    "Loads",
                    "What is busy.",
                    (Node(0, 0, 1, 1, 0.5, "router 0"), Node(2, 0, 1, 1, None, "router 1")),
                    (Line(0.5, 0.5, 2.5, 0.5, 1.0, "link"),),
                ),
                Timeline("Time", "Bars.", "us", (Lane("core", (Bar(0, 5, 0, "conv"),)),)),
                Lines("Growth", "Seconds.", "elements", "s", (Series("one", ((1, 1), (9, 3))),)),
            ),
        ),
    ),
)


class Tags(HTMLParser):
    """Counts tags, and holds that every one that opens closes in its turn."""

    VOID = frozenset({"meta", "input", "link", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_block_is_on_the_page_and_every_tag_closes() -> None:
    tags = Tags()
    tags.feed(render(PAGE))
    assert not tags.open
    assert tags.counts["section"] == 3
    assert tags.counts["svg"] == 4  # a window on the timeline is one in another
    assert tags.counts["tr"] == 1 + len(ROWS)
    assert tags.counts["rect"] == 3


def test_texts_are_no_markup() -> None:
    html = render(PAGE)
    assert "Two &lt;networks&gt;" in html
    assert "conv&lt;1&gt;" in html
    assert "<networks>" not in html


def test_a_page_needs_no_network() -> None:
    assert not re.search(r"(src|href)=\"(?!#)|https?://|@import|url\(", render(PAGE))


@pytest.mark.parametrize(
    ("value", "written"), [("x", "x"), (1234, "1,234"), (0.01234, "0.0123"), (2.5e6, "2,500,000")]
)
def test_numbers_have_three_digits(value: str | float, written: str) -> None:
    assert number(value) == written


def test_colours_go_from_dark_to_light_and_no_further() -> None:
    assert colour(float("nan")) == "none"
    assert [colour(share) for share in (None, 0.0, 1.0, 7.0)] == [
        "none", "#440154", "#fde725", "#fde725",
    ]  # fmt: skip


def names(html: str) -> list[str]:
    return re.findall(r"<tr(?: hidden=\"\")?>\s*<td>(.*?)</td>", html)


def test_a_browser_sorts_by_a_column_and_back(browser: Browser) -> None:
    click = "document.querySelectorAll('th button')[1].click();"
    rising = [name for name, _, _ in sorted(ROWS, key=lambda row: row[1])]
    assert names(browser.shown(render(PAGE), click))[:2] == ["pool", "mul 5"]
    assert [unescape(name) for name in names(browser.shown(render(PAGE), click * 2))] == rising


def test_a_browser_filters_by_words(browser: Browser) -> None:
    script = (
        "const input = document.querySelector('input'); input.value = 'POOL';"
        "input.dispatchEvent(new Event('input'));"
    )
    html = browser.shown(render(PAGE), script)
    assert html.count('<tr hidden="">') == len(ROWS) - 1
