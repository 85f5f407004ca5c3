"""`mizzen compare` as one calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mizzen.cli.comparison import short_models
from mizzen.cpu import device, tflm

from .conftest import Run

U55 = ("--accelerator-config", "ethos-u55-128")


def test_a_model_beside_its_reference(run: Run, here: Path) -> None:
    status, out, err = run("compare", "digits.tflite", *U55, "--inputs", 2)
    assert status == 0
    assert "digits.tflite beside TensorFlow Lite Micro" in out
    assert "outputs  0 of 20 elements differ" in out
    assert "fused with 6" in out
    assert "ethos-u55-128" in err


def test_the_reference_is_named_by_what_computed(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tflm, "is_installed", lambda: False)
    words = ("compare", "digits.tflite", *U55, "--inputs", 1, "--prove", "off")
    status, out, _ = run(*words)
    assert (status, out.splitlines()[0]) == (0, "digits.tflite beside Mizzen's C runtime")
    monkeypatch.setattr(device, "c_library", lambda: None)
    status, out, _ = run(*words, "--json")
    assert (status, json.loads(out)["reference"]) == (0, "the integer reference in NumPy")


def test_the_answer_for_programs(run: Run, here: Path) -> None:
    status, out, _ = run("compare", "digits.tflite", *U55, "--input", "images.npy", "--json")
    assert status == 0
    document = json.loads(out)
    assert document["holds"]
    assert document["seed"] is None
    assert (document["elements"], document["differing"]) == (1000, 0)
    assert document["layers"][5] | {"name": ""} == {
        "index": 5, "kind": "RESHAPE", "name": "", "device": "NPU", "outcome": "fused",
        "elements": 0, "differing": 0, "steps": 0, "first": None, "into": 6, "bound_steps": 0,
    }  # fmt: skip


def test_a_difference_is_a_failure(run: Run, here: Path) -> None:
    run("compile", "digits.tflite", *U55)
    artifact = here / "output" / "digits_vela.tflite"
    data = bytearray(artifact.read_bytes())
    report = json.loads(artifact.with_suffix(".json").read_text())
    size = next(row["used_bytes"] for row in report["areas"] if row["name"] == "constants")
    place = data.index(bytes(data[-size:])) if size else 0
    for offset in range(place + 160, len(data), 97):
        data[offset] ^= 0x5A
    artifact.write_bytes(bytes(data))
    status, _, err = run("compare", "digits.tflite", "--artifact", artifact)
    assert status in {1, 2}
    assert "error[E" in err


def test_several_accelerators_are_one_table(run: Run, here: Path) -> None:
    words = (*U55, "--accelerator-config", "ethos-u65-256", "--prove", "off")
    status, out, _ = run("compare", "digits.tflite", *words)
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "Costs (cycles are estimates)"
    assert [line.split()[1] for line in lines[2:4]] == ["ethos-u55-128", "ethos-u65-256"]


def test_pairs_that_there_are_not_are_left_out(run: Run, here: Path) -> None:
    words = (*U55, "--accelerator-config", "ethos-u65-256", "--prove", "off")
    modes = ("--memory-mode", "Shared_Sram", "--memory-mode", "Dedicated_Sram")
    status, out, err = run("compare", "digits.tflite", *words, *modes, "--json")
    assert status == 0
    found = [row["configuration"] for row in json.loads(out)["versions"]]
    assert [(row["accelerator"], row["memory_mode"]) for row in found] == [
        ("ethos-u55-128", "Shared_Sram"),
        ("ethos-u65-256", "Shared_Sram"),
        ("ethos-u65-256", "Dedicated_Sram"),
    ]
    assert "warning[W494]: ethos-u55-128 with Dedicated_Sram is left out" in err


def test_growth_fails_the_build(run: Run, here: Path) -> None:
    words = ("compare", "digits.tflite", *U55, "--prove", "off")
    status, _, _ = run(*words, "--write-baseline", "base.json")
    assert status == 0
    status, out, _ = run(*words, "--baseline", "base.json")
    assert status == 0
    assert "Since base.json" in out
    document = json.loads(Path("base.json").read_text())
    document["versions"][0]["sram_bytes"] -= 16
    Path("base.json").write_text(json.dumps(document))
    status, out, err = run(*words, "--baseline", "base.json", "--json")
    assert status == 1
    assert "error[E484]" in err
    measures = json.loads(out)["growth"][0]["measures"]
    assert measures["sram"] == {
        "before": 1984, "now": 2000, "allowed": False, "allowance": "0", "where": {},
    }  # fmt: skip
    status, _, _ = run(*words, "--baseline", "base.json", "--allow-growth", "sram=16")
    assert status == 0


def test_what_the_baseline_does_not_have_is_said(run: Run, here: Path) -> None:
    words = ("compare", "digits.tflite", "--prove", "off", *U55)
    run(*words, "--write-baseline", "base.json")
    status, _, err = run(*words, "--accelerator-config", "ethos-u55-64", "--baseline", "base.json")
    assert status == 0
    assert "warning[W491]: base.json must have digits.tflite, ethos-u55-64, " in err


def test_a_baseline_that_has_nothing_of_it_fails_the_build(run: Run, here: Path) -> None:
    words = ("compare", "digits.tflite", "--prove", "off")
    run(*words, *U55, "--write-baseline", "base.json")
    other = ("--accelerator-config", "ethos-u55-64")
    status, out, err = run(*words, *other, "--baseline", "base.json", "--json")
    assert status == 1
    assert not json.loads(out)["holds"]
    rest = "Ethos_U55_High_End_Embedded, Shared_Sram, Performance"
    assert err.endswith(
        "error[E496]: base.json must have one of the versions that are compared, and has none: "
        f"compared is digits.tflite, ethos-u55-64, {rest}; it has digits.tflite, ethos-u55-128, "
        f"{rest}\n"
        "  rule --baseline\n"
        "  help compare the model, accelerator and memory mode that it was written for, or write "
        "it again: --write-baseline without --baseline\n"
    )
    before = Path("base.json").read_bytes()
    both = ("--baseline", "base.json", "--write-baseline", "base.json")
    status, out, err = run(*words, *other, *both)
    assert (status, "Written" in out) == (1, False)
    assert (
        "warning[W497]: base.json is not written, because the comparison with base.json fails\n"
        "  rule --write-baseline\n"
        "  help to accept the growth, give --write-baseline without --baseline\n"
    ) in err
    assert Path("base.json").read_bytes() == before
    assert run(*words, *other, "--write-baseline", "base.json")[0] == 0
    assert run(*words, *other, "--baseline", "base.json")[0] == 0


def test_models_of_one_name_are_told_apart_by_their_paths(run: Run, here: Path) -> None:
    for folder, source in (("p", "digits.tflite"), ("q", "digits.tflite")):
        (here / folder).mkdir()
        shutil.copy(here / source, here / folder / "model.tflite")
    words = ("compare", "p/model.tflite", "q/model.tflite", *U55, "--prove", "off")
    assert run(*words, "--write-baseline", "pq.json")[0] == 0
    document = json.loads(Path("pq.json").read_text())
    names = [version["model"] for version in document["versions"]]
    assert names == ["p/model.tflite", "q/model.tflite"]
    document["versions"][0]["sram_bytes"] -= 16
    Path("pq.json").write_text(json.dumps(document))
    status, _, err = run(*words, "--baseline", "pq.json")
    assert status == 1
    assert "error[E484]: sram of p/model.tflite, ethos-u55-128" in err
    assert "q/model.tflite" not in err


def test_a_version_twice_is_refused(run: Run, here: Path) -> None:
    words = ("compare", "digits.tflite", *U55, "--prove", "off")
    status, _, err = run(*words, *U55, "--write-baseline", "base.json")
    title = "digits.tflite, ethos-u55-128, Ethos_U55_High_End_Embedded, Shared_Sram, Performance"
    assert status == 2
    assert err.endswith(
        f"error[E498]: a baseline must have each version once, and {title} is compared twice\n"
        "  rule docs/how-to/fail-when-it-grows.md\n"
        "  help give each model, accelerator and memory mode once\n"
    )
    run(*words, "--write-baseline", "base.json")
    document = json.loads(Path("base.json").read_text())
    document["versions"] *= 2
    Path("base.json").write_text(json.dumps(document))
    status, _, err = run(*words, "--baseline", "base.json")
    assert status == 2
    assert f"error[E498]: base.json must have each version once, and has {title} twice\n" in err


@pytest.mark.parametrize("option", ["--baseline", "--write-baseline", "--markdown"])
def test_an_empty_name_of_a_file_is_no_name(run: Run, here: Path, option: str) -> None:
    status, _, err = run("compare", "digits.tflite", *U55, option, "")
    assert status == 2
    assert f"argument {option}: the name of a file is needed, and it is empty" in err


def test_growth_cannot_be_allowed_without_a_baseline(run: Run, here: Path) -> None:
    status, _, err = run("compare", "digits.tflite", *U55, "--allow-growth", "sram=0")
    assert status == 2
    assert err == (
        "error[E200]: the command line is wrong: --allow-growth needs --baseline FILE, which says "
        "since when something may have grown\n"
        "  help write the file once: mizzen compare MODEL --write-baseline FILE\n"
    )


def test_an_artifact_of_another_accelerator_is_refused(run: Run, here: Path) -> None:
    run("compile", "digits.tflite", *U55)
    words = ("compare", "output/digits_vela.tflite", "--costs")
    assert run(*words, *U55)[0] == 0
    status, _, err = run(*words, "--accelerator-config", "ethos-u85-256")
    assert status == 2
    assert (
        "error[E113]: digits_vela.tflite must be for ethos-u85-256, and was compiled for "
        "ethos-u55-128" in err
    )


def test_long_names_leave_room_for_the_figures(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = f"{'a-network-as-they-are-called-' * 3}int8.tflite"
    (here / name).write_bytes((here / "digits.tflite").read_bytes())
    words = (*U55, "--accelerator-config", "ethos-u65-256", "--prove", "off", "--quiet")
    _, out, _ = run("compare", name, "digits.tflite", *words)
    lines = out.splitlines()
    assert max(map(len, lines)) <= 112
    assert lines[2].split()[:2] == ["...re-called-int8.tflite", "ethos-u55-128"]
    assert "system" not in lines[1]  # it follows from the accelerator


def test_names_that_would_be_one_are_not_shortened() -> None:
    long = [f"{letter}{'-network' * 5}.tflite" for letter in "ab"]
    assert short_models(long, 10) == long
    assert short_models(long[:1], 10) == ["...etwork-network.tflite"]


def test_markdown_is_the_answer(run: Run, here: Path) -> None:
    status, out, _ = run("compare", "digits.tflite", *U55, "--prove", "off", "--markdown", "-")
    assert status == 0
    assert out.startswith("## What the network costs\n\n### `digits.tflite`\n")


def test_options_of_the_other_kind_are_refused(run: Run, here: Path) -> None:
    status, _, err = run("compare", "digits.tflite", "--costs", "--seed", 3)
    assert status == 2
    assert "--seed is for one MODEL beside its reference" in err
