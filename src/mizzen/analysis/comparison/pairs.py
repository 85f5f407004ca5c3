"""A quantised network and its floating-point one: the tensors that are in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mizzen.analysis.comparison.layers import Key
from mizzen.artifact.interface import Array, TensorInfo


@dataclass(frozen=True, slots=True)
class Pair:
    """A tensor of the quantised network and its counterpart.

    step, zero  what one step stands for, and which integer stands for zero; a step of 0 where the
                quantised network has real numbers too
    low, high   the ends of the integers' range
    """

    index: int
    kind: str
    name: str
    counterpart: str
    ours: Key
    theirs: Key
    step: float
    zero: int
    low: int
    high: int


class TwoNetworks(Protocol):
    """A quantised network and its floating-point one.

    inputs     of the quantised network
    pairs      the tensors that are in both
    unmatched  layers of the quantised network that have no counterpart
    """

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """The inputs of the quantised network."""
        ...

    @property
    def pairs(self) -> Sequence[Pair]:
        """The tensors that are in both."""
        ...

    @property
    def unmatched(self) -> Sequence[tuple[int, str, str]]:
        """The layers of the quantised network that have no counterpart."""
        ...

    @property
    def values_bytes(self) -> int:
        """Bytes of all tensors of one inference."""
        ...

    @property
    def example(self) -> Sequence[Array] | None:
        """Inputs that came with the networks, `[N, *shape]` each, if there are any that tell."""
        ...

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs of the quantised network, `[count, *shape]` each."""
        ...

    def infer(self, arrays: Sequence[Array]) -> tuple[Mapping[Key, Array], Mapping[Key, Array]]:
        """Return the tensors of both, of inputs `[N, *shape]`: real numbers, or integers."""
        ...


def scale_of(quantization: Any, dtype: np.dtype[Any]) -> tuple[float, int, int, int] | None:
    """Return step, zero and the ends of the range of a tensor of one scale; None for another."""
    if dtype.kind == "f":
        return 0.0, 0, 0, 0
    if quantization is None or len(quantization.scale) != 1 or dtype.kind not in "iu":
        return None
    limits = np.iinfo(dtype)
    zero = quantization.zero_point[0] if quantization.zero_point else 0
    return quantization.scale[0], zero, int(limits.min), int(limits.max)
