"""Where the C sources are that firmware is built from: in a checkout, or in the installed wheel."""

from __future__ import annotations

from pathlib import Path

from mizzen.diagnostics import fail

INSTALLED = Path(__file__).parents[2] / "firmware"
"""Where a wheel has them: inside the package `mizzen`."""
CHECKOUT = Path(__file__).parents[4] / "firmware"
"""Where they are beside `src`."""


def firmware_folder() -> Path:
    """Return the folder that has `runtime` and `board`. E463 if they were not installed."""
    for folder in (INSTALLED, CHECKOUT):
        if (folder / "runtime" / "mizzen.h").is_file():
            return folder
    raise fail(
        "E463",
        f"the C sources of the runtime must be in {INSTALLED}, and are not",
        help="install Mizzen from a wheel, or from a checkout",
    )
