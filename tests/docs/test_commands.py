"""Every command that README and the documentation show is run, and prints what is shown.

A fenced ``console`` block holds commands after ``$ `` (continued by lines after ``> ``), each
followed by what it prints. The commands of a page run one after the other in one temporary folder
that has the repository's ``examples``. Durations differ from run to run, so only their form is
compared.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .forking import PLAIN, PYTORCH, Forking

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NEEDS = {
    "deploy-c.md": ("arm-none-eabi-gcc", "make"),
    "measure-on-your-board.md": ("arm-none-eabi-gcc", "make"),
    "measure-layers.md": ("arm-none-eabi-gcc", "make"),
    "mesh-element-in-c.md": ("arm-none-eabi-gcc", "make"),
    "verify-and-sign.md": ("openssl",),
    "update-the-model.md": ("arm-none-eabi-gcc", "make"),
}
"""Tools that the commands of a page call and that Mizzen does not bring."""
ON_PYTORCH = {
    "attention.md",
    "compare-with-float.md",
    "compile-for-ethos-n.md",
    "compile-pytorch.md",
    "executorch.md",
    "train-quantised.md",
}
"""Pages with commands that import PyTorch."""
DURATION = re.compile(r"\b\d+(\.\d+)? (s|ms|us)\b(?= per| of| on|$|,)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """A command as the shell takes it, the lines that show it, and what it prints."""

    command: str
    shown: str
    output: str


def steps(block: str) -> list[Step]:
    """Take a block apart."""
    found: list[Step] = []
    for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]:
        shown = re.match(r"\$ .*\n(?:>(?: .*)?\n)*", part)
        assert shown is not None
        lines = shown[0].splitlines()
        command = "\n".join(line[2:] for line in lines)
        found.append(Step(command, shown[0], part[shown.end() :]))
    return found


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forking]:
    """The commands of most pages."""
    started = Forking(tmp_path_factory.mktemp("plain"), PLAIN)
    yield started
    started.close()


@pytest.fixture(scope="session")
def pytorch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forking]:
    """The commands of pages on PyTorch."""
    started = Forking(tmp_path_factory.mktemp("pytorch"), PYTORCH)
    yield started
    started.close()


def run(command: str, folder: Path, forking: Forking) -> str:
    """Return what a command prints to a terminal of 80 columns, stderr included."""
    folders = (forking.folder, Path(sys.executable).parent, os.environ["PATH"])
    path = os.pathsep.join(map(str, folders))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        check=False,
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    # `head` ends a pipe early; that is what it is for.
    assert done.returncode in {0, 141}, f"$ {command}\n{done.stdout}"
    return done.stdout


def comparable(text: str) -> str:
    return DURATION.sub("<time>", text)


def rewritten(block: str, outputs: list[str]) -> str:
    """Return the block with new outputs, but where only durations differ."""
    return "".join(
        step.shown + (step.output if comparable(step.output) == comparable(output) else output)
        for step, output in zip(steps(block), outputs, strict=True)
    )


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if BLOCK.search(page.read_text())],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_commands_print_what_is_shown(
    page: Path, tmp_path: Path, update_golden: bool, request: pytest.FixtureRequest
) -> None:
    for tool in NEEDS.get(page.name, ()):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    if page.name in ON_PYTORCH:
        for package in ("torch", "torchao"):
            pytest.importorskip(package, reason=f"{package} is not installed, which the page needs")
    forking: Forking = request.getfixturevalue("pytorch" if page.name in ON_PYTORCH else "plain")
    text = page.read_text()
    for block in BLOCK.findall(text):
        shown = steps(block)
        assert shown, f"a console block of {page.name} has no command"
        outputs = [run(step.command, tmp_path, forking) for step in shown]
        if update_golden:
            text = text.replace(block, rewritten(block, outputs), 1)
            continue
        for step, output in zip(shown, outputs, strict=True):
            assert comparable(output) == comparable(step.output), step.command
    if update_golden:
        page.write_text(text)
