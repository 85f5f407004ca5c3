"""What each part takes by itself and in the whole stream, by the timing model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from mizzen.report.parts import PartCost
from mizzen.targets.ethos_u.cutting import Part
from mizzen.targets.ethos_u.judge.timing import Timed, estimate
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import Program


def costs_of_parts(
    programs: Sequence[Program],
    parts: Sequence[Sequence[Part]],
    configuration: EthosUConfiguration,
) -> Iterator[PartCost]:
    """Return the costs of the parts of some programs, in a system, one after the other."""
    number = 0
    for operator, (program, cut) in enumerate(zip(programs, parts, strict=True)):
        shares = _shares(estimate(program, configuration), cut)
        for part, in_whole in zip(cut, shares, strict=True):
            number += 1
            alone = estimate(part.program, configuration)
            yield PartCost(
                number=number,
                operator=operator,
                layers=part.layers,
                operations=part.operations,
                cycles=round(sum(timed.cycles for timed in alone)),
                in_whole_cycles=round(in_whole),
                start_cycles=_start(alone, part),
            )


def _shares(whole: Sequence[Timed], parts: Sequence[Part]) -> Iterator[float]:
    """Return the cycles of each part's operations and transfers in the whole."""
    left = iter(whole)
    for part in parts:
        yield sum(timed.cycles for timed in islice(left, part.operations + part.transfers))


def _start(alone: Sequence[Timed], part: Part) -> int:
    return round(max(0.0, alone[part.again].start)) if len(alone) > part.again else 0
