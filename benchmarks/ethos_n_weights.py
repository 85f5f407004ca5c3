"""How many weights Ethos-N's encoder and decoder take in a second of one core.

Run ``python benchmarks/ethos_n_weights.py`` for a table, with ``--json`` for the figures:
`weights_per_s` and `decoded_weights_per_s` are the worst over layers and variants. Weights are 8
bits from a bell curve of deviation 25, some of them then 0. Processor time is measured, the best of
a few runs; no BLAS takes part.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation
from mizzen.targets.ethos_n.config import VARIANTS, capabilities_of
from mizzen.targets.ethos_n.sim.weight_decoding import decode
from mizzen.targets.ethos_n.weights.weight_encoding import encode
from mizzen.targets.ethos_n.weights.weight_format import WeightLayout
from mizzen.targets.ethos_n.weights.weight_streams import OutputScale

LAYERS = {
    "3x3, 256 to 256": WeightLayout((3, 3, 256, 256), 256, 256),
    "3x3, Winograd": WeightLayout((3, 3, 256, 256), 256, 256, algorithm=Algorithm.WINOGRAD),
    "1x1, 1024 to 1024": WeightLayout((1, 1, 1024, 1024), 1024, 1024),
    "fully connected": WeightLayout(
        (1, 1, 4096, 256), 256, 4096, MceOperation.FULLY_CONNECTED
    ),
}  # fmt: skip
ZEROS = (0.0, 0.5, 0.9)
SMALLEST_AND_LARGEST = ("ethos-n78-1tops-2ple", "ethos-n78-8tops-2ple")
RUNS = 5


@dataclass(frozen=True)
class Row:
    """One layer: weights in a second, and bits of the stream for each."""

    variant: str
    layer: str
    zeros: float
    encoded_per_s: float
    decoded_per_s: float
    bits_per_weight: float


def fastest(work: Callable[[], object]) -> float:
    """Seconds of the processor, of the fastest run."""
    best = math.inf
    for _ in range(RUNS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def measure(variant: str, layer: str, zeros: float) -> Row:
    """Time one layer."""
    layout, capabilities = LAYERS[layer], capabilities_of(VARIANTS[variant])
    random = np.random.default_rng(0)
    bell = np.clip(np.round(random.normal(0, 25, layout.shape)), -128, 127)
    weights = np.where(random.random(layout.shape) < zeros, 0, bell).astype(np.int8)
    bias, scale = np.zeros(layout.ofms, np.int32), OutputScale((40000,), (24,))

    def work() -> None:
        encode(weights, layout, zero_point=0, bias=bias, scale=scale, capabilities=capabilities)

    stream = encode(
        weights, layout, zero_point=0, bias=bias, scale=scale, capabilities=capabilities
    )
    back = fastest(lambda: decode(stream.data, stream.stripes, layout, capabilities))
    return Row(
        variant,
        layer,
        zeros,
        weights.size / fastest(work),
        weights.size / back,
        8 * len(stream.data) / weights.size,
    )


def rows() -> Iterator[Row]:
    """Time every layer on the smallest and on the largest variant."""
    for variant in SMALLEST_AND_LARGEST:
        for layer in LAYERS:
            for zeros in ZEROS:
                yield measure(variant, layer, zeros)


def figures_of(found: Iterable[Row]) -> dict[str, float]:
    """Return the worst of all layers."""
    listed = list(found)
    return {
        "weights_per_s": min(row.encoded_per_s for row in listed),
        "decoded_weights_per_s": min(row.decoded_per_s for row in listed),
    }


def main() -> None:
    """Measure, and print a table or the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    found = list(rows())
    figures = figures_of(found)
    if parser.parse_args().json:
        print(json.dumps({"figures": figures}))
        return
    print(
        f"{'variant':22}{'layer':20}{'zeros':>6}{'encoded M/s':>13}{'decoded M/s':>13}{'bits':>6}"
    )
    for row in found:
        print(
            f"{row.variant:22}{row.layer:20}{row.zeros:6.0%}{row.encoded_per_s / 1e6:13.1f}"
            f"{row.decoded_per_s / 1e6:13.1f}{row.bits_per_weight:6.2f}"
        )
    print("  ".join(f"{name} {value:.3g}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
