"""Keys and values that a decoder keeps of earlier tokens, as buffers of a fixed length."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class KeyValueCache(nn.Module):
    """Keys and values of up to `length` tokens, written at the positions of new ones.

    In an artifact they are state on the NPU: 8 bits an element, one scale for the keys of a layer
    and one for its values.

    keys, values  [1, heads, length, size], zeros before the first token
    """

    keys: Tensor
    values: Tensor
    places: Tensor

    def __init__(self, heads: int, length: int, size: int) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, heads, length, size), persistent=False)
        self.register_buffer("values", torch.zeros(1, heads, length, size), persistent=False)
        self.register_buffer("places", torch.arange(length), persistent=False)

    def forward(self, position: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write new tokens, and return all keys and values.

        position    int64 [n], each in 0 to length - 1
        key, value  [1, heads, n, size]
        """
        self.keys.index_copy_(2, position, key)
        self.values.index_copy_(2, position, value)
        return self.keys, self.values

    def visible(self, position: Tensor) -> Tensor:
        """Return which places tokens see, bool [n, length]: their own and those before."""
        return self.places[None, :] <= position[:, None]
