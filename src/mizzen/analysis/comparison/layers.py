"""The layers of a model, whatever it was written in: who gives a tensor, and who takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mizzen.diagnostics import Device

Key = Any
"""What a front-end knows a tensor by."""


@dataclass(frozen=True, slots=True)
class Layer:
    """An operator of the model: the tensors that it takes and gives."""

    index: int
    kind: str
    name: str
    device: Device
    takes: tuple[Key, ...]
    gives: tuple[Key, ...]


class Layers:
    """The layers of a model, in the order of execution."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.rows = tuple(layers)
        self.by_index = {layer.index: layer for layer in layers}

    @cached_property
    def _users(self) -> dict[Key, list[Layer]]:
        users: dict[Key, list[Layer]] = {}
        for layer in self.rows:
            for key in dict.fromkeys(layer.takes):
                users.setdefault(key, []).append(layer)
        return users

    @cached_property
    def maker(self) -> dict[Key, Layer]:
        """The layer that gives a tensor."""
        return {key: layer for layer in self.rows for key in layer.gives}

    def users(self, layer: Layer) -> list[Layer]:
        """Return the layers that take what a layer gives."""
        users = (user for key in layer.gives for user in self._users.get(key, ()))
        return list(dict.fromkeys(users))

    def from_here(self, index: int, hops: int) -> Iterator[Layer]:
        """Return a layer, and those after it that are computed from it, the nearest first."""
        layers = [self.by_index[index]]
        seen: dict[Layer, None] = {}
        for _ in range(hops):
            for layer in layers:
                if layer not in seen:
                    seen[layer] = None
                    yield layer
            layers = [user for each in layers for user in self.users(each)]
