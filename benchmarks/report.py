"""What a report costs: seconds of the processor and bytes of its page, from artifact to HTML.

The visual-wake-words network on ethos-u55-128 (`report_seconds`, `report_bytes`, start of Python
left out), and a page of 1,000 operators (`report_large_seconds`).

    python benchmarks/report.py [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.analysis.hand_made import findings
from tests.conftest import MODELS

import mizzen
from mizzen.analysis.findings import findings_of
from mizzen.analysis.page import report_page
from mizzen.report.page import render

LARGE = 1_000


def taken(work: Callable[[], str]) -> tuple[float, str]:
    """Return the processor's seconds, and what came of them."""
    start = time.process_time()
    html = work()
    return time.process_time() - start, html


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    as_json = parser.parse_args().json
    artifact = mizzen.compile(MODELS / "vww_96_int8.tflite", "ethos-u55-128", prove="off")
    seconds, html = taken(lambda: render(report_page(findings_of(artifact))))
    large = findings(LARGE)
    large_seconds, _ = taken(lambda: render(report_page(large)))
    figures = {
        "report_seconds": seconds,
        "report_bytes": len(html.encode()),
        "report_large_seconds": large_seconds,
    }
    if as_json:
        print(json.dumps({"figures": figures}))
        return
    for name, value in figures.items():
        print(f"{name:<22}{value:,.3f}" if isinstance(value, float) else f"{name:<22}{value:,}")


if __name__ == "__main__":
    main()
