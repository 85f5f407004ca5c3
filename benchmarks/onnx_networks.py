"""What becomes of quantised ONNX networks: share on the NPU, cycles, and how near to ONNX Runtime.

``python benchmarks/onnx_networks.py [FILE ...]`` compiles the quantised networks of the folder that
MIZZEN_MODELS names (or the files) for three NPUs, runs 64 inputs through the compiled streams, and
through ONNX Runtime, fused, with one thread. Inputs are those of a file ``data.npz`` beside the
network, else numbers of a seeded normal distribution. With ``--json`` the figures:

`networks`, `refused`   networks that compile, and those that end with a reason
`on_npu`                share of their operators that is on the NPU, of all together
`macs_on_npu_median`    the median of the shares of multiplications
`steps_most`            greatest distance of an output from ONNX Runtime's, in steps of its scale
`differing`             share of output numbers that differ at all
`top1`                  share of inputs whose greatest output is at the same place
`onnxruntime_self`      the greatest distance of ONNX Runtime fused from itself unfused
`digits_agree`          images of the digits set of which the class is ONNX Runtime's, the least of
                        all schemes, and `digits_images` of how many; `digits_accuracy` the least
`kws_seconds`           seconds of the processor of ``mizzen compile`` of the keyword network, the
                        start of Python and the proof included

Exits with 1 where a network neither compiles nor says why not.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.diagnostics import Device, MizzenError

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models")) / "onnx"
ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
KEYWORDS = MODELS / "emmtrix" / "micro_kws_m_static_qdq.onnx"
INPUTS = 64

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Nearness:
    """Outputs beside ONNX Runtime's: numbers, how many differ, by how many steps at most."""

    numbers: int
    differing: int
    steps: float
    own_steps: float
    top1: int
    inputs: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one network on one NPU."""

    network: Path
    accelerator: str
    on_npu: int = 0
    operators: int = 0
    macs_share: float | None = None
    cycles: int = 0
    near: Nearness | None = None
    refusal: str | None = None


def session_of(path: Path, *, fused: bool = True) -> Any:
    """Return ONNX Runtime's session of a file, of one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if fused else levels.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def inputs_of(path: Path, session: Any, count: int) -> list[dict[str, Array]]:
    """Return inputs of a network, from the data beside it if they fit."""
    (given, *others) = session.get_inputs()
    shape = tuple(extent if isinstance(extent, int) else 1 for extent in given.shape)
    data = path.parent / "data.npz"
    if data.exists() and not others:
        images = np.load(data)["test"]
        if images.shape[1:] == shape[1:]:
            return [{given.name: image[None]} for image in images[:count]]
    rng = np.random.default_rng(0)
    return [{each.name: _numbers(each, rng) for each in (given, *others)} for _ in range(count)]


def _numbers(given: Any, rng: np.random.Generator) -> Array:
    shape = tuple(extent if isinstance(extent, int) else 1 for extent in given.shape)
    match given.type:
        case "tensor(float)":
            return rng.normal(0, 1, shape).astype(np.float32)
        case "tensor(int8)":
            return rng.integers(-128, 128, shape, np.int8)
        case "tensor(uint8)":
            return rng.integers(0, 256, shape, np.uint8)
        case kind:
            raise ValueError(f"no inputs of {kind}")


def outputs_of(artifact: Artifact, given: dict[str, Array]) -> list[Array]:
    """Run one inference of an artifact."""
    results = artifact.run(*given.values())
    return [np.asarray(each) for each in (results if isinstance(results, tuple) else (results,))]


def step_of(numbers: Array) -> float:
    """Return the scale that numbers are whole multiples of: the least distance between two."""
    distances = np.diff(np.unique(numbers.astype(np.float64)))
    steps = distances[distances > 1e-9]
    return float(steps.min()) if steps.size else 1.0


def nearness(path: Path, artifact: Artifact, count: int) -> Nearness:
    """Compare outputs with ONNX Runtime's."""
    fused, unfused = session_of(path), session_of(path, fused=False)
    numbers = differing = agreeing = 0
    steps = own = 0.0
    given = inputs_of(path, fused, count)
    wanted = [fused.run(None, each) for each in given]
    units = [step_of(np.stack([each[index] for each in wanted])) for index in range(len(wanted[0]))]
    for each, truth in zip(given, wanted, strict=True):
        ours, other = outputs_of(artifact, each), unfused.run(None, each)
        for unit, mine, theirs, again in zip(units, ours, truth, other, strict=True):
            apart = np.abs(mine.astype(np.float64) - theirs.astype(np.float64)) / unit
            numbers, differing = numbers + apart.size, differing + int((apart > 0.5).sum())
            steps = max(steps, float(apart.max()))
            own = max(own, float(np.abs(again.astype(np.float64) - theirs).max()) / unit)
        agreeing += int(np.argmax(ours[0]) == np.argmax(truth[0]))
    return Nearness(numbers, differing, steps, own, agreeing, len(given))


