"""One form of quantisation: DequantizeLinear, the operator in floating point, QuantizeLinear.

Files say the same in three ways: with these two around operators, with operators that take and
give integers (QLinearConv), and with those of ONNX Runtime (com.microsoft). Rows of `ROWS` take the
last two apart. Where a scale is no constant the node stays as it is, for ONNX Runtime to compute.
What is quantised when it runs, or by rules of another project, is refused with what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mizzen.frontends.onnx.draft import Draft, changed, has, made
from mizzen.frontends.onnx.model import ONNX, Array, Model, Node

MICROSOFT = "com.microsoft"

Row = Callable[[Node, Draft], "list[Node] | None"]

_STATIC = "quantise with a set of samples (static quantisation): mizzen quantize"
REFUSED: Mapping[str, tuple[str, str]] = {
    "DynamicQuantizeLinear": ("chooses its scale when it runs, which no NPU does", _STATIC),
    "DynamicQuantizeMatMul": ("chooses its scale when it runs, which no NPU does", _STATIC),
    "DynamicQuantizeLSTM": ("chooses its scale when it runs, which no NPU does", _STATIC),
    "Quant": ("is of QONNX", "export with QuantizeLinear and DequantizeLinear: qonnx-to-qcdq"),
    "BipolarQuant": ("is of QONNX, and has weights of one bit", "quantise the network to 8 bits"),
    "Trunc": ("is of QONNX", "export with QuantizeLinear and DequantizeLinear: qonnx-to-qcdq"),
    "RequantShift": (
        "is of Deeploy, which keeps integers in float32",
        "export the network before Deeploy's passes, with QuantizeLinear and DequantizeLinear",
    ),
    "Loop": ("repeats a graph as often as values say", "unroll the loop when exporting"),
    "Scan": ("repeats a graph for each part of a tensor", "unroll it when exporting"),
}
"""Operators that nothing here takes, in whichever domain they are."""


def is_quantized(model: Model) -> bool:
    """Whether a network has been quantised: some QuantizeLinear has a constant scale."""
    return any(
        node.kind == "QuantizeLinear" and node.inputs[1] in model.constants for node in model.nodes
    )


def unquantized_because(model: Model) -> str:
    """Say what a network that has not been quantised has instead of constant scales."""
    rounding = [node for node in model.nodes if node.kind in ("QuantizeLinear", "DequantizeLinear")]
    given = any(node.inputs[1] not in model.constants for node in rounding)
    if given or any(node.kind.startswith("QLinear") for node in model.nodes):
        return "its scales are computed when it runs"
    if rounding:
        return "only its weights are: what passes between operators is real numbers"
    return "nothing in it is: all of its numbers are real"


def require_taken(node: Node, draft: Draft) -> None:
    """Raise E194 for an operator of a dialect that nothing here takes, with what to do."""
    if node.kind in REFUSED:
        reason, help = REFUSED[node.kind]
        raise draft.refused(node, f"must be an operator with a static form, and {reason}", help)


def plain(node: Node, draft: Draft) -> list[Node]:
    """Take a quantised operator apart; others stay as they are."""
    apart = ROWS.get((node.domain, node.kind))
    parts = None if apart is None else apart(node, draft)
    return [node] if parts is None else parts


def _input(node: Node, place: int) -> str:
    return node.inputs[place] if has(node, place) else ""


def _all_constant(node: Node, draft: Draft, places: tuple[int, ...]) -> bool:
    names = [_input(node, place) for place in places]
    return all(not name or name in draft.constants for name in names)


def _read(
    node: Node, draft: Draft, places: tuple[int, int, int], axis: int = 1
) -> tuple[Node, str]:
    """Make the DequantizeLinear of an input, its scale and its zero point; its result's name."""
    tensor, scale, zero = (_input(node, place) for place in places)
    if not tensor or not scale:
        raise draft.wrong(node, "must have its tensors with their scales, and has not")
    result = draft.fresh(f"{tensor}:real")
    inputs = (tensor, scale) + ((_spread(zero, scale, draft),) if zero else ())
    return made(node, "DequantizeLinear", inputs, (result,), axis=axis), result


def _spread(zero: str, scale: str, draft: Draft) -> str:
    """Make a zero point of as many elements as its scale has."""
    value, shape = draft.constants[zero], draft.shape(scale)
    if value.shape == shape or value.size != 1:
        return zero
    return draft.constant(np.broadcast_to(value.reshape(()), shape).copy(), zero)


def _written(node: Node, draft: Draft, tensor: str, scale: str, zero: str, like: str) -> Node:
    """Make the QuantizeLinear of a result; without a zero point, to the type of another tensor."""
    if not scale:
        raise draft.wrong(node, "must have a scale of its result, and has none")
    if not zero:
        dtype = draft.types[like].dtype
        zero = draft.constant(np.zeros(draft.shape(scale), dtype), f"{tensor}:zero_point")
    return made(node, "QuantizeLinear", (tensor, scale, _spread(zero, scale, draft)), node.outputs)


