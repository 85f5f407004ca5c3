"""Compile a rewritten network in the name of the user's, and show that it is the same.

What was compiled is proved against the rewritten network like any other; that the rewritten network
computes what the user's does is executed as well: the artifact's outputs against the reference of
the network as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from mizzen.artifact.batching import Batch, Form
from mizzen.artifact.execution import Contents, execute_in_parts
from mizzen.compiler.ethos_u.outcome import Generated
from mizzen.compiler.proof.options import ProofOptions
from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.tflite import Model

Kept = TypeVar("Kept")


def in_terms_of(generated: Generated, sources: Sequence[int]) -> Generated:
    """Return generated code with the operators that its own are parts of, by their indices."""
    compiled = generated.compiled
    return replace(
        generated,
        compiled=replace(
            compiled,
            work=tuple(replace(row, operator=_of(row.operator, sources)) for row in compiled.work),
            commands=tuple(
                replace(row, operator=_of(row.operator, sources)) for row in compiled.commands
            ),
        ),
        hidden=_all_of(generated.hidden, sources),
        reasons=_by_source(generated.reasons, sources),
        wrong=_by_source(generated.wrong, sources),
    )


def _of(operator: int | None, sources: Sequence[int]) -> int | None:
    known = operator is not None and 0 <= operator < len(sources)
    return sources[operator] if known and operator is not None else None


def _all_of(operators: Iterable[int], sources: Sequence[int]) -> frozenset[int]:
    return frozenset(sources[row] for row in operators)


def _by_source(rows: Mapping[int, Kept], sources: Sequence[int]) -> dict[int, Kept]:
    return {sources[index]: row for index, row in rows.items()}


def require_same(
    model: Model, contents: Contents, names: Sequence[str], options: ProofOptions
) -> None:
    """Execute an artifact of a rewritten network, and compare it with the network as it was.

    E268 if an output differs by more than is documented for its operator, E269 if the network
    cannot be executed here.
    """
    from mizzen.compiler.ethos_u.proof import NetworkProof
    from mizzen.frontends.tflite.lower import lower

    try:
        proof = NetworkProof(model, lower(model), options)
        truth = proof.first
    except MizzenError as error:
        raise _unproved(model, names, error.diagnostic.message) from None
    if truth.stopped is not None:
        raise _unproved(model, names, truth.stopped.diagnostic.message)
    batch = Batch(proof.count, Form.STACKED, tuple(proof.inputs))
    found = execute_in_parts(contents, batch)
    for place, array in zip(model.main.outputs, found, strict=True):
        expected = truth.values[place]
        ours = array.reshape(expected.shape)
        if not np.array_equal(ours, expected) and not proof.allowed(place, ours, expected):
            differing = int(np.count_nonzero(ours != expected))
            raise _differs(model, names, place, differing, expected.size)


def _differs(
    model: Model, names: Sequence[str], place: int, differing: int, size: int
) -> MizzenError:
    name = model.main.tensors[place].name
    return fail(
        "E268",
        f"what is rewritten by {', '.join(names)} must give what the network gives, and of output "
        f'"{name}" {differing} of {size} numbers differ',
        origin=Origin(model.name),
        help="compile it without these rewrites",
    )


def _unproved(model: Model, names: Sequence[str], why: str) -> MizzenError:
    return fail(
        "E269",
        f"what is rewritten by {', '.join(names)} must be compared with the network, which cannot "
        f"be executed here: {why}",
        origin=Origin(model.name),
        help="compile it without these rewrites",
    )
