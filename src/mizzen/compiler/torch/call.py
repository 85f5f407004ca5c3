"""A call of a PyTorch model: its arguments, in order and by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one call.

    positional  arguments in order
    named       arguments by keyword
    parameters  what the model calls those in order, where that is known
    """

    positional: tuple[Any, ...]
    named: dict[str, Any] = field(default_factory=dict[str, Any])
    parameters: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all arguments."""
        return (*self.parameters[: len(self.positional)], *self.named)

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Both kinds, as PyTorch nests them."""
        return self.positional, self.named

    @property
    def leaves(self) -> list[Any]:
        """Every tensor and number among them, in PyTorch's order."""
        from torch.utils._pytree import tree_flatten

        flat, _ = tree_flatten(self.arguments)
        return flat

    def of(self, model: Any) -> Any:
        """Return what a model gives for them."""
        return model(*self.positional, **self.named)


def mapping_of(value: Any) -> Mapping[Any, Any] | None:
    """Return a mapping of tensors as one; None for what is none."""
    return cast("Mapping[Any, Any]", value) if isinstance(value, Mapping) else None
