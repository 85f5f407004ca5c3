"""The first page of each section: its pages by group, each with its own first sentence.

mkdocs calls `on_files` when the site is built, after `generate`: a page of the navigation is on
the list of its section without being written there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

INDEX = "index.md"
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
SENTENCE = re.compile(r".*?(?:\.(?= |$)|:$)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the first page of each section of the navigation that names one."""
    from mkdocs.structure.files import File

    for section in config.nav or ():
        for title, entries in section.items():
            if isinstance(entries, list) and isinstance(entries[0], str):
                text = "\n".join(_lines(title, entries, files))
                files.append(File.generated(config, entries[0], content=text))
    return files


def _lines(title: str, entries: list[Any], files: Files) -> Iterator[str]:
    folder = entries[0].removesuffix(INDEX)
    yield f"# {title}"
    for group in entries[1:]:
        for name, pages in group.items():
            yield f"\n## {name}\n"
            for page in pages:
                for page_title, path in page.items():
                    written = files.get_file_from_path(path)
                    first = "" if written is None else first_sentence(written.content_string)
                    yield f"- [{page_title}]({path.removeprefix(folder)}). {first}"


def first_sentence(markdown: str) -> str:
    """Return the first sentence of a page's first paragraph, without its links."""
    for block in FENCED.sub("", markdown).split("\n\n"):
        text = " ".join(block.split())
        if text and text[0] not in "#|!-*<>":
            sentence = SENTENCE.match(LINK.sub(r"\1", text))
            return sentence[0].rstrip(":.") + "." if sentence else ""
    return ""
