"""An ONNX network as plain data: what `reading` makes and everything else takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin

Array = npt.NDArray[Any]

ONNX = ""
"""The domain of ONNX's own operators; `ai.onnx` is another name of it."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a tensor's elements, as NumPy says it, and its extents, all known."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Node:
    """One operator.

    index       its place among the nodes of the user's file
    kind        the type of the operator: ``Conv``
    domain      of the type: empty for ONNX's own
    name        the node's name in the file, or the name of its first output where it has none
    inputs      names of tensors; an empty name is an input that is left out
    attributes  int, float, str, tuples of those, `Array`, by name; defaults are not filled in
    """

    index: int
    kind: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, eq=False)
class Model:
    """A network: nodes in an order in which each has its inputs.

    opset      version of ONNX's own operators, which the nodes' forms follow
    inputs     names of the tensors that a caller gives, constants left out
    types      of every tensor that a node takes or gives, and of the constants
    constants  tensors that depend on no input
    said       what reading decided for the user, in sentences: a batch of 1 and the like
    """

    name: str
    opset: int
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    types: Mapping[str, TensorType]
    constants: Mapping[str, Array]
    said: tuple[str, ...] = ()

    def origin(self, node: Node) -> Origin:
        """Say where a node is in the user's file."""
        return Origin(model=self.name, operator=node.index, kind=node.kind, name=node.name)
