"""What files of assignments may have, as pydantic reads it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mizzen.documents.model import Section

Element = Annotated[int, Field(ge=0, lt=1 << 20)]
LayerName = (
    Annotated[int, Field(ge=0, lt=1 << 31)] | Annotated[str, Field(min_length=1, max_length=1000)]
)


class Row(Section):
    """Layers, by name or index, on elements."""

    layers: list[LayerName] = Field(min_length=1, fail_fast=True)
    elements: list[Element] = Field(min_length=1, fail_fast=True)


class HandKeys(Section):
    """Layers on elements; those of no row are searched for."""

    format: Literal[1]
    assign: list[Row] = Field(min_length=1, fail_fast=True)


class TileKeys(Section):
    """An element for each tile of the exported graph."""

    format: Literal[1]
    elements: list[Element] = Field(min_length=1, fail_fast=True)
