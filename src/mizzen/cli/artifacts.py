"""Artifacts as verbs take them: the file, and what belongs to it in others."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for files beside an artifact."""
    parser.add_argument(
        "--ptd",
        metavar="FILE",
        action="append",
        default=[],
        help="data that an ExecuTorch program keeps in a file of its own; may be repeated "
        "(default: those .ptd files beside the program that have what it needs)",
    )


def load_artifact(options: argparse.Namespace, path: str | Path) -> Artifact:
    """Read the artifact of a verb. Raises as `mizzen.load`."""
    import mizzen

    return mizzen.load(path, options.accelerator_config, ptd=options.ptd)
