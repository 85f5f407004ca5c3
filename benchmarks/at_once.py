"""Wrong answers of artifacts that threads and forked processes run at once: there must be none.

Run ``python benchmarks/at_once.py`` for 10,000 runs over 8 threads and 8 forked processes, of the
networks of MLPerf Tiny and of small ones with operators on the CPU, for three families of NPUs and
PyTorch; ``--runs N`` for other numbers. It also times one thread against eight. Models are in the
folder that MIZZEN_MODELS names.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import mizzen
from mizzen.artifact.artifact import Artifact

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
THREADS = FORKS = 8
INPUTS = 10


def compiled(network: str, accelerator: str, *ignore: str) -> Artifact:
    """Compile one of the models, some operators of it for the CPU."""
    return mizzen.compile(MODELS / f"{network}.tflite", accelerator, ignore_ops=list(ignore))


def split() -> Artifact:
    """Compile a PyTorch program of two regions with a sort between."""
    import torch

    from mizzen.torch import compile

    class Split(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
            self.linear = torch.nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(self.conv(x)).mean((2, 3))
            return self.linear(torch.sort(y, -1)[0])

    calls = [torch.randn(1, 3, 12, 12) for _ in range(4)]
    return compile(Split().eval(), (calls[0],), "ethos-u55-128", calibration=calls)


CASES: dict[str, Callable[[], Artifact]] = {
    "keywords, U55": lambda: compiled("kws_ref_model", "ethos-u55-128"),
    "keywords, U85": lambda: compiled("kws_ref_model", "ethos-u85-256"),
    "anomalies, U65": lambda: compiled("ad01_int8", "ethos-u65-256"),
    "keywords with the CPU": lambda: compiled("kws_ref_model", "ethos-u55-128", "SOFTMAX"),
    "keywords, N78": lambda: compiled("kws_ref_model", "ethos-n78-4tops-4ple"),
    "PyTorch, U55": split,
}


def inputs_of(artifact: Artifact) -> list[Any]:
    """Return random inputs of one inference."""
    rng = np.random.default_rng(0)
    (info,) = artifact.inputs
    shape = info.shape
    if info.dtype.kind == "f":
        return [rng.standard_normal(shape).astype(info.dtype) for _ in range(INPUTS)]
    return [rng.integers(-128, 128, shape).astype(info.dtype) for _ in range(INPUTS)]


def wrong_of(artifact: Artifact, inputs: list[Any], expected: list[Any], runs: int) -> int:
    """Count the runs whose output is not what one thread gets alone."""
    wrong = 0
    for index in range(runs):
        at = index % len(inputs)
        wrong += not np.array_equal(artifact.run(inputs[at]), expected[at])
    return wrong


def threads(artifact: Artifact, inputs: list[Any], expected: list[Any], runs: int) -> int:
    """Run in threads at once; return how many runs were wrong."""
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = [
            pool.submit(wrong_of, artifact, inputs, expected, runs // THREADS)
            for _ in range(THREADS)
        ]
        return sum(job.result() for job in jobs)


def forks(artifact: Artifact, inputs: list[Any], expected: list[Any], runs: int) -> int:
    """Run in forked processes at once, while this one runs too; return how many were wrong."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def child(pipe: Connection) -> None:
        pipe.send(wrong_of(artifact, inputs, expected, runs // FORKS))

    children = [context.Process(target=child, args=(there,)) for _ in range(FORKS)]
    for process in children:
        process.start()
    wrong = wrong_of(artifact, inputs, expected, runs // FORKS)
    wrong += sum(here.recv() for _ in children)
    for process in children:
        process.join()
    return wrong


def main() -> None:
    """Print a row for each artifact, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10_000, help="of all artifacts together")
    each = parser.parse_args().runs // len(CASES) // 2
    total = runs = 0
    for name, make in CASES.items():
        artifact = make()
        inputs = inputs_of(artifact)
        expected = [artifact.run(array) for array in inputs]
        start = time.perf_counter()
        wrong_of(artifact, inputs, expected, 50)
        alone_ms = (time.perf_counter() - start) / 50 * 1e3
        start = time.perf_counter()
        in_threads = threads(artifact, inputs, expected, each)
        threads_ms = (time.perf_counter() - start) / each * 1e3
        in_forks = forks(artifact, inputs, expected, each)
        total += in_threads + in_forks
        runs += each // THREADS * THREADS + each // FORKS * (FORKS + 1)
        print(
            f"{name:24} wrong of {each}: threads {in_threads}, forks {in_forks}; "
            f"ms a run: alone {alone_ms:.2f}, {THREADS} threads {threads_ms:.2f}",
            flush=True,
        )
    print(f"{total} wrong of {runs}")


if __name__ == "__main__":
    main()
