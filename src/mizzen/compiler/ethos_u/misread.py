"""Operators on the CPU that read another tensor in the compiled network than in the model's.

The compiler knows that a RESHAPE moves nothing, and gives operators on the CPU the tensor on its
other side, which has another shape; they compute something else then, or cannot compute at all. Or
it forgets a tensor altogether. What only moves numbers from or to such a tensor is hidden from the
compiler, so that it keeps the tensors on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.artifact.steps import is_npu
from mizzen.diagnostics import MizzenError, Reason
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.model import ABSENT

MOVERS = frozenset(
    ("RESHAPE", "EXPAND_DIMS", "SQUEEZE", "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "UNPACK",
     "PAD", "PADV2", "MIRROR_PAD", "TRANSPOSE", "CONCATENATION", "PACK", "GATHER")
)  # fmt: skip
"""Operators that compute nothing; the compiler may make them a way of reading another's data."""

RULE = "other-tensor"
"""The rule that an operator breaks beside which the compiler confuses tensors."""

SOURCE = "the tensors of the compiled network"


def misread(model: Model, network: Model, hidden: frozenset[int]) -> dict[int, Reason]:
    """Return the operators that must be on the CPU as well, by index, and why.

    network  the compiled one
    """
    found: dict[int, Reason] = {}
    for operator, tensor in _misread(model, network):
        for mover in _movers(model, tensor):
            if mover.index not in hidden:
                found[mover.index] = _reason(mover, operator)
    return found


def forgotten(
    model: Model, error: MizzenError, hidden: frozenset[int]
) -> Iterator[tuple[int, Reason]]:
    """Return the operators that give a tensor which nothing computes in the compiled network.

    error  of reading that network

    Where they are on the CPU already, it is those that take it.
    """
    main, said = model.main, error.diagnostic.message
    lost = {row.index for row in main.tensors if f'"{row.name}"' in said}
    giving = [row for row in main.operators if lost & {*row.outputs} and row.index not in hidden]
    taking = [row for row in main.operators if lost & {*row.inputs} and row.index not in hidden]
    for operator in giving or taking:
        does = "gives" if giving else "takes"
        yield (
            operator.index,
            Reason(
                RULE,
                f"the compiler's network does not compute what this {operator.kind} {does}",
                help="nothing needs doing if the CPU has time for it",
                source=SOURCE,
            ),
        )


def _misread(model: Model, network: Model) -> Iterator[tuple[Operator, int]]:
    """Return operators of the model on the CPU, and the model's tensor that each does not read."""
    for operator, one, other in read_on_cpu(model, network):
        if model.main.tensors[one].shape != network.main.tensors[other].shape:
            yield operator, one


def read_on_cpu(model: Model, network: Model) -> Iterator[tuple[Operator, int, int]]:
    """Return what operators on the CPU read: the tensor in the model, and in the compiled one."""
    by_outputs = {_names(model, row): row for row in model.main.operators}
    for compiled in network.main.operators:
        operator = None if is_npu(compiled) else by_outputs.get(_names(network, compiled))
        if operator is None or len(operator.inputs) != len(compiled.inputs):
            continue
        for one, other in zip(operator.inputs, compiled.inputs, strict=True):
            if ABSENT not in (one, other):
                yield operator, one, other


def _names(model: Model, operator: Operator) -> tuple[str, ...]:
    return tuple(row.name for row in model.main.present(operator.outputs))


def _movers(model: Model, tensor: int) -> list[Operator]:
    """Return the operators by way of which a tensor has the numbers of others."""
    rows = [row for row in model.main.operators if row.kind in MOVERS]
    found: dict[int, Operator] = {}
    same = {tensor}
    while beside := [
        row for row in rows if row.index not in found and same & {*row.inputs, *row.outputs}
    ]:
        for row in beside:
            if _keeps(model, row):
                same |= {*row.inputs, *row.outputs}
            found[row.index] = row
    return [row for row in found.values() if _keeps(model, row)]


def _keeps(model: Model, operator: Operator) -> bool:
    """Whether an operator gives as many elements as it takes."""
    main = model.main
    taken = {row.elements for row in main.present(operator.inputs) if row.data is None}
    return taken == {row.elements for row in main.present(operator.outputs)}


def _reason(mover: Operator, operator: Operator) -> Reason:
    return Reason(
        RULE,
        f"the compiler gives the {operator.kind} on the CPU beside this {mover.kind} a tensor of "
        "another shape",
        help="nothing needs doing if the CPU has time for it",
        source=SOURCE,
    )
