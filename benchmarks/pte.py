"""How long a converted PyTorch program takes to become a `.pte`, beside ExecuTorch's own flow.

``python benchmarks/pte.py`` compiles MobileNetV2 for Ethos-U55 and U85 from the program that each
side's quantizer converted. Ours is `compile_converted` and `save`; theirs is
`to_edge_transform_and_lower` with the Arm backend's partitioner and `to_executorch`. Each side runs
in a fresh process, alone; seconds are of the processor, all threads, imports not counted. ``--peer
PYTHON`` (or MIZZEN_EXECUTORCH_PYTHON) has executorch[ethos-u]; without one only our side is timed.
With ``--json`` the figures:

pte_ratio          geometric mean of our seconds over theirs; absent without a peer
pte_bytes_ratio    the same of the files' sizes
pte_seconds        our seconds, the mean of the targets
failed             sides that could not do it

Exits with 1 if our side fails, or if the ratio is above its bar.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import against_executorch_case as case_files

HERE = Path(__file__).resolve().parent
TARGETS = ("ethos-u55-128", "ethos-u85-256")
PEER_VARIABLE = "MIZZEN_EXECUTORCH_PYTHON"
NETWORK = "mobilenet_v2"
BAR = 0.05
"""What `pte_ratio` must not exceed."""


def run_side(python: str, side: str, target: str, case_file: Path) -> dict[str, Any]:
    """Compile in a fresh process; returns what it says, with ``error`` where it fails."""
    command = [python, str(HERE / "pte_side.py"), side, NETWORK, target, str(case_file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ends with {done.returncode}"]
        return {"error": lines[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def mean_ratio(pairs: list[tuple[dict[str, Any], dict[str, Any]]], key: str) -> float | None:
    """Return the geometric mean of ours over theirs, None without a pair."""
    logarithms = [math.log(ours[key] / theirs[key]) for ours, theirs in pairs]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None


def figures_of(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum up; the module's description says what each figure is."""
    held = [row for row in ours if "error" not in row]
    pairs = [
        (one, other)
        for one, other in zip(ours, theirs, strict=False)
        if "error" not in one and "error" not in other
    ]
    return {
        "pte_ratio": mean_ratio(pairs, "seconds"),
        "pte_bytes_ratio": mean_ratio(pairs, "bytes"),
        "pte_seconds": sum(row["seconds"] for row in held) / len(held) if held else None,
        "failed": sum("error" in row for row in (*ours, *theirs)),
    }


def main() -> int:
    """Run both sides, print, and say by the exit status whether the bar is kept."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--peer", default=os.environ.get(PEER_VARIABLE), metavar="PYTHON")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sides = {"ours": sys.executable} | ({"theirs": options.peer} if options.peer else {})
    found: dict[str, list[dict[str, Any]]] = {"ours": [], "theirs": []}
    with tempfile.TemporaryDirectory() as folder:
        case_file = Path(folder) / "case.pt"
        case_files.write(NETWORK, case_file)
        for target in TARGETS:
            for side, python in sides.items():
                row = run_side(python, side, target, case_file)
                found[side].append(row)
                text = row.get("error") or f"{row['seconds']:.2f} s, {row['bytes']} bytes"
                print(f"{NETWORK} {target} {side}: {text}", file=sys.stderr)
    figures = figures_of(found["ours"], found["theirs"])
    if options.json:
        print(json.dumps(figures))
    elif not options.peer:
        print(f"no peer: {PEER_VARIABLE} or --peer names a Python with executorch[ethos-u]")
    else:
        print(" ".join(f"{name}={value}" for name, value in figures.items()))
    ratio = figures["pte_ratio"]
    return int(any("error" in row for row in found["ours"]) or (ratio or 0) > BAR)


if __name__ == "__main__":
    sys.exit(main())
