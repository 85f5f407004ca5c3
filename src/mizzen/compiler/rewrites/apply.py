"""Apply rewrites to a network, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.artifact.steps import read_network
from mizzen.compiler.rewrites.draft import Draft
from mizzen.compiler.rewrites.table import Named, named
from mizzen.diagnostics import Origin, fail
from mizzen.frontends.tflite import Model


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """A network as it was rewritten, and its file.

    sources  for each operator, that of the user's network which it is a part of
    """

    model: Model
    data: bytes
    sources: tuple[int, ...]


def rewritten(model: Model, data: bytes, names: Sequence[str]) -> Rewritten:
    """Apply rewrites by their names, in order, to a network whose file is `data`.

    E261 for a name that there is not, E267 for a rewrite that the network does not allow.
    """
    sources = tuple(range(len(model.main.operators)))
    result = Rewritten(model, data, sources)
    for name in names:
        result = _applied(result, named(name))
    return result


def allows(model: Model) -> bool:
    """Whether a network may be rewritten at all: one subgraph, and nothing that is kept."""
    main = model.main
    kept = any(tensor.variable for tensor in main.tensors)
    return len(model.subgraphs) == 1 and not kept and bool(main.operators)


def _applied(before: Rewritten, form: Named) -> Rewritten:
    if allows(before.model):
        draft = Draft(before.model)
        if form.rewrite(draft):
            data = draft.file()
            sources = tuple(before.sources[index] for index in draft.sources)
            return Rewritten(read_network(data, before.model.name), data, sources)
    raise fail(
        "E267",
        f"the rewrite {form.name} must fit the network, and does not: {form.needs}",
        origin=Origin(before.model.name),
        help="`mizzen tune` finds those that a network gains by",
    )
