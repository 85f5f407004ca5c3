"""What notebooks show: a page in a frame, and text where that cannot be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import mizzen
from mizzen.analysis.page.notebook import PAGES
from mizzen.diagnostics import Device
from mizzen.notebook import html_of
from mizzen.report.comparison import Comparison, LayerComparison, Outcome, OutputComparison
from mizzen.report.evaluation import Confusion, Evaluation, Metric
from mizzen.report.tuning import Candidate, Choice, Objective, TuningReport

from .hand_made import CONFIGURATION, small

FOUND = small()
LAYER = LayerComparison(0, "CONV_2D", "conv", Device.NPU, Outcome.DIFFERS, 100, 7, 2.0)
BASE = Candidate(Choice(), 900, 4096, 0, 8192, 4096, 12_000, 0)
NAMES = {"accelerator": "ethos-u55-128"}
REPORTS: dict[str, tuple[Any, str]] = {
    "compilation": (FOUND.compilation, "SOFTMAX must have a beta of 1"),
    "cost": (FOUND.cost, "What bounds the time"),
    "memory": (FOUND.memory, "peak 3.0 KiB at operation 2"),
    "comparison": (
        Comparison("net.tflite", NAMES, "TensorFlow Lite Micro", 4, 1, 3, (LAYER,),
                   (OutputComparison("out", Outcome.EQUAL, 10, 0, 0.0),)),
        "It differs.",
    ),
    "evaluation": (
        Evaluation("net_vela.tflite", NAMES, "data.npz", 10, 10, (Metric("top1", 0.9),),
                   Confusion(("cat", "dog"), ((5, 0), (1, 4))), ("3",), 1, None, 0.1),
        "Labels (rows) and outputs (columns)",
    ),
    "tuning": (
        TuningReport("net.tflite", CONFIGURATION, Objective.CYCLES, None, BASE,
                     (Candidate(Choice("Size"), 800, 2048, 0, 8192, 2048, 12_000, 0),), BASE,
                     5, 3),
        "--optimise Size",
    ),
}  # fmt: skip


def page(html: str) -> str:
    """Return what is in the frame."""
    return unescape(html.partition('srcdoc="')[2].partition('" style')[0])


@pytest.mark.parametrize("name", REPORTS)
def test_reports_show_their_page(name: str, browser: Any) -> None:
    report, words = REPORTS[name]
    html = report._repr_html_()
    assert html.startswith("<iframe title=")
    assert words in page(html)
    if name == "comparison":
        assert browser.answer(page(html), "return document.querySelectorAll('h2').length") == 1


def test_sections_of_which_nothing_is_known_are_left_out() -> None:
    assert FOUND.memory is not None
    html = page(FOUND.memory._repr_html_() or "")
    assert "Memory</h2>" in html
    assert "Network</h2>" not in html
    assert "is not known" not in html


def test_an_artifact_shows_its_page_without_commands(
    model_file: Callable[[str], Path],
) -> None:
    artifact = mizzen.compile(model_file("hello_world_int8.tflite"), "ethos-u55-128", prove="off")
    html = page(artifact._repr_html_() or "")
    assert "Layers</h2>" in html
    assert "Commands</h2>" not in html
    assert "On the NPU" in html


def test_what_has_no_page_shows_its_text() -> None:
    assert html_of(3) is None
    assert all(hasattr(kind, "_repr_html_") for kind in PAGES)


WITHOUT_JINJA = """
import sys
sys.modules["jinja2"] = None
import mizzen
from mizzen.report.memory import MemoryReport
print(MemoryReport("net", (), (), (), None, 0)._repr_html_())
"""
NOTHING_LOADED = """
import sys, mizzen, mizzen.report.memory
print(sorted(name for name in sys.modules if name.startswith(("mizzen.analysis", "jinja2"))))
"""


@pytest.mark.parametrize(("code", "said"), [(WITHOUT_JINJA, "None"), (NOTHING_LOADED, "[]")])
def test_nothing_is_needed_until_something_is_shown(code: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == said
