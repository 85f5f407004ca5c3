"""Files of every version of Vela, by each flag that changes what it writes: read, run, equal?

Run ``python benchmarks/vela_forms.py``; the table is that of `docs/reference/vela-forms.md`. The
network is the example's digits. A file is read, checked as `mizzen check --artifact` does it, and
run on images; outputs are compared with TensorFlow Lite Micro's kernels.

`--version NAME=FOLDER` names a version that pip installed with `--target FOLDER`, several folders
with colons between; without it there is the one of this Python. `--json` gives the figures:

`cells`       files that a version could make
`equal`       of these, the ones that are read, have no finding, and give the kernels' bytes
`not_equal`   the others, by version, NPU and flag
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

import mizzen
from mizzen.analysis.checking.artifacts import check_artifact
from mizzen.diagnostics import MizzenError

DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
IMAGES = 16
FLAGS = (
    "",
    "--optimise Size",
    "--arena-cache-size 8000",
    "--max-block-dependency 0",
    "--tensor-allocator LinearAlloc",
    "--memory-mode Sram_Only",
    "--cpu-tensor-alignment 64",
    "--hillclimb-max-iterations 1",
    "--output-format raw",
    "--cop-format COP2",
    "--cop-format COP2 --separate-io-regions",
    "--debug-force-legacy-core",
    "--disable-chaining",
    "--disable-fwd",
    "--disable-cascading",
    "--disable-buffering",
)
"""That change bytes of the file, but for those that name files of the user's own."""


@dataclass(frozen=True)
class Cell:
    """A file of a version, for an NPU, by a flag: None where the version makes none."""

    version: str
    accelerator: str
    flag: str
    verdict: str | None


def made(folders: str, accelerator: str, flag: str, folder: Path) -> Path | None:
    """Return what a version makes; None if it refuses flag or NPU."""
    command = [sys.executable, "-m", "ethosu.vela", str(DIGITS / "digits.tflite"), *flag.split()]
    target = ["--accelerator-config", accelerator, "--output-dir", str(folder)]
    environment = {**os.environ, "PYTHONPATH": folders}
    subprocess.run([*command, *target], env=environment, capture_output=True, check=False)
    written = [path for path in folder.glob("digits*vela*") if path.suffix in (".tflite", ".npz")]
    return written[0] if written else None


def verdict(path: Path, images: np.ndarray, wanted: np.ndarray) -> str:
    """Return "equal", or what is wrong."""
    try:
        artifact = mizzen.load(path)
        checked = check_artifact(artifact)
        result = artifact.run(images.reshape(-1, *artifact.inputs[0].shape[1:]))
    except MizzenError as error:
        return error.diagnostic.code
    if checked.findings:
        return checked.findings[0].code
    return "equal" if np.array_equal(np.ravel(result), np.ravel(wanted)) else "other numbers"


def cells(versions: Sequence[tuple[str, str]], accelerators: Sequence[str], flags: Sequence[str],
          count: int) -> Iterator[Cell]:  # fmt: skip
    """Make and judge every file."""
    network = mizzen.load(DIGITS / "digits.tflite")
    images = np.load(DIGITS / "images.npy")[:count].astype(network.inputs[0].dtype)
    wanted = np.asarray(network.run(images.reshape(-1, *network.inputs[0].shape[1:])))
    for name, folders in versions:
        for accelerator in accelerators:
            for flag in flags:
                with tempfile.TemporaryDirectory() as folder:
                    path = made(folders, accelerator, flag, Path(folder))
                    said = None if path is None else verdict(path, images, wanted)
                yield Cell(name, accelerator, flag, said)


def table(found: Sequence[Cell]) -> str:
    """Return a table: flags by versions, with how many NPUs' files are equal, of how many."""
    names = list(dict.fromkeys(cell.version for cell in found))
    lines = [f"| Flag | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for flag in dict.fromkeys(cell.flag for cell in found):
        row = [_shown([each for each in found if (each.version, each.flag) == (name, flag)])
               for name in names]  # fmt: skip
        lines.append(f"| {f'`{flag}`' if flag else 'none'} | {' | '.join(row)} |")
    return "\n".join(lines)


def _shown(group: Sequence[Cell]) -> str:
    there = [cell.verdict for cell in group if cell.verdict is not None]
    return f"{there.count('equal')} of {len(there)}" if there else "-"


def main() -> None:
    """Print the table, or the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--version", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--smallest", action="store_true", help="one NPU and three flags")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    versions = [(name, folder) for name, _, folder in
                (word.partition("=") for word in options.version)]  # fmt: skip
    versions = versions or [(version("ethos-u-vela"), "")]
    few = options.smallest
    chosen = ("", *FLAGS[9:11]) if few else FLAGS
    found = list(cells(versions, ACCELERATORS[:1] if few else ACCELERATORS, chosen, IMAGES))
    if not options.json:
        print(table(found))
        return
    there = [cell for cell in found if cell.verdict is not None]
    wrong = {f"{cell.version} {cell.accelerator} {cell.flag}": cell.verdict
             for cell in there if cell.verdict != "equal"}  # fmt: skip
    print(json.dumps({"cells": len(there), "equal": len(there) - len(wrong), "not_equal": wrong}))


if __name__ == "__main__":
    main()
