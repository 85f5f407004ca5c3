"""Read an ONNX file to a `Model`.

A file is a stranger's: it is taken apart within bounds (`wire`), its numbers are read as they fit
their types (`tensors`, `external`), and nothing is computed before its size is known (`folding`).
Whatever is wrong ends in a diagnostic.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mizzen.diagnostics import MizzenError, Origin
from mizzen.frontends.onnx.bodies import Body, constants_of, key_of, opsets_of
from mizzen.frontends.onnx.draft import Draft
from mizzen.frontends.onnx.external import Beside
from mizzen.frontends.onnx.finishing import finished
from mizzen.frontends.onnx.model import ONNX, Model, TensorType
from mizzen.frontends.onnx.normalising import Normalising
from mizzen.frontends.onnx.recognising import is_onnx
from mizzen.frontends.onnx.schemas import FORMS, require_onnx, require_opset
from mizzen.frontends.onnx.shapes import Binding, Shapes
from mizzen.frontends.onnx.tensors import wrong
from mizzen.frontends.onnx.wire import Message, parse

__all__ = ["is_onnx", "read", "require_onnx"]


def read(data: bytes, name: str, folder: Path | None = None, shapes: Shapes | None = None) -> Model:
    """Read a network.

    folder  where files of weights beside it may lie; None where it came as bytes
    shapes  of inputs by their names, and extents of symbolic dimensions

    Raises E189 for a dimension that nothing says, E190 for what is no valid ONNX, E191 for weights
    outside of the folder, E192 for what is too large, E193 without the package `onnx`, E194 for
    operators and types that nothing here takes, E197 for shapes of nothing.
    """
    require_onnx()
    message = parse(data, name)
    graph = message.get("graph")
    if graph is None:
        raise wrong(Origin(model=name), f"{name} must have a graph, and has none")
    opsets = opsets_of(message.get("opset_import", []))
    opset = opsets.get(ONNX, FORMS if opsets else 1)
    require_opset(opset, name, Origin(model=name))
    draft = Draft(name, max(opset, FORMS))
    beside = Beside(folder)
    constants = constants_of(graph, beside, name)
    inputs = [entry for entry in graph.get("input", ()) if entry.get("name", "") not in constants]
    binding = Binding(name, shapes or {})
    types = binding.bind(_named(inputs, name))
    outputs = _outputs(graph, name)
    draft.types.update(types)
    draft.known.update(_every_name(graph))
    walk = Normalising(draft, beside, _functions(message), _declared(graph, binding))
    body = Body(graph.get("node", []), {text: text for text in types}, None, opsets, {}, 0)
    walk.define(constants, body)
    with _reminding(binding.said):
        walk.body(body, outputs)
    return finished(walk, tuple(types), tuple(outputs), tuple(binding.said))


@contextmanager
def _reminding(said: Sequence[str]) -> Generator[None]:
    """Let an error say which extents were taken as 1, as they may be why shapes do not fit."""
    try:
        yield
    except MizzenError as error:
        diagnostic = error.diagnostic
        if diagnostic.code != "E190" or diagnostic.help is not None or not said:
            raise
        raise MizzenError(replace(diagnostic, help="; ".join(said))) from None


def _named(inputs: list[Message], name: str) -> list[Message]:
    names = [entry.get("name", "") for entry in inputs]
    if len(set(names)) != len(names) or "" in names:
        raise wrong(Origin(model=name), f"inputs of {name} must have names of their own")
    return inputs


def _outputs(graph: Message, name: str) -> list[str]:
    names = [entry.get("name", "") for entry in graph.get("output", ())]
    if not names or len(set(names)) != len(names) or "" in names:
        raise wrong(Origin(model=name), f"{name} must have outputs, with names of their own")
    return names


def _every_name(graph: Message) -> set[str]:
    names = {entry.get("name", "") for entry in graph.get("input", ())}
    for node in graph.get("node", ()):
        names.update(node.get("output", ()))
    return names


def _functions(message: Message) -> dict[tuple[str, str, str], Message]:
    return {key_of(entry, "name"): entry for entry in message.get("functions", ())}


def _declared(graph: Message, binding: Binding) -> Mapping[str, TensorType]:
    declared = [*graph.get("value_info", ()), *graph.get("output", ())]
    types = {entry.get("name", ""): binding.declared(entry) for entry in declared}
    return {name: type for name, type in types.items() if type is not None}
