"""Processor time of the hazard checker over a run of the artifact, and over its compilation.

Run ``python benchmarks/hazards.py`` for a table, with ``--json`` for the figures, each the worst of
all networks and accelerators:

`hazards_over_run`         the checker over a run: reading the artifact, planning, one inference
`hazards_over_inference`   the checker over an inference of an artifact that has run before
`hazards_over_compile`     the checker over the compilation, the compiler's own process with it
`hazards_ms`               the longest check

Networks are those of MLPerf Tiny and others, in the folder that MIZZEN_MODELS names; other .tflite
files may be named, and `--pose` adds a network of 1280 x 720 pixels that is made here: stripes and
rolling rows of maps of odd depths.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import math
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.steps import NpuStep
from mizzen.package.tflite.builder import NetworkBuilder

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
DEFAULT = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
REPEATS = 5
"""Each time is the least of so many: what else runs on the machine only adds to it."""


@dataclass(frozen=True)
class Row:
    """One network on one accelerator; milliseconds of the processor."""

    network: str
    accelerator: str
    operations: int
    findings: int
    hazards_ms: float
    run_ms: float
    inference_ms: float
    compile_ms: float

    def figures(self) -> dict[str, float]:
        """Return the figures of this row; see the module."""
        return {
            "hazards_over_run": self.hazards_ms / self.run_ms,
            "hazards_over_inference": self.hazards_ms / self.inference_ms,
            "hazards_over_compile": self.hazards_ms / self.compile_ms,
            "hazards_ms": self.hazards_ms,
        }


def processor_seconds() -> float:
    """Seconds of the processor, those of processes that have ended included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def least_ms(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Milliseconds of the processor, of the fastest of some runs."""
    best = math.inf
    for _ in range(repeats):
        start = processor_seconds()
        work()
        best = min(best, processor_seconds() - start)
    return best * 1e3


def check(artifact: Artifact) -> int:
    """Check all streams anew; return how many operations there are."""
    steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
    return sum(step.family.hazards(step.program).operations for step in steps)


def measure(name: str, network: bytes, accelerator: str) -> Row:
    """Time the checker, a run and a compilation of one network."""
    artifact = mizzen.compile(network, accelerator)
    inputs = [np.zeros(info.shape, info.dtype) for info in artifact.inputs]
    data = artifact.data
    return Row(
        network=name,
        accelerator=accelerator,
        operations=check(artifact),
        findings=len(artifact.hazards),
        hazards_ms=least_ms(lambda: check(artifact)),
        run_ms=least_ms(lambda: artifact_of(data, name).run(*inputs)),
        inference_ms=least_ms(lambda: artifact.run(*inputs)),
        compile_ms=least_ms(lambda: mizzen.compile(network, accelerator)),
    )


class Pose:
    """A network as those that find bodies: separable convolutions of odd depths, maps of joints."""

    def __init__(self) -> None:
        self._net = NetworkBuilder("pose")
        self._random = np.random.default_rng(0)
        self._made = 0

    def build(self) -> bytes:
        """Return the file."""
        shape = (1, 720, 1280, 3)
        first = self._net.tensor("image", shape, "int8", 0.05)
        x, shape = self._convolution(first, shape, 12, 3, 2)
        for stride, depth in (
            (1, 24), (2, 24), (1, 24), (2, 40), (1, 40), (2, 72), (1, 72), (2, 120),
            (1, 120), (1, 120), (1, 120), (1, 185), (1, 185), (1, 185),
        ):  # fmt: skip
            y, after = self._depthwise(x, shape, stride)
            y, after = self._convolution(y, after, depth, 1, 1)
            if after == shape:
                joined = self._tensor(after)
                options = ("AddOptions", {"fused_activation_function": 0})
                self._net.operator("ADD", [x, y], [joined], options)
                y = joined
            x, shape = y, after
        heads = [self._convolution(x, shape, depth, 1, 1)[0] for depth in (19, 38)]
        return self._net.finish([first], heads)

    def _tensor(self, shape: tuple[int, ...]) -> int:
        self._made += 1
        return self._net.tensor(f"t{self._made}", shape, "int8", 0.05)

    def _constants(self, weights: tuple[int, ...], depth: int, axis: int) -> list[int]:
        self._made += 1
        values = self._random.integers(-127, 128, weights, np.int8)
        bias = np.zeros(depth, np.int32)
        return [
            self._net.constant(f"w{self._made}", values, [0.01] * depth, [0] * depth, axis=axis),
            self._net.constant(f"b{self._made}", bias, [0.0005] * depth, [0] * depth),
        ]

    def _convolution(
        self, x: int, shape: tuple[int, ...], depth: int, kernel: int, stride: int
    ) -> tuple[int, tuple[int, ...]]:
        after = (1, -(-shape[1] // stride), -(-shape[2] // stride), depth)
        y = self._tensor(after)
        constants = self._constants((depth, kernel, kernel, shape[3]), depth, 0)
        self._net.operator(
            "CONV_2D", [x, *constants], [y], ("Conv2DOptions", _options(stride)), version=3
        )
        return y, after

    def _depthwise(
        self, x: int, shape: tuple[int, ...], stride: int
    ) -> tuple[int, tuple[int, ...]]:
        after = (1, -(-shape[1] // stride), -(-shape[2] // stride), shape[3])
        y = self._tensor(after)
        constants = self._constants((1, 3, 3, shape[3]), shape[3], 3)
        options = ("DepthwiseConv2DOptions", {**_options(stride), "depth_multiplier": 1})
        self._net.operator("DEPTHWISE_CONV_2D", [x, *constants], [y], options, version=3)
        return y, after


def _options(stride: int) -> dict[str, int]:
    dilation = {"dilation_h_factor": 1, "dilation_w_factor": 1}
    fixed = {"padding": 0, "fused_activation_function": 1}
    return {**fixed, **dilation, "stride_h": stride, "stride_w": stride}


def worst(rows: list[Row]) -> dict[str, float]:
    """Each figure of the network and accelerator that does worst in it."""
    found = [row.figures() for row in rows]
    return {name: max(figures[name] for figures in found) for name in found[0]}


def table(rows: list[Row]) -> str:
    """The rows for people."""
    lines = [
        f"{'network':32}{'accelerator':15}{'ops':>6}{'check ms':>10}{'run':>9}{'inference':>11}"
        f"{'compile':>9}{'/run':>7}{'/inf':>7}{'/compile':>9}"
    ]
    for row in rows:
        found = row.figures()
        lines.append(
            f"{row.network[:31]:32}{row.accelerator:15}{row.operations:6}{row.hazards_ms:10.2f}"
            f"{row.run_ms:9.1f}{row.inference_ms:11.2f}{row.compile_ms:9.1f}"
            f"{found['hazards_over_run']:7.2f}{found['hazards_over_inference']:7.2f}"
            f"{found['hazards_over_compile']:9.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("networks", nargs="*", type=Path, help=".tflite files (default: all)")
    parser.add_argument("--accelerator-config", nargs="+", default=DEFAULT)
    parser.add_argument("--pose", action="store_true", help="add a network of 1280 x 720 pixels")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    networks = {
        path.stem: path.read_bytes() for path in args.networks or sorted(MODELS.glob("*.tflite"))
    }
    if args.pose:
        networks["pose_720x1280"] = Pose().build()
    rows = [
        measure(name, network, accelerator)
        for accelerator in args.accelerator_config
        for name, network in networks.items()
    ]
    if args.json:
        every = [{**vars(row), **row.figures()} for row in rows]
        print(json.dumps({"figures": worst(rows), "networks": every}))
        return
    print(table(rows))
    print("worst: " + "  ".join(f"{name} {value:.3g}" for name, value in worst(rows).items()))


if __name__ == "__main__":
    main()
