"""A report beside an artifact that is of other bytes is said by every verb that opens the two."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import mizzen

Run = Callable[..., tuple[int, str, str]]

MESSAGE = "digits_vela.tflite must have the bytes that digits_vela.json beside it is of, SHA-256 "
VERBS: dict[str, tuple[str, ...]] = {
    "run": ("run", "ARTIFACT", "--input", "images.npy"),
    "evaluate": ("evaluate", "ARTIFACT", "--data", "images.npy", "--labels", "labels.npy"),
    "evaluate --reference": (
        "evaluate", "digits.tflite", "--data", "images.npy", "--reference", "ARTIFACT",
    ),
    "inspect": ("inspect", "ARTIFACT"),
    "report": ("report", "ARTIFACT"),
    "export": ("export", "ARTIFACT", "--to", "c", "--board", "corstone300"),
    "emulate": ("emulate", "ARTIFACT"),
    "compare --costs": ("compare", "ARTIFACT", "--costs"),
}  # fmt: skip
JUDGES: dict[str, tuple[str, ...]] = {
    "check": ("check", "--artifact", "ARTIFACT"),
    "compare": ("compare", "digits.tflite", "--artifact", "ARTIFACT"),
}


@pytest.fixture
def changed(here: Path, run: Run) -> Path:
    """The example for ethos-u55-128, changed where nothing reads: behind the file's end."""
    assert run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-128")[0] == 0
    artifact = here / "output" / "digits_vela.tflite"
    artifact.write_bytes(artifact.read_bytes() + b"\0")
    return artifact


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_warns(changed: Path, run: Run, name: str) -> None:
    words = [str(changed) if word == "ARTIFACT" else word for word in VERBS[name]]
    status, out, err = run(*words, "--json")
    assert status == 0, err
    (said,) = [row for row in json.loads(out)["diagnostics"] if row["code"] == "W315"]
    assert said["message"].startswith(MESSAGE)
    assert err.count("warning[W315]: ") == 1


@pytest.mark.parametrize("name", JUDGES)
def test_a_verb_that_judges_fails(changed: Path, run: Run, name: str) -> None:
    words = [str(changed) if word == "ARTIFACT" else word for word in JUDGES[name]]
    status, out, err = run(*words, "--json")
    assert status == 1
    assert [row["code"] for row in json.loads(out)["failures"]] == ["E690"]
    assert "error[E690]: " + MESSAGE in err
    assert "W315" not in err


def test_the_text(changed: Path, run: Run) -> None:
    report = json.loads((changed.with_suffix(".json")).read_text())
    has = hashlib.sha256(changed.read_bytes()).hexdigest()
    _, _, err = run("inspect", changed)
    assert err.splitlines()[-2:] == [
        f"warning[W315]: {MESSAGE}{report['artifact_sha256'][:12]}..., and has others, "
        f"{has[:12]}...",
        "  help the artifact was changed or exchanged after it was compiled: compile the network "
        "again; where it is another compiler's, move the report away",
    ]


def test_python_warns(changed: Path) -> None:
    with pytest.warns(mizzen.MizzenWarning, match="W315") as told:
        artifact = mizzen.load(changed)
    assert told[0].filename == __file__
    assert [row.code for row in artifact.doubts] == ["W315"]
    assert pickle.loads(pickle.dumps(artifact)).doubts == artifact.doubts


def test_what_the_warning_advises_ends_it(changed: Path, run: Run) -> None:
    report = changed.with_suffix(".json")
    report.rename(report.with_name("elsewhere.json"))
    assert run("check", "--artifact", changed)[0] == 0
    assert run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-128")[0] == 0
    assert run("check", "--artifact", changed)[0] == 0


def test_reports_that_say_nothing_of_the_file(here: Path, run: Run) -> None:
    """One that fits, one of the same artifact in another form, a stray file, none."""
    artifact = mizzen.compile("digits.tflite", "ethos-u55-128")
    artifact.save("net.tflite")
    artifact.save("net.pte")  # the report is of it now
    shutil.copy("net.tflite", "other.tflite")
    for text in ("{}", "[]", '{"artifact_sha256": 3}', "no JSON", "[" * 100_000):
        Path("other.json").write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for name in ("net.tflite", "net.pte", "other.tflite"):
                assert mizzen.load(name).doubts == ()
