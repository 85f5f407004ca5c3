"""Parts of a file that hold nodes: its graph, branches of `If`, functions."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from mizzen.diagnostics import Origin, fail
from mizzen.frontends.onnx.attributes import Given, attributes_of
from mizzen.frontends.onnx.draft import Draft
from mizzen.frontends.onnx.external import Beside
from mizzen.frontends.onnx.model import ONNX, Array, Node
from mizzen.frontends.onnx.schemas import FORMS
from mizzen.frontends.onnx.tensors import NARROW, dense, of_sparse, wrong
from mizzen.frontends.onnx.wire import Message

MOST_NESTED = 24
"""Functions and branches in one another."""
MOST_NODES = 200_000
"""Nodes of a network once its functions stand where they are called."""

MOST_OPERANDS = 4096
"""Inputs of a node, and outputs."""

FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""


@dataclass(frozen=True, eq=False)
class Body:
    """Nodes that are being taken, and what their words mean.

    names      what a tensor is called outside, by its name within
    index      place of the node that the body stands for; None for the network's own graph
    opsets     versions of the sets of operators that the body uses
    given      attributes that its function was called with
    depth      how many bodies it is within
    """

    messages: list[Message]
    names: MutableMapping[str, str]
    index: int | None
    opsets: Mapping[str, int]
    given: Given
    depth: int
    prefix: str = ""

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        return self.opsets.get(ONNX, FORMS)


def domain_of(message: Message) -> str:
    """Say a domain by one name: `ai.onnx` is ONNX's own too."""
    domain = message.get("domain", "")
    return ONNX if domain == "ai.onnx" else domain


def opsets_of(messages: list[Message]) -> dict[str, int]:
    """Say which version of each domain's operators is used."""
    return {domain_of(message): message.get("version", 1) for message in messages}


def key_of(message: Message, kind: str) -> FunctionKey:
    """Say which function a node calls, or a function is."""
    return domain_of(message), message.get(kind, ""), message.get("overload", "")


def node_of(message: Message, place: int, body: Body, draft: Draft, beside: Beside) -> Node:
    """Take a node of a body; its tensors get the names that they have outside."""
    index = place if body.index is None else body.index
    kind: str = message.get("op_type", "")
    inputs: list[str] = message.get("input", [])
    outputs: list[str] = message.get("output", [])
    named: str = message.get("name") or next((name for name in outputs if name), "")
    name = named if body.index is None else f"{body.prefix}/{named}"
    origin = Origin(model=draft.file, operator=index, kind=kind, name=name)
    if max(len(inputs), len(outputs)) > MOST_OPERANDS:
        raise fail(
            "E192",
            f"a node must have at most {MOST_OPERANDS:,} inputs and outputs, and has more",
            origin=origin,
        )
    for output in outputs:
        if output:
            body.names[output] = (
                output if body.index is None else draft.fresh(f"{body.prefix}/{output}")
            )
    attributes = attributes_of(message.get("attribute", []), body.given, body.names, beside, origin)
    return Node(
        index,
        kind,
        domain_of(message),
        name,
        tuple(body.names.get(text, text) if text else "" for text in inputs),
        tuple(body.names[text] if text else "" for text in outputs),
        attributes,
    )


def require_depth(body: Body, origin: Origin) -> None:
    """Raise E192 where bodies lie too deep in one another."""
    if body.depth > MOST_NESTED:
        raise fail(
            "E192",
            f"functions and branches must lie at most {MOST_NESTED} deep in one another, "
            "and lie deeper",
            origin=origin,
        )


def constants_of(graph: Message, beside: Beside, file: str) -> dict[str, tuple[Array, int]]:
    """Read the initializers of a graph, each with the number of its type."""
    result: dict[str, tuple[Array, int]] = {}
    for message in graph.get("initializer", ()):
        name = message.get("name", "")
        origin = Origin(model=file, name=name)
        _require_new(name, result, origin)
        result[name] = dense(message, beside, origin), message.get("data_type", 0)
    for message in graph.get("sparse_initializer", ()):
        name = message.get("values", {}).get("name", "")
        origin = Origin(model=file, name=name)
        _require_new(name, result, origin)
        result[name] = of_sparse(message, beside, origin), 0
    return result


def _require_new(name: str, known: Mapping[str, object], origin: Origin) -> None:
    if not name or name in known:
        raise wrong(origin, f'initializers must have different names, and "{name}" is no such')


def narrow_limits(number: int) -> tuple[int, int] | None:
    """Say the limits of a type of a few bits; nothing for others."""
    if number not in NARROW:
        return None
    bits, is_signed = NARROW[number]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
