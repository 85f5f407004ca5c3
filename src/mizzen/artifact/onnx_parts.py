"""The ONNX networks in an archive, checked before ONNX Runtime is given them.

An archive may be a stranger's. ONNX Runtime would read files that a network names, load libraries
for operators of other domains, and expand functions; what Mizzen writes has nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mizzen.artifact.interface import Shape
from mizzen.diagnostics import fail, install_extra

Form = tuple[Shape, np.dtype[Any]]
"""The shape of a tensor for one inference, and its type."""

DOMAINS = frozenset({"", "ai.onnx", "com.microsoft"})

LARGEST_BYTES = 1 << 30
"""Of a part's network; ONNX's own limit is twice that."""

DEEPEST = 16
"""Networks inside of networks, of operators that choose or repeat."""


def require_plain(data: bytes, name: str) -> None:
    """Check that a network names nothing outside of itself. ValueError says what; E193."""
    if len(data) > LARGEST_BYTES:
        raise ValueError(f"it has {len(data)} bytes")
    model = parsed(data, name)
    if model.functions:
        raise ValueError("it has functions of its own")
    _require_plain_graph(model.graph, 0)


def _require_plain_graph(graph: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(f"it has networks in {depth} others")
    sparse = (each.values for each in graph.sparse_initializer)
    _require_held((*graph.initializer, *sparse))
    for node in graph.node:
        if node.domain not in DOMAINS:
            raise ValueError(f"it has an operator of {node.domain}")
        for attribute in node.attribute:
            _require_held((attribute.t, attribute.sparse_tensor.values, *attribute.tensors,
                           *(each.values for each in attribute.sparse_tensors)))  # fmt: skip
            for inner in _graphs(attribute):
                _require_plain_graph(inner, depth + 1)


def _graphs(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def _require_held(tensors: Iterable[Any]) -> None:
    for tensor in tensors:
        if tensor.external_data or tensor.data_location:
            raise ValueError(f"it has {tensor.name} in another file")


def edge_of_network(data: bytes) -> tuple[list[Form], list[Form]]:
    """Return the forms of the inputs and outputs of a network. ValueError if they are open."""
    graph = parsed(data, "the part").graph
    held = {tensor.name for tensor in graph.initializer}
    taken = [value for value in graph.input if value.name not in held]
    return [_form(value) for value in taken], [_form(value) for value in graph.output]


def _form(value: Any) -> Form:
    from onnx import helper

    tensor = value.type.tensor_type
    if any(not extent.HasField("dim_value") or extent.dim_value < 0 for extent in tensor.shape.dim):
        raise ValueError(f"the shape of {value.name} is open")
    shape = tuple(extent.dim_value for extent in tensor.shape.dim)
    return shape, np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def parsed(data: bytes, name: str) -> Any:
    """Return a network of ONNX's. E193 without the package onnx, ValueError for damaged bytes."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise fail(
            "E193",
            f"the package onnx must be installed to read {name}, which has operators of ONNX: "
            f"{error}",
            help=install_extra("onnx"),
        ) from None
    try:
        return onnx.load_model_from_string(data)
    except DecodeError as error:
        raise ValueError(f"it is damaged: {error}") from None
