"""What files of assignments may have, as pydantic reads it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Element = Annotated[int, Field(ge=0, lt=1 << 20)]
LayerName = Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1, max_length=1000)]


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Row(_Keys):
    """Layers, by name or index, on elements."""

    layers: list[LayerName] = Field(min_length=1)
    elements: list[Element] = Field(min_length=1)


class HandKeys(_Keys):
    """Layers on elements; those of no row are searched for."""

    format: Literal[1]
    assign: list[Row] = Field(min_length=1)


class TileKeys(_Keys):
    """An element for each tile of the exported graph."""

    format: Literal[1]
    elements: list[Element] = Field(min_length=1)
