"""A file that is not what its manifest says is told by every verb; so is a report of another."""

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
from mizzen.artifact.sealing import unsealed
from mizzen.artifact.steps import NpuStep

Run = Callable[..., tuple[int, str, str]]

CHANGED = "digits_vela.tflite must have the bytes that its manifest is of, SHA-256 "
OTHER = "digits_vela.json must be the report of digits_vela.tflite beside it, SHA-256 "
WHERE = "what changed is the constants of NPU operator 0"
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
def compiled(here: Path, run: Run) -> Path:
    """The example for ethos-u55-128."""
    assert run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-128")[0] == 0
    return here / "output" / "digits_vela.tflite"


@pytest.fixture
def changed(compiled: Path) -> Path:
    """The same, with one bit changed: of a weight, which changes no class of the example."""
    data = bytearray(compiled.read_bytes())
    step = mizzen.load(compiled).steps[0]
    assert isinstance(step, NpuStep)
    constants = step.program.constants[0].tobytes()
    data[data.index(constants) + 9_000] ^= 1
    compiled.write_bytes(data)
    return compiled


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_warns(changed: Path, run: Run, name: str) -> None:
    words = [str(changed) if word == "ARTIFACT" else word for word in VERBS[name]]
    status, out, err = run(*words, "--json")
    assert status == 0, err
    (said,) = [row for row in json.loads(out)["diagnostics"] if row["code"] == "W332"]
    assert said["message"].startswith(CHANGED)
    assert err.count("warning[W332]: ") == 1
    assert "W315" not in err


@pytest.mark.parametrize("name", JUDGES)
def test_a_verb_that_judges_fails(changed: Path, run: Run, name: str) -> None:
    words = [str(changed) if word == "ARTIFACT" else word for word in JUDGES[name]]
    status, out, err = run(*words, "--json")
    assert status == 1
    assert json.loads(out)["failures"][0]["code"] == "E681"
    assert f"error[E681]: {CHANGED}" in err
    assert WHERE in err
    assert "W315" not in err


def test_comparing_ends_with_what_changed_where_constants_cannot_be_decoded(
    compiled: Path, run: Run
) -> None:
    data = bytearray(compiled.read_bytes())
    data[4_000] ^= 1
    compiled.write_bytes(data)
    status, out, err = run("compare", "digits.tflite", "--artifact", compiled, "--json")
    assert status == 1
    assert [row["code"] for row in json.loads(out)["failures"]] == ["E681", "E624"]
    assert f"error[E681]: {CHANGED}" in err


def test_the_doctor_finds_what_changed(changed: Path, run: Run) -> None:
    status, out, err = run("doctor", changed, "--board", "corstone300")
    assert status == 1
    assert "  file                  FAILS: digits_vela.tflite must have the bytes" in out
    assert "error[E474]: " in err
    assert f"the artifact's file is not as it was written: {CHANGED}" in err
    assert WHERE in err


def test_the_text(changed: Path, run: Run) -> None:
    manifest = mizzen.load(changed.read_bytes()).manifest
    assert manifest is not None
    _, _, err = run("inspect", changed)
    warning, way_on = err.splitlines()[-2:]
    assert warning.startswith(f"warning[W332]: {CHANGED}{manifest.file_sha256[:12]}..., and has ")
    assert way_on == (
        "  help get the file again, or compile the network again; `mizzen check --artifact` says "
        "which part changed"
    )
    _, out, err = run("check", "--artifact", changed)
    assert out.splitlines() == [
        "digits_vela.tflite",
        "  accelerator  ethos-u55-128",
        "  manifest     not of these bytes",
    ]
    assert err.splitlines()[-1] == "  help get the file again, or compile the network again"


def test_python_warns(changed: Path) -> None:
    with pytest.warns(mizzen.MizzenWarning, match="W332") as told:
        artifact = mizzen.load(changed)
    assert told[0].filename == __file__
    assert [row.code for row in artifact.doubts] == ["W332"]
    assert pickle.loads(pickle.dumps(artifact)).doubts == artifact.doubts


def test_bytes_behind_the_end(compiled: Path, run: Run) -> None:
    size = compiled.stat().st_size
    compiled.write_bytes(compiled.read_bytes() + b"\0")
    status, _, err = run("check", "--artifact", compiled)
    assert status == 1
    assert (
        f"error[E681]: digits_vela.tflite must have the {size:,} bytes that its manifest is of, "
        f"and has {size + 1:,}; what changed is no NPU operator's code"
    ) in err


def test_a_file_that_cannot_be_read_any_more(compiled: Path, run: Run) -> None:
    data = bytearray(compiled.read_bytes())
    data[4] ^= 1
    compiled.write_bytes(data)
    for verb in ("run", "inspect"):
        status, _, err = run(verb, compiled, *(("--input", "images.npy") if verb == "run" else ()))
        assert status == 2
        assert (
            "error[E684]: digits_vela.tflite must be as it was written, which its manifest says it "
            "is not, and cannot be read any more: digits_vela.tflite must be a TFLite file: "
        ) in err


def test_a_file_without_a_manifest_is_said_to_have_none(compiled: Path, run: Run) -> None:
    compiled.write_bytes(unsealed(compiled.read_bytes(), "digits_vela.tflite"))
    status, out, err = run("check", "--artifact", compiled)
    assert status == 0
    assert "  manifest     none, so that nothing shows a change of the file\n" in out
    assert "warning[W315]" in err  # the report beside it is of the file that had one
    status, out, _ = run("check", "--artifact", compiled, "--json")
    assert json.loads(out)["manifest"] is None


def test_a_report_of_another_artifact(compiled: Path, run: Run) -> None:
    """The file is whole and passes; what is beside it is left aside, and told."""
    report = json.loads((path := compiled.with_suffix(".json")).read_text())
    path.write_text(json.dumps({**report, "artifact_sha256": "1" * 64}))
    has = hashlib.sha256(compiled.read_bytes()).hexdigest()
    status, _, err = run("check", "--artifact", compiled)
    assert status == 0
    assert err.splitlines()[-2:] == [
        f"warning[W315]: {OTHER}{has[:12]}..., and is of other bytes, {'1' * 12}...: it is not "
        "used",
        "  help compile the network again; where the artifact is another compiler's, move the "
        "report away",
    ]
    path.rename(path.with_name("elsewhere.json"))
    assert "W315" not in run("check", "--artifact", compiled)[2]


def test_what_the_warning_advises_ends_it(changed: Path, run: Run) -> None:
    assert run("check", "--artifact", changed)[0] == 1
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
