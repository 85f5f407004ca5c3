"""Processor time per inference on the simulated NPU over TFLite Micro's, on one thread each.

Run ``python benchmarks/simulator.py`` for tables, with ``--json`` for the figures:
`batch1_ratio` and `batch64_ratio` are geometric means over the networks of over a million MACs,
`command_us` is the largest fixed cost of a command over all streams: the time of a run that
batching saves, per operation. Of several accelerators, each figure is the worst. Networks are those
of MLPerf Tiny and TFLite Micro, in the folder that MIZZEN_MODELS names.

Processor time is measured, and the two are measured in turn: what else runs on the machine changes
neither much.
"""

from __future__ import annotations

import os

# Before NumPy is imported: TFLite Micro has one thread, so BLAS gets one too.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

import mizzen
from mizzen.artifact.steps import NpuStep

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))

LARGE = ("kws_ref_model", "vww_96_int8", "pretrainedResnet_quant", "person_detect")
SMALL = ("ad01_int8", "micro_speech_quantized", "hello_world_int8")
DEFAULT = ("ethos-u55-128", "ethos-u85-256")
BATCH = 64
SECONDS = 0.1
"""Of the processor, for each of the three works of a round."""
ROUNDS = 9


@dataclass(frozen=True)
class Round:
    """Milliseconds per inference, of all three within the same moment."""

    tflm_ms: float
    batch1_ms: float
    batch64_ms: float


@dataclass(frozen=True)
class Row:
    """One network: what is done once, and rounds of inferences.

    A ratio is the median of those of the rounds, whose parts whatever else runs slows alike; a time
    is the least of all rounds.
    """

    name: str
    operations: int
    load_ms: float
    rounds: tuple[Round, ...]

    @property
    def tflm_ms(self) -> float:
        """TFLite Micro."""
        return min(row.tflm_ms for row in self.rounds)

    @property
    def batch1_ms(self) -> float:
        """One inference at a time."""
        return min(row.batch1_ms for row in self.rounds)

    @property
    def batch64_ms(self) -> float:
        """One inference of a batch."""
        return min(row.batch64_ms for row in self.rounds)

    @property
    def batch1_ratio(self) -> float:
        """One inference at a time over TFLite Micro."""
        return median(row.batch1_ms / row.tflm_ms for row in self.rounds)

    @property
    def batch64_ratio(self) -> float:
        """One inference of a batch over TFLite Micro."""
        return median(row.batch64_ms / row.tflm_ms for row in self.rounds)

    @property
    def command_us(self) -> float:
        """What a single run takes beyond an inference in a batch, per operation."""
        # By way of the ratios: a difference of times is all noise where something else runs.
        saved_ms = (self.batch1_ratio - self.batch64_ratio) * self.tflm_ms
        return saved_ms * 1e3 / self.operations


def best_ms(work: Callable[[], object]) -> float:
    """Milliseconds of the processor, of the fastest of the runs that fit into a short time."""
    best, end = math.inf, time.process_time() + SECONDS
    while True:
        start = time.process_time()
        work()
        now = time.process_time()
        best = min(best, now - start)
        if now >= end:
            return best * 1e3


def tflm(data: bytes, x: npt.NDArray[np.int8]) -> Callable[[], object]:
    """Return an inference of TFLite Micro on the original file."""
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(data, arena_size=4 << 20)

    def infer() -> None:
        interpreter.set_input(x, 0)
        interpreter.invoke()
        interpreter.get_output(0)

    return infer


def measure(name: str, accelerator: str, optimise: str) -> Row:
    """Time one network on one accelerator."""
    data = (MODELS / f"{name}.tflite").read_bytes()
    artifact = mizzen.compile(data, accelerator, optimise=optimise)
    shape = artifact.inputs[0].shape
    x = np.random.default_rng(0).integers(-128, 128, (BATCH, *shape[1:]), np.int8)
    start = time.process_time()
    artifact.run(x[:1])
    load_ms = (time.process_time() - start) * 1e3
    npu = [step for step in artifact.steps if isinstance(step, NpuStep)]
    # What another process computes is not in this one's time.
    assert len(npu) == len(artifact.steps), f"{name} is not on the NPU as a whole"
    operations = sum(len(step.simulator.plan.steps) for step in npu)
    infer = tflm(data, x[:1])
    works = (infer, lambda: artifact.run(x[:1]), lambda: artifact.run(x))
    for work in works:
        work()
    rounds = tuple(Round(*map(best_ms, works)) for _ in range(ROUNDS))
    rounds = tuple(replace(row, batch64_ms=row.batch64_ms / BATCH) for row in rounds)
    return Row(name, operations, load_ms, rounds)


def geometric_mean(values: list[float]) -> float:
    """The mean for ratios."""
    return math.exp(sum(map(math.log, values)) / len(values))


def figures(rows: list[Row]) -> dict[str, float]:
    """The three figures; see the module."""
    large = [row for row in rows if row.name in LARGE]
    return {
        "batch1_ratio": geometric_mean([row.batch1_ratio for row in large]),
        "batch64_ratio": geometric_mean([row.batch64_ratio for row in large]),
        "command_us": max(row.command_us for row in rows),
    }


def table(rows: list[Row]) -> str:
    """The rows for people."""
    lines = [
        f"{'network':24}{'ops':>5}{'load ms':>9}{'TFLM ms':>9}"
        f"{'batch 1':>9}{'ratio':>7}{'batch 64':>10}{'ratio':>7}{'us/op':>7}"
    ]
    lines += [
        f"{row.name:24}{row.operations:5}{row.load_ms:9.1f}{row.tflm_ms:9.3f}"
        f"{row.batch1_ms:9.3f}{row.batch1_ratio:7.2f}"
        f"{row.batch64_ms:10.3f}{row.batch64_ratio:7.2f}{row.command_us:7.1f}"
        for row in rows
    ]
    return "\n".join(lines)


def worst(found: list[dict[str, float]]) -> dict[str, float]:
    """Each figure of the accelerator that does worst in it."""
    return {name: max(figures[name] for figures in found) for name in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--accelerator-config", nargs="+", default=["ethos-u55-128", "ethos-u85-256"]
    )
    parser.add_argument("--optimise", default="Performance", choices=("Performance", "Size"))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    networks = LARGE + SMALL
    rows = {
        accelerator: [measure(name, accelerator, args.optimise) for name in networks]
        for accelerator in args.accelerator_config
    }
    found = {accelerator: figures(measured) for accelerator, measured in rows.items()}
    if args.json:
        print(json.dumps({"figures": worst([*found.values()]), "accelerators": found}))
        return
    print("load: planning and weight decoding, once per artifact, with the first run")
    for accelerator, measured in rows.items():
        print(f"\n{accelerator}, --optimise {args.optimise}, one thread")
        print(table(measured))
        print("  ".join(f"{name} {value:.3g}" for name, value in found[accelerator].items()))


if __name__ == "__main__":
    main()
