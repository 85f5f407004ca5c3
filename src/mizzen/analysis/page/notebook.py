"""Artifacts and reports in notebooks: their pages, each in a frame of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape

from mizzen.analysis.checking.networks import CheckReport
from mizzen.analysis.findings import Findings, findings_of
from mizzen.analysis.page.accuracy import evaluation_blocks
from mizzen.analysis.page.comparison import comparison_page
from mizzen.analysis.page.page import report_page
from mizzen.analysis.page.tuning import tuning_page
from mizzen.artifact.artifact import Artifact
from mizzen.diagnostics import MizzenError
from mizzen.report import CompileReport
from mizzen.report.comparison import Comparison
from mizzen.report.cost import CostReport
from mizzen.report.evaluation import Evaluation
from mizzen.report.memory import MemoryReport
from mizzen.report.page import Page, Section, render
from mizzen.report.tuning import TuningReport

FRAME_HEIGHT_PIXELS = 640
NOT_SHOWN = frozenset({"Commands", "Configuration"})
"""Sections that are for the file; they are long."""


def notebook_html(thing: object) -> str | None:
    """Return a frame with the page of a thing; None for what has none, and without Jinja.

    The frame keeps the page's style from the notebook's, and its script from everything.
    """
    try:
        page = page_of(thing)
        html = None if page is None else render(page)
    except MizzenError:  # its text says more than nothing
        return None
    if page is None or html is None:
        return None
    return (
        f'<iframe title="{escape(page.title)}" sandbox="allow-scripts" srcdoc="{escape(html)}" '
        f'style="width: 100%; height: {FRAME_HEIGHT_PIXELS}px; border: 0"></iframe>'
    )


def page_of(thing: object) -> Page | None:
    """Return the page of a thing; None for what has none."""
    draw = next((draw for kind, draw in PAGES.items() if isinstance(thing, kind)), None)
    return None if draw is None else draw(thing)


def _artifact(thing: Artifact) -> Page:
    return _short(findings_of(thing))


def _check(thing: CheckReport) -> Page:
    return _compilation(thing.compilation) if thing.artifact is None else _artifact(thing.artifact)


def _compilation(thing: CompileReport) -> Page:
    return _only(_nothing(thing.model, thing.configuration["accelerator"]), compilation=thing)


def _cost(thing: CostReport) -> Page:
    return _only(_nothing(thing.model, thing.configuration["accelerator"]), cost=thing)


def _memory(thing: MemoryReport) -> Page:
    return _only(_nothing(thing.model, None), memory=thing)


def _evaluation(thing: Evaluation) -> Page:
    section = Section("Accuracy", tuple(evaluation_blocks(thing.as_dict())))
    return Page(thing.artifact, f"{thing.samples:,} samples of {thing.data}", (section,))


PAGES: Mapping[type, Callable[..., Page]] = {
    Artifact: _artifact,
    CheckReport: _check,
    CompileReport: _compilation,
    CostReport: _cost,
    MemoryReport: _memory,
    Comparison: comparison_page,
    Evaluation: _evaluation,
    TuningReport: tuning_page,
}
"""What draws each type."""


def _nothing(model: str, accelerator: str | None) -> Findings:
    return Findings(model, accelerator, (), (), ())


def _short(findings: Findings) -> Page:
    page = report_page(findings)
    sections = tuple(section for section in page.sections if section.title not in NOT_SHOWN)
    return replace(page, sections=sections)


def _only(nothing: Findings, **known: object) -> Page:
    """Return the page of what is known, without the sections of what is not."""
    empty = {section.title: section for section in report_page(nothing).sections}
    page = _short(replace(nothing, **known))
    return replace(
        page,
        sections=tuple(section for section in page.sections if empty.get(section.title) != section),
    )
