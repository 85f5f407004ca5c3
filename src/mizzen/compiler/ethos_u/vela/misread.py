"""Operators on the CPU that read another tensor in the compiled network than in the model's.

The compiler knows that a RESHAPE moves nothing, and gives operators on the CPU the tensor on its
other side, which has another shape; they compute something else then, or cannot compute at all. Or
it forgets a tensor altogether. What only moves numbers from or to such a tensor is hidden from the
compiler, so that it keeps the tensors on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mizzen.artifact.steps import is_npu
from mizzen.diagnostics import MizzenError, Reason
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.model import ABSENT
from mizzen.targets.ethos_u.vela.generate import Compiled

MOVERS = frozenset(
    ("RESHAPE", "EXPAND_DIMS", "SQUEEZE", "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "UNPACK",
     "PAD", "PADV2", "MIRROR_PAD", "TRANSPOSE", "CONCATENATION", "PACK", "GATHER")
)  # fmt: skip
"""Operators that compute nothing; the compiler may make them a way of reading another's data."""

RULE = "other-tensor"
"""The rule that an operator breaks beside which the compiler confuses tensors."""

SOURCE = "the tensors of the compiled network"


def left_to_cpu(compiled: Compiled) -> frozenset[int]:
    """Return the operators by index that may be on the CPU, as the compiler says."""
    work = (row.operator for row in compiled.work if row.on_cpu)
    return frozenset(index for index in work if index is not None)


def misread(
    model: Model, network: Model, on_cpu: frozenset[int], hidden: frozenset[int]
) -> dict[int, Reason]:
    """Return the operators that must be on the CPU as well, by index, and why.

    network  the compiled one
    on_cpu   operators that may be on the CPU
    """
    found: dict[int, Reason] = {}
    for operator, tensor in _misread(model, network, on_cpu):
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


def _misread(
    model: Model, network: Model, on_cpu: frozenset[int]
) -> Iterator[tuple[Operator, int]]:
    """Return operators of the model on the CPU, and the model's tensor that each does not read."""
    for operator, compiled in _on_cpu(model, network, on_cpu):
        for one, other in _beside(operator.inputs, compiled.inputs):
            if model.main.tensors[one].shape != network.main.tensors[other].shape:
                yield operator, one


def same_on_cpu(model: Model, network: Model, on_cpu: frozenset[int]) -> dict[int, int]:
    """Return the model's tensors by those that operators on the CPU have in the compiled network.

    What two operators give goes before what one of them takes: that may be another tensor.
    """
    pairs = list(_on_cpu(model, network, on_cpu))
    taken = (row for one, other in pairs for row in _beside(one.inputs, other.inputs))
    given = (row for one, other in pairs for row in _beside(one.outputs, other.outputs))
    found = {other: one for one, other in taken}
    return found | {other: one for one, other in given}


def _beside(ours: Sequence[int], theirs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return tensors in the same place of two operators that have as many."""
    if len(ours) == len(theirs):
        for one, other in zip(ours, theirs, strict=True):
            if ABSENT not in (one, other):
                yield one, other


def _on_cpu(
    model: Model, network: Model, on_cpu: frozenset[int]
) -> Iterator[tuple[Operator, Operator]]:
    """Return operators on the CPU, in the model and in the compiled network.

    They have the names of what they give, but the compiler renames what some NPU operators take
    (`values` of GATHER): of one type and shape, those without their names are taken in order.
    """
    by_outputs = {_names(model, row): row for row in model.main.operators}
    renamed: list[Operator] = []
    known = set[int]()
    for compiled in network.main.operators:
        if is_npu(compiled):
            continue
        operator = by_outputs.get(_names(network, compiled))
        if operator is None:
            renamed.append(compiled)
        else:
            known.add(operator.index)
            yield operator, compiled
    for compiled in renamed:
        for operator in model.main.operators:
            free = operator.index in on_cpu - known
            if free and _form(model, operator) == _form(network, compiled):
                known.add(operator.index)
                yield operator, compiled
                break


def _form(model: Model, operator: Operator) -> tuple[object, ...]:
    """Return what two operators have in common that may be the same: all but names."""
    outputs = [(row.shape, row.type) for row in model.main.present(operator.outputs)]
    return operator.kind, len(operator.inputs), outputs


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
