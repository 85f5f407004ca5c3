"""Compile a rewritten network in the name of the user's, and show that it is the same.

What was compiled is proved against the rewritten network like any other; that the rewritten network
computes what the user's does is executed as well: the artifact's outputs against the reference of
the network as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.batching import Batch, Form
from mizzen.artifact.execution import Contents, execute_in_parts
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.bounds import bounds_of
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.report import in_terms_of
from mizzen.compiler.rewrites import rewritten
from mizzen.compiler.tflite_truth import NetworkTruth
from mizzen.diagnostics import MizzenError, Origin, Reason, fail
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.lower import lower

REWRITTEN = Reason(
    "rewritten",
    "a rewrite that was asked for does without it",
    help="nothing needs doing",
)


def compile_rewritten(
    model: Model,
    data: bytes,
    names: Sequence[str],
    options: ProofOptions,
    compile_one: Callable[[Model, bytes], Artifact],
) -> Artifact:
    """Compile a network as it is rewritten, and show that it computes what the network does.

    Raises as `compile_one`, E261 and E267 as `rewritten`, E268 and E269 as `require_same`.
    """
    made = rewritten(model, data, names)
    artifact = compile_one(made.model, made.data)
    assert artifact.report is not None, "a compilation always reports"
    report = in_terms_of(artifact.report, model, made.sources, lambda operator: REWRITTEN)
    contents = contents_of(read_network(artifact.data, artifact.name), report.origins)
    if options.inputs:
        require_same(model, contents, names, options)
    return Artifact(artifact.data, artifact.name, contents, report)


def require_same(
    model: Model, contents: Contents, names: Sequence[str], options: ProofOptions
) -> None:
    """Execute an artifact of a rewritten network, and compare it with the network as it was.

    E268 if an output differs by more than is documented for its operator, E269 if the network
    cannot be executed here.
    """
    try:
        proof = NetworkTruth(model, lower(model), options, bounds_of(model))
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
