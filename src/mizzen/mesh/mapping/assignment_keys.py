"""What files of assignments may have."""

from __future__ import annotations

from typing import Annotated, Literal

from mizzen.documents.model import Limits, Section

Element = Annotated[int, Limits(ge=0, lt=1 << 20)]
LayerName = (
    Annotated[int, Limits(ge=0, lt=1 << 31)] | Annotated[str, Limits(min_length=1, max_length=1000)]
)


class Row(Section):
    """Layers, by name or index, on elements."""

    layers: Annotated[tuple[LayerName, ...], Limits(min_length=1)]
    elements: Annotated[tuple[Element, ...], Limits(min_length=1)]


class HandKeys(Section):
    """Layers on elements; those of no row are searched for."""

    format: Literal[1]
    assign: Annotated[tuple[Row, ...], Limits(min_length=1)]


class TileKeys(Section):
    """An element for each tile of the exported graph."""

    format: Literal[1]
    elements: Annotated[tuple[Element, ...], Limits(min_length=1)]
