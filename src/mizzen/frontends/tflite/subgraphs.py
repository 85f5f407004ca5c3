"""The subgraphs of a network: which call which, and the network as one of them sees it.

An inference executes the main subgraph, a signature another one; IF, WHILE and CALL_ONCE execute
further ones. What looks at one network at a time looks at each subgraph as the main one of a
network of its own (`seen_from`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin, fail
from mizzen.flatbuffer import Member, Record
from mizzen.flatbuffer.memory_plan import ALLOCATION, plan_of, split_plan
from mizzen.flatbuffer.tflite import BuiltinOperator
from mizzen.frontends.tflite.model import Model, Operator, Subgraph
from mizzen.frontends.tflite.variables import handles

CALLS = {
    "CALL": ("subgraph",),
    "CALL_ONCE": ("init_subgraph_index",),
    "IF": ("then_subgraph_index", "else_subgraph_index"),
    "STABLEHLO_COMPOSITE": ("decomposition_subgraph_index",),
    "STABLEHLO_REDUCE": ("body_subgraph_index",),
    "STABLEHLO_REDUCE_WINDOW": ("body_subgraph_index",),
    "STABLEHLO_SCATTER": ("update_computation_subgraph_index",),
    "STABLEHLO_SORT": ("comparator_subgraph_index",),
    "STABLEHLO_WHILE": ("cond_subgraph_index", "body_subgraph_index"),
    "WHILE": ("cond_subgraph_index", "body_subgraph_index"),
}
"""Options of operators that name the subgraphs that they execute."""

CALLERS = frozenset(("CALL", "IF", "STABLEHLO_COMPOSITE", "STABLEHLO_WHILE", "WHILE"))
"""Those that do nothing else, at every inference. The others compute with what a subgraph says."""


def called(operator: Operator) -> Iterator[int]:
    """Return the subgraphs that an operator executes."""
    for option in CALLS.get(operator.kind, ()) if not operator.custom else ():
        yield int(operator.options[option])


def reached_from(model: Model, index: int, callers: Collection[str] = CALLS) -> tuple[int, ...]:
    """Return a subgraph, then those that it executes by way of others, in ascending order.

    callers  the kinds of operators that are followed
    """
    reached = {index}
    waiting = [index]
    while waiting:
        for operator in model.subgraphs[waiting.pop()].operators:
            new = set(called(operator)) - reached if operator.kind in callers else set[int]()
            reached |= new
            waiting += new
    return index, *sorted(reached - {index})


def entries(model: Model) -> tuple[int, ...]:
    """Return the subgraphs that are executed from outside: the main one, those of signatures."""
    return tuple(sorted({0, *(signature.subgraph for signature in model.signatures)}))


def executed(model: Model) -> tuple[int, ...]:
    """Return the subgraphs that are executed at inferences, in ascending order."""
    reached = (reached_from(model, index, CALLERS) for index in entries(model))
    return tuple(sorted({index for of_entry in reached for index in of_entry}))


def above(model: Model) -> dict[int, set[int]]:
    """Return, of each subgraph, those that may be at work when it is executed."""
    callers: dict[int, set[int]] = {index: set() for index in range(len(model.subgraphs))}
    for index in callers:
        for other in reached_from(model, index)[1:]:
            callers[other].add(index)
    return callers


def require_no_recursion(model: Model) -> None:
    """Refuse subgraphs that execute themselves, with E134: no runtime gives them a stack."""
    for subgraph in model.subgraphs:
        below = (other for operator in subgraph.operators for other in called(operator))
        if any(subgraph.index in reached_from(model, other) for other in below):
            raise fail(
                "E134",
                f"a subgraph must not execute itself, and {name_of(subgraph)} does",
                origin=Origin(model.name),
                help="convert the network without recursive functions",
            )


def name_of(subgraph: Subgraph) -> str:
    """Return the title of a subgraph: its name, else its number."""
    return subgraph.name or f"subgraph {subgraph.index}"


def names_of(model: Model) -> tuple[str, ...]:
    """Return the title of each subgraph; those of one name by their numbers too."""
    names = [name_of(subgraph) for subgraph in model.subgraphs]
    return tuple(
        name if names.count(name) == 1 else f"{name} ({index})" for index, name in enumerate(names)
    )


def seen_from(model: Model, order: Sequence[int]) -> Model:
    """Return the network of some subgraphs, the first of which is the main one.

    It is called by that one's name too. Operators execute no others than those of `order`.
    """
    if len(model.subgraphs) == 1:
        return model
    places = {index: place for place, index in enumerate(order)}
    file = model.record
    records = [renumbered(file["subgraphs"][index], places, file) for index in order]
    others = (row for index, row in enumerate(model.subgraphs) if index not in places)
    return replace(
        model,
        name=f"{model.name}, {names_of(model)[order[0]]}",
        subgraphs=tuple(_moved(model.subgraphs[index], places) for index in order),
        metadata=_planned(model, order),
        record={**file, "subgraphs": records, "signature_defs": None},
        signatures=(),
        shared=frozenset(name for subgraph in others for _, name in handles(subgraph)),
    )


def renumbered(subgraph: Record, places: Mapping[int, int], file: Record) -> Record:
    """Return a subgraph of a file with the subgraphs that it executes by their `places`."""
    codes: list[Record] = file["operator_codes"]

    def moved(operator: Record) -> Record:
        code = codes[int(operator["opcode_index"])]
        number = BuiltinOperator(max(code["deprecated_builtin_code"], code["builtin_code"]))
        names = CALLS.get(number.name)
        if names is None:
            return operator
        field = "builtin_options" if operator.get("builtin_options") else "builtin_options2"
        options: Member = operator[field]
        fields = {**options.fields, **{name: places[int(options.fields[name])] for name in names}}
        return {**operator, field: Member(options.table, fields)}

    return {**subgraph, "operators": [moved(operator) for operator in subgraph["operators"] or ()]}


def _moved(subgraph: Subgraph, places: Mapping[int, int]) -> Subgraph:
    def moved(operator: Operator) -> Operator:
        if operator.custom or operator.kind not in CALLS:
            return operator
        named = {name: places[int(operator.options[name])] for name in CALLS[operator.kind]}
        return replace(operator, options={**operator.options, **named})

    operators = tuple(map(moved, subgraph.operators))
    return replace(subgraph, index=places[subgraph.index], operators=operators)


def _planned(model: Model, order: Sequence[int]) -> dict[str, npt.NDArray[np.uint8]]:
    """Return the metadata, the plan of the arena for the chosen subgraphs alone."""
    contents = model.metadata.get(ALLOCATION)
    if contents is None:
        return model.metadata
    plan = split_plan(contents, [len(subgraph.tensors) for subgraph in model.subgraphs])
    if plan is None:  # what reads it says so
        return model.metadata
    return {**model.metadata, ALLOCATION: plan_of([plan[index] for index in order])}
