"""The checker: whether a program can do what it says, from the program and its machine alone.

It knows no mapper and no emission, and rederives everything: what fits, what each tile needs and
who gives it, that all of every layer is computed once, that messages arrive, that nothing waits for
ever. What it finds is data; a program without findings is executed exactly.
"""

from __future__ import annotations

from itertools import chain

from mizzen.mesh.program.checker.accumulators import accumulator_findings
from mizzen.mesh.program.checker.findings import Finding, Rule
from mizzen.mesh.program.checker.layers import layer_findings, output_findings
from mizzen.mesh.program.checker.memory import (
    compute_findings,
    element_findings,
    memory_findings,
)
from mizzen.mesh.program.checker.messages import message_findings, route_findings
from mizzen.mesh.program.checker.operands import operand_findings
from mizzen.mesh.program.checker.structure import structure_findings
from mizzen.mesh.program.checker.view import View
from mizzen.mesh.program.checker.waiting import waiting_findings
from mizzen.mesh.program.program import MeshProgram

__all__ = ["Finding", "Rule", "check"]

RULES = (
    element_findings,
    memory_findings,
    compute_findings,
    operand_findings,
    layer_findings,
    output_findings,
    message_findings,
    route_findings,
    waiting_findings,
    accumulator_findings,
)


def check(program: MeshProgram) -> tuple[Finding, ...]:
    """Return everything that is wrong with a program; nothing if it holds.

    Where a program names what does not exist, that is all that is said.
    """
    broken = tuple(structure_findings(program))
    if broken:
        return broken
    view = View(program)
    return tuple(chain.from_iterable(rule(view) for rule in RULES))
