"""The passes of an Ethos-N program as rows of a cost report: Arm's estimate, as its library has it.

Units run beside one another, and what the longest of them does is what a pass waits for.
"""

from __future__ import annotations

from mizzen.analysis.cost.rounding import whole_steps
from mizzen.diagnostics import Device, Origin
from mizzen.report.cost import Bound, OperationCost, Span, Unit
from mizzen.targets.ethos_n.program import Program
from mizzen.targets.ethos_n.timing import estimate, pass_cycles, passes_of


def ethos_n_operations(program: Program) -> tuple[list[OperationCost], list[Span]]:
    """Return the passes of a program. Raises E98x for passes that cannot be estimated."""
    estimated = estimate(passes_of(program), program.capabilities)
    cycles = whole_steps(pass_cycles(row, found, program.capabilities) for row, found in estimated)
    rows: list[OperationCost] = []
    spans: list[Span] = []
    now = 0
    for index, ((row, _), count) in enumerate(zip(estimated, cycles, strict=True)):
        rows.append(
            OperationCost(
                step=0,
                index=index,
                name=type(row.command).__name__,
                device=Device.NPU,
                origin=Origin(),
                start_cycles=now,
                end_cycles=now + count,
                cycles=count,
                causes={Bound.MAC: count} if count else {},
            )
        )
        spans.append(Span(Unit.MAC, index, now, now + count))
        now += count
    return rows, spans
