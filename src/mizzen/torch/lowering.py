"""Lower a program to TOSA, for flows that stop there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.diagnostics import fail
from mizzen.frontends.torch.lower import lower
from mizzen.frontends.torch.program import read
from mizzen.graph import Graph, Operation
from mizzen.package import tosa
from mizzen.partition import extract, partition
from mizzen.targets.ethos_u.commands import Arch
from mizzen.torch.legality import is_edge, legality
from mizzen.torch.region import STANDARD

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def to_tosa(exported: ExportedProgram, name: str = "model") -> bytes:
    """Give a converted program as a TOSA 1.0 file of the integer profile.

    Its inputs and outputs are the integers between the program's first and last roundings. E168
    where an operator has no integer form.
    """
    lowered = lower(read(exported, name))
    placed = partition(lowered.graph, legality(lowered, Arch.U85, ()), edge=is_edge)
    for group, row in placed.groups.items():
        if row.reasons and not all(map(is_edge, _operations(lowered.graph, group))):
            raise fail(
                "E168",
                f"every operator must have a TOSA form, and {lowered.origins[group].kind} has "
                f"none: {row.reasons[0].message}",
                origin=lowered.origins[group],
                help=row.reasons[0].help or "quantise the operators around it",
            )
    inner = [group for group, row in placed.groups.items() if not row.reasons]
    part = extract(lowered.graph, inner, name)
    STANDARD.run(part.graph)
    return tosa.write(part.graph)


def _operations(graph: Graph, group: int) -> list[Operation]:
    return [row for row in graph if row.group == group]
