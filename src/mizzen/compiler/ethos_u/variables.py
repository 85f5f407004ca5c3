"""What of a network must keep an order that no tensor says: operators on variables."""

from __future__ import annotations

from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.subgraphs import CALLERS, called, reached_from
from mizzen.frontends.tflite.variables import Name, handles


def precedence(model: Model) -> dict[int, list[int]]:
    """Return which operators must come before each that reads or assigns variables."""
    assigned: dict[Name, int] = {}
    reads: dict[Name, list[int]] = {}
    earlier: dict[int, list[int]] = {}
    for operator in model.main.operators:
        read, written = _touched(model, operator)
        for name in sorted(read | written):
            before = earlier.setdefault(operator.index, [])
            before += [assigned[name]] if name in assigned else []
            if name in written:
                before += [other for other in reads.pop(name, []) if other != operator.index]
                assigned[name] = operator.index
            else:
                reads.setdefault(name, []).append(operator.index)
    return earlier


def after_assigned(model: Model) -> frozenset[int]:
    """Return the operators that depend on a variable which the same inference has assigned.

    CALL_ONCE, which fills variables at first, comes before everything.
    """
    kinds = {operator.index: operator.kind for operator in model.main.operators}
    late = {
        index
        for index, earlier in precedence(model).items()
        if any(kinds[other] not in ("CALL_ONCE", "READ_VARIABLE") for other in earlier)
        and kinds[index] != "ASSIGN_VARIABLE"
    }
    tensors = {tensor for index in late for tensor in model.main.operators[index].outputs}
    for operator in model.main.operators:
        if tensors & set(operator.inputs):
            late.add(operator.index)
            tensors.update(operator.outputs)
    return frozenset(late)


def _touched(model: Model, operator: Operator) -> tuple[set[Name], set[Name]]:
    """Return the variables that an operator reads, and those that it assigns.

    Of subgraphs that it executes, whatever they do with a variable counts as both.
    """
    if operator.kind in CALLERS:
        below = {index for row in called(operator) for index in reached_from(model, row)}
        names = {name for index in below for _, name in handles(model.subgraphs[index])}
        return names, names
    name = dict(handles(model.main)).get(operator.inputs[0]) if operator.inputs else None
    touched = set[Name]() if name is None else {name}
    match operator.kind:
        case "READ_VARIABLE":
            return touched, set()
        case "ASSIGN_VARIABLE":
            return set(), touched
        case _:
            return set(), set()
