"""Random inputs with the statistics of the real thing: neighbours are alike, unlike in noise."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Inputs = Callable[[int, int], Tensor]


def images(channels: int, height: int, width: int) -> Inputs:
    """Draw images [batch, channels, height, width] with mean 0 and deviation 1.

    Noise at five scales, the coarse ones strongest: the spectrum of photographs falls alike.
    """

    def draw(batch: int, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        total = torch.zeros(batch, channels, height, width)
        for scale in (1, 2, 4, 8, 16):
            size = (max(height // scale, 1), max(width // scale, 1))
            noise = torch.randn(batch, channels, *size, generator=generator)
            total += functional.interpolate(noise * scale, (height, width), mode="nearest")
        return (total - total.mean()) / total.std()

    return draw


def sequences(*shape: int, along: int) -> Inputs:
    """Draw sequences [batch, *shape] that drift along dimension `along` of a batch.

    Each step keeps nine tenths of the last one; the noise added keeps the deviation at 1.
    """
    keep = 0.9

    def draw(batch: int, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        steps = list(torch.randn(batch, *shape, generator=generator).unbind(along))
        for index in range(1, len(steps)):
            steps[index] = keep * steps[index - 1] + (1 - keep**2) ** 0.5 * steps[index]
        return torch.stack(steps, along)

    return draw
