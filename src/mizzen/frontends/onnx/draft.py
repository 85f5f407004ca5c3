"""A network while it is brought to few forms: what is known of its tensors so far."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.onnx.model import Array, Node, TensorType
from mizzen.frontends.onnx.wire import Message


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A graph that is an attribute of a node, and what names outside of it mean there."""

    message: Message
    names: MutableMapping[str, str]


@dataclass(eq=False)
class Draft:
    """What is known of a network so far.

    file       what diagnostics call it
    types      of every tensor that was met, constants included
    constants  tensors that depend on no input
    narrow     constants of 2 or 4 bits, which are held in 8: the limits of their types
    known      every name that is taken
    opset      the version of ONNX's operators whose schemas say what results are
    """

    file: str
    opset: int
    types: dict[str, TensorType] = field(default_factory=dict[str, TensorType])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    narrow: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    known: set[str] = field(default_factory=set[str])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])

    def fresh(self, hint: str) -> str:
        """Make a name that no tensor has."""
        name, number = hint, self._numbers.get(hint, 0)
        while not name or name in self.known:
            number += 1
            name = f"{hint}:{number}"
        self._numbers[hint] = number
        self.known.add(name)
        return name

    def constant(self, value: Any, hint: str) -> str:
        """Add a constant; its name."""
        return self.define(self.fresh(hint), np.asarray(value))

    def define(self, name: str, array: Array) -> str:
        """Say that a tensor is constant."""
        self.constants[name] = array
        self.types[name] = TensorType(array.dtype, tuple(array.shape))
        self.known.add(name)
        return name

    def value(self, name: str) -> Array | None:
        """Look up a constant."""
        return self.constants.get(name)

    def input_value(self, node: Node, place: int) -> Array | None:
        """Look up an input that is constant; None as well where it is left out."""
        return self.constants.get(node.inputs[place]) if has(node, place) else None

    def shape(self, name: str) -> tuple[int, ...]:
        """Look up the extents of a tensor."""
        return self.types[name].shape

    def origin(self, node: Node) -> Origin:
        """Say where a node is in the user's file."""
        return Origin(model=self.file, operator=node.index, kind=node.kind, name=node.name)

    def wrong(self, node: Node, rule: str, help: str | None = None) -> MizzenError:
        """Make the error for a node that breaks a rule of ONNX: ``Conv must have ..., and has``."""
        return fail("E190", f"{node.kind} {rule}", origin=self.origin(node), help=help)

    def refused(self, node: Node, rule: str, help: str | None = None) -> MizzenError:
        """Make the error for a node that is right, and that nothing here takes."""
        return fail("E194", f"{node.kind} {rule}", origin=self.origin(node), help=help)


def has(node: Node, place: int) -> bool:
    """Whether a node has an input at a place."""
    return place < len(node.inputs) and node.inputs[place] != ""


def changed(
    node: Node,
    *,
    kind: str | None = None,
    inputs: tuple[str, ...] | None = None,
    outputs: tuple[str, ...] | None = None,
    without: tuple[str, ...] = (),
    **attributes: Any,
) -> Node:
    """Copy a node with other parts; attributes are added to those that it has."""
    kept = {name: value for name, value in node.attributes.items() if name not in without}
    return replace(
        node,
        kind=node.kind if kind is None else kind,
        inputs=node.inputs if inputs is None else inputs,
        outputs=node.outputs if outputs is None else outputs,
        attributes=kept | attributes,
    )


def made(
    node: Node, kind: str, inputs: tuple[str, ...], outputs: tuple[str, ...], **attributes: Any
) -> Node:
    """Make a node of ONNX's own that stands, with others, for one of the file."""
    return Node(node.index, kind, "", node.name, inputs, outputs, attributes)
