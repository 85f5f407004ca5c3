"""ONNX networks before they are quantised: with names and shapes, and ended where the user says."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mizzen.calibration.scheme import no_such_node
from mizzen.diagnostics import Origin, fail
from mizzen.frontends.onnx.external import Beside
from mizzen.frontends.onnx.model import Model as Network

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
LIMITS = frozenset({"Relu", "Clip"})
"""Operators that leave an operator's numbers as they are, within limits."""

BIAS, BIAS_AXES = 2, 2
"""Which input of a dense layer it is, and how many axes it may have."""

OWN_CONSTANTS = 4
"""The first version of the format whose constants need not be among the inputs."""

FURTHEST = 1e37
"""From zero that the ends of a range may be: their distance is a float32 as well."""

NEAR = 3
"""Names that may be meant, for one that there is not."""

FLOAT = 1
"""Ref: ONNX, onnx.proto, TensorProto.FLOAT."""


def load(data: bytes, network: Network, folder: Path) -> Any:
    """Return the `ModelProto` of a file that was read, with its weights in it and its shapes known.

    network  what reading made of it
    folder   where weights beside it lie

    E190 for what ONNX's own reader does not take, E191 for weights that do not lie there.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model: Any = onnx.load_model_from_string(data)
    except DecodeError as error:
        raise fail("E190", f"{network.name} must be an ONNX network: {error}") from None
    beside = Beside(folder)
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _bring(tensor, beside, network.name)
    _bind(model, network)
    return model


def _bring(tensor: Any, beside: Beside, name: str) -> None:
    """Put the numbers of a tensor that lie beside the file into it."""
    from onnx import helper

    elements = math.prod(int(extent) for extent in tensor.dims)
    size = elements * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    entries = {str(entry.key): str(entry.value) for entry in tensor.external_data}
    tensor.raw_data = beside.tensor(entries, size, Origin(model=name, name=tensor.name))
    tensor.ClearField("data_location")
    del tensor.external_data[:]


def _bind(model: Any, network: Network) -> None:
    """Give the inputs the shapes that the network was read with, and no other tensor one."""
    held = {tensor.name for tensor in model.graph.initializer}
    given = [value for value in model.graph.input if value.name not in held]
    del model.graph.input[:]
    model.graph.input.extend(given)
    model.ir_version = max(model.ir_version, OWN_CONSTANTS)
    for value in model.graph.input:
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        for extent in network.types[value.name].shape:
            shape.dim.add().dim_value = extent
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def give_names(model: Any) -> None:
    """Let each node have a name of its own: the first output's, where it has none."""
    taken = set[str]()
    for node in model.graph.node:
        if not node.name or node.name in taken:
            node.name = str(next((name for name in node.output if name), node.op_type))
        while node.name in taken:
            node.name += "_"
        taken.add(node.name)


def node_named(nodes: Iterable[Any], name: str, option: str, model: str) -> Any:
    """Return the node of a name, of an output or of a number. E198 if there is none."""
    listed = list(nodes)
    by_name = {str(output): node for node in listed for output in node.output if output}
    by_name.update({str(node.name): node for node in listed})
    if name in by_name:
        return by_name[name]
    if name.isdecimal() and int(name) < len(listed):
        return listed[int(name)]
    raise no_such_node(option, name, difflib.get_close_matches(name, by_name, n=NEAR), model)


def cut(model: Any, ends: Sequence[Any]) -> None:
    """End a network at some nodes: it gives what these do, and what does not need them."""
    import onnx

    graph = model.graph
    outputs = [output for node in ends for output in node.output if output]
    behind = set(outputs)
    for node in graph.node:
        if behind & set(node.input):
            behind.update(node.output)
    kept = [value for value in graph.output if value.name not in behind]
    del graph.output[:]
    graph.output.extend(onnx.helper.make_tensor_value_info(name, FLOAT, None) for name in outputs)
    graph.output.extend(kept)
    drop_unused(model)


def flatten_biases(model: Any) -> None:
    """Give biases of dense layers one axis, [N] for [1, N]: the quantiser knows no other.

    Ref: ONNX, Gemm: the bias is broadcast to the result.
    """
    held = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        bias = (
            held.get(node.input[BIAS])
            if node.op_type == "Gemm" and len(node.input) > BIAS
            else None
        )
        if bias is not None and len(bias.dims) == BIAS_AXES and bias.dims[0] == 1:
            del bias.dims[0]