def outcome(path: Path, accelerator: str) -> Outcome:
    """Compile a network for an NPU, and run it."""
    try:
        artifact = mizzen.compile(path, accelerator)
    except MizzenError as error:
        return Outcome(path, accelerator, refusal=error.diagnostic.code)
    report = artifact.report
    assert report is not None
    on_npu = [each for each in report.placements if each.device is Device.NPU]
    macs = sum(each.macs for each in report.placements)
    share = sum(each.macs for each in on_npu) / macs if macs else None
    return Outcome(
        path, accelerator, len(on_npu), len(report.placements), share, report.cycles,
        nearness(path, artifact, INPUTS),
    )  # fmt: skip


def digits() -> tuple[int, int, float]:
    """Return in how many images of the set all schemes agree least, their number, the accuracy."""
    data = np.load(MODELS / "digits" / "data.npz")
    images, labels = data["test"], data["labels"]
    agreeing, accuracy = len(labels), 1.0
    for path in sorted((MODELS / "digits").glob("q*.onnx")):
        ours = np.concatenate([
            np.argmax(mizzen.compile(path, accelerator, prove="off").run(images), axis=-1)[None]
            for accelerator in ACCELERATORS
        ])  # fmt: skip
        session = session_of(path)
        (name,) = [each.name for each in session.get_inputs()]
        theirs = np.array([np.argmax(session.run(None, {name: each[None]})[0]) for each in images])
        agreeing = min(agreeing, *(int((each == theirs).sum()) for each in ours))
        accuracy = min(accuracy, *(float((each == labels).mean()) for each in ours))
    return agreeing, len(labels), accuracy


def kws_seconds() -> float:
    """Return the processor's seconds of the command."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.times()
        subprocess.run(
            [sys.executable, "-m", "mizzen", "compile", str(KEYWORDS), "--quiet",
             "--accelerator-config", ACCELERATORS[0], "--output-dir", folder],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Sum up; the module's description says what each figure is."""
    made = [each for each in outcomes if each.refusal is None]
    near = [each.near for each in made if each.near is not None]
    shares = [each.macs_share for each in made if each.macs_share is not None]
    return {
        "networks": len({each.network for each in made}),
        "refused": len({each.network for each in outcomes if each.refusal}),
        "on_npu": sum(e.on_npu for e in made) / max(1, sum(e.operators for e in made)),
        "macs_on_npu_median": statistics.median(shares) if shares else 0.0,
        "steps_most": max((each.steps for each in near), default=0.0),
        "differing": sum(e.differing for e in near) / max(1, sum(e.numbers for e in near)),
        "top1": sum(e.top1 for e in near) / max(1, sum(e.inputs for e in near)),
        "onnxruntime_self": max((each.own_steps for each in near), default=0.0),
    }


def told(each: Outcome) -> str:
    """Return the line of one network on one NPU."""
    name = f"{each.network.stem[:44]:45}{each.accelerator:15}"
    if each.near is None:
        return f"{name}{each.refusal}"
    near = each.near
    return (
        f"{name}{each.on_npu:4}/{each.operators:<4}{each.cycles:12,}"
        f"{near.differing:8}/{near.numbers:<9}{near.steps:7.2f}{near.own_steps:7.2f}"
        f"{near.top1:5}/{near.inputs}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    files = options.files or sorted(MODELS.glob("*/*.onnx"))
    show = sys.stderr if options.json else sys.stdout
    print(
        f"{'network':45}{'NPU':15}{'on NPU':>9}{'cycles':>12}{'differ':>18}{'steps':>7}{'self':>7}"
        f"{'top 1':>8}", file=show,
    )  # fmt: skip
    outcomes: list[Outcome] = []
    for path in files:
        for accelerator in ACCELERATORS:
            outcomes.append(outcome(path, accelerator))
            print(told(outcomes[-1]), file=show, flush=True)
    summed = figures(outcomes)
    if not options.files:
        agreeing, images, accuracy = digits()
        summed |= {
            "digits_agree": agreeing, "digits_images": images, "digits_accuracy": accuracy,
            "kws_seconds": kws_seconds(),
        }  # fmt: skip
    if options.json:
        print(json.dumps({"figures": summed}))
        return
    for name, value in summed.items():
        print(f"{name:20} {value:.6g}")


if __name__ == "__main__":
    main()
