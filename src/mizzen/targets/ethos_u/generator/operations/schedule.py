"""How a sequence is done: blocks, layouts, addresses, constants as they are encoded, transfers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

from mizzen.targets.ethos_u.generator.operations.items import Blob, Fetch, Issue, Place, Staging
from mizzen.targets.ethos_u.generator.operations.schedule_text import (
    item_lines,
    place_text,
    region_lines,
    schedule_lines,
    staging_lines,
)
from mizzen.targets.ethos_u.generator.operations.sequence import Sequence
from mizzen.targets.ethos_u.generator.operations.text import SequenceText
from mizzen.targets.ethos_u.machine.commands_values import Layout


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """A sequence with all that is needed to write its words.

    layouts, places  of each tensor; None for constants, which are packed as words are written
    items            in the order of the stream; loads of tables are added as words are written
    region_bytes     bytes of each region that is written
    """

    sequence: Sequence
    layouts: tuple[Layout, ...]
    places: tuple[Place | None, ...]
    stagings: tuple[Staging, ...]
    blobs: tuple[Blob, ...]
    items: tuple[Issue | Fetch, ...]
    region_bytes: dict[int, int]

    def __str__(self) -> str:
        """Return its text; `operations.schedule_text` says of what form."""
        tensors, operations = self.sequence.tensors, self.sequence.operations
        chosen = [
            replace(tensor, layout=layout)
            for tensor, layout in zip(tensors, self.layouts, strict=True)
        ]
        ends = self.sequence.inputs, self.sequence.outputs
        text = SequenceText(chosen, operations, *ends, list(map(place_text, self.places)))
        lines = chain(
            region_lines(self.region_bytes),
            staging_lines(self.stagings),
            item_lines(self.items, operations, self.blobs, text, set(self.sequence.inputs)),
        )
        return schedule_lines(text.interface(), lines, text.returned())
