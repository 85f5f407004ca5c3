"""One block of a decoder that is given a token at a time and keeps keys and values as state.

Ref: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023: the order of
normalisation, attention and a gated perceptron.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.entry import Entry, varied_norms
from zoo.inputs import sequences

WIDTH, HEADS, REMEMBERED = 128, 4, 32


class RememberingAttention(nn.Module):
    """Attention of one token [1, 1, C] over itself and the tokens before it.

    keys, values  of the last tokens, the newest last: [1, heads, tokens, C / heads]
    """

    keys: Tensor
    values: Tensor

    def __init__(self, width: int, heads: int, remembered: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value, self.join = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, heads, remembered, self.size))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            project(x).reshape(1, 1, self.heads, self.size).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        keys = torch.cat([self.keys[:, :, 1:], key], 2)
        values = torch.cat([self.values[:, :, 1:], value], 2)
        self.keys.copy_(keys)
        self.values.copy_(values)
        y = functional.scaled_dot_product_attention(query, keys, values)
        return self.join(y.transpose(1, 2).reshape(1, 1, self.heads * self.size))


class DecoderBlock(nn.Module):
    """[1, 1, 128] -> [1, 1, 128]."""

    def __init__(self, width: int = WIDTH, heads: int = HEADS) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = RememberingAttention(width, heads, REMEMBERED)
        self.gate, self.up = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def remember(entry: Entry, module: nn.Module) -> None:
    """Vary the norms, and fill what is remembered, which must not have a gradient."""
    varied_norms(module)
    module.eval().requires_grad_(False)
    with torch.no_grad():
        for token in range(REMEMBERED):
            module(entry.inputs(1, 1000 + token))


ENTRY = Entry(
    "decoder",
    "one token at a time, keys and values as state",
    DecoderBlock,
    sequences(1, WIDTH, along=1),
    remember,
)
