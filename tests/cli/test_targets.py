"""`mizzen targets`: what each NPU supports, from its own tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., tuple[int, str, str]]


def document(out: str) -> dict[str, Any]:
    """Parse stdout, which must be one JSON document and nothing else."""
    return json.loads(out)


def test_targets_as_json(run: Run) -> None:
    status, out, _ = run("targets", "--json")
    answer = document(out)
    assert status == 0
    runnable = [row["name"] for row in answer["accelerators"] if row["simulated"]]
    assert runnable == [
        "ethos-u55-32",
        "ethos-u55-64",
        "ethos-u55-128",
        "ethos-u55-256",
        "ethos-u65-256",
        "ethos-u65-512",
        "ethos-u85-128",
        "ethos-u85-256",
        "ethos-u85-512",
        "ethos-u85-1024",
        "ethos-u85-2048",
        "ethos-n78-1tops-2ple",
        "ethos-n78-1tops-4ple",
        "ethos-n78-2tops-2ple",
        "ethos-n78-2tops-4ple",
        "ethos-n78-4tops-2ple",
        "ethos-n78-4tops-4ple",
        "ethos-n78-8tops-2ple",
    ]
    assert "Shared_Sram" in answer["files"]["Arm/vela.ini"]["memory_modes"]


def test_targets_of_ones_own_file(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "board.ini"
    file.write_text("[System_Config.Mine]\ncore_clock=4e8\naxi0_port=Sram\n")
    status, out, _ = run("targets", "--config", file)
    assert status == 0
    assert "  Mine                  400 MHz  Sram  -\n" in out


def test_targets_of_an_operator(run: Run) -> None:
    status, out, _ = run("targets", "--operator", "max_pool_2d", "--json")
    answer = document(out)
    assert status == 0
    assert answer["npus"] == ["Ethos-U55", "Ethos-U65", "Ethos-U85"]
    assert [rule["id"] for rule in answer["rules"]] == ["per-axis", "integer"]


def test_targets_of_an_operator_of_one_npu(run: Run) -> None:
    """Rules of all NPUs are said of those that have the operator."""
    answer = document(run("targets", "--operator", "DIV", "--json")[1])
    assert answer["npus"] == ["Ethos-U85"]
    assert answer["rules"]
    assert all(rule["npus"] == ["Ethos-U85"] for rule in answer["rules"])


def test_targets_of_an_operation_of_the_support_library(run: Run) -> None:
    status, out, _ = run("targets", "--operator", "MEANXY", "--json")
    answer = document(out)
    assert status == 0
    assert (answer["type"], answer["npus"]) == ("MeanXy", ["Ethos-N78"])
    limits = {rule["id"]: rule["limit"] for rule in answer["rules"]}
    assert limits["plane"] == "a plane of 7x7 or 8x8"