def _binary(kind: str) -> Row:
    def apart(node: Node, draft: Draft) -> list[Node] | None:
        if not _all_constant(node, draft, (1, 2, 4, 5, 6, 7)):
            return None
        first, a = _read(node, draft, (0, 1, 2))
        second, b = _read(node, draft, (3, 4, 5))
        result = draft.fresh(f"{node.outputs[0]}:real")
        written = _written(node, draft, result, _input(node, 6), _input(node, 7), node.inputs[0])
        return [first, second, made(node, kind, (a, b), (result,)), written]

    return apart


def _unary(kind: str, *attributes: str) -> Row:
    """Make a row of an operator of a tensor with its scale, and the scale of its result."""

    def apart(node: Node, draft: Draft) -> list[Node] | None:
        if not _all_constant(node, draft, (1, 2, 3, 4)) or node.attributes.get("channels_last", 0):
            return None
        first, x = _read(node, draft, (0, 1, 2))
        result = draft.fresh(f"{node.outputs[0]}:real")
        kept = {name: node.attributes[name] for name in attributes if name in node.attributes}
        written = _written(node, draft, result, _input(node, 3), _input(node, 4), node.inputs[0])
        return [first, made(node, kind, (x,), (result,), **kept), written]

    return apart


def _reduce_mean(node: Node, draft: Draft) -> list[Node] | None:
    parts = _unary("ReduceMean", "axes", "keepdims")(node, draft)
    if parts is None or "axes" not in parts[1].attributes:
        return parts
    axes = np.array(parts[1].attributes["axes"], np.int64)
    inputs = (*parts[1].inputs, draft.constant(axes, f"{node.name}:axes"))
    return [parts[0], changed(parts[1], inputs=inputs, without=("axes",)), parts[2]]


def _softmax(node: Node, draft: Draft) -> list[Node] | None:
    from mizzen.frontends.onnx.forms import modern

    parts = _unary("Softmax", "axis")(node, draft)
    if parts is None:
        return None
    version = node.attributes.get("opset", 13)
    draft.types[parts[0].outputs[0]] = draft.types[node.inputs[0]]
    return [parts[0], *modern(parts[1], version, draft), parts[2]]


def _convolution(node: Node, draft: Draft) -> list[Node] | None:
    if not _all_constant(node, draft, (1, 2, 4, 5, 6, 7)) or node.attributes.get("channels_last"):
        return None
    first, x = _read(node, draft, (0, 1, 2))
    second, w = _read(node, draft, (3, 4, 5), axis=0)
    result = draft.fresh(f"{node.outputs[0]}:real")
    parts, inputs = [first, second], (x, w)
    if has(node, 8):
        scale = _product(node, draft, 1, 4)
        bias, b = _bias(node, draft, node.inputs[8], scale, 0)
        parts, inputs = [*parts, bias], (x, w, b)
    written = _written(node, draft, result, _input(node, 6), _input(node, 7), node.inputs[0])
    return [*parts, made(node, "Conv", inputs, (result,), **node.attributes), written]


def _product(node: Node, draft: Draft, first: int, second: int, factor: float = 1.0) -> Array:
    """Multiply two scales, as the scale of a sum of products, in float32."""
    x, w = draft.constants[node.inputs[first]], draft.constants[node.inputs[second]]
    if x.size != 1:
        raise draft.refused(node, "must have one scale of its first input, and has several")
    product = x.reshape(()).astype(np.float32) * w.astype(np.float32)
    return (product * np.float32(factor)).astype(np.float32)


def _bias(node: Node, draft: Draft, name: str, scale: Array, axis: int) -> tuple[Node, str]:
    """Make the DequantizeLinear of a bias of 32 bits, which has no scale of its own."""
    result = draft.fresh(f"{name}:real")
    scale = scale.reshape(()) if scale.size == 1 else scale.reshape(-1)
    scales = draft.constant(scale, f"{name}:scale")
    zeros = draft.constant(np.zeros(scale.shape, np.int32), f"{name}:zero_point")
    return made(node, "DequantizeLinear", (name, scales, zeros), (result,), axis=axis), result


