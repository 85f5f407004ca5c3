"""The page about an artifact: what it says, what it refuses, how large it is."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mizzen
from mizzen.report.page import rendering

Run = Callable[..., tuple[int, str, str]]
OPERATORS = 8
"""Of the digits network."""


def test_a_model_is_compiled_first(here: Path, run: Run) -> None:
    status, out, err = run("report", "digits.tflite", "--accelerator-config", "ethos-u65-256")
    assert status == 0
    assert "digits.html" in out
    assert "ethos-u65-256" in err
    assert "digits.tflite on ethos-u65-256" in (here / "digits.html").read_text()


def test_layers_lead_to_their_commands_and_back(here: Path, run: Run) -> None:
    run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-128")
    status, out, _ = run("report", "output/digits_vela.tflite", "-o", "page.html", "--json")
    assert status == 0
    html = (here / "page.html").read_text()
    assert json.loads(out)["files"] == ["page.html"]
    anchors = set(re.findall(r'id="([^"]+)"', html))
    targets = set(re.findall(r'href="#([^"]+)"', html))
    assert targets <= anchors
    assert {f"layer-{index}" for index in range(OPERATORS)} <= anchors
    assert any(name.startswith("layer-") for name in targets)
    assert any(name.startswith("commands-0-") for name in targets)


def test_every_command_is_on_the_page(here: Path, run: Run) -> None:
    run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-128")
    run("report", "output/digits_vela.tflite", "-o", "page.html")
    html = (here / "page.html").read_text()
    view = mizzen.load(here / "output" / "digits_vela.tflite").steps[0].view  # pyright: ignore[reportAttributeAccessIssue] - the only step is on the NPU
    listed = re.findall(r"(?:^|>) *\d+  [0-9a-f]{8}.{11}\w+", html, re.MULTILINE)
    assert len(listed) == view.commands > 0


def test_what_is_compiled_is_not_compiled_for_something_else(here: Path, run: Run) -> None:
    run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-128")
    status, _, err = run("report", "output/digits_vela.tflite", "--memory-mode", "Sram_Only")
    assert status == 2
    assert "error[E585]" in err
    assert "give the model instead" in err


def test_a_page_that_cannot_be_written_is_an_error(here: Path, run: Run) -> None:
    status, _, err = run("report", "digits.tflite", "-o", "nowhere/page.html")
    assert status == 2
    assert "error[E201]: nowhere/page.html must be a file that can be written" in err


def test_files_for_other_tools(here: Path, run: Run) -> None:
    words = ["report", "digits.tflite", "--trace", "trace.json", "--csv", "tables"]
    status, out, _ = run(*words, "--model-explorer", "nodes.json")
    assert status == 0
    assert "tables/digits_per-layer.csv" in out
    assert json.loads((here / "trace.json").read_text())["traceEvents"]
    assert len(json.loads((here / "nodes.json").read_text())["results"]) == OPERATORS
    assert len((here / "tables" / "digits_per-layer.csv").read_text().splitlines()) > OPERATORS


def test_an_evaluation_is_a_section(here: Path, run: Run) -> None:
    words = ["evaluate", "digits.tflite", "--data", "images.npy", "--labels", "labels.npy"]
    status, out, _ = run(*words, "--json")
    assert status == 0
    (here / "evaluation.json").write_text(out)
    status, _, _ = run("report", "digits.tflite", "--evaluation", "evaluation.json")
    assert status == 0
    html = (here / "digits.html").read_text()
    assert "Accuracy</h2>" in html
    assert "Labels (rows) and outputs (columns)" in html


def test_what_is_no_evaluation_is_refused(here: Path, run: Run) -> None:
    (here / "other.json").write_text('{"holds": true}')
    status, _, err = run("report", "digits.tflite", "--evaluation", "other.json")
    assert status == 2
    assert (
        "error[E587]: other.json must be what mizzen evaluate --json writes: data must be given"
        in err
    )


def test_artifacts_with_operators_on_the_cpu_and_of_other_families(here: Path, run: Run) -> None:
    run("compile", "digits.tflite", "--accelerator-config", "ethos-n78-4tops-4ple")
    words = ["report", "output/digits_ethosn.tflite", "--csv", "tables", "--trace", "trace.json"]
    status, _, _ = run(*words)
    assert status == 0
    html = (here / "digits_ethosn.html").read_text()
    assert "Why operators are on the CPU" in html
    assert set(re.findall(r'(?:href="#|data-anchor=")([^"]+)"', html)) <= set(
        re.findall(r' id="([^"]+)"', html)
    )
    assert [path.name for path in (here / "tables").iterdir()] == ["digits_per-layer.csv"]


def test_an_artifact_without_its_report_has_a_page(here: Path, run: Run) -> None:
    run("compile", "digits.tflite", "--accelerator-config", "ethos-u85-256")
    (here / "output" / "digits_vela.json").unlink()
    status, _, _ = run("report", "output/digits_vela.tflite", "-o", "page.html")
    assert status == 0
    html = (here / "page.html").read_text()
    assert "compiled elsewhere" in html
    assert "operators are not known" in html
    assert "What bounds the time" in html
    status, _, err = run("report", "output/digits_vela.tflite", "--model-explorer", "nodes.json")
    assert status == 2
    assert "error[E588]: the report of digits_vela.tflite must be beside it" in err


def test_a_damaged_stream_is_told_and_not_timed(here: Path, run: Run) -> None:
    run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-128")
    path = here / "output" / "digits_vela.tflite"
    program = mizzen.load(path).steps[0].program  # pyright: ignore[reportAttributeAccessIssue] - the only step is on the NPU
    data, stream = path.read_bytes(), program.words.tobytes()
    assert data.count(stream) == 1
    middle = program.instructions[len(program.instructions) // 2]
    half = data.index(stream) + 4 * middle.offset_words
    path.write_bytes(data[:half] + b"\xff\x03\xff\xff" + data[half + 4 :])
    status, out, err = run("report", path, "-o", "page.html")
    assert status == 2
    assert "page.html" in out
    assert "error[" in err
    html = (here / "page.html").read_text()
    assert "The stream cannot be read further" in html
    assert "What operations cost is not known" in html
    status, _, err = run("report", path, "-o", "page.html", "--trace", "trace.json")
    assert status == 2
    assert "error[E586]: digits_vela.tflite must have operations that can be timed" in err


def test_without_jinja_it_says_what_to_install(
    here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    rendering._environment.cache_clear()
    status, _, err = run("report", "digits.tflite", "--prove", "off")
    assert status == 2
    assert "error[E566]: reports are written with Jinja, which is not installed" in err
    assert "install Mizzen with its extra report: pip install '.[report]'" in err
