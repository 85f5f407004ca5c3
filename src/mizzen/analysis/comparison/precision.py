"""Hold a quantised network against the floating-point one that it was made of, layer by layer.

The quantised side is its reference: TensorFlow Lite Micro, or PyTorch for a converted program. What
the NPU gives are the same integers, which `exactness` shows, so no NPU is asked. Both sides get the
same real numbers; of integers that an input cannot hold the rounding is part of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from mizzen.analysis.comparison.pairs import Pair, TwoNetworks
from mizzen.artifact.interface import Array, TensorInfo
from mizzen.compiler.compile import ONNX, PYTORCH, TFLITE, front_end_of, source_of
from mizzen.compiler.proof.options import ProofOptions
from mizzen.diagnostics import Diagnostic, Severity, fail
from mizzen.report.precision import BINS, InputSource, LayerPrecision, Precision

if TYPE_CHECKING:
    from torch.export import ExportedProgram

HALF = 0.5
"""Of a step: what is further beyond the range than that is not rounded but cut off."""

BATCH = 16
"""Inferences that are held in memory at once, at most."""

MOST_BYTES = 1 << 28
"""What all tensors of one network may take, of the inferences that are held at once."""


@dataclass(eq=False)
class _Noise:
    """What was counted of a pair so far, in double precision."""

    elements: int = 0
    signal: float = 0.0
    noise: float = 0.0
    total: float = 0.0
    largest: float = 0.0
    saturated: int = 0
    low: float = math.inf
    high: float = -math.inf
    bins: Array = field(default_factory=lambda: np.zeros(len(BINS) + 1, np.int64))

    def add(self, pair: Pair, ours: Array, theirs: Array) -> None:
        """Count integers and the real numbers that they should stand for."""
        finite = np.isfinite(theirs).ravel()  # no integer stands for infinity, nor for NaN
        exact = theirs.astype(np.float64).ravel()[finite]
        given = ours.astype(np.float64).ravel()[finite]
        if pair.step:
            ideal = exact / pair.step + pair.zero
            beyond = (ideal < pair.low - HALF) | (ideal > pair.high + HALF)
            self.saturated += int(np.count_nonzero(beyond))
            given = (given - pair.zero) * pair.step
        error = np.abs(given - exact)
        self.elements += error.size
        self.signal += float(np.square(exact).sum())
        self.noise += float(np.square(error).sum())
        self.total += float(error.sum())
        self.largest = max(self.largest, float(error.max(initial=0.0)))
        self.low = min(self.low, float(exact.min(initial=math.inf)))
        self.high = max(self.high, float(exact.max(initial=-math.inf)))
        steps = error / pair.step if pair.step else error
        self.bins += np.bincount(np.searchsorted(BINS, steps), minlength=len(BINS) + 1)

    def layer(self, pair: Pair) -> LayerPrecision:
        """Return the measured precision of the pair."""
        sqnr = 10 * math.log10(self.signal / self.noise) if self.signal and self.noise else None
        return LayerPrecision(
            pair.index, pair.kind, pair.name, pair.counterpart, self.elements, sqnr,
            self.largest, self.total / max(1, self.elements), pair.step,
            tuple(map(int, self.bins)), self.saturated / max(1, self.elements),
            self.low if self.elements else 0.0, self.high if self.elements else 0.0,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Data:
    """What to infer: the user's arrays, as for `Artifact.run`; or None for the example of an
    exported program, or without one, or for a `count`, made ones."""

    arrays: Sequence[Array] | None = None
    count: int | None = None
    seed: int = 1


def precision(
    model: str | PathLike[str] | bytes,
    floating: str | PathLike[str] | bytes,
    data: Data | None = None,
) -> Precision:
    """Hold a quantised network against its floating-point one.

    Both are `.tflite` files, or both `.pt2` programs. Arrays are real numbers, or an input's own
    integers. Raises E495 where nothing of the two is alike, E702 for operators that TensorFlow Lite
    Micro has not.
    """
    networks, names = two_networks(model, floating)
    return measured(networks, *names, data or Data())


def precision_of_programs(
    converted: ExportedProgram, floating: ExportedProgram, data: Data | None = None
) -> Precision:
    """Hold a converted PyTorch program against the exported one that it was made of.

    Layers go by the names of FX nodes, which conversion keeps. Raises E167 for a first program that
    is not quantised, E495 where nothing of the two is alike.
    """
    from mizzen.analysis.comparison.precision_torch import networks_of

    names = "the converted program", "the floating-point program"
    networks = networks_of(converted, floating, names)
    _require_pairs(networks, *names)
    return measured(networks, *names, data or Data())


def two_networks(
    model: str | PathLike[str] | bytes, floating: str | PathLike[str] | bytes
) -> tuple[TwoNetworks, tuple[str, str]]:
    """Read both networks, and return them with their names."""
    sources = source_of(model), source_of(floating)
    data, other = (source.data for source in sources)
    name, floating_name = (source.name for source in sources)
    forms = front_end_of(sources[0]), front_end_of(sources[1])
    networks: TwoNetworks
    if forms == (TFLITE, TFLITE):
        from mizzen.analysis.comparison.precision_tflite import TfliteNetworks
        from mizzen.artifact.steps import read_network
        from mizzen.frontends.tflite.subgraphs import executed, names_of

        network = read_network(data, name)
        if executed(network) != (0,):
            names = ", ".join(names_of(network)[subgraph] for subgraph in executed(network))
            raise fail(
                "E138",
                "layers are compared with floating point in a network of one subgraph, and "
                f"{name} has {names}",
                help="compare what each signature gives: `mizzen run --signature NAME`",
            )
        networks = TfliteNetworks(network, read_network(other, floating_name))
    elif forms == (PYTORCH, PYTORCH):
        from mizzen.analysis.comparison.precision_torch import programs

        networks = programs(data, name, other, floating_name)
    elif forms == (ONNX, ONNX):
        from mizzen.analysis.comparison.precision_onnx import networks_of

        networks = networks_of(*sources)
    else:
        raise fail(
            "E495",
            f"both networks must be .tflite files, both .onnx files, or both .pt2 programs; {name} "
            f"is {forms[0].name} and {floating_name} is {forms[1].name}",
        )
    _require_pairs(networks, name, floating_name)
    return networks, (name, floating_name)


def _require_pairs(networks: TwoNetworks, name: str, floating_name: str) -> None:
    if not networks.pairs:
        raise fail(
            "E495",
            f"{name} and {floating_name} must have layers in common, and none computes what "
            "one of the other does",
            help="give the network that was quantised, converted by the same version of the same "
            "converter",
        )


def measured(networks: TwoNetworks, model: str, floating: str, data: Data) -> Precision:
    """Infer what is asked for, and return what was found."""
    arrays, source = data.arrays, InputSource.USER
    if arrays is None and not data.count:
        arrays, source = networks.example, InputSource.EXAMPLE
    if arrays is None:
        count = data.count or ProofOptions().inputs_for(networks.values_bytes)
        arrays, source = networks.stimuli(count, data.seed), InputSource.MADE
    arrays = [_shaped(array, info) for array, info in zip(arrays, networks.inputs, strict=True)]
    size = len(arrays[0]) if arrays else 1
    counted = [_Noise() for _ in networks.pairs]
    batch = max(1, min(BATCH, MOST_BYTES // networks.values_bytes))
    for start in range(0, size, batch):
        ours, theirs = networks.infer([array[start : start + batch] for array in arrays])
        for noise, pair in zip(counted, networks.pairs, strict=True):
            noise.add(pair, ours[pair.ours], theirs[pair.theirs])
    layers = [noise.layer(pair) for noise, pair in zip(counted, networks.pairs, strict=True)]
    layers.sort(key=lambda layer: layer.index)
    unmatched = tuple(networks.unmatched)
    return Precision(model, floating, size, source, tuple(layers), unmatched)


def _shaped(array: Array, info: TensorInfo) -> Array:
    """Return an array as `[N, *shape]`. E246 for one of another shape."""
    from mizzen.data.columns import array_column

    return array_column(np.asarray(array), info, "an array", sequences=False).rows[:, 0]


def failures_of(result: Precision, least_db: float | None) -> Iterator[Diagnostic]:
    """Return which layers are noisier than they may be: E486."""
    for layer in result.worst_first if least_db is not None else ():
        if layer.sqnr_db is not None and least_db is not None and layer.sqnr_db < least_db:
            yield Diagnostic(
                "E486",
                f'layer {layer.index} {layer.kind} -> "{layer.name}" must have an SQNR of at least '
                f"{least_db:g} dB, and has {layer.sqnr_db:.1f} dB",
                rule="--min-sqnr",
                help="try 16 bits for it, scales by channel, or more calibration data, and compare "
                "again",
            )


def notes_of(result: Precision) -> Iterator[Diagnostic]:
    """Return warnings that the numbers are less than they look: W492 for inputs that were made."""
    came = {
        InputSource.MADE: "these were made",
        InputSource.EXAMPLE: "this is the example that the program was exported with",
    }
    if result.source in came:
        yield Diagnostic(
            "W492",
            f"noise must be measured on real inputs to show accuracy, and {came[result.source]}",
            Severity.WARNING,
            help="give some dozens of real inputs with --data",
        )
