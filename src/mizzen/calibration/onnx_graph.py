"""ONNX networks before they are quantised: with names and shapes, and ended where the user says."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mizzen.calibration.scheme import already_quantised, no_such_node
from mizzen.calibration.source import Shapes
from mizzen.diagnostics import MizzenError, fail

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
CONVERSIONS = frozenset({QUANTIZE, DEQUANTIZE, "DynamicQuantizeLinear"})
LIMITS = frozenset({"Relu", "Clip"})
"""Operators that leave an operator's numbers as they are, within limits."""

OWN_CONSTANTS = 4
"""The first version of the format whose constants need not be among the inputs."""

NEAR = 3
"""Names that may be meant, for one that there is not."""

FLOAT = 1
"""Ref: ONNX, onnx.proto, TensorProto.FLOAT."""


def load(data: bytes, path: Path) -> Any:
    """Return the `ModelProto` of a file, with weights that lie beside it.

    E190 for what is not one, E191 for weights that are not there or not within the file's folder.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model: Any = onnx.load_model_from_string(data)
    except DecodeError as error:
        raise fail("E190", f"{path.name} must be an ONNX network: {error}") from None
    if not model.graph.node:
        raise fail("E190", f"{path.name} must be an ONNX network, and has no operators")
    try:
        onnx.load_external_data_for_model(model, str(path.parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise fail(
            "E191", f"the weights of {path.name} must lie in its folder and be as long as it says: "
            f"{' '.join(str(error).split())}",
        ) from None  # fmt: skip
    return model


def require_float(model: Any, name: str) -> None:
    """Raise E198 for a network of integers."""
    for node in model.graph.node:
        kind = str(node.op_type)
        if kind in CONVERSIONS or kind.startswith(("QLinear", "QGemm")) or kind.endswith("Integer"):
            raise already_quantised(name)


def give_names(model: Any) -> None:
    """Let each node have a name of its own: the first output's, where it has none."""
    taken = set[str]()
    for node in model.graph.node:
        if not node.name or node.name in taken:
            node.name = str(next((name for name in node.output if name), node.op_type))
        while node.name in taken:
            node.name += "_"
        taken.add(node.name)


def bind(model: Any, shapes: Shapes) -> Iterator[str]:
    """Give inputs the shapes that a network is quantised with, and say what was decided.

    Dimensions that nothing says are 1. E189 for one that is not the first of its tensor.
    """
    held = {tensor.name for tensor in model.graph.initializer}
    given = [value for value in model.graph.input if value.name not in held]
    del model.graph.input[:]
    model.graph.input.extend(given)
    model.ir_version = max(model.ir_version, OWN_CONSTANTS)
    for value in given:
        open_ones = list(_bound(value, shapes))
        if open_ones:
            yield f"the batch of {value.name} is 1"
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def _bound(value: Any, shapes: Shapes) -> Iterator[int]:
    """Set the open dimensions of an input, and return those that were decided."""
    dims = value.type.tensor_type.shape.dim
    whole = shapes.get(value.name)
    for place, dim in enumerate(dims):
        if isinstance(whole, tuple) and place < len(whole):
            dim.dim_value = whole[place]
        elif dim.HasField("dim_value") and dim.dim_value > 0:
            continue
        elif isinstance(size := shapes.get(dim.dim_param), int):
            dim.dim_value = size
        elif place == 0:
            dim.dim_value = 1
            yield place
        else:
            raise _open(value, place, dim.dim_param)


def _open(value: Any, place: int, symbol: str) -> MizzenError:
    called = f" {symbol!r}" if symbol else ""
    return fail(
        "E189",
        f"the size of every dimension must be known, and that of dimension {place}{called} of the "
        f"input {value.name} is not",
        help=f"--shape {symbol or value.name}=...",
    )


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