def _matmul(node: Node, draft: Draft) -> list[Node] | None:
    if not _all_constant(node, draft, (1, 2, 4, 5, 6, 7)):
        return None
    ranks = [len(draft.shape(node.inputs[place])) for place in (0, 3)]
    if any(draft.constants[node.inputs[place]].size > 1 for place in (1, 6)):
        return None
    first, a = _read(node, draft, (0, 1, 2))
    second, b = _read(node, draft, (3, 4, 5), axis=max(ranks[1] - 1, 0))
    result = draft.fresh(f"{node.outputs[0]}:real")
    written = _written(node, draft, result, _input(node, 6), _input(node, 7), node.inputs[0])
    return [first, second, made(node, "MatMul", (a, b), (result,)), written]


def _gemm(node: Node, draft: Draft) -> list[Node] | None:
    if not _all_constant(node, draft, (1, 2, 4, 5, 7, 8)):
        return None
    first, a = _read(node, draft, (0, 1, 2))
    is_turned = bool(node.attributes.get("transB", 0))
    second, b = _read(node, draft, (3, 4, 5), axis=0 if is_turned else 1)
    parts, inputs = [first, second], (a, b)
    if has(node, 6):
        scale = _product(node, draft, 1, 4, node.attributes.get("alpha", 1.0))
        axis = max(len(draft.shape(node.inputs[6])) - 1, 0)
        bias, c = _bias(node, draft, node.inputs[6], scale, axis)
        parts, inputs = [*parts, bias], (a, b, c)
    kept = {k: node.attributes[k] for k in ("alpha", "transA", "transB") if k in node.attributes}
    if not has(node, 7):
        return [*parts, made(node, "Gemm", inputs, node.outputs, **kept)]
    result = draft.fresh(f"{node.outputs[0]}:real")
    written = _written(node, draft, result, _input(node, 7), _input(node, 8), node.inputs[0])
    return [*parts, made(node, "Gemm", inputs, (result,), **kept), written]


def _concat(node: Node, draft: Draft) -> list[Node] | None:
    count, rest = divmod(len(node.inputs) - 2, 3)
    if count < 1 or rest:
        raise draft.wrong(node, "must have each input with a scale and a zero point, and has not")
    scales = tuple(2 + 3 * part + place for part in range(count) for place in (1, 2))
    if not _all_constant(node, draft, (0, 1, *scales)):
        return None
    reads = [_read(node, draft, (2 + 3 * k, 3 + 3 * k, 4 + 3 * k)) for k in range(count)]
    result = draft.fresh(f"{node.outputs[0]}:real")
    names = tuple(name for _, name in reads)
    written = _written(node, draft, result, _input(node, 0), _input(node, 1), node.inputs[2])
    joined = made(node, "Concat", names, (result,), **node.attributes)
    return [*(part for part, _ in reads), joined, written]


def _where(node: Node, draft: Draft) -> list[Node] | None:
    if not _all_constant(node, draft, (2, 3, 5, 6, 7, 8)):
        return None
    first, x = _read(node, draft, (1, 2, 3))
    second, y = _read(node, draft, (4, 5, 6))
    result = draft.fresh(f"{node.outputs[0]}:real")
    written = _written(node, draft, result, _input(node, 7), _input(node, 8), node.inputs[1])
    return [first, second, made(node, "Where", (node.inputs[0], x, y), (result,)), written]


def _own(kind: str, **defaults: Any) -> Row:
    """Make a row of an operator that ONNX has too, by the same inputs and attributes."""

    def apart(node: Node, draft: Draft) -> list[Node] | None:
        return [made(node, kind, node.inputs, node.outputs, **(defaults | dict(node.attributes)))]

    return apart


_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")

ROWS: Mapping[tuple[str, str], Row] = {
    (ONNX, "QLinearConv"): _convolution,
    (ONNX, "QLinearMatMul"): _matmul,
    (MICROSOFT, "QLinearAdd"): _binary("Add"),
    (MICROSOFT, "QLinearMul"): _binary("Mul"),
    (MICROSOFT, "QLinearSigmoid"): _unary("Sigmoid"),
    (MICROSOFT, "QLinearLeakyRelu"): _unary("LeakyRelu", "alpha"),
    (MICROSOFT, "QLinearAveragePool"): _unary("AveragePool", *_POOL),
    (MICROSOFT, "QLinearGlobalAveragePool"): _unary("GlobalAveragePool"),
    (MICROSOFT, "QLinearReduceMean"): _reduce_mean,
    (MICROSOFT, "QLinearSoftmax"): _softmax,
    (MICROSOFT, "QLinearConcat"): _concat,
    (MICROSOFT, "QLinearConv"): _convolution,
    (MICROSOFT, "QLinearWhere"): _where,
    (MICROSOFT, "QGemm"): _gemm,
    (MICROSOFT, "QuantizeLinear"): _own("QuantizeLinear"),
    (MICROSOFT, "DequantizeLinear"): _own("DequantizeLinear"),
    (MICROSOFT, "Gelu"): _own("Gelu"),
}
"""What takes an operator of integers apart."""
