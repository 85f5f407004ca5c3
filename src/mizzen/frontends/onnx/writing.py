"""Write some nodes of a network as an ONNX file of its own, for ONNX Runtime to compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mizzen.diagnostics import Origin, fail
from mizzen.frontends.onnx.model import ONNX, Model, Node, TensorType
from mizzen.frontends.onnx.schemas import (
    OLDEST,
    input_message,
    node_message,
    oldest_opset,
    require_onnx,
    tensor_message,
)

IR_VERSION = 10
"""Of the file's format: the oldest that has all types of opset 21."""

MOST_BYTES = (1 << 31) - (1 << 20)
"""What a message of protobuf may have."""


def submodel(
    model: Model,
    nodes: Sequence[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
    types: Mapping[str, TensorType] | None = None,
) -> bytes:
    """Write nodes of a network, in their order, with the constants that they use.

    inputs   tensors that a caller gives; constants among them are left out
    types    of tensors, where they are others than the network's

    The opset is the oldest that the nodes' forms are of, so that older runtimes take the file.
    What dequantises a constant for several nodes is written for each: ONNX Runtime copies it else,
    and refuses where it changes the sign of the constant's integers twice.
    Raises E192 where the constants are too large for a file.
    """
    import onnx

    require_onnx()
    known = {**model.types, **(types or {})}
    nodes, copies = _of_one_user(model, nodes, outputs)
    known.update({copy: known[name] for copy, name in copies.items() if name in known})
    held = {**model.constants, **{copy: model.constants[name] for copy, name in copies.items()
                                  if name in model.constants}}  # fmt: skip
    asked = [name for node in nodes for name in node.inputs if name] + list(outputs)
    constants = [name for name in dict.fromkeys(asked) if name in held]
    size = sum(held[name].nbytes for name in constants)
    if size > MOST_BYTES:
        raise fail(
            "E192",
            f"constants of one step must take at most {MOST_BYTES:,} bytes, and take {size:,}",
            origin=Origin(model=model.name),
        )
    graph = onnx.GraphProto(
        name="step",
        node=[node_message(node) for node in nodes],
        input=[input_message(name, known[name]) for name in inputs if name not in constants],
        output=[input_message(name, known[name]) for name in outputs],
        initializer=[tensor_message(name, held[name]) for name in constants],
    )
    opsets = [
        oldest_opset(node, model.opset, [known.get(name) for name in node.inputs])
        for node in nodes
        if node.domain == ONNX
    ]
    opset = max([OLDEST, *opsets])
    others = sorted({node.domain for node in nodes} - {ONNX})
    imports = [onnx.OperatorSetIdProto(domain=ONNX, version=opset)]
    imports += [onnx.OperatorSetIdProto(domain=domain, version=1) for domain in others]
    message = onnx.ModelProto(
        ir_version=IR_VERSION, producer_name="mizzen", graph=graph, opset_import=imports
    )
    return message.SerializeToString(deterministic=True)


def _of_one_user(
    model: Model, nodes: Sequence[Node], outputs: Sequence[str]
) -> tuple[Sequence[Node], dict[str, str]]:
    """Return nodes of which each has dequantised constants to itself, and copies of tensors."""
    constants = {
        node.outputs[0]: node
        for node in nodes
        if node.kind == "DequantizeLinear" and node.inputs[0] in model.constants
    }
    taken = {*model.types, *model.constants, *outputs}
    used = set(outputs)
    copies: dict[str, str] = {}
    written: list[Node] = []
    for node in nodes:
        own = list(node.inputs)
        for place, name in enumerate(node.inputs):
            if name in constants and name in used:
                source = constants[name]
                taken_by_it = tuple(_copied(each, taken, copies) for each in source.inputs)
                own[place] = _copied(name, taken, copies)
                written.append(replace(source, inputs=taken_by_it, outputs=(own[place],)))
            used.add(name)
        written.append(replace(node, inputs=tuple(own)) if own != list(node.inputs) else node)
    return written, copies


def _copied(name: str, taken: set[str], copies: dict[str, str]) -> str:
    number = 1
    while f"{name}.{number}" in taken:
        number += 1
    taken.add(f"{name}.{number}")
    copies[f"{name}.{number}"] = name
    return f"{name}.{number}"
