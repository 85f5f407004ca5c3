"""Processor time of firmware on the emulated Cortex-M33, this process's.

Run ``python benchmarks/emulate.py`` for a table, with ``--json`` for the figures:
`invoke_ms` is what starting the NPU, sleeping and taking its interrupt costs, without its work;
`person_detect_10_s` is a whole run of firmware that makes ten inferences of person_detect on
Ethos-U55 with 128 MACs, from reading the file on; `mips` is millions of instructions per second of
a loop. The bars are 1 ms and 1 s.

Needs arm-none-eabi-gcc, and the folder of networks that MIZZEN_MODELS names.
"""

from __future__ import annotations

import os

# Before NumPy is imported: one thread, whose time is measured.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import mizzen
from mizzen.emulate import emulate

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))
from tests.emulate import firmware
from tests.emulate.compilers import build

MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))

ROUNDS = 5
INVOCATIONS = 1000
TURNS = 200_000_000
INSTRUCTIONS_PER_TURN = 2
INFERENCES = 10
BARS = {"invoke_ms": "at most 1", "person_detect_10_s": "at most 1", "mips": ""}


def best_seconds(path: Path) -> float:
    """Return the processor's seconds for a run of firmware, the best of a few."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        result = emulate(path, firmware.BOARD, firmware.ACCELERATOR)
        best = min(best, time.process_time() - start)
        assert result.ok, result.failures
    return best


def speed(folder: Path, runs: int, turns: int) -> float:
    """Return the seconds of firmware that starts the NPU and loops so many times."""
    defines = [f"-I{firmware.SOURCES}", f"-DSPEED_RUNS={runs}u", f"-DSPEED_TURNS={turns}u"]
    output = folder / f"speed-{runs}-{turns}.elf"
    return best_seconds(build(folder, "m33", [firmware.SOURCES / "speed.c"], output, defines))


def person_detect(folder: Path) -> float:
    """Return the seconds of firmware that makes ten inferences."""
    artifact = mizzen.compile(MODELS / "person_detect.tflite", firmware.ACCELERATOR, prove="off")
    shape = (INFERENCES, *artifact.inputs[0].shape)
    inputs = np.random.default_rng(0).integers(-128, 128, shape, np.int8)
    return best_seconds(firmware.network_firmware(folder, artifact, inputs))


def measure(folder: Path) -> dict[str, float]:
    """Return the figures; see the module."""
    firmware.configured(folder)
    once, many = speed(folder, 1, 1), speed(folder, INVOCATIONS, 1)
    looped = speed(folder, 1, TURNS)
    return {
        "invoke_ms": (many - once) / (INVOCATIONS - 1) * 1e3,
        "person_detect_10_s": person_detect(folder),
        "mips": TURNS * INSTRUCTIONS_PER_TURN / (looped - once) / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        figures = measure(Path(name))
    if args.json:
        print(json.dumps({"figures": figures}))
        return
    for name, value in figures.items():
        print(f"{name:20}{value:10.3f}  {BARS[name]}".rstrip())


if __name__ == "__main__":
    main()
