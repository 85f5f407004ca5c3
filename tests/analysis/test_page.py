"""The page about an artifact, in a browser: numbers, keys, links, and how fast it is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mizzen
from mizzen.analysis.page import report_page
from mizzen.report.cost import Unit
from mizzen.report.page import Graph, Occupancy, Page, Points, Shares, Table, Timeline, render

from .hand_made import findings, small

OPERATORS = 1_000
MOST_MS = 100.0
"""That anything that is done with a page of 1,000 operators may take of the script's time."""


def block(page: Page, kind: type, title: str = "") -> object:
    """Return the one block of a kind whose title or caption begins so."""
    blocks = [row for section in page.sections for row in section.blocks]
    found = [row for row in blocks if isinstance(row, kind) and title_of(row).startswith(title)]
    assert len(found) == 1
    return found[0]


def title_of(row: object) -> str:
    return getattr(row, "title", None) or getattr(row, "caption", "")


@pytest.fixture(scope="module")
def html() -> str:
    return render(report_page(small()))


def test_bounds_add_up_to_the_cycles_of_the_inference() -> None:
    shares = block(report_page(small()), Shares)
    assert isinstance(shares, Shares)
    assert {part.name: part.value for part in shares.parts} == {"MAC": 480, "SRAM": 120, "CPU": 400}
    assert "1,000 cycles" in shares.text


def test_every_number_of_the_timeline_is_in_the_table_of_operations() -> None:
    page = report_page(small())
    timeline, table = block(page, Timeline), block(page, Table, "Operations, in")
    assert isinstance(timeline, Timeline)
    assert isinstance(table, Table)
    assert [lane.name for lane in timeline.lanes] == [Unit.MAC.value, Unit.CPU.value]
    bars = {(bar.start, bar.stop) for lane in timeline.lanes for bar in lane.bars}
    start, end = table.headings.index("start"), table.headings.index("end")
    assert bars == {(row[start], row[end]) for row in table.rows}


def test_the_peak_is_named_and_what_is_alive_there_is_told() -> None:
    page = report_page(small())
    memory, alive = block(page, Occupancy), block(page, Table, "Alive at the peak")
    assert isinstance(memory, Occupancy)
    assert isinstance(alive, Table)
    assert memory.peak == 2
    assert memory.peak_text == "peak 3.0 KiB at operation 2 OP_2"
    assert {row[0] for row in alive.rows} == {f"net/layer_{index}" for index in (0, 1, 2)}


def test_the_roofline_has_what_its_table_says() -> None:
    page = report_page(small())
    chart, table = block(page, Points), block(page, Table, "Operations of the roofline")
    assert isinstance(chart, Points)
    assert isinstance(table, Table)
    points = [(point.x, point.y) for point in chart.points]
    assert points == [(1000 / 500, 10.0), (2000 / 500, 10.0), (3000 / 500, 10.0)]
    assert points == [(row[4], row[5]) for row in table.rows]
    assert {(limit.slope, limit.ceiling) for limit in chart.limits} == {(0.0, 128), (8.0, 128)}


def test_the_graph_says_where_operators_are_and_why() -> None:
    graph = block(report_page(small()), Graph)
    assert isinstance(graph, Graph)
    assert [box.letter for box in graph.boxes] == ["N", "N", "N", "C"]
    assert [box.after for box in graph.boxes] == [(), (0,), (0, 1), (2,)]
    assert "must have a beta of 1" in graph.boxes[3].title
    assert [box.share for box in graph.boxes] == [0.1, 0.2, 0.3, 0.4]
    assert "3,000 MACs, 30.0 % of the time" in graph.boxes[2].title


def test_operators_of_one_number_are_boxes_of_their_own() -> None:
    """As a report may say that somebody has changed."""
    row = small()
    assert row.compilation is not None
    twice = replace(row.compilation, placements=row.compilation.placements * 2)
    graph = block(report_page(replace(row, compilation=twice)), Graph)
    assert isinstance(graph, Graph)
    for place, box in enumerate(graph.boxes):
        assert all(before < place for before in box.after)