def drop_zeros(model: Any) -> None:
    """Take away additions of constant zeros that change no shape; outputs keep their names.

    Zeros have no range: a scale of their own says nothing, and where it is far from the other
    operand's, ONNX Runtime's kernel of integers loses that one's bits.
    """
    from onnx import numpy_helper

    graph = model.graph
    zeros = {
        tensor.name
        for tensor in graph.initializer
        if tensor.data_type == FLOAT and not np.any(numpy_helper.to_array(tensor))
    }
    outputs = {value.name for value in graph.output}
    shapes = {value.name: _shape(value) for value in (*graph.input, *graph.value_info)}
    given: dict[str, str] = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = given.get(name, name)
        if node.op_type != "Add" or node.output[0] in outputs:
            continue
        others = [name for name in node.input if name not in zeros]
        shape = shapes.get(node.output[0])
        if len(others) == 1 and shape is not None and shapes.get(others[0]) == shape:
            given[node.output[0]] = others[0]
    drop_unused(model)


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None where it is not known."""
    dimensions = value.type.tensor_type.shape.dim
    extents = tuple(each.dim_value for each in dimensions if each.HasField("dim_value"))
    return extents if len(extents) == len(dimensions) else None


def beyond_scales(model: Any) -> Iterator[str]:
    """Return the nodes with constants that no scale of integers reaches: infinities, and near it.

    Exporters write these for "nothing", in a mask or as the least of a maximum.
    """
    from onnx import numpy_helper

    far = {
        tensor.name
        for tensor in model.graph.initializer
        if tensor.data_type == FLOAT
        and not np.all(np.abs(numpy_helper.to_array(tensor)) <= FURTHEST)
    }
    for node in model.graph.node:
        if far & set(node.input):
            yield str(node.name)


def join_limits(model: Any) -> None:
    """Take away the rounding between an operator and the Relu or Clip that alone takes its result.

    The integers of 16 bits go as far below zero as above, so that the quantiser leaves such
    operators in place. What is rounded once, after both, is one operation of integers.
    """
    nodes = list(model.graph.node)
    outputs = {value.name for value in model.graph.output}
    makers = {output: node for node in nodes for output in node.output}
    users: dict[str, list[Any]] = {}
    for node in nodes:
        for name in node.input:
            users.setdefault(name, []).append(node)
    for node in nodes:
        back = makers.get(node.input[0]) if node.op_type in LIMITS else None
        rounding = makers.get(back.input[0]) if back and back.op_type == DEQUANTIZE else None
        if back is None or rounding is None or rounding.op_type != QUANTIZE:
            continue
        computed = makers.get(rounding.input[0])
        chain = (rounding.input[0], rounding.output[0], back.output[0])
        alone = all(len(users[name]) == 1 and name not in outputs for name in chain)
        if (
            alone
            and computed is not None
            and {user.op_type for user in users[node.output[0]]} == {QUANTIZE}
        ):
            node.input[0] = rounding.input[0]


def drop_unused(model: Any) -> None:
    """Take away what no output needs: nodes, constants, versions of operators' domains."""
    graph = model.graph
    needed = {value.name for value in graph.output}
    kept: list[Any] = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed.update(node.input, *map(captured, node.attribute))
    held = [tensor for tensor in graph.initializer if tensor.name in needed]
    domains = {node.domain for node in kept if node.domain != "ai.onnx"} | {""}
    versions = [opset for opset in model.opset_import if opset.domain in domains]
    for field, values in (
        (graph.node, kept[::-1]), (graph.initializer, held), (model.opset_import, versions),
    ):  # fmt: skip
        copies: list[Any] = [_copied(value) for value in values]
        del field[:]
        field.extend(copies)


def _copied(message: Any) -> Any:
    copy: Any = type(message)()
    copy.CopyFrom(message)
    return copy


def captured(attribute: Any) -> set[str]:
    """Return the names that graphs within a node take from outside, and those within."""
    graphs = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
    names: set[str] = set()
    for graph in graphs:
        names.update(value.name for value in graph.output)
        for node in graph.node:
            names.update(node.input, *map(captured, node.attribute))
    return names


def opset(model: Any) -> int:
    """Return the version of ONNX's own operators."""
    return next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 1)
