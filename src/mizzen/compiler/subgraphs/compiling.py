"""Compile a network of several subgraphs."""

from __future__ import annotations

from collections.abc import Callable

from mizzen.artifact.alone import apart
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import read_network
from mizzen.compiler.options import Configuration
from mizzen.compiler.subgraphs.joining import Part, arena_starts, joined, signatures
from mizzen.compiler.subgraphs.reports import Compiled, joined_report
from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.subgraphs import executed

CompileOne = Callable[[Model, bytes], Artifact]
"""Compiles a network by its main subgraph, from its file."""


def has_several(model: Model) -> bool:
    """Whether there is more to a network than its main subgraph and what CALL_ONCE executes."""
    return executed(model) != (0,) or len(model.signatures) > 1


def compile_subgraphs(
    model: Model, name: str, configuration: Configuration, compile_one: CompileOne
) -> Artifact:
    """Compile every subgraph that is executed at inferences, and join them.

    name  of the artifact

    A subgraph that the compiler does not take is left to the CPU, with what it said. Raises as
    `compile_one` where that is the main one.
    """
    artifacts: dict[int, Artifact] = {}
    refused: dict[int, Diagnostic] = {}
    for index in executed(model):
        if not model.subgraphs[index].operators:
            continue
        try:
            artifacts[index] = compile_one(*apart(model, index))
        except MizzenError as error:
            if index == 0:
                raise
            refused[index] = error.diagnostic
    compiled = {index: _compiled(artifact) for index, artifact in artifacts.items()}
    data = joined(model, {index: each.part for index, each in compiled.items()})
    starts = arena_starts(model, {index: each.part.arena_bytes for index, each in compiled.items()})
    report = joined_report(model, configuration, compiled, refused, starts, len(data))
    contents = contents_of(read_network(data, name), report.origins)
    return Artifact(data, name, contents, report)


def with_signatures(artifact: Artifact, model: Model) -> Artifact:
    """Return an artifact of one subgraph with the names that its network has for what it does."""
    assert artifact.report is not None, "a compilation always reports"
    part = _compiled(artifact).part
    data = write({**part.network.record, "signature_defs": signatures(model, {0: part})}, SCHEMA)
    contents = contents_of(read_network(data, artifact.name), artifact.report.origins)
    return Artifact(data, artifact.name, contents, artifact.report)


def _compiled(artifact: Artifact) -> Compiled:
    assert artifact.report is not None, "a compilation always reports"
    network = read_network(artifact.data, artifact.name)
    return Compiled(Part(network, artifact.report.arena_bytes), artifact.report)