def test_operations_stand_in_order_where_operators_are_not_known() -> None:
    graph = block(report_page(replace(small(), compilation=None)), Graph)
    assert isinstance(graph, Graph)
    assert [box.name for box in graph.boxes][:2] == ["0 OP_CONV_2D", "1 OP_DEPTHWISE_CONV_2D"]
    assert [box.after for box in graph.boxes] == [(), (0,), (1,), (2,)]
    assert "not to the reader of a result" in graph.text


def test_what_is_not_known_is_said() -> None:
    page = report_page(replace(small(), compilation=None, cost=None, memory=None))
    text = render(page)
    for words in (
        "What operations cost is not known",
        "The contents of memory over time are not known",
        "operators are not known",
        "The configuration that it was compiled with is not known",
    ):
        assert words in text


def test_links_lead_somewhere_and_names_are_used_once(html: str) -> None:
    anchors = re.findall(r' id="([^"]+)"', html)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(anchors)
    assert set(re.findall(r'data-anchor="([^"]+)"', html)) <= set(anchors)


@pytest.mark.parametrize("missing", ["compilation", "cost", "memory"])
def test_links_lead_somewhere_where_a_part_is_not_known(missing: str) -> None:
    html = render(report_page(replace(small(), **{missing: None})))
    targets = set(re.findall(r'(?:href="#|data-anchor=")([^"]+)"', html))
    assert targets <= set(re.findall(r' id="([^"]+)"', html))


def test_links_lead_to_what_is_closed_or_hidden(browser: Any) -> None:
    script = """
const closed = document.getElementById("commands-0-11");
const found = [closed.open, closed.className];
const input = document.querySelector("input");
input.value = "no such row";
input.dispatchEvent(new Event("input"));
const row = document.getElementById("layer-3");
found.push(row.hidden);
location.hash = "layer-3";
dispatchEvent(new Event("hashchange"));
return [...found, row.hidden, input.value];
"""
    html = render(report_page(findings(12)))
    assert browser.answer(html, script, "commands-0-11") == [True, "reached", True, False, ""]


PRESS = """
const at = (name) => document.querySelector(`[data-picture="${name}"]`);
const press = (name, key) => at(name).querySelector(".scroll").dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true }));
const told = (name, keys) => {
  keys.forEach((key) => press(name, key));
  return at(name).querySelector(".told").textContent;
};
"""


def test_keys_go_through_pictures(html: str, browser: Any) -> None:
    ways = [
        ("timeline", ["ArrowRight", "ArrowRight"], "operation 1 OP_DEPTHWISE_CONV_2D"),
        ("timeline", ["Home", "ArrowDown"], "CPU, operation 3 SOFTMAX"),
        ("graph", ["Home", "ArrowDown", "ArrowDown"], "Operator 2 ADD on the NPU"),
        ("graph", ["End", "ArrowUp", "ArrowUp"], "Operator 0 CONV_2D"),
        ("memory map", ["Home", "ArrowRight"], "net/layer_1, feature map: 1,024 bytes"),
        ("chart", ["End"], "Operation 2 OP_ADD of operator 2 ADD: 6 MACs a byte"),
    ]
    calls = [[name, keys] for name, keys, _ in ways]
    script = f"{PRESS} return {json.dumps(calls)}.map(([name, keys]) => told(name, keys));"
    for said, (_, _, words) in zip(browser.answer(html, script), ways, strict=True):
        assert words in said


def test_pointers_tell_what_they_are_on_and_choose_it(html: str, browser: Any) -> None:
    script = f"""{PRESS}
const boxes = at("graph").querySelectorAll("[data-item]");
boxes[1].dispatchEvent(new PointerEvent("pointerover", {{ bubbles: true }}));
const found = [told("graph", []), boxes[1].classList.contains("chosen")];
boxes[1].dispatchEvent(new PointerEvent("click", {{ bubbles: true }}));
const link = at("graph").querySelector(".told a").getAttribute("href");
return [...found, boxes[1].classList.contains("chosen"), link];
"""
    said, before, after, link = browser.answer(html, script)
    assert "Operator 1 DEPTHWISE_CONV_2D on the NPU" in said
    assert (before, after, link) == (False, True, "#layer-1")


