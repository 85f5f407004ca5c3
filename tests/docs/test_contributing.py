"""CONTRIBUTING: what it names is there, excerpts are the code's, and its verb runs."""

from __future__ import annotations

import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from mizzen.cli import parser
from mizzen.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)
EXCERPTS = [block.partition("\n") for block in BLOCKS if re.match("# (src|tests)/", block)]
PATHS = sorted({path.rstrip("./") for path in re.findall(r"\b(?:src|tests|docs)/[\w/.*]+", TEXT)})
NAMES = sorted({name.rstrip(".") for name in re.findall(r"\bmizzen(?:\.\w+)+", TEXT)})


def the(start: str) -> str:
    """Return the one block that begins so."""
    (block,) = [block for block in BLOCKS if block.startswith(start)]
    return block


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_there(path: str) -> None:
    assert list(ROOT.glob(path))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_there(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert find_spec(module)
    assert hasattr(import_module(module), attribute) or find_spec(name)


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda excerpt: excerpt[0])
def test_an_excerpt_is_the_code(excerpt: tuple[str, str, str]) -> None:
    heading, _, code = excerpt
    assert code in (ROOT / heading.removeprefix("# ")).read_text()


def test_the_verb_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verb = ModuleType("mizzen.cli.families")
    exec(compile(the('"""List the NPU families'), "CONTRIBUTING.md", "exec"), verb.__dict__)
    monkeypatch.setattr(parser, "VERBS", (*parser.VERBS, verb))
    assert "List the NPU families" in parser.help_texts()["mizzen families"]
    assert main(["families", "--json"]) == 0
    families = json.loads(capsys.readouterr().out)["families"]
    assert "ethos-n78-4tops-4ple" in families["Ethos-N"]
