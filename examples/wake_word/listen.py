"""Let the wake word's network listen on a simulated NPU, and compare each answer with TFLite Micro.

Takes the network's file, the accelerator and a number of calls.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import mizzen
from mizzen.cpu.tflm import CpuKernels


def listen(path: Path, accelerator: str, calls: int) -> tuple[int, int]:
    """Return how many answers are those of TFLite Micro, and the largest."""
    artifact = mizzen.compile(path, accelerator)
    session, micro = artifact.session(), CpuKernels(path.read_bytes()).session()
    (frames,) = artifact.inputs
    rng = np.random.default_rng(1)
    equal = largest = 0
    for _ in range(calls):
        heard = rng.integers(-128, 128, frames.shape).astype(frames.dtype)
        probability = session.run(heard)
        (expected,) = micro.run([heard[np.newaxis]], 1)
        equal += np.array_equal(probability, expected[0])
        largest = max(largest, np.asarray(probability).item())
    return equal, largest


if __name__ == "__main__":
    same, highest = listen(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    print(f"{same} of {sys.argv[3]} answers are TFLite Micro's; the highest is {highest} of 255")
