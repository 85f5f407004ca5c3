"""Hold weights to the model's: of each output channel, its numbers other than zero.

A layout may move a kernel's numbers, put zeros between them, repeat a kernel for other places of
the output, leave out what lies on padding, or part it into several operations; it makes no other
numbers of them. So the numbers of a channel are compared whatever their order: by a sum of random
words, one for each number, which is the same for other numbers once in 2**64 times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.graph import Operation, Value
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d, Matmul, TransposeConv2d, Weighted

Array = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

LARGEST = 255
"""Magnitude of a weight without its zero point."""
SEED = 7

MOST_RECTANGLES = 1 << 20
"""Of the kernels of a layer that are looked at: all of 10 x 10 for 300 channels."""


def _words() -> Words:
    words = np.random.default_rng(SEED).integers(0, 1 << 64, 2 * LARGEST + 1, np.uint64)
    words[LARGEST] = 0
    return words


WORDS = _words()
"""Of the numbers from -255 to 255; of zero 0."""


def sums_of(weights: Array, axes: tuple[int, ...]) -> Words:
    """Return the sum of the words of weights over axes; the same for the same numbers."""
    return WORDS[weights.astype(np.int64) + LARGEST].sum(axes, np.uint64)


@dataclass(frozen=True, eq=False)
class Layer:
    """What an operation of the graph computes with, by output channel.

    kernels     int64 ``[O, H, W, I]``, zero points taken off
    biases      int64 ``[O]``
    zero_point  of the input
    steps       rows and columns of a kernel whose outputs lie as far apart as its inputs
    """

    kernels: Integers
    biases: Integers
    zero_point: int
    steps: tuple[int, int] = (1, 1)

    @cached_property
    def words(self) -> Words:
        """Sums of words of the channels, ``[O]``."""
        return sums_of(self.kernels, (1, 2, 3))

    @cached_property
    def whole(self) -> dict[int, tuple[int, ...]]:
        """The channels that have the same numbers, by the sum of their words."""
        return _channels_of(self.words)

    @cached_property
    def parts(self) -> dict[int, tuple[int, ...]]:
        """The channels by the words of some rows and columns of their kernels."""
        known: dict[int, set[int]] = {}
        for words in self._windows():
            for word, channels in _channels_of(words).items():
                known.setdefault(word, set()).update(channels)
        return {word: tuple(sorted(channels)) for word, channels in known.items()}

    @property
    def knows_parts(self) -> bool:
        """Whether its kernels have so few rectangles that `parts` has all."""
        height, width = self.kernels.shape[1:3]
        rectangles = height * (height + 1) * width * (width + 1) // 4
        return rectangles * len(self.kernels) <= MOST_RECTANGLES

    def _windows(self) -> Iterator[Words]:
        """Yield the words ``[O]`` of each rectangle of the kernels, of each of its phases."""
        for y, x in product(*map(range, self.steps)):
            words = sums_of(self.kernels[:, y :: self.steps[0], x :: self.steps[1]], (3,))
            height, width = words.shape[1:]
            above = np.zeros((len(words), height + 1, width + 1), np.uint64)
            above[:, 1:, 1:] = words.cumsum(1, np.uint64).cumsum(2, np.uint64)
            for top, left in product(range(height), range(width)):
                for end, right in product(range(top + 1, height + 1), range(left + 1, width + 1)):
                    yield (
                        above[:, end, right]
                        - above[:, top, right]
                        - above[:, end, left]
                        + above[:, top, left]
                    )


def _channels_of(words: Words) -> dict[int, tuple[int, ...]]:
    """Return channels by their words; those without numbers are left out."""
    known: dict[int, list[int]] = {}
    for channel, word in enumerate(words.tolist()):
        if word:
            known.setdefault(word, []).append(channel)
    return {word: tuple(channels) for word, channels in known.items()}


def layer_of(operation: Operation) -> Layer | None:
    """Return what an operation computes with; None if it has no weights, or computed ones."""
    match operation:
        case DepthwiseConv2d():
            return _layer(operation, (2, 3, 0, 1))
        case TransposeConv2d(stride=(down, right)):
            return _layer(operation, (0, 1, 2, 3), (down, right))
        case Conv2d():
            return _layer(operation, (0, 1, 2, 3))
        case Matmul():
            return _product(operation)
        case _:
            return None


def _layer(
    operation: Weighted, order: tuple[int, ...], steps: tuple[int, int] = (1, 1)
) -> Layer | None:
    values, biases = operation.weight.constant, operation.bias.constant
    if values is None or biases is None:
        return None
    kernels = (values.astype(np.int64) - _number(operation.weight_zp)).transpose(order)
    if isinstance(operation, DepthwiseConv2d):
        channels, times, height, width = kernels.shape
        kernels = kernels.reshape(channels * times, height, width, 1)
    if kernels.size and np.abs(kernels).max() > LARGEST:
        return None
    of_channels = np.broadcast_to(biases.astype(np.int64).ravel(), (len(kernels),))
    return Layer(kernels, of_channels, _number(operation.input_zp), steps)


def _product(operation: Matmul) -> Layer | None:
    """Return a product with a constant as a layer: of each column of B, or row of A."""
    a, b = operation.A.constant, operation.B.constant
    if b is not None and a is None:
        moved, own, other = b.transpose(0, 2, 1), operation.B_zp, operation.A_zp
    elif a is not None and b is None:
        moved, own, other = a, operation.A_zp, operation.B_zp
    else:
        return None
    kernels = moved.reshape(-1, 1, 1, moved.shape[-1]).astype(np.int64) - _number(own)
    if kernels.size and np.abs(kernels).max() > LARGEST:
        return None
    return Layer(kernels, np.zeros(len(kernels), np.int64), _number(other))


def _number(value: Value) -> int:
    number = value.constant
    assert number is not None, "zero points are constants"
    return int(number.ravel()[0])


Channels = tuple[int, ...] | None
"""Channels of a layer that an output channel may be; None where all its weights are zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """The channels of a layer that the output channels of its operations may be.

    channels  by operation and its output channel; empty where it is none
    """

    channels: tuple[tuple[Channels, ...], ...]

    @property
    def share(self) -> float:
        """The part of output channels that are channels of the layer, 0 to 1."""
        every = [each for operation in self.channels for each in operation if each is not None]
        return sum(map(bool, every)) / max(1, len(every))

    @property
    def first_unknown(self) -> tuple[int, int] | None:
        """The first operation with an output channel that is none of the layer's, and that."""
        for place, operation in enumerate(self.channels):
            for channel, candidates in enumerate(operation):
                if candidates == ():
                    return place, channel
        return None


