"""Names of an ONNX network that the quantiser's own cannot be mistaken for.

The quantiser writes beside each tensor others that are named after it, and looks for none of that
name first: a network that has one already would become one with two tensors of one name. It also
keeps one copy of what several operators take, though each may need it in a scale of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mizzen.calibration.onnx_graph import captured

FLOAT = 1
"""Ref: ONNX, onnx.proto, TensorProto.FLOAT."""

SUFFIXES = (
    "_scale",
    "_zero_point",
    "_quantized",
    "_QuantizeLinear_Input",
    "_QuantizeLinear_Output",
    "_DequantizeLinear_Output",
)
"""What the quantiser adds to names. Ref: ONNX Runtime, quantization/quant_utils.py."""


def free_names(model: Any) -> None:
    """Rename tensors inside of a network that are named as the quantiser names its own.

    Inputs, outputs and what a branch takes keep theirs.
    """
    graph = model.graph
    taken = set(_names(graph))
    held = {value.name for value in (*graph.input, *graph.output)}
    held |= {name for node in graph.node for each in node.attribute for name in captured(each)}
    renamed: dict[str, str] = {}
    for name in sorted(taken):
        for suffix in SUFFIXES:
            before = name.removesuffix(suffix)
            if before == name or before in renamed or before not in taken:
                continue
            moved = name if name not in held else before
            if moved not in held:
                renamed[moved] = _unlike(moved, taken)
    for tensor in graph.initializer:
        tensor.name = renamed.get(tensor.name, tensor.name)
    for node in graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                names[place] = renamed.get(name, name)


def part_constants(model: Any) -> None:
    """Let each user of real constants have them to itself.

    A bias has the scale of its operator's input, a weight channels along its operator's axis; and
    ONNX Runtime does not read every network in which operators share one DequantizeLinear of a
    constant.
    """
    graph = model.graph
    held = {tensor.name: tensor for tensor in graph.initializer if tensor.data_type == FLOAT}
    taken, used = set(_names(graph)), set[str]()
    used.update(value.name for value in graph.output)
    for node in graph.node:
        used.update(name for each in node.attribute for name in captured(each))
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name not in held:
                continue
            if name in used:
                copy: Any = type(held[name])()
                copy.CopyFrom(held[name])
                copy.name = _unlike(name, taken)
                graph.initializer.append(copy)
                node.input[place] = copy.name
            used.add(name)


def _names(graph: Any) -> Iterator[str]:
    """Return the names of all tensors outside of branches."""
    yield from (each.name for each in (*graph.input, *graph.output, *graph.initializer))
    yield from (name for node in graph.node for name in (*node.input, *node.output) if name)


def _unlike(name: str, taken: set[str]) -> str:
    """Return another name, of which the quantiser makes none that there is; it is taken then."""
    number = 1
    while any(f"{name}.{number}{suffix}" in taken for suffix in ("", *SUFFIXES)):
        number += 1
    taken.add(f"{name}.{number}")
    return f"{name}.{number}"
