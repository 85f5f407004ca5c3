"""How many bytes weight streams of U55 and U65 take, against those of Arm's encoder.

Run ``python benchmarks/weight_streams.py`` for a table, with ``--json`` for the figures:

`bytes_ratio`    streams of the fast search over those of Arm's `ethosu.mlw_codec`, geometric mean
`worst`          the greatest such ratio of a network
`quick_ratio`    streams of the quick search likewise, in the mean
`thorough_ratio` streams of the thorough search
`cpu_s`          seconds of the processor for the fast search
`weights_per_s`  of the fast search

The weights are those of the convolutions that the networks of `MIZZEN_MODELS` are lowered to, the
input channels first, and in blocks as deep as can be.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mizzen.artifact.steps import read_network
from mizzen.frontends.tflite.lower import lower as lower_network
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import Convolution
from mizzen.targets.ethos_u.generator.weights import (
    Compression,
    StreamOrder,
    encode,
    orders_of,
)
from mizzen.targets.ethos_u.generator.weights.order import IFM_MICROBLOCK, WINDOW
from mizzen.targets.ethos_u.machine.config import ACCELERATORS

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
ON = "ethos-u55-128"
DEPTH = 128


@dataclass(frozen=True, slots=True)
class Row:
    """A network: its weights, and bytes and seconds of the processor for each compression.

    arms_bytes  of the streams of Arm's encoder
    """

    network: str
    weights: int
    arms_bytes: int
    sizes_bytes: dict[Compression, int]
    seconds: dict[Compression, float]

    def ratio(self, compression: Compression) -> float:
        """Return bytes over those of Arm's encoder."""
        return self.sizes_bytes[compression] / self.arms_bytes


def convolutions(path: Path) -> Iterator[Convolution]:
    """Return what of a network has weights."""
    sequence = lower(lower_network(read_network(path.read_bytes(), path.name)).graph).sequence
    for operation in () if sequence is None else sequence.operations:
        if isinstance(operation, Convolution):
            yield operation


def arms_bytes(operation: Convolution, accelerator: str) -> int:
    """Return the length of all streams that Arm's encoder makes of an operation's weights."""
    weights = operation.weights.astype(np.int16)
    orders = orders_of(
        (len(weights), weights.shape[1], weights.shape[2], weights.shape[3]),
        (operation.kernel.dilation_y, operation.kernel.dilation_x),
        DEPTH,
        8 * operation.ifm.dtype.itemsize,
        operation.depthwise,
        bool(operation.part_kernel),
        ACCELERATORS[accelerator],
    )
    return sum(
        len(_arms_stream(weights[core :: len(orders)], order))
        for core, order in enumerate(orders)
        if order.shape[0]
    )


def _arms_stream(weights: npt.NDArray[np.int16], order: StreamOrder) -> bytes:
    stream, _ = import_module("ethosu.mlw_codec").reorder_encode(
        IFM_MICROBLOCK,
        order.microblock,
        np.ascontiguousarray(weights),
        order.block_depth,
        order.depthwise,
        order.part_kernel,
        order.ifm_bits,
        WINDOW // order.dilation[0],
        WINDOW // order.dilation[1],
    )
    return bytes(stream)


def measured(path: Path, accelerator: str) -> Row:
    """Encode all weights of a network in each way."""
    operations = list(convolutions(path))
    sizes: dict[Compression, int] = {}
    seconds: dict[Compression, float] = {}
    for compression in Compression:
        start = time.process_time()
        blobs = [
            encode(
                operation,
                (0, len(operation.weights)),
                DEPTH,
                bool(operation.part_kernel),
                ACCELERATORS[accelerator],
                compression,
            )
            for operation in operations
        ]
        seconds[compression] = time.process_time() - start
        sizes[compression] = sum(part.weights_bytes for blob in blobs for part in blob.cores)
    weights = sum(operation.weights.size for operation in operations)
    arms = sum(arms_bytes(operation, accelerator) for operation in operations)
    return Row(path.stem, weights, arms, sizes, seconds)


def figures_of(rows: list[Row]) -> dict[str, float]:
    """Return the figures by name."""
    quick, fast, thorough = ([row.ratio(each) for row in rows] for each in Compression)
    seconds = sum(row.seconds[Compression.FAST] for row in rows)
    return {
        "bytes_ratio": statistics.geometric_mean(fast),
        "worst": max(fast),
        "quick_ratio": statistics.geometric_mean(quick),
        "thorough_ratio": statistics.geometric_mean(thorough),
        "cpu_s": seconds,
        "weights_per_s": sum(row.weights for row in rows) / seconds,
    }


def main() -> None:
    """Encode, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--on", default=ON, help="the NPU")
    options = parser.parse_args()
    rows: list[Row] = []
    for path in sorted(MODELS.glob("*.tflite")):
        row = measured(path, options.on)
        if not row.weights:
            continue
        rows.append(row)
        sizes = "  ".join(f"{each.value} {size:8,}" for each, size in row.sizes_bytes.items())
        print(
            f"{row.network:26} arm {row.arms_bytes:8,}  {sizes}  {row.ratio(Compression.FAST):.3f} "
            f"{row.seconds[Compression.FAST]:6.2f} s",
            file=sys.stderr,
        )
    figures = figures_of(rows)
    if options.json:
        print(json.dumps({"figures": figures}))
        return
    for name, value in figures.items():
        print(f"{name:16} {value:.3f}")


if __name__ == "__main__":
    main()
