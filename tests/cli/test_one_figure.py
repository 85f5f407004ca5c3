"""One figure with one name: how long an inference takes is the same wherever it is told."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mizzen
from mizzen.analysis.comparison.versions import version_of
from mizzen.cli.comparison import versions_text
from mizzen.cli.tune import grown_flash
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.options import CompileOptions
from mizzen.report.tuning import Candidate, Choice

Run = Callable[..., tuple[int, str, str]]

ACCELERATORS = ("ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple")
"""The last leaves an operator to the CPU, whose cycles count."""


def answer(run: Run, *words: object) -> dict[str, Any]:
    _, out, _ = run(*words, "--json")
    return json.loads(out)


def row(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_every_verb_tells_the_same(accelerator: str, here: Path, run: Run) -> None:
    words = ["digits.tflite", "--accelerator-config", accelerator]
    compiled, checked = answer(run, "compile", *words), answer(run, "check", *words)
    reported = answer(run, "report", compiled["artifact"], "--csv", "tables")
    search = ("--jobs", "1", "--budget-seconds", "1", "--output-dir", "tuned")
    documents = {
        "compile": compiled,
        "check": checked,
        "check's costs": checked["cost"],
        "report": reported["compilation"],
        "report's costs": reported["cost"],
        "compare": answer(run, "compare", *words, "--costs")["versions"][0],
    }
    if accelerator.startswith("ethos-u"):  # Ethos-N has nothing to search
        documents["tune"] = answer(run, "tune", *words, *search)["base"]
    told = {
        verb: (each["cycles"], each["inferences_per_second"]) for verb, each in documents.items()
    }
    assert len(set(told.values())) == 1, told
    cycles = compiled["cycles"]
    assert sum(layer["cycles"] for layer in checked["layers"]) == cycles
    (layers,) = Path("tables").glob("*per-layer.csv")
    assert sum(int(each["Op Cycles"]) for each in row(layers)) == cycles
    if accelerator.startswith("ethos-u"):
        assert int(row(Path(compiled["summary"]))[0]["cycles_total"]) == cycles


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_texts_pages_and_python_tell_it_too(accelerator: str, here: Path, run: Run) -> None:
    artifact = mizzen.compile("digits.tflite", accelerator)
    assert artifact.report is not None
    cycles = f"{artifact.report.cycles:,}"
    words = ["digits.tflite", "--accelerator-config", accelerator]
    tune = ["tune"] if accelerator.startswith("ethos-u") else []
    for verb in ("compile", "check", "report", *tune):
        budget = ["--jobs", "1", "--budget-seconds", "1"] if verb == "tune" else []
        _, out, _ = run(verb, *words, *budget)
        assert f"{cycles} cycles" in out, verb
        assert "inferences per second" in " ".join(out.split()), verb
        assert "Vela's formula" not in out, verb
    assert cycles in run("compare", *words, "--costs")[1]
    for html in (Path("digits.html").read_text(), str(artifact._repr_html_())):
        assert cycles in html
        assert "inferences per second" in html


def test_emulated_firmware_is_timed_in_the_artifacts_system(here: Path, run: Run) -> None:
    """Not in the accelerator's default one, in which the estimate would be another."""
    pytest.importorskip("unicorn")
    words = ["--accelerator-config", "ethos-u55-128", "--system-config", "Ethos_U55_Deep_Embedded"]
    made = answer(run, "compile", "digits.tflite", *words, "--memory-mode", "Shared_Sram")
    emulated = answer(run, "emulate", made["artifact"], "--board", "corstone300")
    assert emulated["npu_cycles"] == made["cycles"]


@pytest.mark.parametrize(
    ("generator", "maker"), [("own", "Mizzen"), ("vela", "Vela 5.2.0"), ("best", "Mizzen")]
)
def test_the_page_names_whose_code_it_is(generator: str, maker: str, here: Path, run: Run) -> None:
    words = ["--accelerator-config", "ethos-u55-128", "--generator", generator]
    made = answer(run, "compile", "digits.tflite", *words)
    assert made["compiler"] == maker
    run("report", made["artifact"], "-o", "page.html")
    (said,) = re.findall(r"compiled by ([^<]*?) for Ethos_U55", Path("page.html").read_text())
    assert said == maker


def test_flash_is_named_where_it_grows(here: Path) -> None:
    target = resolve_target(CompileOptions("ethos-u55-128"))
    first = version_of(here / "digits.tflite", target)
    faster = replace(first, cycles=first.cycles - 1, flash_bytes=first.flash_bytes + 123)
    text = " ".join(versions_text([first, faster], width=80).split())
    assert "takes fewer cycles and 123 bytes (" in text
    assert "more flash" not in versions_text([first, replace(faster, cycles=10**9)], width=80)


def test_flash_that_the_chosen_one_takes_more_is_named() -> None:
    base = Candidate(Choice(), 900, 4096, 0, 8192, 4096, 12_000, 0)
    chosen = replace(base, cycles=800, constants_bytes=8392)
    assert list(grown_flash(chosen, base)) == [("flash grows", "by 200 bytes, +2.4 %")]
    assert list(grown_flash(base, chosen)) == []


def test_energy_is_told_the_same_everywhere(here: Path, run: Run) -> None:
    words = ["digits.tflite", "--board", "himax_we2"]
    compiled = answer(run, "compile", *words)
    reported = answer(run, "report", compiled["artifact"])
    told = [
        compiled["energy"],
        answer(run, "check", *words)["energy"],
        reported["cost"]["energy"],
        reported["compilation"]["energy"],
        answer(run, "compare", *words, "--costs")["versions"][0]["energy"],
    ]
    energy = told[0]
    assert all(each == energy for each in told)
    assert energy["low_mj"] < energy["mj"] < energy["high_mj"]
    assert energy["mj"] == pytest.approx(sum(energy["parts_mj"].values()))
    shown = f"{energy['mj']:#.2g} mJ"
    for verb in ("compile", "check", "report"):
        text = " ".join(run(verb, *words)[1].split())
        assert f"energy {shown} an inference, " in text, verb
        assert f"figures of {energy['sources'][0]}" in text, verb
    assert f"{shown} (" in run("compare", *words, "--costs")[1]
    for html in (Path("digits.html").read_text(), Path("digits_vela.html").read_text()):
        assert shown in html
        assert energy["sources"][0] in html


def test_no_energy_is_told_without_figures_of_all_that_takes_some(here: Path, run: Run) -> None:
    """Of flash nobody measured any, of another board nothing, of a core neither."""
    for words in (
        ("--board", "grove_vision_ai_v2"),
        ("--board", "nuvoton_m55m1"),
        ("--board", "himax_we2", "--ignore-ops", "SOFTMAX"),
        ("--accelerator-config", "ethos-u55-64"),
    ):
        said = ("check", "digits.tflite", *words, "--prove", "off", "--max-cpu-ops", "1")
        found = answer(run, *said)
        assert found["energy"] is None
        assert found["cost"]["cycles"]
        assert " mJ" not in run(*said)[1]
