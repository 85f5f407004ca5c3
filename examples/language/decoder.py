"""A small language model of bytes, in the form of Llama: one token and its position at a time.

Ref: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023; Ainslie et al.,
"GQA: Training Generalized Multi-Query Transformer Models", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from mizzen.torch import KeyValueCache


@dataclass(frozen=True)
class Shape:
    """Extents of a decoder; 3.2 million parameters as they are here."""

    vocabulary: int = 128
    width: int = 256
    heads: int = 8
    cached_heads: int = 4
    inner: int = 768
    layers: int = 4
    context: int = 128

    @property
    def size(self) -> int:
        """Channels of a head."""
        return self.width // self.heads


class Attention(nn.Module):
    """Attention of queries over the keys of fewer heads, turned by their positions."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        narrow = shape.cached_heads * shape.size
        self.query = nn.Linear(shape.width, shape.width, bias=False)
        self.key = nn.Linear(shape.width, narrow, bias=False)
        self.value = nn.Linear(shape.width, narrow, bias=False)
        self.join = nn.Linear(shape.width, shape.width, bias=False)
        self.cache = KeyValueCache(shape.cached_heads, shape.context, shape.size)

    def forward(self, x: Tensor, angles: Tensor, position: Tensor | None) -> Tensor:
        """[batch, tokens, width] to the same; without a position all tokens of a text at once."""
        query, key, value = (
            project(x).unflatten(-1, (-1, self.shape.size)).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        query, key = turned(query, angles), turned(key, angles)
        if position is None:
            y = functional.scaled_dot_product_attention(
                query, key, value, is_causal=True, enable_gqa=True
            )
        else:
            keys, values = self.cache(position, key, value)
            y = functional.scaled_dot_product_attention(
                query, keys, values, self.cache.visible(position), enable_gqa=True
            )
        return self.join(y.transpose(1, 2).flatten(2))


def turned(x: Tensor, angles: Tensor) -> Tensor:
    """Turn pairs of channels by the angles of their positions (rotary embedding)."""
    first, second = x.chunk(2, -1)
    return x * angles.cos() + torch.cat((-second, first), -1) * angles.sin()


class Block(nn.Module):
    """Attention, then a gated perceptron, each on a normalised input and added to it."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(shape.width, 1e-5), nn.RMSNorm(shape.width, 1e-5)
        self.attention = Attention(shape)
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Tensor, angles: Tensor, position: Tensor | None) -> Tensor:
        x = x + self.attention(self.norm1(x), angles, position)
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    """Scores of the byte after each byte: [batch, tokens, vocabulary]."""

    speeds: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, 1e-5)
        speeds = 10_000.0 ** -torch.linspace(0, 1, shape.size // 2 + 1)[:-1]
        self.register_buffer("speeds", speeds.repeat(2), persistent=False)

    def forward(self, tokens: Tensor, position: Tensor | None = None) -> Tensor:
        """Of tokens int64 [batch, n]: all of a text, or with a position [n] the next ones."""
        places = torch.arange(tokens.shape[1]) if position is None else position
        angles = places[:, None].float() * self.speeds
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, angles, position)
        return functional.linear(self.norm(x), self.embedding.weight)
