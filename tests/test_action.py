"""The GitHub Action of the repository's root: its steps, run by the shell that they name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mizzen.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: dict[str, dict[str, Any]] = {row["name"]: row for row in ACTION["runs"]["steps"]}


def values(given: dict[str, str]) -> dict[str, str]:
    """Return the inputs of the action, as GitHub gives them to its steps."""
    assert set(given) <= set(ACTION["inputs"])
    rows = ACTION["inputs"].items()
    assert all(row.get("required") or "default" in row for _, row in rows)
    return {name: given.get(name) or str(row.get("default", "")) for name, row in rows}


def run(
    name: str, folder: Path, given: dict[str, str], **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner does: bash with `-e -o pipefail`, inputs in the environment."""
    step = STEPS[name]
    assert step["shell"] == "bash"
    inputs = values(given)
    environment = {
        key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)
        for key, text in step["env"].items()
    }
    (folder / "run.sh").write_text(step["run"])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    files = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output.txt"}
    written = {key: str(folder / file) for key, file in files.items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "run.sh"],
        check=False,
        cwd=folder,
        env=os.environ | {"PATH": path} | written | environment | more,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "examples" / "digits" / "digits.tflite", tmp_path)
    return tmp_path


def test_it_is_a_composite_action_whose_scripts_take_no_words_from_inputs() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert not [row for row in STEPS.values() if "${{" in row["run"]]


def test_the_table_goes_into_the_summary(folder: Path) -> None:
    given = {"models": "digits.tflite", "accelerator-config": "ethos-u55-128\nethos-u55-256"}
    done = run("Compare", folder, given)
    assert done.returncode == 0, done.stderr
    summary = (folder / "summary.md").read_text()
    assert summary.count("### `digits.tflite`") == 2
    assert (folder / "output.txt").read_text() == "markdown=mizzen-compare.md\n"


def test_a_path_with_spaces_has_a_line_of_its_own(folder: Path) -> None:
    for name in ("my net.tflite", "other.tflite"):
        shutil.copy(folder / "digits.tflite", folder / name)
    models = "my net.tflite\ndigits.tflite other.tflite\n"
    done = run("Compare", folder, {"models": models, "accelerator-config": "ethos-u55-128"})
    assert done.returncode == 0, done.stderr
    summary = (folder / "summary.md").read_text()
    names = ("my net.tflite", "digits.tflite", "other.tflite")
    assert all(f"### `{name}`" in summary for name in names)


def test_growth_fails_the_step_and_is_in_the_summary(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    words = ["compare", "digits.tflite", "--accelerator-config", "ethos-u55-128", "--prove", "off"]
    assert main([*words, "--write-baseline", "base.json"]) == 0
    text = (folder / "base.json").read_text()
    (folder / "base.json").write_text(text.replace('"sram_bytes": 2000', '"sram_bytes": 1968'))
    given = {"models": "digits.tflite", "accelerator-config": "ethos-u55-128"}
    given |= {"baseline": "base.json", "arguments": "--prove off"}
    done = run("Compare", folder, given)
    assert done.returncode == 1
    assert "E484" in done.stderr
    assert "| SRAM | 1,968 | 2,000 | **+32 (+1.6 %)** | 0 |" in (folder / "summary.md").read_text()
    assert run("Compare", folder, given | {"allow-growth": "sram=32"}).returncode == 0


def test_words_from_outside_are_no_commands(folder: Path) -> None:
    given = {"models": "digits.tflite", "allow-growth": "$(touch pwned); `touch pwned`"}
    done = run("Compare", folder, given)
    assert done.returncode == 2
    assert not (folder / "pwned").exists()
    assert not (folder / "summary.md").exists()


def test_the_actions_own_checkout_is_installed(folder: Path) -> None:
    settings = {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"}
    target = folder / "site"
    settings |= {"GITHUB_ACTION_PATH": str(ROOT), "PIP_TARGET": str(target)}
    done = run("Install Mizzen", folder, {}, **settings)
    assert done.returncode == 0, done.stderr
    assert (target / "mizzen" / "cli" / "compare.py").is_file()


def test_no_name_on_an_index_is_installed(folder: Path) -> None:
    """Show what the step gives to pip: a folder, with extras where they are asked for."""
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    words: dict[str, str] = {}
    for extras in ("", "onnx,torch"):
        where = {"GITHUB_ACTION_PATH": "/runner/a folder", "PATH": f"{python.parent}:/bin:/usr/bin"}
        done = run("Install Mizzen", folder, {"extras": extras}, **where)
        words[extras] = done.stdout.splitlines()[-1]
    assert words == {"": "/runner/a folder", "onnx,torch": "/runner/a folder[onnx,torch]"}
    assert STEPS["Install Mizzen"]["if"] == "inputs.install != 'false'"
