"""A page in headless Chromium: what a script of a test finds there, and that nothing complains."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
ANSWER = re.compile(r'<pre id="answer">(.*?)</pre>', re.DOTALL)


class Browser:
    """Shows pages, whose files are in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def shown(self, html: str, script: str = "", anchor: str = "", *options: str) -> str:
        """Return the document after the browser has run a script behind the page's own."""
        if CHROMIUM is None:
            pytest.skip("no chromium to show the page")
        path = self.folder / "page.html"
        path.write_text(html.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
        words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", *options]
        words += ["--enable-logging=stderr", f"--user-data-dir={self.folder / 'profile'}"]
        words += [path.as_uri() + (f"#{anchor}" if anchor else "")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
        assert "CONSOLE" not in done.stderr, done.stderr
        return done.stdout

    def answer(self, html: str, script: str, anchor: str = "", *options: str) -> Any:
        """Return what the body of a function gives in the page, as JSON-ready data."""
        tell = (
            f"const found = (() => {{ {script} }})();"
            "const told = document.createElement('pre'); told.id = 'answer';"
            "told.textContent = JSON.stringify(found); document.body.append(told);"
        )
        found = ANSWER.search(self.shown(html, tell, anchor, *options))
        assert found is not None, "the script of the test failed"
        return json.loads(unescape(found[1]))
