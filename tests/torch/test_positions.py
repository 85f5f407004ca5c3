"""Decoders that are given the position of their token: caches, masks, rotary embeddings."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from mizzen.torch import compile

PLACES, SIZE = 6, 4


class _Rotated(nn.Module):
    """Turns a token by its position's angles, and adds up the visible ones of a cache."""

    cache: Tensor
    speed: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, PLACES, SIZE))
        self.register_buffer("speed", 1000.0 ** -torch.linspace(0, 1, SIZE // 2))

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        angles = position[None].float()[:, :, None] @ self.speed[None, None]
        cos, sin = (torch.cat((part, part), -1) for part in (angles.cos(), angles.sin()))
        first, second = x.chunk(2, -1)
        x = x * cos + torch.cat((-second, first), -1) * sin
        self.cache.index_copy_(1, position, x)
        visible = torch.arange(PLACES)[None, :] <= position[:, None]
        return torch.where(visible[..., None], self.cache, 0.0).sum(1)


def _inputs(position: int) -> tuple[Tensor, Tensor]:
    return torch.linspace(-1, 1, SIZE).view(1, 1, SIZE), torch.tensor([position])


def test_what_a_position_gives_is_looked_up_on_the_npu() -> None:
    artifact = compile(
        _Rotated(), _inputs(0), "ethos-u85-128", calibration=map(_inputs, range(PLACES))
    )
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()
    assert _counts(artifact.steps, "NarrowStep", "TorchStep") == {"NarrowStep": 1}
    model, session = _Rotated(), artifact.session()
    for position in range(PLACES):
        x, place = _inputs(position)
        wanted = model(x, place).numpy()
        (came,) = session.run(x.numpy(), place.numpy())
        # A sum of cosines and sines of 8 bits, each half a step of 1/127 off, and as many tokens.
        assert np.abs(came - wanted).max() < (position + 1) * 3 / 127, position


def _counts(steps: object, *names: str) -> dict[str, int]:
    assert isinstance(steps, tuple)
    kinds = [type(step).__name__ for step in steps]
    return {name: kinds.count(name) for name in names if name in kinds}
