"""A subgraph or a signature of an artifact, as contents of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mizzen.artifact.execution import Contents
from mizzen.diagnostics import MizzenError, fail
from mizzen.frontends.tflite import Signature


def subgraphs_of(contents: Contents) -> tuple[Contents, ...]:
    """Return each subgraph that has steps by itself, the main one first."""
    return replace(contents, others=(), signatures=()), *contents.others


def within(contents: Contents) -> Iterator[Contents]:
    """Return contents, and those of all other subgraphs, or of those that their steps execute."""
    waiting, seen = [contents, *contents.others], set[int]()
    while waiting:
        subgraph = waiting.pop(0)
        if subgraph.index not in seen:
            seen.add(subgraph.index)
            yield subgraph
            waiting += subgraph.below.values()


def signature_contents(contents: Contents, name: str, file: str) -> Contents:
    """Return the contents of a signature, with its own names. E135 if there is none of it."""
    signature = next((each for each in contents.signatures if each.name == name), None)
    if signature is None:
        raise _unknown(contents, name, file)
    subgraph = next(each for each in subgraphs_of(contents) if each.index == signature.subgraph)
    return _named(subgraph, signature)


def _named(contents: Contents, signature: Signature) -> Contents:
    """Return contents with the names of a signature, in the subgraph's order."""
    given = {index: name for name, index in signature.inputs.items()}
    outputs = signature.outputs
    order = sorted(outputs, key=lambda name: contents.outputs.index(outputs[name]))
    names = {outputs[name]: name for name in order} | given
    return replace(
        contents,
        outputs=tuple(outputs[name] for name in order),
        infos={
            index: replace(info, name=names.get(index, info.name))
            for index, info in contents.infos.items()
        },
    )


def _unknown(contents: Contents, name: str, file: str) -> MizzenError:
    there = ", ".join(signature.name for signature in contents.signatures)
    return fail(
        "E135",
        f"{file} must have a signature {name!r}, and has {there or 'none'}",
        help="take one of these" if there else "leave the signature out",
    )
