"""A two-layer encoder from PyTorch's own layers, and a vision transformer (ViT-tiny).

Ref: Vaswani et al., "Attention Is All You Need", 2017.
Ref: Touvron et al., "Training data-efficient image transformers", 2021: the size "tiny".
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.entry import Entry, settle
from zoo.inputs import images, sequences

PATCH = 16
TOKENS = 224 // PATCH * (224 // PATCH)


class Encoder(nn.Module):
    """[N, 32, 128] -> logits [N, 10]."""

    def __init__(self, width: int = 128, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.classifier = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(x).mean(1))


class Attention(nn.Module):
    """Self-attention over the tokens of [N, T, C]."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        y = self.project(x).reshape(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = y.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(query, key, value)
        return self.join(y.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    """Attention and a perceptron, each normalised before and added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.perceptron(self.norm2(x))


class VisionTransformer(nn.Module):
    """[N, 3, 224, 224] -> logits [N, 1000]."""

    def __init__(self, width: int = 192, heads: int = 3, depth: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, PATCH, stride=PATCH)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.position = nn.Parameter(torch.randn(1, TOKENS + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.classifier = nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.classifier(self.norm(self.blocks(x))[:, 0])


ENCODER_ENTRY = Entry(
    "encoder", "two layers of nn.TransformerEncoder", Encoder, sequences(32, 128, along=1), settle
)
VIT_TINY_ENTRY = Entry(
    "vit_tiny", "image classification, attention", VisionTransformer, images(3, 224, 224), settle
)
