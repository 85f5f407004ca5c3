"""Hold a region's program to what its generator says of it, and that to the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy.typing as npt

from mizzen.compiler.ethos_u.constants import Exponentials, Judged, judged
from mizzen.compiler.proof.disagreement import Disagreement
from mizzen.compiler.proof.findings import RegionFindings
from mizzen.diagnostics import Origin
from mizzen.graph import Operation
from mizzen.report.proof import Proof
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.judge.witness import Mismatch, Witness, mismatches

Array = npt.NDArray[Any]

WITNESS, STREAM = "its schedule", "the command stream"


def no_exponentials(operation: Operation) -> Iterator[Array]:
    """Return the tables that SOFTMAX looks up, of a graph that says nothing of them: none."""
    del operation
    yield from ()


def held(
    witness: Witness,
    simulator: Simulator,
    operations: Sequence[Operation],
    seed: int,
    exponentials: Exponentials = no_exponentials,
) -> Judged | RegionFindings:
    """Hold a program to its witness, and that to the graph; return the first difference, if any.

    operations    of the region's graph, whose places the witness's origins are
    exponentials  tables that SOFTMAX may look up
    """
    unlike = unlike_witness(witness, simulator, operations, seed)
    if unlike is not None:
        return unlike
    constants = judged(witness, operations, exponentials)
    if (wrong := constants.wrong) is not None:
        return RegionFindings(Proof(0, seed), wrong.disagreement, wrong.operation.group)
    return constants


def unlike_witness(
    witness: Witness, simulator: Simulator, operations: Sequence[Operation], seed: int
) -> RegionFindings | None:
    """Return the first difference between a program and its witness; None if there is none.

    operations  of the region's graph, whose places the witness's origins are
    """
    mismatch = next(mismatches(witness, simulator.program, simulator.plan), None)
    if mismatch is None:
        return None
    operation = operation_of(mismatch.origin, operations)
    wrong = _disagreement(mismatch, None if operation is None else operation.origin)
    return RegionFindings(Proof(0, seed), wrong, None if operation is None else operation.group)


def operation_of(origin: Origin, operations: Sequence[Operation]) -> Operation | None:
    """Return the operation of the graph that a step was made for, where the step says it."""
    place = origin.operator
    return None if place is None or place >= len(operations) else operations[place]


def _disagreement(mismatch: Mismatch, origin: Origin | None) -> Disagreement:
    return Disagreement(
        operation=f"step {mismatch.step} ({mismatch.command})",
        origin=origin or Origin(),
        field=mismatch.field,
        index=mismatch.index,
        wanted=mismatch.said,
        wanted_by=WITNESS,
        came=mismatch.read,
        came_from=STREAM,
    )
