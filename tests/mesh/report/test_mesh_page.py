"""The page and the trace of a mapped network say what programs and simulations say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from mizzen.mesh.machine import find_machine, without
from mizzen.mesh.network import Layer, LayerKind
from mizzen.mesh.program import Compute, MeshProgram
from mizzen.mesh.report import mesh_page, trace
from mizzen.mesh.report.floor_plan import floor_plan
from mizzen.mesh.simulation import estimate, simulate
from mizzen.report.page import Table, Timeline, render

IMAGES = 4


@pytest.fixture(scope="module")
def program(pipeline: Callable[[int], MeshProgram]) -> MeshProgram:
    drawn = pipeline(3)
    layer = Layer("conv", LayerKind.GENERAL, (0,), 0)
    return replace(drawn, network=replace(drawn.network, layers=(layer,)))


def test_the_page_has_every_layer_and_the_figures(program: MeshProgram) -> None:
    found = estimate(program)
    page = mesh_page(program, found, simulate(program, IMAGES, keeps_activities=True))
    assert [section.title for section in page.sections] == [
        "Throughput", "Layers", "Loads", "Memory", "Time", "How to read this",
    ]  # fmt: skip
    layers, memory = page.sections[1].blocks[0], page.sections[3].blocks[0]
    assert isinstance(layers, Table)
    assert isinstance(memory, Table)
    cycles = [
        row.cycles for element in program.elements for row in element.instructions
        if isinstance(row, Compute)
    ]  # fmt: skip
    (row,) = layers.rows
    assert row[:5] == ("conv", "general", len(cycles), len(cycles), max(cycles))
    assert row[5] == pytest.approx(max(cycles) / 300e6 / found.period_s)
    assert memory.rows[-1] == (
        "all, as laid out",
        sum(element.data_bytes for element in program.elements),
        max(element.data_bytes for element in program.elements),
    )
    assert f"{found.images_per_s:,.0f} images a second in 1 copy on " in render(page)


def test_joined_names_leave_room_for_the_figures(program: MeshProgram) -> None:
    (layer,) = program.network.layers
    joined = replace(layer, name="conv/Relu6;batch_normalization;depthwise")
    long = replace(program, network=replace(program.network, layers=(joined,)))
    text = render(mesh_page(long, estimate(long), simulate(long, 1, keeps_activities=True)))
    assert '<td class="wide">conv/Relu6</td>' in text
    assert "conv/Relu6, image 0:" in text
    assert "batch_normalization" not in text


def test_the_timeline_has_every_activity(program: MeshProgram) -> None:
    simulated = simulate(program, IMAGES, keeps_activities=True)
    page = mesh_page(program, estimate(program), simulated)
    (timeline,) = page.sections[4].blocks
    assert isinstance(timeline, Timeline)
    bars = [bar for lane in timeline.lanes for bar in lane.bars]
    assert len(bars) == len(simulated.activities) == IMAGES * len(program.elements)


def test_the_map_has_all_routers_and_live_links(program: MeshProgram) -> None:
    board = find_machine("spinnaker2-48")
    dead = without(board, [0], [0])
    drawn = replace(program, machine=dead, elements=(), routes=())
    plan = floor_plan(drawn, estimate(replace(program, machine=dead)))
    assert len(plan.nodes) == 48 * 38
    assert len(plan.lines) == len(board.link_source) - 1
    assert sum(node.share is None for node in plan.nodes) == 48


def test_the_trace_is_the_format_of_trace_viewers(program: MeshProgram) -> None:
    simulated = simulate(program, IMAGES, keeps_activities=True)
    document = json.loads(json.dumps(trace(program, simulated)))
    complete = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert len(complete) == len(simulated.activities)
    assert all(event["dur"] > 0 and event["name"] == "conv" for event in complete)
    named = {event["tid"] for event in document["traceEvents"] if event["name"] == "thread_name"}
    assert named == {event["tid"] for event in complete}
