"""Grow a random TFLite network.

A network grows from its inputs, one operator at a time: each takes tensors that are there already,
the youngest most often, and gives new ones. What nobody takes is an output, and a few others are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.flatbuffer import Record
from mizzen.package.tflite.builder import NetworkBuilder

Shape = tuple[int, ...]


SCALES = {"int8": 0.05, "uint8": 0.05, "int16": 0.0004}
EXTREME = (1e-4, 3e-3, 0.9, 13.0)
"""Factors of scales that are not like those of other tensors."""

ACTIVATIONS = (0, 0, 0, 1, 2, 3)
"""No activation, RELU, RELU_N1_TO_1, RELU6."""


@dataclass(frozen=True)
class Made:
    """A tensor that is there."""

    index: int
    shape: Shape
    dtype: str
    scale: float
    zero: int

    @property
    def rank(self) -> int:
        """How many axes it has."""
        return len(self.shape)


class Grower:
    """Grows one network.

    square  whether maps are of a batch of 1, and windows the same both ways
    """

    def __init__(self, seed: str, dtypes: tuple[str, ...], *, square: bool = False) -> None:
        self.square = square
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(self.rng.randrange(1 << 32))
        self.dtype = self.rng.choice(dtypes)
        self.net = NetworkBuilder(seed)
        self.live: list[Made] = []
        self.used = set[int]()
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.names = 0
        self.extreme = self.rng.random() < 0.15

    def grow(self, operators: Sequence[Grow], least: int, most: int) -> bytes:
        """Return the file of a network of so many operators."""
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            self.inputs.append(self._input())
        wanted, made = self.rng.randint(least, most), 0
        for _ in range(most * 20):
            made += self.rng.choice(operators)(self, self.pick())
            if made >= wanted:
                break
        self.outputs += [row.index for row in self.live if row.index not in self.used]
        rest = [row.index for row in self.live if row.index in self.used]
        rest = [index for index in rest if index not in self.inputs]
        if rest and self.rng.random() < 0.3:
            self.outputs.append(self.rng.choice(rest))
        return self.net.finish(self.inputs, self.outputs)

    def _input(self) -> int:
        rng = self.rng
        rank = 4 if self.square else rng.choice((4, 4, 4, 4, 4, 3, 2))
        sizes = [rng.choice((1, 2, 3, 4, 5, 7, 8, 9, 12)) for _ in range(rank - 1)]
        if rank == 4:
            sizes[0] = 1 if self.square else rng.choice((1, 1, 1, 1, 1, 2, 3))
        shape = (*sizes, rng.choice((1, 2, 3, 4, 5, 8, 9, 16, 17, 20)))
        return self.tensor(shape, self.dtype).index

    def tensor(self, shape: Shape, dtype: str, like: Made | None = None) -> Made:
        """Add a tensor, quantised like another one if that is given."""
        if like is None:
            scale = SCALES[dtype] * self.rng.uniform(0.5, 2.0)
            if self.extreme and self.rng.random() < 0.4:
                scale *= self.rng.choice(EXTREME)
            zero = {"int8": self.rng.choice((0, 7, -128, -30, 127)),
                    "uint8": self.rng.choice((0, 121, 128, 255)), "int16": 0}[dtype]  # fmt: skip
        else:
            scale, zero = like.scale, like.zero
        self.names += 1
        index = self.net.tensor(f"t{self.names}", shape, dtype, scale, zero)
        made = Made(index, tuple(shape), dtype, float(np.float32(scale)), zero)
        self.live.append(made)
        return made

    def pick(self, fits: Callable[[Made], bool] = lambda _: True) -> Made:
        """Return a tensor that fits; the youngest most often; any if none does."""
        rows = [row for row in self.live if fits(row)] or self.live
        return rows[max(0, len(rows) - 1 - int(self.rng.expovariate(0.5)))]

    def constant(self, data: np.ndarray[Any, Any], scale: Any = None, zero: int = 0,
                 axis: int = 0) -> int:  # fmt: skip
        """Add a constant."""
        self.names += 1
        return self.net.constant(f"c{self.names}", data, scale, zero, axis=axis)

    def integers(self, *values: int) -> int:
        """Add a constant vector of INT32."""
        return self.constant(np.array(values, np.int32))

    def add(self, kind: str, inputs: list[int], outputs: list[Made],
            options: str | None = None, **fields: Any) -> int:  # fmt: skip
        """Add an operator; return 1."""
        table: tuple[str, Record] | None = None if options is None else (options, fields)
        self.net.operator(kind, inputs, [row.index for row in outputs], table)
        self.used.update(inputs)
        return 1

    def activation(self) -> int:
        """Return a fused activation function."""
        return self.rng.choice(ACTIVATIONS)


Grow = Callable[[Grower, Made], int]
"""Adds operators that take a tensor, and returns how many; none if it does not fit."""