def test_enter_leads_to_the_row_and_plus_zooms(html: str, browser: Any) -> None:
    script = f"""{PRESS}
told("graph", ["Home", "ArrowDown", "Enter"]);
const view = at("timeline").querySelector("svg.window").viewBox.baseVal;
const all = view.width;
told("timeline", ["End", "+", "+"]);
const bar = at("timeline").querySelector(".chosen").getBBox();
const inside = bar.x < view.x + view.width && bar.x + bar.width > view.x;
const found = [location.hash, all / view.width, inside];
press("timeline", "0");
return [...found, view.width === all];
"""
    assert browser.answer(html, script) == ["#layer-1", 4, True, True]


def test_every_picture_has_a_name_and_a_text(html: str, browser: Any) -> None:
    script = """
return [...document.querySelectorAll("figure.picture")].map((figure) => {
  const place = figure.querySelector(".scroll");
  const keys = document.getElementById(place.getAttribute("aria-describedby"));
  const text = figure.querySelector("svg").getAttribute("aria-label");
  return [place.getAttribute("aria-label"), place.tabIndex, text.length > 30, keys !== null];
});
"""
    found = browser.answer(html, script)
    assert [row[0] for row in found] == [
        "Operators of the model", "Units over time", "Arena in SRAM over time",
        "MACs a byte against MACs a cycle",
    ]  # fmt: skip
    assert all(row[1:] == [0, True, True] for row in found)


def test_a_thousand_operators_are_smooth(browser: Any, slowness: float) -> None:
    """What a user does takes a moment each: scripts and layout, best of several times."""
    script = f"""{PRESS}
const best = {{}};
const timed = (what, work) => {{
  const start = performance.now();
  work();
  document.body.getBoundingClientRect();
  best[what] = Math.min(best[what] ?? Infinity, performance.now() - start);
}};
const input = document.querySelector("input");
for (let i = 0; i < 4; i++) {{
  document.body.style.display = "none";
  document.body.getBoundingClientRect();
  document.body.style.display = "";
  timed("lay out", () => {{}});
  timed("zoom", () => press("timeline", "+"));
  timed("along a lane", () => press("timeline", "ArrowRight"));
  timed("along an edge", () => press("graph", "ArrowDown"));
  input.value = `layer_${{i}}`;
  timed("filter", () => input.dispatchEvent(new Event("input")));
  timed("sort", () => document.querySelectorAll("th button")[3].click());
}}
return best;
"""
    dark = "--blink-settings=preferredColorScheme=0"
    found = browser.answer(render(report_page(findings(OPERATORS))), script, "", dark)
    assert len(found) == 6
    assert max(found.values()) < MOST_MS * slowness, found


MOST_SECONDS, MOST_BYTES = 2.0, 3_000_000
"""Of the report of a real network: of the processor, imports included, and of its file."""


def test_a_report_is_quick_and_small(
    model_file: Callable[[str], Path], tmp_path: Path, slowness: float
) -> None:
    artifact = mizzen.compile(model_file("vww_96_int8.tflite"), "ethos-u55-128", prove="off")
    artifact.save(tmp_path / artifact.name)
    words = [sys.executable, "-m", "mizzen", "report", artifact.name, "-o", "page.html"]
    start = os.times()
    subprocess.run(words, check=True, cwd=tmp_path, capture_output=True)
    end = os.times()
    spent = end.children_user + end.children_system - start.children_user - start.children_system
    assert spent < MOST_SECONDS * slowness
    assert (tmp_path / "page.html").stat().st_size < MOST_BYTES
