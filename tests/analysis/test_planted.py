"""The smallest row of `benchmarks/proof.py --artifacts`: what it measures holds, in seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FAMILIES = ("ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple")


@pytest.mark.parametrize("accelerator", FAMILIES)
def test_planted_mistakes_are_found(repository: Path, accelerator: str) -> None:
    words = ("--artifacts", "8", "--checked", "8", "--only", "digits", "--inputs", "64")
    answer = subprocess.run(
        [sys.executable, repository / "benchmarks" / "proof.py", *words, "--json",
         "--families", accelerator],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(repository / "src")},
    )  # fmt: skip
    figures = json.loads(answer.stdout)["figures"]
    family = accelerator.split("-")[1]
    assert figures["check_tried"] == 16
    assert figures["check_refused"] > 0
    assert figures["check_accepts_what_run_refuses"] == 0
    assert figures[f"compare_changing_{family}"] > 0
    assert figures[f"compare_found_{family}"] == 1
