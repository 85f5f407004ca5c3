"""What keeps groups of a graph from the NPU, for `mizzen.partition`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.diagnostics import Reason
from mizzen.graph import Operation
from mizzen.targets.ethos_n.patterns.covering import CONSTANTS, SOURCE, Covering

Legal = Callable[[Operation], Sequence[Reason]]


def legality(covering: Covering) -> Legal:
    """Return what says why an operation of a graph may not be on the NPU; nothing if it may.

    Groups are placed whole, so all operations of one have the same reasons. The graph must stay
    as it was covered.
    """
    members: dict[int | None, list[Operation]] = {}
    for operation in covering.graph.sorted():
        if operation.kind not in CONSTANTS:
            members.setdefault(operation.group, []).append(operation)
    found = {group: covering.reasons(rows) for group, rows in members.items()}
    _spread(covering, found)

    def legal(operation: Operation) -> Sequence[Reason]:
        return found.get(operation.group, ())

    return legal


def _spread(covering: Covering, found: dict[int | None, tuple[Reason, ...]]) -> None:
    """Return reasons to groups whose operations are in a composite with those of refused groups.

    A composite is done whole: a PAD that is only right in front of its convolution stays where
    that stays.
    """
    changed = True
    while changed:
        changed = False
        for composite in covering.composites:
            groups = {row.group: row for row in composite.operations}
            refused = [row for group, row in groups.items() if found.get(group)]
            for group in groups if refused else ():
                if not found.get(group):
                    kind = refused[0].kind
                    found[group] = (
                        Reason(
                            "whole-composite",
                            f"it is part of {composite.name} with {kind}, which stays on the CPU",
                            f"all of {composite.name} on the NPU",
                            kind,
                            f"what keeps {kind} from the NPU keeps it too",
                            SOURCE,
                        ),
                    )
                    changed = True
