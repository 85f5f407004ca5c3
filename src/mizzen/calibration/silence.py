"""Keep from the user what quantisers print and log of themselves."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


@contextmanager
def silence() -> Generator[None]:
    """Let nothing of Python's be printed, logged or warned of while the block runs."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            with redirect_stderr(io.StringIO()):
                yield
    finally:
        logging.disable(before)
