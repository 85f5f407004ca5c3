"""Train a small network, quantise it, compile it for an NPU, and prove the result.

The whole test set goes through the simulated NPU at once, and every output is compared with
TensorFlow Lite Micro's kernels on the uncompiled network. The exit status is 0 only if none
differs. `make demo` runs this.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tflite_micro.python.tflite_micro import runtime

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.report import CompileReport
from network import Array, Labels, Network, make_network, train
from quantise import quantise

TEST_IMAGES = 600
TENSOR_ARENA_BYTES = 1 << 20

Integers = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Digits:
    """Images [N, 8, 8, 1] of values 0..1 and their digits [N], for training and for the test."""

    train_images: Array
    train_labels: Labels
    images: Array
    labels: Labels


def load_digits() -> Digits:
    """Split scikit-learn's 1,797 digits; the order is shuffled, and always the same."""
    from sklearn.datasets import load_digits as load

    data: Any = load()
    images = (data.images / 16).astype(np.float32)[..., None]
    labels = data.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(images))
    test, rest = order[:TEST_IMAGES], order[TEST_IMAGES:]
    return Digits(images[rest], labels[rest], images[test], labels[test])


def run_kernels(model: bytes, images: Integers) -> Integers:
    """Return the outputs [N, 10] of TensorFlow Lite Micro's kernels."""
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=TENSOR_ARENA_BYTES)
    outputs: list[Integers] = []
    for image in images:
        interpreter.set_input(image[None], 0)
        interpreter.invoke()
        outputs.append(interpreter.get_output(0))
    return np.concatenate(outputs)


def show(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print a title and rows of names and values."""
    print(f"\n{title}")
    for name, value in rows:
        print(f"  {name:<22}{value}")


def show_report(report: CompileReport) -> None:
    """Print where the operators went, what the network needs, how long it takes."""
    on_npu, operators = len(report.on_npu), len(report.placements)
    rows = [("operators on the NPU", f"{on_npu} of {operators}")]
    rows += [(f"  {row.kind}", row.device.value) for row in report.placements]
    rows += [(area.name, f"{area.used_bytes:,} bytes in {area.memory}") for area in report.areas]
    rows.append(("estimate", f"{report.cycles:,} cycles an inference"))
    show(f"Compiled for {report.configuration['accelerator']}", rows)


def make_model(digits: Digits, folder: Path) -> tuple[bytes, Network, Integers]:
    """Train and quantise; give the TFLite file, the float network and the int8 test images."""
    start = time.perf_counter()
    network = make_network(seed=0)
    train(network, digits.train_images, digits.train_labels)
    seconds = time.perf_counter() - start
    model, scale = quantise(network, digits.train_images)
    images = scale.integers(digits.images)
    (folder / "digits.tflite").write_bytes(model)
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", digits.labels)
    rows = [
        ("training", f"{len(digits.train_images):,} images, {seconds:.1f} s"),
        ("network", f"{folder / 'digits.tflite'}, {len(model):,} bytes"),
    ]
    show("Trained on scikit-learn's digits, quantised to int8", rows)
    return model, network, images


def prove(artifact: Artifact, model: bytes, images: Integers) -> tuple[Integers, Integers]:
    """Run all images through the simulated NPU and through TFLM; give the outputs of both."""
    start = time.perf_counter()
    on_npu = artifact.run(images)
    assert not isinstance(on_npu, tuple)
    seconds = time.perf_counter() - start
    show("Simulated", [("one batch", f"{len(images)} images, {seconds:.2f} s")])
    return on_npu, run_kernels(model, images)


def main() -> int:
    """Run the demonstration; give the exit status."""
    parser = argparse.ArgumentParser(description="Prove a small network on the simulated NPU.")
    parser.add_argument("--output-dir", type=Path, default=Path("output/digits"))
    parser.add_argument("--accelerator-config", default="ethos-u55-128")
    options = parser.parse_args()
    folder: Path = options.output_dir
    folder.mkdir(parents=True, exist_ok=True)

    digits = load_digits()
    model, network, images = make_model(digits, folder)
    artifact = mizzen.compile(folder / "digits.tflite", options.accelerator_config)
    artifact.save(folder / artifact.name)
    assert artifact.report is not None
    show_report(artifact.report)
    on_npu, on_kernels = prove(artifact, model, images)

    def accuracy(classes: Labels) -> str:
        return f"{(classes == digits.labels).mean():.2%}"

    rows = [
        ("float network", accuracy(network.classify(digits.images))),
        ("int8, TFLM's kernels", accuracy(on_kernels.argmax(axis=1))),
        ("int8, simulated NPU", accuracy(on_npu.argmax(axis=1))),
    ]
    show(f"Accuracy on {len(images)} images that were not trained on", rows)
    differing = int((on_npu != on_kernels).sum())
    print(f"\nOf {on_npu.size:,} outputs, {differing} differ between the NPU and TFLM's kernels.")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
