"""Sentences of README, tutorial, how-tos and explanations are short, in the field's words."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from types import ModuleType

import pytest

from mizzen.cli.parser import help_texts

from .words import INSTEAD

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("how-to/**/*.md")),
    *sorted(DOCS.glob("explanation/*.md")),
]
MEDIAN_WORDS = 20
MOST_WORDS = 45
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
LIST_ITEM = re.compile(r"(?:[-*]|\d+\.)\s+")
RULE = re.compile(r"[|\s:-]+")
WORD = re.compile(r"\w[\w'.,%-]*")
END = re.compile(r"(?<=[.?!])\s+(?=[A-Z`\d\"(])")


def blocks(markdown: str) -> Iterator[tuple[bool, str]]:
    """Yield paragraphs, list items (False) and cells of tables (True), as the reader sees them."""
    lines: list[str] = []
    for line in [*FENCED.sub("", markdown).splitlines(), ""]:
        text = line.strip()
        item = LIST_ITEM.match(text)
        if (not text or text[0] in "#|!" or item) and lines:
            yield False, " ".join(lines)
            lines.clear()
        if text.startswith("|"):
            if not RULE.fullmatch(text):
                yield from ((True, cell.strip()) for cell in re.split(r"(?<!\\)\|", text) if cell)
        elif text and text[0] not in "#!":
            lines.append(text[item.end() :] if item else text)


def sentences(block: str) -> list[str]:
    """Split a block into sentences; code is one word, links are their texts, or one word."""
    linked = LINK.sub(r"\1", re.sub(r"\[What [^\]]*\]\([^)]*\)", "Page", block))
    plain = re.sub(r"`[^`]*`", "Code", linked).replace("*", "")
    return [part for part in END.split(plain) if part]


def words(sentence: str) -> int:
    return len(WORD.findall(sentence))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    parts = list(blocks(page.read_text()))
    prose = [text for cell, block in parts if not cell for text in sentences(block)]
    long = [text for _, block in parts for text in sentences(block) if words(text) > MOST_WORDS]
    assert not long
    assert median(map(words, prose)) <= MEDIAN_WORDS


def stumbles(markdown: str) -> list[str]:
    """Return each turn that readers stumbled over, with what to write instead, and its sentence."""
    return [
        f"{match[0]!r} ({instead}) in: {text}"
        for _, block in blocks(markdown)
        for text in sentences(block)
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_turn_is_used_that_readers_stumbled_over(page: Path) -> None:
    found = stumbles(page.read_text())
    assert not found, "\n".join(found)


def test_help_and_generated_pages_use_none_either() -> None:
    """Those have the texts of options, messages and docstrings that users read."""
    for package in ("torch", "torchao"):
        pytest.importorskip(
            package, reason=f"{package} is not installed, whose operators are listed"
        )
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pages: dict[str, str] = module.pages()
    texts = {name: page for name, page in pages.items() if name != "changelog.md"} | help_texts()
    found = [f"{name}: {each}" for name, text in texts.items() for each in stumbles(text)]
    assert not found, "\n".join(found)
