"""Files that are handed on: a baseline, an evaluation, a mesh program; damaged ones say so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..hostile import renamed  # noqa: TID252 tests are no package with a name
from .conftest import Run

WORDS = ("--accelerator-config", "ethos-u55-128", "--generator", "vela")
BIG = 10**400
CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "too large a number": lambda row: row.update(cycles=BIG),
    "too large a number of a layer": lambda row: row["layers"][0].update(cycles=10**30),
    "a negative number": lambda row: row.update(sram_bytes=-1),
    "half a number": lambda row: row.update(macs=0.5),
    "a truth value": lambda row: row.update(flash_bytes=True),
    "a text": lambda row: row.update(file_bytes="1"),
    "nothing": lambda row: row.pop("operators"),
    "another device": lambda row: row["layers"][0].update(device="GPU"),
    "a list of nothing": lambda row: row.update(layers=[None]),
    "a size that is no number": lambda row: row["areas"].update(arena=[1]),
    "no table": lambda row: row.update(configuration=[]),
    "infinite": lambda row: row.update(utilisation=1e999),
    "one more": lambda row: row.update(more=1),
}


@pytest.fixture
def baseline(here: Path, run: Run) -> dict[str, Any]:
    assert run("compare", "digits.tflite", "--write-baseline", "base.json", *WORDS)[0] == 0
    return json.loads((here / "base.json").read_text())


def test_damaged_baselines_are_refused(baseline: dict[str, Any], here: Path, run: Run) -> None:
    for name, change in CHANGES.items():
        document = json.loads(json.dumps(baseline))
        change(document["versions"][0])
        (here / "bad.json").write_text(json.dumps(document))
        status, _, err = run("compare", "digits.tflite", "--baseline", "bad.json", *WORDS)
        assert (status, "error[E485]: bad.json" in err) == (2, True), name
    assert run("compare", "digits.tflite", "--baseline", "base.json", *WORDS)[0] == 0


TEXTS = ["", "{", "[" * 100_000, '{"a": ' + "9" * 5000 + "}", '"\\ud800"', "\x00", "NaN", "[]"]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_what_is_no_json_is_refused(text: str, here: Path, run: Run) -> None:
    (here / "bad.json").write_text(text)
    status, _, err = run("compare", "digits.tflite", "--baseline", "bad.json", *WORDS)
    assert (status, "error[E485]" in err) == (2, True)
    status, _, err = run("report", "digits.tflite", "--evaluation", "bad.json", *WORDS)
    assert (status, "error[E587]" in err) == (2, True)


WHOLE: dict[str, Any] = {
    "data": "images.npy",
    "samples": 2,
    "metrics": {"top1": 0.5},
    "confusion": {"classes": ["a", "b"], "counts": [[1, 0], [1, 0]]},
    "mistakes": ["images.npy[1]"],
    "wrong": 1,
    "reference": {
        "name": "float",
        "metrics": {"top1": 1.0},
        "agreement": {
            "same_class": 1.0, "equal": 1, "judged": 2,
            "largest_difference": 0.5, "mean_difference": 0.25,
        },
    },
}  # fmt: skip
EVALUATIONS: dict[str, Callable[[dict[str, Any]], object]] = {
    "no number": lambda row: row["metrics"].update(top1=None),
    "a text": lambda row: row["metrics"].update(top1="0.5"),
    "a list": lambda row: row.update(metrics=[1]),
    "too large": lambda row: row.update(samples=BIG),
    "infinite": lambda row: row["metrics"].update(top1=1e999),
    "no counts": lambda row: row["confusion"].update(counts=[[]]),
    "too few rows": lambda row: row["confusion"].update(counts=[[1, 0]]),
    "too many columns": lambda row: row["confusion"].update(counts=[[1, 0, 0], [1, 0, 0]]),
    "counts that are texts": lambda row: row["confusion"].update(counts=[["1", "0"], ["1", "0"]]),
    "classes that are numbers": lambda row: row["confusion"].update(classes=[1, 2]),
    "no agreement": lambda row: row["reference"].pop("agreement"),
    "half a sample": lambda row: row["reference"]["agreement"].update(equal=0.5),
    "mistakes that are no list": lambda row: row.update(mistakes="images.npy[1]"),
    "wrong that is none": lambda row: row.update(wrong=None),
}


def test_damaged_evaluations_are_refused(velas: Path, here: Path, run: Run) -> None:
    for name, change in EVALUATIONS.items():
        document = json.loads(json.dumps(WHOLE))
        change(document)
        (here / "bad.json").write_text(json.dumps(document))
        status, _, err = run("report", velas, "--evaluation", "bad.json")
        assert (status, "error[E587]: bad.json must be" in err) == (2, True), name
    (here / "good.json").write_text(json.dumps(WHOLE))
    assert run("report", velas, "--evaluation", "good.json")[0] == 0


def test_cases_of_files_that_are_handed_on(velas: Path, cases: Path, run: Run) -> None:
    folder = cases / "safety"
    status, _, err = run(
        "compare", "digits.tflite", "--baseline", folder / "baseline_big.json", *WORDS
    )
    assert (status, "error[E485]" in err) == (2, True)
    for name in ("eval_empty.json", "evaljson-12-bbfb25d2.json"):
        status, _, err = run("report", velas, "--evaluation", folder / name)
        assert (status, "E000" in err) != (3, True), name
    (damaged,) = folder.glob("mesh-*.mesh")
    for verb in ("run", "export", "report"):
        status, _, err = run("mesh", verb, damaged)
        assert (status, "error[E508]" in err) == (2, True)


def test_a_page_of_names_of_a_million_characters_is_small(here: Path, run: Run) -> None:
    data = (here / "digits.tflite").read_bytes()
    (here / "long.tflite").write_bytes(renamed(data, lambda index, _: f"{index}" + "n" * 1_000_000))
    assert run("report", "long.tflite", *WORDS)[0] == 0
    assert run("report", "digits.tflite", *WORDS)[0] == 0
    long, short = ((here / f"{name}.html").stat().st_size for name in ("long", "digits"))
    assert long < 3 * short + 100_000