def matched(layer: Layer, words: Sequence[Words]) -> Matched:
    """Say which channels of a layer the output channels of operations are, by their numbers."""
    known = layer.whole
    is_whole = all(not word or word in known for sums in words for word in sums.tolist())
    if not is_whole and layer.knows_parts:
        known = {**layer.parts, **known}
    return Matched(
        tuple(
            tuple(known.get(word, ()) if word else None for word in sums.tolist()) for sums in words
        )
    )


def uneven(layer: Layer, words: Sequence[Words]) -> int | None:
    """Return a channel that is there less often than others; None if all are equally often.

    Nothing is said where some are there in part: a part may be as good as all, or have only zeros.
    """
    every = [word for sums in words for word in sums.tolist()]
    times = Counter(every)
    parts = {word: times[word] / len(channels) for word, channels in layer.whole.items()}
    zeros = len(layer.biases) - sum(map(len, layer.whole.values()))
    most = max(parts.values(), default=0)
    if times[0] != most * zeros or any(word and word not in parts for word in every):
        return None
    rare = min(parts, key=lambda word: parts[word], default=None)
    return None if rare is None or parts[rare] == most else layer.whole[rare][0]


def is_multiple(layer: Layer, words: Sequence[Words], kernels: Sequence[Array]) -> bool:
    """Whether all operations together have each number so many times as the layer has it.

    kernels  of the operations
    """
    ours = sum(int(np.count_nonzero(each)) for each in kernels)
    theirs = int(np.count_nonzero(layer.kernels))
    times = ours // max(1, theirs)
    total = sum(int(sums.sum(dtype=np.uint64)) for sums in words)
    return times * theirs == ours and (
        (total - times * int(layer.words.sum(dtype=np.uint64))) % (1 << 64) == 0
    )
